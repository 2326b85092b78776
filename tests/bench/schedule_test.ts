import assert from "node:assert/strict";
import { test } from "node:test";
import { isWarm, roundOrders } from "../../bench/harness/schedule.ts";

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

test("isWarm() wants five windows in which nothing became cheaper", () => {
  assert.ok(!isWarm([]));
  assert.ok(!isWarm([10, 10, 10, 10, 10, 10, 10, 10, 10]));
  assert.ok(isWarm([10, 10, 10, 10, 10, 10, 10, 10, 10, 10]));
  assert.ok(!isWarm([50, 40, 30, 20, 10, 9, 8, 7, 6, 5]));
  // Noise upwards is no reason to go on, and one window that is much cheaper is.
  assert.ok(isWarm([50, 20, 10, 10, 10, 14, 10.2, 30, 9.9, 12]));
  assert.ok(!isWarm([50, 20, 10, 10, 10, 14, 10.2, 30, 9, 12]));
});
