import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf } from "../../bench/harness/answers.ts";
import {
  type Circumstances,
  compareAnswers,
  driftOf,
  floorMismatches,
  type GivenAnswer,
  isPublishable,
  marksOf,
} from "../../bench/harness/gates.ts";
import type { Rows } from "../../bench/harness/driver.ts";
import { measurement } from "./sample_results.ts";

const EXPECTED = { rows: 2, columns: ["n", "t"] };
const RIGHT = [{ n: 1, t: "a" }, { n: 2, t: "b" }];

function given(who: string, rows: Rows): GivenAnswer {
  return { who, answer: answerOf([rows]), counts: "counted" in rows };
}

test("compareAnswers() passes equal answers, whatever types drivers give", () => {
  const wrong = compareAnswers([
    given("a", RIGHT),
    given("b", [{ n: 1n, t: "a" }, { n: 2n, t: "b" }]),
    given("c", [{ n: "1", t: "a" }, { n: "2", t: "b" }]),
    given("floor", { counted: 2 }),
  ], EXPECTED);
  assert.deepEqual([...wrong], []);
});

test("compareAnswers() excludes a driver that answers less work: rows missing", () => {
  const wrong = compareAnswers(
    [given("a", RIGHT), given("lazy", RIGHT.slice(1)), given("b", RIGHT)],
    EXPECTED,
  );
  assert.deepEqual([...wrong], [["lazy", "answered 1 rows, wanted 2"]]);
});

test("compareAnswers() excludes a driver that only counts and counts too few", () => {
  const wrong = compareAnswers([given("a", RIGHT), given("floor", { counted: 1 })], EXPECTED);
  assert.deepEqual([...wrong.keys()], ["floor"]);
});

test("compareAnswers() excludes a driver that answers other columns", () => {
  const wrong = compareAnswers([given("a", RIGHT), given("short", [{ n: 1 }, { n: 2 }])], EXPECTED);
  assert.deepEqual([...wrong], [["short", "answered columns (n), wanted (n, t)"]]);
});

test("compareAnswers() excludes a driver whose values differ, and names the value", () => {
  const wrong = compareAnswers([
    given("a", RIGHT),
    given("b", RIGHT),
    given("wrong", [{ n: 1, t: "x" }, { n: 2, t: "b" }]),
  ], EXPECTED);
  assert.deepEqual([...wrong], [["wrong", "answered x in column t of the first row, a a"]]);
});

test("compareAnswers() sees a difference in the last row", () => {
  const wrong = compareAnswers([
    given("a", RIGHT),
    given("b", RIGHT),
    given("wrong", [{ n: 1, t: "a" }, { n: 2, t: "B" }]),
  ], EXPECTED);
  assert.match(wrong.get("wrong")!, /after the first row/);
});

test("compareAnswers() excludes everybody when nobody has a majority", () => {
  const wrong = compareAnswers(
    [given("a", RIGHT), given("b", [{ n: 1, t: "x" }, { n: 2, t: "b" }])],
    EXPECTED,
  );
  assert.deepEqual([...wrong.keys()], ["a", "b"]);
});

const CALM: Circumstances = {
  control: { what: "extended", first: { cpu: 100, wall: 200 }, last: { cpu: 101, wall: 199 } },
  driftLimit: 0.03,
  dirty: [],
  debugServer: false,
  excluded: [],
  mismatches: [],
  rounds: 15,
};

test("marksOf() lets a calm run be published", () => {
  assert.deepEqual(marksOf(CALM), []);
  assert.ok(isPublishable(marksOf(CALM)));
});

test("marksOf() forbids publication when the repetition of the first measurement is off", () => {
  for (const last of [{ cpu: 104, wall: 200 }, { cpu: 96, wall: 200 }, { cpu: 100, wall: 207 }]) {
    const marks = marksOf({ ...CALM, control: { ...CALM.control!, last } });
    assert.equal(marks.length, 1);
    assert.equal(marks[0]!.kind, "NOT PUBLISHABLE");
    assert.match(marks[0]!.text, /drift \d\.\d % .* allowed 3\.0 %/);
    assert.ok(!isPublishable(marks));
  }
});

test("marksOf() takes the limit that was chosen", () => {
  const control = { ...CALM.control!, last: { cpu: 104, wall: 200 } };
  assert.ok(isPublishable(marksOf({ ...CALM, control, driftLimit: 0.05 })));
});

test("marksOf() forbids publication of a control that measured nothing", () => {
  const control = { what: "", first: { cpu: 0, wall: 0 }, last: { cpu: 0, wall: 0 } };
  assert.equal(driftOf(control), Infinity);
  assert.ok(!isPublishable(marksOf({ ...CALM, control })));
});

test("marksOf() forbids publication of a run that was broken off", () => {
  assert.ok(!isPublishable(marksOf({ ...CALM, control: null })));
});

test("marksOf() forbids publication from a dirty tree, and names files", () => {
  const marks = marksOf({ ...CALM, dirty: ["src/a.ts", "b", "c", "d", "e", "f"] });
  assert.deepEqual(marks, [{ kind: "NOT PUBLISHABLE", text: "dirty work tree: src/a.ts, b, c, d, e, …" }]);
});

test("marksOf() forbids publication against a debug build", () => {
  assert.ok(!isPublishable(marksOf({ ...CALM, debugServer: true })));
});

test("marksOf() notes exclusions and few rounds without forbidding", () => {
  const marks = marksOf({ ...CALM, excluded: ["excluded in simple: x"], rounds: 3 });
  assert.deepEqual(marks.map(({ kind }) => kind), ["note", "note"]);
  assert.ok(isPublishable(marks));
});

test("floorMismatches() tells where the floor sends less than we do", () => {
  const ours = measurement("pipegres", [10], { network: { sent: 100, received: 200 } });
  const honest = measurement("floor", [5], { network: { sent: 101, received: 199 } });
  const cheap = measurement("floor", [5], { network: { sent: 60, received: 200 } });
  assert.deepEqual(floorMismatches([ours, honest], "pipegres", "floor"), []);
  assert.deepEqual(floorMismatches([ours, cheap], "pipegres", "floor"), [
    "simple on node: floor sent 60 bytes an operation, pipegres 100",
  ]);
});
