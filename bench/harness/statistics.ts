/** Medians, quantiles and bootstrap intervals; all random numbers come from a seed. */

/** A value with its 95 % interval. */
export interface Estimate {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/** Numbers in [0, 1), the same ones for the same seed (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = state + 0x6d2b79f5 | 0;
    let mixed = Math.imul(state ^ state >>> 15, 1 | state);
    mixed = mixed + Math.imul(mixed ^ mixed >>> 7, 61 | mixed) ^ mixed;
    return ((mixed ^ mixed >>> 14) >>> 0) / 4_294_967_296;
  };
}

/** The items in a random order (Fisher and Yates); the argument stays as it is. */
export function shuffle<T>(items: readonly T[], random: () => number): T[] {
  const shuffled = [...items];
  for (let i = shuffled.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [shuffled[i], shuffled[j]] = [shuffled[j]!, shuffled[i]!];
  }
  return shuffled;
}

/** The quantile `q` of [0, 1], between neighbours by proportion; NaN for no values. */
export function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) return NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const below = sorted[Math.floor(at)]!;
  return below + (sorted[Math.ceil(at)]! - below) * (at - Math.floor(at));
}

/** The middle value; NaN for no values. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The median with its 95 % percentile-bootstrap interval. */
export function medianInterval(values: readonly number[], seed: number, resamples: number = 2000): Estimate {
  const random = createRandom(seed);
  const medians: number[] = [];
  for (let i = 0; i < resamples; i++) {
    medians.push(median(values.map(() => values[Math.floor(random() * values.length)]!)));
  }
  return { value: median(values), low: quantile(medians, 0.025), high: quantile(medians, 0.975) };
}

/**
 * The median of the rounds' ratios `a[r] / b[r]`, with its interval: what a round has in common, such as a slow
 * machine, cancels out. Rounds that one of them lacks, or where `b` is 0, do not count.
 */
export function ratioInterval(
  a: readonly number[],
  b: readonly number[],
  seed: number,
): Estimate | undefined {
  const ratios: number[] = [];
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const ratio = a[i]! / b[i]!;
    if (Number.isFinite(ratio)) ratios.push(ratio);
  }
  return ratios.length === 0 ? undefined : medianInterval(ratios, seed);
}

/** Whether two intervals have no value in common. */
export function isApart(a: Estimate, b: Estimate): boolean {
  return a.high < b.low || b.high < a.low;
}
