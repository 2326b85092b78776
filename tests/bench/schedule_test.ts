import assert from "node:assert/strict";
import { test } from "node:test";
import { isStable, roundOrders } from "../../bench/harness/schedule.ts";

test("roundOrders() measures everybody once in every round, in changing orders", () => {
  const orders = roundOrders(5, 20, 42);
  assert.equal(orders.length, 20);
  for (const order of orders) assert.deepEqual([...order].sort(), [0, 1, 2, 3, 4]);
  assert.ok(new Set(orders.map((order) => order.join())).size > 10);
  for (let competitor = 0; competitor < 5; competitor++) {
    assert.ok(new Set(orders.map((order) => order.indexOf(competitor))).size > 2);
  }
});

test("roundOrders() repeats for the same seed", () => {
  assert.deepEqual(roundOrders(6, 4, 1), roundOrders(6, 4, 1));
  assert.notDeepEqual(roundOrders(6, 4, 1), roundOrders(6, 4, 2));
});

test("isStable() wants the last three windows to agree", () => {
  assert.ok(!isStable([]));
  assert.ok(!isStable([10, 10]));
  assert.ok(!isStable([50, 20, 10]));
  assert.ok(!isStable([10, 10, 11.5]));
  assert.ok(isStable([50, 20, 10, 10.2, 9.9]));
});
