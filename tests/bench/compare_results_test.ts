import assert from "node:assert/strict";
import { test } from "node:test";
import { compareResults, comparisonGaps } from "../../bench/harness/compare_results.ts";
import { measurement, resultsOf } from "./sample_results.ts";

const BASE = [100, 101, 99, 100, 102, 98, 100];

function compare(candidate: readonly number[], driftOfCandidate: number = 0) {
  const last = { cpu: 100 * (1 + driftOfCandidate), wall: 200 };
  const control = { what: "", first: { cpu: 100, wall: 200 }, last };
  return compareResults(
    resultsOf([measurement("pipegres", BASE)]),
    resultsOf([measurement("pipegres", candidate)], { control }),
  );
}

test("compareResults() tells of a change above noise, in CPU and wall time", () => {
  const changes = compare(BASE.map((cost) => cost * 1.2));
  assert.deepEqual(changes.map(({ figure, significant }) => [figure, significant]), [["CPU", true], [
    "wall",
    true,
  ]]);
  assert.ok(Math.abs(changes[0]!.ratio.value - 1.2) < 0.001);
});

test("compareResults() tells of a gain as well", () => {
  const [cpu] = compare(BASE.map((cost) => cost * 0.7));
  assert.ok(cpu!.significant && cpu!.ratio.high < 1);
});

test("compareResults() keeps quiet about less than 3 %, scattered rounds and drifting runs", () => {
  assert.ok(compare(BASE.map((cost) => cost * 1.02)).every(({ significant }) => !significant));
  assert.ok(compare([60, 190, 80, 170, 95, 110, 150]).every(({ significant }) => !significant));
  assert.ok(compare(BASE.map((cost) => cost * 1.2), 0.25).every(({ significant }) => !significant));
});

test("compareResults() leaves out what was not measured in both, comparisonGaps() names it", () => {
  const baseline = resultsOf([measurement("pipegres", BASE), measurement("pg", BASE)]);
  const candidate = resultsOf([
    measurement("pipegres", BASE),
    measurement("pg", [], { status: "failed", reason: "lost" }),
    measurement("postgres", BASE),
  ]);
  assert.equal(compareResults(baseline, candidate).length, 2);
  assert.deepEqual(comparisonGaps(baseline, candidate), [
    "only in the baseline: simple, pg on node",
    "only in the candidate: simple, postgres on node",
  ]);
});
