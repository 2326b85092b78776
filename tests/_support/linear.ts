/** Whether time grows with the size of the work, and not with its square, on a machine that does other things too. */

import assert from "node:assert/strict";

const ATTEMPTS = 6;

/**
 * Fails when four times the work takes about sixteen times as long in each of several attempts.
 *
 * @param measure does work of a size and returns the milliseconds it took
 */
export async function assertLinear(
  measure: (size: number) => number | Promise<number>,
  small: number,
): Promise<void> {
  const ratios: number[] = [];
  await measure(small); // Warms up.
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const base = Math.min(await measure(small), await measure(small));
    const ratio = await measure(small * 4) / Math.max(base, 1);
    ratios.push(ratio);
    if (ratio < 9) return;
  }
  assert.fail(
    `Four times the work takes ${ratios.map((ratio) => ratio.toFixed(1)).join(", ")} times as long`,
  );
}
