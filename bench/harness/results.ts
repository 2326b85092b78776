/** The raw result file: everything that the report and `compare` know. */

import type { RuntimeName } from "./driver.ts";

/** One window of one driver. Times in microseconds per operation. */
export interface Round {
  readonly operations: number;
  readonly mean: number;
  readonly p50: number;
  readonly p75: number;
  readonly p99: number;
  /** Client CPU, user and system. */
  readonly cpu: number;
  /** Garbage collection; `null` where the runtime does not tell. */
  readonly gc: number | null;
}

/** How a driver fared in a scenario. */
export type Status = "measured" | "unsupported" | "not yet" | "excluded" | "failed";

/** One driver on one runtime in one scenario. */
export interface Measurement {
  readonly scenario: string;
  /** Point of a scale run; 0 elsewhere. */
  readonly point: number;
  readonly runtime: RuntimeName;
  readonly driver: string;
  readonly status: Status;
  /** Why it was not measured. */
  readonly reason: string;
  readonly rounds: readonly Round[];
  readonly warmup: { readonly milliseconds: number; readonly stable: boolean } | null;
  /** Bytes above the heap before, at most, in a run that is not timed. */
  readonly peakHeap: number | null;
  /** Bytes per operation, counted by a proxy in a run that is not timed. */
  readonly network: { readonly sent: number; readonly received: number } | null;
}

/** What the report says about a scenario. */
export interface ScenarioInfo {
  readonly name: string;
  readonly title: string;
  readonly unit: string;
  readonly queries: number;
}

/** What the report says about a driver. */
export interface DriverInfo {
  readonly name: string;
  readonly versions: readonly string[];
  readonly notes: readonly string[];
}

/** What it was measured on. */
export interface Environment {
  readonly cpu: string;
  readonly cores: number;
  readonly memory: number;
  readonly system: string;
  readonly runtimes: Readonly<Record<string, string>>;
  readonly server: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly commit: string;
}

/** The first measurement and its repetition at the end, as costs per operation. */
export interface Control {
  readonly what: string;
  readonly first: ControlCost;
  readonly last: ControlCost;
}

/** Medians of a control measurement in microseconds per operation. */
export interface ControlCost {
  readonly cpu: number;
  readonly wall: number;
}

/** A result file. */
export interface Results {
  readonly format: 1;
  readonly kind: "scenarios" | "scale";
  readonly startedAt: string;
  readonly seconds: number;
  readonly seed: number;
  readonly rounds: number;
  /** Milliseconds. */
  readonly window: number;
  readonly driftLimit: number;
  readonly environment: Environment;
  readonly scenarios: readonly ScenarioInfo[];
  readonly drivers: readonly DriverInfo[];
  readonly measurements: readonly Measurement[];
  /** `null` when the run was broken off. */
  readonly control: Control | null;
  /** Reasons why the figures must not be published, or must be read with care. */
  readonly marks: readonly Mark[];
}

/** A finding of a gate. */
export interface Mark {
  readonly kind: "NOT PUBLISHABLE" | "note";
  readonly text: string;
}
