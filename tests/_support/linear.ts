/** Whether time grows with the size of the work, and not with its square, on a machine that does other things too. */

import assert from "node:assert/strict";

const ATTEMPTS = 6;

/**
 * Fails when `factor` times the work takes about its square times as long in each of several attempts.
 *
 * @param measure does work of a size and returns the milliseconds it took
 * @param factor greater ones tell better where a single piece of work is short
 */
export async function assertLinear(
  measure: (size: number) => number | Promise<number>,
  small: number,
  factor: number = 4,
): Promise<void> {
  const ratios: number[] = [];
  await measure(small); // Warms up.
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const base = Math.min(await measure(small), await measure(small));
    const ratio = await measure(small * factor) / Math.max(base, 0.5);
    ratios.push(ratio);
    // Between the factor and its square, nearer to the square: caches and collections cost something, too.
    if (ratio < factor ** 1.6) return;
  }
  assert.fail(
    `${factor} times the work takes ${ratios.map((ratio) => ratio.toFixed(1)).join(", ")} times as long`,
  );
}
