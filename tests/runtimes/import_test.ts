import { test } from "node:test";
import assert from "node:assert/strict";
import { runChild, runtime } from "./children.ts";

test("importing mod.ts touches no runtime global, timer or chance", async () => {
  const { code, output, errors } = await runChild("./import_child.ts", []);
  assert.equal(code, 0, errors);
  assert.deepEqual(JSON.parse(output), { exports: "function", touched: [] });
});

test("importing mod.ts needs no permission at all", { skip: runtime !== "deno" }, async () => {
  const { code, output, errors } = await runChild("./import_child.ts", [], [
    "--deny-env",
    "--deny-read",
    "--deny-net",
    "--deny-run",
    "--deny-sys",
    "--deny-ffi",
    "--deny-write",
  ]);
  assert.equal(code, 0, errors);
  assert.deepEqual(JSON.parse(output), { exports: "function", touched: [] });
});
