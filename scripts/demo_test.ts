import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { limit, testUrl } from "../tests/_support/server.ts";

async function runDemo(environment: Readonly<Record<string, string>>): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", fileURLToPath(import.meta.resolve("./demo.ts"))],
    env: { NO_COLOR: "1", ...environment },
    stdin: "null",
    signal: AbortSignal.timeout(120_000),
  }).output();
  const output = new TextDecoder().decode(stdout);
  assert.ok(success, output + new TextDecoder().decode(stderr));
  return output;
}

function checkTour(output: string): void {
  assert.match(output, /1\. Load 1\d\d,\d\d\d cities[^]*1\d\d,\d\d\d rows in \d+ pipelined inserts/);
  assert.match(output, /2\. Typed queries[^]*US +\d{5} +\d\d\.\d+/);
  assert.match(output, /3\. Composition[^]*Damprichard +FR +54/);
  assert.match(output, /4\. 1,000 look-ups[^]*times faster[^]*every row reached its caller/);
  assert.match(
    output,
    /5\. An error of the server[^]*column "nam" does not exist[^]*LINE 1: select nam[^]*\^/,
  );
  assert.match(output, /6\. Values[^]*9007199254740993n[^]*nothing is left behind/);
  // Written to a pipe, it holds no terminal codes.
  assert.ok(!output.includes("\x1b"));
}

test("the demo tours the driver on a server of its own", async () => {
  checkTour(await limit(runDemo({ DATABASE_URL: "" }), 120_000, "the demo"));
});

test("the demo uses the server of DATABASE_URL", async () => {
  const output = await limit(runDemo({ DATABASE_URL: testUrl() }), 120_000, "the demo");
  checkTour(output);
  assert.match(output, /^DATABASE_URL$/m);
});
