/** In which order windows are measured, and when a driver counts as warm. */

import { createRandom, shuffle } from "./statistics.ts";

/**
 * One order of all competitors for each round: windows are interleaved, and nobody always follows the same one.
 *
 * @param count competitors
 * @param rounds how often each is measured
 */
export function roundOrders(count: number, rounds: number, seed: number): number[][] {
  const random = createRandom(seed);
  const all = Array.from({ length: count }, (_, index) => index);
  return Array.from({ length: rounds }, () => shuffle(all, random));
}

/** Windows without progress before a driver counts as warm. */
const STABLE_WINDOWS = 5;
/** What is progress: compilers still make the operation cheaper, noise does not. */
const PROGRESS = 0.03;

/**
 * Whether warming up gains nothing any more: the last windows hold no cheaper one than those before.
 *
 * @param costs CPU time per operation, one for each window
 */
export function isWarm(costs: readonly number[]): boolean {
  if (costs.length < 2 * STABLE_WINDOWS) return false;
  const before = Math.min(...costs.slice(0, -STABLE_WINDOWS));
  return Math.min(...costs.slice(-STABLE_WINDOWS)) >= before * (1 - PROGRESS);
}
