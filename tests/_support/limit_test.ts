import assert from "node:assert/strict";
import { test } from "node:test";
import { limit, until } from "./limit.ts";

test("limit() gives the value of a promise that settles in time", async () => {
  assert.equal(await limit(Promise.resolve(7), 1_000, "seven"), 7);
});

test("limit() gives the error of a promise that rejects in time", async () => {
  await assert.rejects(limit(Promise.reject(new RangeError("no")), 1_000, "no"), RangeError);
});

test("limit() rejects with the label when the promise does not settle", async () => {
  await assert.rejects(limit(new Promise(() => {}), 5, "the reply"), /Not settled after 5 ms: the reply/);
});

test("until() waits for the condition and rejects when it never holds", async () => {
  let calls = 0;
  await until(() => ++calls === 3, 1_000, "three calls");
  assert.equal(calls, 3);
  await assert.rejects(until(() => false, 5, "never"), /Not reached after 5 ms: never/);
});
