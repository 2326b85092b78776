import assert from "node:assert/strict";
import { test } from "node:test";
import { scenarioCharts, withThemes } from "../../bench/harness/charts.ts";
import { reportText } from "../../bench/harness/report_text.ts";
import { groupsOf } from "../../bench/harness/summary.ts";
import { alignColumns, formatBytes, formatTime, terminalTable } from "../../bench/harness/tables.ts";
import { measurement, resultsOf } from "./sample_results.ts";

const RESULTS = resultsOf([
  measurement("pipegres", [10, 11, 12, 10, 11, 12, 10]),
  measurement("pg", [30, 33, 36, 30, 33, 36, 30]),
  measurement("floor", [5, 5.5, 6, 5, 5.5, 6, 5]),
  measurement("postgrejs", [], { status: "excluded", reason: "answered 1 rows, wanted 2" }),
]);

test("groupsOf() gives medians and ratios to ours and to the floor", () => {
  const [group] = groupsOf(RESULTS);
  const pg = group!.summaries.find(({ measurement }) => measurement.driver === "pg")!;
  assert.equal(pg.cpu, 33);
  assert.deepEqual([pg.cpuOverOurs!.value, pg.cpuOverFloor!.value, pg.wallOverOurs!.value], [3, 6, 3]);
  assert.deepEqual(group!.missing.map(({ driver }) => driver), ["postgrejs"]);
});

test("groupsOf() gives no ratio to what was not measured", () => {
  const [group] = groupsOf(resultsOf([measurement("pg", [1, 2])]));
  assert.equal(group!.summaries[0]!.cpuOverOurs, undefined);
  assert.equal(group!.summaries[0]!.cpuOverFloor, undefined);
});

test("reportText() shows figures, exclusions, versions and how to repeat", () => {
  const text = reportText({ results: RESULTS, scale: undefined, charts: [] });
  for (
    const part of [
      "## node 24.0.0",
      "33.0 µs (3.00 [3.00, 3.00])",
      "*excluded*",
      "postgrejs: excluded (answered 1 rows, wanted 2)",
      "task bench:quick",
      "PostgreSQL 18",
      "`fsync=off`",
      "was off by 0.0 %",
    ]
  ) assert.ok(text.includes(part), part);
  assert.ok(!text.includes("NOT PUBLISHABLE"));
  assert.ok(!/undefined|NaN|\[object/.test(text));
});

test("reportText() says NOT PUBLISHABLE at the top, with the reason", () => {
  const marks = [{ kind: "NOT PUBLISHABLE", text: "drift 14.8 %" } as const];
  const text = reportText({ results: { ...RESULTS, marks }, scale: undefined, charts: [] });
  assert.ok(text.indexOf("NOT PUBLISHABLE") < text.indexOf("## "));
  assert.ok(text.includes("drift 14.8 %"));
});

test("terminalTable() has a line for every driver", () => {
  const table = terminalTable(RESULTS);
  for (const name of ["pipegres", "pg", "floor", "postgrejs: excluded"]) {
    assert.ok(table.includes(name), name);
  }
});

test("formatTime() and formatBytes() keep three digits and choose a unit", () => {
  assert.deepEqual([0.1234, 1.234, 45.67, 999.9, 1234, 2_500_000].map(formatTime), [
    "0.123 µs",
    "1.23 µs",
    "45.7 µs",
    "1000 µs",
    "1.23 ms",
    "2.50 s",
  ]);
  assert.deepEqual([12, 1234, 10_485_760].map(formatBytes), ["12 B", "1.23 kB", "10.5 MB"]);
});

test("alignColumns() aligns the first column left and the others right", () => {
  assert.equal(alignColumns([["a", "bb"], ["ccc", "d"]]), "a    bb\nccc   d");
});

test("scenarioCharts() draws one chart for ours and one for the floor", () => {
  assert.deepEqual(scenarioCharts(RESULTS).map(({ name }) => name), [
    "node-cpu-over-pipegres",
    "node-cpu-over-floor",
  ]);
});

test("withThemes() gives the picture a title and text colours for both grounds", () => {
  const svg = withThemes('<svg xmlns="x" width="1"><text fill="#000">t</text></svg>', "a < b & c");
  assert.ok(svg.startsWith('<svg xmlns="x" width="1"><title>a &lt; b &amp; c</title><style>'));
  assert.ok(svg.includes("prefers-color-scheme:dark"));
});
