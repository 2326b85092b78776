/** The npm package as its users get it: installed from the tarball into a fresh project. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { limit, testUrl } from "../tests/_support/server.ts";
import { buildNpm, type NpmPackage } from "./build_npm.ts";
import { findOldestNode, findRuntime, type Runtime } from "./runtimes.ts";

const IMPORT = `import { connect, sql } from "pipegres";
const connection = await connect(process.env.URL);
const n = 41;
console.log(JSON.stringify([await connection.sql\`select \${n}::int4 + 1 as n\`, typeof sql.id]));
await connection.close();
`;

const REQUIRE = `const { connect, sql } = require("pipegres");
async function main() {
  const connection = await connect(process.env.URL);
  const n = 41;
  console.log(JSON.stringify([await connection.sql\`select \${n}::int4 + 1 as n\`, typeof sql.id]));
  await connection.close();
}
main();
`;

const CONSUMER = `import { connect, type Connection, PostgresError, sql } from "pipegres";
export const connection: Promise<Connection> = connect("postgres://localhost");
export const rows: Promise<{ n: number }[]> = connection.then(async (c) => await c.sql<{ n: number }>\`select 1 as n\`);
export const isServerError = (error: unknown): boolean => error instanceof PostgresError && error.code === "42P01";
void sql.id("a");
// @ts-expect-error: a connection string is not a number
void connect(5);
`;

let project: Promise<string> | undefined;
const temporary: string[] = [];

/** A project with the package installed, made once. */
function freshProject(): Promise<string> {
  return project ??= (async () => {
    const directory = await Deno.makeTempDir({ prefix: "pipegres-package-" });
    temporary.push(directory);
    const built = await buildNpm(join(directory, "built"));
    const files = {
      "use.mjs": IMPORT,
      "use.cjs": REQUIRE,
      "consumer.ts": CONSUMER,
      "package.json": '{"private":true}',
    };
    for (const [name, text] of Object.entries(files)) await Deno.writeTextFile(join(directory, name), text);
    await install(directory, built);
    return directory;
  })();
}

/** By npm; where only Deno is installed, by unpacking, which is all that npm does without dependencies. */
async function install(directory: string, built: NpmPackage): Promise<void> {
  const args = ["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", built.tarball];
  try {
    await run("npm", args, directory);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    const target = join(directory, "node_modules", "pipegres");
    await Deno.mkdir(target, { recursive: true });
    await run("tar", ["-xzf", built.tarball, "--strip-components=1", "-C", target], directory);
  }
}

async function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(command, {
    args: [...args],
    cwd,
    env: { URL: Deno.env.get("PIPEGRES_TEST_URL") ?? testUrl(), NO_COLOR: "1" },
    stdin: "null",
    signal: AbortSignal.timeout(120_000),
  }).output();
  const decoder = new TextDecoder();
  assert.ok(success, `${command} ${args.join(" ")}: ${decoder.decode(stdout)}${decoder.decode(stderr)}`);
  return decoder.decode(stdout);
}

const RUNTIMES: readonly [name: string, find: () => Promise<Runtime>, args: readonly string[]][] = [
  ["the oldest Node.js", findOldestNode, []],
  ["Node.js", () => findRuntime("node"), []],
  ["Bun", () => findRuntime("bun"), []],
  ["Deno", () => findRuntime("deno"), ["run", "-A", "--node-modules-dir=manual"]],
];

for (const [name, find, args] of RUNTIMES) {
  for (const file of ["use.mjs", "use.cjs"]) {
    test(`${name} uses the package by ${file === "use.mjs" ? "import" : "require()"}`, async () => {
      const [directory, runtime] = await limit(Promise.all([freshProject(), find()]), 120_000, "the project");
      const output = await limit(run(runtime.path, [...args, file], directory), 60_000, file);
      assert.equal(output.trim(), '[[{"n":42}],"function"]');
    });
  }
}

test("the declarations serve a strict TypeScript project", async () => {
  const directory = await limit(freshProject(), 120_000, "the project");
  const options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022"];
  const libraries = ["--lib", "es2022,dom,esnext.disposable"];
  const tsc = ["run", "-A", "--no-config", "npm:typescript@5.9.3/tsc"];
  await limit(
    run(Deno.execPath(), [...tsc, ...options, ...libraries, "consumer.ts"], directory),
    120_000,
    "tsc",
  );
});

test("the temporary folders are removed", async () => {
  for (const directory of temporary) await Deno.remove(directory, { recursive: true });
});
