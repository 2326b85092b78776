import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createRandom,
  isApart,
  median,
  medianInterval,
  quantile,
  ratioInterval,
  shuffle,
} from "../../bench/harness/statistics.ts";

test("quantile() goes between neighbours by proportion and does not sort its argument", () => {
  const values = [4, 1, 3, 2];
  assert.equal(quantile(values, 0.5), 2.5);
  assert.equal(quantile(values, 0), 1);
  assert.equal(quantile(values, 1), 4);
  assert.equal(quantile(values, 0.25), 1.75);
  assert.deepEqual(values, [4, 1, 3, 2]);
});

test("median() of nothing is NaN", () => {
  assert.ok(Number.isNaN(median([])));
});

test("createRandom() repeats for the same seed and differs for another", () => {
  const take = (seed: number) => {
    const random = createRandom(seed);
    return Array.from({ length: 5 }, random);
  };
  assert.deepEqual(take(7), take(7));
  assert.notDeepEqual(take(7), take(8));
  for (const value of take(7)) assert.ok(value >= 0 && value < 1);
});

test("shuffle() keeps every item and puts each in every place", () => {
  const random = createRandom(1);
  const places = new Set<number>();
  for (let i = 0; i < 100; i++) {
    const shuffled = shuffle([0, 1, 2, 3], random);
    assert.deepEqual([...shuffled].sort(), [0, 1, 2, 3]);
    places.add(shuffled.indexOf(0));
  }
  assert.equal(places.size, 4);
});

test("medianInterval() holds the median, is narrow for agreeing values and wide for scattered ones", () => {
  const narrow = medianInterval([10, 10.1, 9.9, 10, 10.05, 9.95, 10], 1);
  const wide = medianInterval([1, 30, 5, 17, 9, 10, 25], 1);
  assert.ok(narrow.low <= narrow.value && narrow.value <= narrow.high);
  assert.ok(narrow.high - narrow.low < 0.3);
  assert.ok(wide.high - wide.low > 3);
  assert.deepEqual(wide, medianInterval([1, 30, 5, 17, 9, 10, 25], 1));
});

test("medianInterval() covers the true median about as often as it says", () => {
  const random = createRandom(20_240_229);
  let covered = 0;
  for (let run = 0; run < 200; run++) {
    const values = Array.from({ length: 25 }, () => random() + random());
    const { low, high } = medianInterval(values, run, 300);
    if (low <= 1 && 1 <= high) covered++;
  }
  assert.ok(covered >= 176 && covered <= 200, `covered ${covered} of 200`);
});

test("ratioInterval() pairs rounds, so that a machine that slows down cancels out", () => {
  const slowdown = [1, 2, 4, 8, 16, 32];
  const ratio = ratioInterval(
    slowdown.map((factor) => 30 * factor),
    slowdown.map((factor) => 10 * factor),
    1,
  );
  assert.deepEqual(ratio, { value: 3, low: 3, high: 3 });
});

test("ratioInterval() leaves out rounds without a base, and gives nothing without any", () => {
  assert.equal(ratioInterval([6, 6], [0, 3], 1)?.value, 2);
  assert.equal(ratioInterval([6], [0], 1), undefined);
  assert.equal(ratioInterval([], [1], 1), undefined);
});

test("isApart() is true only where intervals have no value in common", () => {
  assert.ok(isApart({ value: 1, low: 0.9, high: 1.1 }, { value: 2, low: 1.2, high: 3 }));
  assert.ok(!isApart({ value: 1, low: 0.9, high: 1.2 }, { value: 2, low: 1.2, high: 3 }));
});
