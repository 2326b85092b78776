/** Whether a process ends by itself: after close(), and with allowExitOnIdle without it. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ask, leavesNoSession, limit } from "../_support/server.ts";

const SCRIPT = fileURLToPath(new URL("../_support/pool_child.ts", import.meta.url));

/** Runs the child; what it printed, and how many milliseconds after "done" it ended. */
async function run(scenario: string): Promise<{ output: string; after: number }> {
  const runtimeArguments = "Deno" in globalThis ? ["run", "--allow-all", "--no-check"] : [];
  const child = spawn(process.execPath, [...runtimeArguments, SCRIPT, scenario], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    let output = "";
    let doneAt = 0;
    child.stdout!.on("data", (chunk) => {
      output += chunk;
      if (output.includes("done")) doneAt ||= performance.now();
    });
    const exit = new Promise<number | null>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", resolve);
    });
    const patience = scenario === "open and idle" ? 3_000 : 25_000;
    const code = await limit(exit, patience).catch(() => "still running");
    if (code !== "still running") assert.equal(code, 0);
    return { output, after: code === "still running" ? Infinity : performance.now() - doneAt };
  } finally {
    child.kill("SIGKILL");
  }
}

for (
  const scenario of [
    "close after everything",
    "close without use",
    "close twice, with a query",
    "close after listening",
    "close while nothing can be reached",
    "idle after everything",
    "idle with queryTimeout",
    "idle after many have waited",
    "idle after one who waited has left",
    "idle with a query under way",
    "idle with minIdle",
    "idle, killed",
  ]
) {
  test(`a process ends by itself: ${scenario}`, async () => {
    const { output, after } = await run(scenario);
    assert.match(output, /done/);
    if (scenario.includes("under way")) assert.match(output, /answered/);
    assert.ok(after < 2_500, `it ended ${after} ms after its work`);
  });
}

test("without close() and without allowExitOnIdle an idle pool keeps the process alive", async () => {
  const { output, after } = await run("open and idle");
  assert.match(output, /done/);
  assert.equal(after, Infinity);
  await ask("select 1");
});

leavesNoSession();
