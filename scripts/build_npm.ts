/**
 * Fills npm/: `npm/package` is what the npm package `pipegres` holds, `npm/pipegres-<version>.tgz` its tarball.
 *
 * deno task build:npm
 *
 * `deno pack` makes the modules and their declarations; here they get npm's name and are checked.
 */

import { fileURLToPath } from "node:url";
import { dirname, join, relative } from "node:path";
import { walk } from "./test_files.ts";

const ROOT: string = fileURLToPath(new URL("..", import.meta.url));
const NPM_NAME = "pipegres";

/** What {@linkcode buildNpm} made. */
export interface NpmPackage {
  readonly directory: string;
  readonly tarball: string;
  readonly version: string;
}

/** Builds the package into `target`, which is emptied first. */
export async function buildNpm(target: string = join(ROOT, "npm")): Promise<NpmPackage> {
  const config: { name: string; version: string } = JSON.parse(
    await Deno.readTextFile(join(ROOT, "deno.json")),
  );
  await Deno.remove(target, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  await Deno.mkdir(target, { recursive: true });
  const packed = join(target, "packed.tgz");
  await run(Deno.execPath(), ["pack", "--allow-dirty", "--no-source-maps", "-o", packed], ROOT);
  await run("tar", ["-xzf", packed], target);
  await Deno.remove(packed);
  const directory = join(target, "package");
  await adapt(directory, config);
  await verify(directory);
  const tarball = join(target, `${NPM_NAME}-${config.version}.tgz`);
  await run("tar", ["-czf", tarball, "package"], target);
  return { directory, tarball, version: config.version };
}

async function run(command: string, args: readonly string[], cwd: string): Promise<void> {
  const { success, stdout, stderr } = await new Deno.Command(command, {
    args: [...args],
    cwd,
    env: { DENO_NO_UPDATE_CHECK: "1", NO_COLOR: "1" },
    stdin: "null",
  }).output();
  if (success) return;
  const decoder = new TextDecoder();
  throw new Error(`${command} ${args.join(" ")} failed: ${decoder.decode(stdout)}${decoder.decode(stderr)}`);
}

async function adapt(directory: string, config: { name: string; version: string }): Promise<void> {
  const path = join(directory, "package.json");
  const packed: Record<string, unknown> = JSON.parse(await Deno.readTextFile(path));
  const adapted = {
    ...packed,
    name: NPM_NAME,
    description: "PostgreSQL driver for Deno, Bun and Node.js: pipelined, exact, without dependencies",
    keywords: ["postgres", "postgresql", "driver", "client", "pipeline", "deno", "bun"],
    engines: { node: ">=20" },
    sideEffects: false,
  };
  await Deno.writeTextFile(path, `${JSON.stringify(adapted, null, 2)}\n`);
  for await (const file of walk(directory)) {
    if (file.endsWith(".d.ts") || file.endsWith(".js")) {
      const text = await Deno.readTextFile(file);
      // Examples show the name the package has here.
      if (text.includes(config.name)) await Deno.writeTextFile(file, text.replaceAll(config.name, NPM_NAME));
    } else if (file.endsWith(".ts")) {
      // A source that mod.ts does not reach, such as the memory transport of the tests.
      await Deno.remove(file);
    }
  }
}

async function verify(directory: string): Promise<void> {
  const problems: string[] = [];
  const manifest = JSON.parse(await Deno.readTextFile(join(directory, "package.json")));
  for (const kind of ["dependencies", "peerDependencies", "optionalDependencies", "scripts"]) {
    if (manifest[kind] !== undefined) problems.push(`package.json has ${kind}`);
  }
  const files = new Set<string>();
  for await (const file of walk(directory)) files.add(file);
  for (const name of ["mod.js", "mod.d.ts", "README.md", "LICENSE"]) {
    if (!files.has(join(directory, name))) problems.push(`${name} is missing`);
  }
  for (const file of files) {
    if (!/\.(js|d\.ts)$/.test(file)) continue;
    const text = await Deno.readTextFile(file);
    for (const [, specifier] of text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]*)"/g)) {
      const target = join(dirname(file), specifier!);
      const found = file.endsWith(".js") ? files.has(target) : files.has(target.replace(/\.js$/, ".d.ts"));
      if (!found) {
        problems.push(`${relative(directory, file)} imports ${specifier}, which is not in the package`);
      }
    }
  }
  if (problems.length > 0) throw new Error(`The npm package is not right: ${problems.join("; ")}`);
}

if (import.meta.main) {
  const { tarball, version } = await buildNpm();
  const { size } = await Deno.stat(tarball);
  console.log(`${NPM_NAME} ${version}: ${relative(ROOT, tarball)}, ${(size / 1000).toFixed(0)} kB`);
}
