/** In which order windows are measured, and when a driver counts as warm. */

import { createRandom, median, shuffle } from "./statistics.ts";

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

/** Windows whose medians must agree before a driver counts as warm. */
const STABLE_WINDOWS = 3;
/** How far they may be apart, relative to their median. */
const STABLE_SPREAD = 0.1;

/** Whether the last warm-up windows agree; `costs` are one number for each window. */
export function isStable(costs: readonly number[]): boolean {
  const last = costs.slice(-STABLE_WINDOWS);
  if (last.length < STABLE_WINDOWS) return false;
  return Math.max(...last) - Math.min(...last) <= STABLE_SPREAD * median(last);
}
