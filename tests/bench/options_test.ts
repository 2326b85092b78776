import assert from "node:assert/strict";
import { test } from "node:test";
import { parseOptions, selectNames, UsageError } from "../../bench/harness/options.ts";

test("parseOptions() has a default for everything", () => {
  const options = parseOptions([]);
  assert.deepEqual(options.runtimes, ["deno", "bun", "node"]);
  assert.equal(options.drift, 0.03);
  assert.deepEqual(options.drivers, []);
});

test("parseOptions() reads every option; others win over --quick", () => {
  const options = parseOptions(
    "--runtimes node --drivers pg,floor --scenarios simple --rounds 7 --window 20 --drift 5 --seed 1 --out x --quick"
      .split(" "),
  );
  assert.deepEqual(options.runtimes, ["node"]);
  assert.deepEqual(options.drivers, ["pg", "floor"]);
  assert.deepEqual(options.scenarios, ["simple"]);
  assert.equal(options.rounds, 7);
  assert.equal(options.window, 20);
  assert.equal(options.drift, 0.05);
  assert.equal(options.seed, 1);
  assert.equal(options.out, "x");
  assert.ok(options.warmLimit < parseOptions([]).warmLimit);
});

test("parseOptions() refuses what it does not know", () => {
  for (
    const args of [["--fast"], ["--rounds"], ["--rounds", "0"], ["--window", "x"], ["--runtimes", "deno,v8"]]
  ) {
    assert.throws(() => parseOptions(args), UsageError, args.join(" "));
  }
});

test("selectNames() prefers the exact name to a part of others", () => {
  const all = ["simple", "simple x50", "extended", "pool simple 1000"];
  assert.deepEqual(selectNames(all, []), all);
  assert.deepEqual(selectNames(all, ["simple"]), ["simple"]);
  assert.deepEqual(selectNames(all, ["pool", "simple"]), ["simple", "pool simple 1000"]);
  assert.deepEqual(selectNames(all, ["x50"]), ["simple x50"]);
  assert.throws(() => selectNames(all, ["nothing"]), UsageError);
});
