/** From rounds to the figures that tables and charts show. */

import type { RuntimeName } from "./driver.ts";
import type { Measurement, Results, Round } from "./results.ts";
import { type Estimate, median, ratioInterval } from "./statistics.ts";

/** The driver that others are compared with. */
export const OURS = "pipegres";
/** The least a driver can cost. */
export const FLOOR = "floor";

/** A measurement with its medians over the rounds; times in microseconds per operation. */
export interface Summary {
  readonly measurement: Measurement;
  readonly mean: number;
  readonly p50: number;
  readonly p75: number;
  readonly p99: number;
  readonly cpu: number;
  /** `null` where the runtime does not tell. */
  readonly gc: number | null;
  /** Its CPU time as a multiple of ours; above 1 it needs more. */
  readonly cpuOverOurs: Estimate | undefined;
  /** Its wall time as a multiple of ours. */
  readonly wallOverOurs: Estimate | undefined;
  /** Its CPU time as a multiple of the floor's. */
  readonly cpuOverFloor: Estimate | undefined;
}

/** All drivers of one scenario on one runtime, in the order of the results; those not measured have no summary. */
export interface Group {
  readonly scenario: string;
  readonly point: number;
  readonly runtime: RuntimeName;
  readonly summaries: readonly Summary[];
  readonly missing: readonly Measurement[];
}

/** Groups in the order of the results. */
export function groupsOf(results: Results): Group[] {
  const byKey = new Map<string, Measurement[]>();
  for (const measurement of results.measurements) {
    const { scenario, point, runtime } = measurement;
    const key = JSON.stringify([scenario, point, runtime]);
    const members = byKey.get(key) ?? [];
    members.push(measurement);
    byKey.set(key, members);
  }
  return [...byKey.values()].map((members) => groupOf(members, results.seed));
}

function groupOf(members: readonly Measurement[], seed: number): Group {
  const { scenario, point, runtime } = members[0]!;
  const measured = members.filter(({ status }) => status === "measured");
  const roundsOf = (name: string) => measured.find(({ driver }) => driver === name)?.rounds;
  const [ours, floor] = [roundsOf(OURS), roundsOf(FLOOR)];
  const ratio = (
    rounds: readonly Round[],
    base: readonly Round[] | undefined,
    value: (round: Round) => number,
  ) => base && ratioInterval(rounds.map(value), base.map(value), seed);
  const cpu = (round: Round) => round.cpu;
  const summaries = measured.map((measurement): Summary => {
    const { rounds } = measurement;
    const middle = (value: (round: Round) => number) => median(rounds.map(value));
    return {
      measurement,
      mean: middle(({ mean }) => mean),
      p50: middle(({ p50 }) => p50),
      p75: middle(({ p75 }) => p75),
      p99: middle(({ p99 }) => p99),
      cpu: middle(cpu),
      gc: rounds[0]?.gc == null ? null : middle(({ gc }) => gc ?? 0),
      cpuOverOurs: ratio(rounds, ours, cpu),
      wallOverOurs: ratio(rounds, ours, ({ p50 }) => p50),
      cpuOverFloor: ratio(rounds, floor, cpu),
    };
  });
  return {
    scenario,
    point,
    runtime,
    summaries,
    missing: members.filter(({ status }) => status !== "measured"),
  };
}
