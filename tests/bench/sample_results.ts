/** Result files made up for tests. */

import type { Control, Measurement, Results, Round } from "../../bench/harness/results.ts";

/** A measurement of "simple" on node; costs are in microseconds, one for each round. */
export function measurement(
  driver: string,
  costs: readonly number[],
  changes: Partial<Measurement> = {},
): Measurement {
  return {
    scenario: "simple",
    point: 0,
    runtime: "node",
    driver,
    status: "measured",
    reason: "",
    rounds: costs.map((cost): Round => ({
      operations: 100,
      mean: cost * 2,
      p50: cost * 2,
      p75: cost * 2,
      p99: cost * 3,
      cpu: cost,
      gc: 1,
    })),
    warmup: { milliseconds: 100, stable: true },
    peakHeap: 1_000_000,
    network: { sent: 100, received: 200 },
    ...changes,
  };
}

const CALM: Control = { what: "extended", first: { cpu: 100, wall: 200 }, last: { cpu: 100, wall: 200 } };

/** A result file with these measurements. */
export function resultsOf(measurements: readonly Measurement[], changes: Partial<Results> = {}): Results {
  return {
    format: 1,
    kind: "scenarios",
    startedAt: "2026-01-02T03:04:05.000Z",
    seconds: 60,
    seed: 1,
    rounds: 7,
    window: 100,
    driftLimit: 0.03,
    environment: {
      cpu: "a processor",
      cores: 2,
      memory: 2 ** 33,
      system: "Linux",
      runtimes: { node: "24.0.0" },
      server: "PostgreSQL 18",
      settings: { fsync: "off" },
      commit: "abc",
    },
    scenarios: [{ name: "simple", title: "one query after the other", unit: "query", queries: 1 }],
    drivers: ["pipegres", "pg", "postgrejs", "floor"].map((name) => ({
      name,
      versions: [],
      notes: ["a note"],
    })),
    measurements,
    control: CALM,
    marks: [],
    ...changes,
  };
}
