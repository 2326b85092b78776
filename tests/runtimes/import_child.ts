/** Imports the package while every runtime global, and what a global may give away, is a trap. */

const names = ["Deno", "Bun", "process", "Buffer", "require", "navigator", "location"];
const touched: string[] = [];
const log = console.log;

for (const name of names) {
  // What a runtime does not let be replaced is watched by its members.
  if (Object.getOwnPropertyDescriptor(globalThis, name)?.configurable === false) {
    watchMembers(name);
    continue;
  }
  Object.defineProperty(globalThis, name, {
    configurable: true,
    get() {
      touched.push(`${name} ${new Error().stack}`);
      return undefined;
    },
  });
}
for (const name of ["fetch", "setTimeout", "setInterval", "setImmediate", "queueMicrotask"]) {
  Object.defineProperty(globalThis, name, {
    configurable: true,
    value() {
      touched.push(`${name}() ${new Error().stack}`);
    },
  });
}
function watchMembers(name: string): void {
  const owner = (globalThis as unknown as Record<string, object>)[name]!;
  for (const [key, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(owner))) {
    if (descriptor.configurable !== true) continue;
    Object.defineProperty(owner, key, {
      configurable: true,
      get() {
        touched.push(`${name}.${key} ${new Error().stack}`);
        return undefined;
      },
    });
  }
}

const { random } = Math;
Math.random = () => {
  touched.push("Math.random()");
  return random();
};

const module = await import("../../mod.ts");
const inOurs = touched.filter((place) => /\/(src\/|mod\.ts)/.test(place));
log(JSON.stringify({ exports: typeof module.connect, touched: inOurs }));
