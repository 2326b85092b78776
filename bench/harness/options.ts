/** What a run is told on its command line. */

import type { RuntimeName } from "./driver.ts";

/** Options of a run. */
export interface RunOptions {
  readonly runtimes: readonly RuntimeName[];
  /** Names to take part; empty: all that need not be named. */
  readonly drivers: readonly string[];
  /** Parts of scenario names; empty: all. */
  readonly scenarios: readonly string[];
  readonly rounds: number;
  /** Milliseconds of a window. */
  readonly window: number;
  /** Milliseconds of a warm-up window, and the most that warming up may take. */
  readonly warmWindow: number;
  readonly warmLimit: number;
  /** 0.03 is 3 %. */
  readonly drift: number;
  readonly seed: number;
  /** Path of the result file; empty: one in bench/results. */
  readonly out: string;
}

const RUNTIMES: readonly RuntimeName[] = ["deno", "bun", "node"];

const FULL: RunOptions = {
  runtimes: RUNTIMES,
  drivers: [],
  scenarios: [],
  rounds: 15,
  window: 250,
  warmWindow: 100,
  warmLimit: 4_000,
  drift: 0.03,
  seed: 20_240_229,
  out: "",
};

/** For a look: under three minutes, wide intervals. */
const QUICK: RunOptions = {
  ...FULL,
  scenarios: ["extended", "extended x50", "mixed 1000", "pool simple 1000"],
  rounds: 5,
  window: 100,
  warmWindow: 40,
  warmLimit: 1_000,
  drift: 0.1,
};

/** Usage, printed for `--help`. */
export const USAGE = `Options
  --runtimes deno,bun,node   which runtimes
  --drivers a,b              which drivers; pg-native takes part only when it is named
  --scenarios a,b            which scenarios: exact names, or a part of a name
  --rounds n                 windows of each driver in a scenario (15)
  --window ms                length of a window (250)
  --drift percent            how far the repetition of the first measurement may be off (3)
  --seed n                   of shuffling and bootstrap
  --out file                 where to write the results (bench/results/<time>.json)
  --quick                    a few scenarios, short windows: for a look`;

/** Wrong usage. */
export class UsageError extends Error {}

/**
 * Reads the arguments.
 *
 * @throws {UsageError} for what is not known or not fit
 */
export function parseOptions(args: readonly string[]): RunOptions {
  const options: { -readonly [K in keyof RunOptions]: RunOptions[K] } = {
    ...(args.includes("--quick") ? QUICK : FULL),
  };
  for (let i = 0; i < args.length; i++) {
    const name = args[i]!;
    const value = (): string => {
      const next = args[++i];
      if (next === undefined) throw new UsageError(`${name} needs a value`);
      return next;
    };
    if (name === "--quick") continue;
    else if (name === "--runtimes") options.runtimes = runtimeNames(value());
    else if (name === "--drivers") options.drivers = namesOf(value());
    else if (name === "--scenarios") options.scenarios = namesOf(value());
    else if (name === "--rounds") options.rounds = numberOf(name, value(), 1);
    else if (name === "--window") options.window = numberOf(name, value(), 1);
    else if (name === "--drift") options.drift = numberOf(name, value(), 0) / 100;
    else if (name === "--seed") options.seed = numberOf(name, value(), 0);
    else if (name === "--out") options.out = value();
    else throw new UsageError(`Unknown option ${name}`);
  }
  return options;
}

function namesOf(list: string): string[] {
  return list.split(",").map((name) => name.trim()).filter((name) => name !== "");
}

function runtimeNames(list: string): RuntimeName[] {
  const names = namesOf(list);
  const unknown = names.find((name) => !RUNTIMES.some((known) => known === name));
  if (unknown !== undefined) {
    throw new UsageError(`Unknown runtime "${unknown}": expected ${RUNTIMES.join(", ")}`);
  }
  return RUNTIMES.filter((name) => names.includes(name));
}

function numberOf(name: string, text: string, least: number): number {
  const value = Number(text);
  if (text.trim() !== "" && value >= least && Number.isFinite(value)) return value;
  throw new UsageError(`${name} needs a number of at least ${least}, received "${text}"`);
}

/** The names that match: exactly, or else as a part. */
export function selectNames(all: readonly string[], wanted: readonly string[]): string[] {
  if (wanted.length === 0) return [...all];
  const selected = new Set<string>();
  for (const want of wanted) {
    const found = all.includes(want) ? [want] : all.filter((name) => name.includes(want));
    if (found.length === 0) throw new UsageError(`Nothing is called "${want}": there are ${all.join(", ")}`);
    for (const name of found) selected.add(name);
  }
  return all.filter((name) => selected.has(name));
}
