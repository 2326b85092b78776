import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import layers from "./check_layers.ts";
import size from "./check_size.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

function check(path: string, source: string): string[] {
  return [layers, size].flatMap((plugin) => Deno.lint.runPlugin(plugin, root + path, source))
    .map((diagnostic) => diagnostic.id).sort();
}

const IMPORTS: readonly [path: string, source: string, allowed: boolean][] = [
  ["src/wire/a.ts", 'import { b } from "./b.ts";', true],
  ["src/wire/a.ts", 'import { b } from "../errors.ts";', true],
  ["src/wire/a.ts", 'import { b } from "../auth/b.ts";', false],
  ["src/wire/a.ts", 'import type { B } from "../codecs/b.ts";', false],
  ["src/wire/a.ts", 'export { b } from "../engine/b.ts";', false],
  ["src/wire/a.ts", 'export * from "../engine/b.ts";', false],
  ["src/wire/a.ts", 'type B = import("../engine/b.ts").B;', false],
  ["src/transport/a.ts", 'const b = () => import("../wire/b.ts");', false],
  ["src/codecs/a.ts", 'import { b } from "../wire/b.ts";', true],
  ["src/codecs/a.ts", 'import { b } from "../engine/b.ts";', false],
  ["src/errors.ts", 'import { b } from "./wire/b.ts";', false],
  ["src/connection/a.ts", 'import { b } from "../engine/b.ts";', true],
  ["src/connection/a.ts", 'import { b } from "../pool/b.ts";', false],
  ["src/client/a.ts", 'import { b } from "../pool/b.ts";', true],
  ["src/client/a.ts", 'import { b } from "../../mod.ts";', false],
  ["src/client/a.ts", 'import { b } from "../../tests/_support/b.ts";', false],
  ["src/nowhere/a.ts", 'import { b } from "../errors.ts";', false],
  ["mod.ts", 'export { b } from "./src/client/b.ts";', true],
  ["tests/wire/a_test.ts", 'import { b } from "../../src/client/b.ts";', true],
];

for (const [path, source, allowed] of IMPORTS) {
  test(`${path} ${allowed ? "may" : "may not"} say ${source}`, () => {
    assert.deepEqual(check(path, source), allowed ? [] : ["layers/imports"]);
  });
}

const RUNTIME: readonly [path: string, source: string, allowed: boolean][] = [
  ["src/client/a.ts", "Deno.pid;", false],
  ["src/client/a.ts", "globalThis.Bun;", false],
  ["src/client/a.ts", "Buffer.from([]);", false],
  ["src/auth/a.ts", 'import { b } from "node:crypto";', false],
  ["mod.ts", "process.pid;", false],
  ["src/client/a.ts", "const a = { process: 1, Deno: 2 }; a.process + a.Deno;", true],
  ["src/client/a.ts", "// Deno, process and Buffer\nconst text = 'Deno.connect and node:net';", true],
  ["src/transport/a.ts", "Deno.pid;", true],
  ["src/connection/a.ts", "process.env;", true],
  ["scripts/a.ts", "Deno.pid;", true],
];

for (const [path, source, allowed] of RUNTIME) {
  test(`${path} ${allowed ? "may" : "may not"} say ${source.replaceAll("\n", " ")}`, () => {
    assert.deepEqual(check(path, source), allowed ? [] : ["layers/runtime-names"]);
  });
}

const SANS_IO: readonly [path: string, source: string, found: number][] = [
  ["src/wire/a.ts", "export async function b(): Promise<void> {}", 2],
  ["src/wire/a.ts", "const b = async () => 1;", 1],
  ["src/engine/a.ts", "class A { async b() {} }", 1],
  ["src/engine/a.ts", "async function b() { await 1; }", 2],
  ["src/engine/a.ts", "setTimeout(() => {}, 1);", 1],
  ["src/engine/a.ts", "Date.now();", 1],
  ["src/codecs/a.ts", "new Date();", 1],
  ["src/codecs/a.ts", "new Date(0);", 0],
  ["src/codecs/a.ts", "Math.random();", 1],
  ["src/codecs/a.ts", "crypto.getRandomValues(new Uint8Array(1));", 1],
  ["src/pool/pool_state.ts", "performance.now();", 1],
  ["src/pool/pool.ts", "performance.now();", 0],
  ["src/codecs/a.ts", "// await a Promise, Date.now()\nconst a = 'async';", 0],
];

for (const [path, source, found] of SANS_IO) {
  test(`sans I/O: ${path} saying ${source.replaceAll("\n", " ")} is found ${found} times`, () => {
    assert.deepEqual(check(path, source), Array(found).fill("layers/sans-io"));
  });
}

test("a module of the package may not await while it loads", () => {
  assert.deepEqual(check("src/client/a.ts", "await 1;"), ["layers/top-level-await"]);
  assert.deepEqual(check("src/client/a.ts", "async function a() { await 1; }"), []);
  assert.deepEqual(check("scripts/a.ts", "await 1;"), []);
});

test("a long file or function needs a reason", () => {
  const lines = (count: number) => "1;\n".repeat(count);
  assert.deepEqual(check("src/client/a.ts", lines(500)), []);
  assert.deepEqual(check("src/client/a.ts", lines(501)), ["size/file"]);
  assert.deepEqual(check("src/client/a.ts", `// size: a table\n${lines(501)}`), []);
  assert.deepEqual(check("src/client/a.gen.ts", lines(501)), []);
  const body = (count: number, reason: string) =>
    `/** Docs. */\n${reason}function a() {\n${lines(count - 2)}}\n`;
  assert.deepEqual(check("src/client/a.ts", body(60, "")), []);
  assert.deepEqual(check("src/client/a.ts", body(61, "")), ["size/function"]);
  assert.deepEqual(check("src/client/a.ts", body(61, "// size: one switch\n")), []);
  assert.deepEqual(check("tests/client/a_test.ts", body(61, "")), []);
});
