/** What changed between two result files, above noise. */

import { driftOf } from "./gates.ts";
import type { Measurement, Results } from "./results.ts";
import { createRandom, type Estimate, median, quantile } from "./statistics.ts";

/** One figure in both files. */
export interface Change {
  readonly what: string;
  readonly figure: "CPU" | "wall";
  readonly baseline: number;
  readonly candidate: number;
  /** Candidate over baseline: above 1 it became slower. */
  readonly ratio: Estimate;
  /** Whether it is above noise. */
  readonly significant: boolean;
}

/** Changes below this are not told, however sure: 0.03 is 3 %. */
const LEAST_CHANGE = 0.03;
const RESAMPLES = 2000;

/**
 * Compares what both files measured. A change is above noise when its 95 % interval does not reach 1 and it is larger
 * than 3 % and than the drift of either run.
 */
export function compareResults(baseline: Results, candidate: Results): Change[] {
  const noise = Math.max(
    LEAST_CHANGE,
    ...[baseline, candidate].map(({ control }) => control ? driftOf(control) : 0),
  );
  const before = new Map(baseline.measurements.map((each) => [keyOf(each), each]));
  const changes: Change[] = [];
  for (const after of candidate.measurements) {
    const base = before.get(keyOf(after));
    if (base === undefined || base.status !== "measured" || after.status !== "measured") continue;
    for (const figure of ["CPU", "wall"] as const) {
      const [a, b] = [base, after].map(({ rounds }) =>
        rounds.map(({ cpu, p50 }) => figure === "CPU" ? cpu : p50)
      );
      const ratio = ratioOfMedians(b!, a!, candidate.seed);
      const significant = (ratio.low > 1 || ratio.high < 1) && Math.abs(ratio.value - 1) > noise;
      changes.push({
        what: nameOf(after),
        figure,
        baseline: median(a!),
        candidate: median(b!),
        ratio,
        significant,
      });
    }
  }
  return changes;
}

/** What the candidate no longer measures, or measures anew. */
export function comparisonGaps(baseline: Results, candidate: Results): string[] {
  const measured = (results: Results) =>
    new Map(
      results.measurements.filter(({ status }) => status === "measured").map((each) => [keyOf(each), each]),
    );
  const [before, after] = [measured(baseline), measured(candidate)];
  return [
    ...[...before].filter(([key]) => !after.has(key)).map(([, each]) =>
      `only in the baseline: ${nameOf(each)}`
    ),
    ...[...after].filter(([key]) => !before.has(key)).map(([, each]) =>
      `only in the candidate: ${nameOf(each)}`
    ),
  ];
}

/** Rounds of different runs have nothing in common: both sides are resampled. */
function ratioOfMedians(above: readonly number[], below: readonly number[], seed: number): Estimate {
  const random = createRandom(seed);
  const resample = (values: readonly number[]) =>
    median(values.map(() => values[Math.floor(random() * values.length)]!));
  const ratios = Array.from({ length: RESAMPLES }, () => resample(above) / resample(below));
  return {
    value: median(above) / median(below),
    low: quantile(ratios, 0.025),
    high: quantile(ratios, 0.975),
  };
}

function keyOf({ scenario, point, runtime, driver }: Measurement): string {
  return JSON.stringify([scenario, point, runtime, driver]);
}

function nameOf({ scenario, point, runtime, driver }: Measurement): string {
  return `${scenario}${point ? ` (${point})` : ""}, ${driver} on ${runtime}`;
}
