import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf, answerOfJson, normalise } from "../../bench/harness/answers.ts";

test("normalise() makes one text of each value, whatever type it comes in", () => {
  const equal: unknown[][] = [
    [42, 42n, "42", "+42"],
    [1.5, "1.5", "1.50", 1.500000001],
    [new Date("2024-02-29T12:34:56.789Z"), "2024-02-29 12:34:56.789", "2024-02-29T12:34:56.789Z"],
    [new Date("2024-02-29T12:34:56Z"), "2024-02-29 12:34:56", "2024-02-29 12:34:56+00"],
    [{ a: 1, b: [true] }, { b: [true], a: 1 }],
    [[1, 2, 3], new Int32Array([1, 2, 3])],
    [null, undefined],
    [Uint8Array.of(0, 255), new Uint8Array([9, 0, 255]).subarray(1)],
  ];
  for (const values of equal) {
    assert.equal(new Set(values.map(normalise)).size, 1, values.map(normalise).join(" | "));
  }
});

test("normalise() keeps different values apart", () => {
  const values = [
    0,
    1,
    true,
    null,
    "a",
    "",
    [],
    [1],
    [[1]],
    { a: 1 },
    { a: 2 },
    Uint8Array.of(1),
    9007199254740993n,
  ];
  assert.equal(new Set(values.map(normalise)).size, values.length);
  assert.notEqual(normalise("9007199254740993"), normalise("9007199254740992"));
});

test("normalise() tells long bytes apart by their last byte and by their length", () => {
  const texts = [
    new Uint8Array(100),
    new Uint8Array(101),
    new Uint8Array(100).fill(1, 99),
  ].map(normalise);
  assert.equal(new Set(texts).size, 3);
  assert.equal(normalise(new Uint8Array(200).subarray(50, 150)), texts[0]);
});

test("answerOf() counts rows over all parts and names the columns", () => {
  const { rows, columns, sample } = answerOf([[{ a: 1, b: "x" }], [], [{ a: 2, b: "y" }]]);
  assert.deepEqual({ rows, columns, sample }, { rows: 2, columns: ["a", "b"], sample: ["1", "x"] });
});

test("answerOf() finds the same in a driver's result object as in its rows", () => {
  const rows = [{ a: 1, b: "x" }, { a: 2, b: "y" }];
  assert.deepEqual(answerOf([{ rows }, {}, { rows: [] }]), answerOf([rows]));
  assert.notDeepEqual(answerOf([{ rows: rows.slice(1) }]), answerOf([rows]));
});

test("answerOf() depends on every value and on where it stands", () => {
  const digests = [
    [{ a: "ab", b: "c" }],
    [{ a: "a", b: "bc" }],
    [{ a: "c", b: "ab" }],
    [{ a: "ab", b: "d" }],
    [{ a: "ab" }, { a: "c" }],
  ].map((rows) => answerOf([rows]).digest);
  assert.equal(new Set(digests).size, digests.length);
});

test("answerOf() has no digest for what is only counted", () => {
  assert.deepEqual(answerOf([{ counted: 3 }]), { rows: 3, columns: [], digest: "", sample: [] });
});

test("answerOfJson() ignores spaces and the order of keys inside values", () => {
  const a = answerOfJson('[{"n":1,"j":{"x":1,"y":2}}]');
  const b = answerOfJson('[ {"n": 1, "j": {"y": 2, "x": 1}} ]');
  assert.deepEqual(a, b);
});
