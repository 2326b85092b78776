/** Measures one scenario: every competitor in a process of its own, windows interleaved. */

import type { Runtime } from "../../scripts/runtimes.ts";
import { Child, childrenAreStopping, UnsupportedError } from "./child_process.ts";
import type { Driver, Target } from "./driver.ts";
import { compareAnswers, type GivenAnswer } from "./gates.ts";
import type { RunOptions } from "./options.ts";
import type { Progress } from "./progress.ts";
import { startProxy } from "./proxy.ts";
import type { ControlCost, Measurement, Round, Status } from "./results.ts";
import type { Scenario } from "./scenario.ts";
import { roundOrders } from "./schedule.ts";
import { median } from "./statistics.ts";

/** A scenario and where it is. */
export interface ListedScenario {
  readonly scenario: Scenario;
  /** Path below bench/. */
  readonly path: string;
}

/** What measuring needs. */
export interface Setting {
  readonly options: RunOptions;
  readonly target: Target;
  readonly environment: Readonly<Record<string, string>>;
  readonly progress: Progress;
}

/** A driver on a runtime, in one scenario. */
class Competitor {
  readonly runtime: Runtime;
  readonly driver: Driver;
  readonly name: string;
  child: Child | undefined;
  status: Status = "measured";
  reason: string = "";
  answer: GivenAnswer | undefined;
  rounds: Round[] = [];
  warmup: Measurement["warmup"] = null;
  peakHeap: number | null = null;
  network: Measurement["network"] = null;

  constructor(runtime: Runtime, driver: Driver) {
    this.runtime = runtime;
    this.driver = driver;
    this.name = `${driver.name} on ${runtime.name}`;
  }

  async drop(status: Status, reason: string): Promise<void> {
    this.status = status;
    this.reason = reason;
    await this.child?.end();
    this.child = undefined;
  }

  /** Runs a step; what fails drops the competitor, not the run. */
  async attempt(step: (child: Child) => Promise<void>): Promise<void> {
    if (this.child === undefined) return;
    try {
      await step(this.child);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const status = !(error instanceof UnsupportedError)
        ? "failed"
        : reason === "not yet"
        ? "not yet"
        : "unsupported";
      await this.drop(status, reason);
    }
  }
}

/** Measures all drivers on all runtimes they run on. */
export async function measureScenario(
  listed: ListedScenario,
  point: number,
  competitors: readonly { runtime: Runtime; driver: Driver }[],
  setting: Setting,
): Promise<Measurement[]> {
  const all = competitors.map(({ runtime, driver }) => new Competitor(runtime, driver));
  const { options, progress } = setting;
  // A proxy stands there for a latency of 0 as well: points differ in nothing else.
  await using proxy = listed.scenario.addsLatency
    ? startProxy(setting.target.host, setting.target.port, point / 2)
    : undefined;
  const target = proxy === undefined
    ? setting.target
    : { ...setting.target, host: "127.0.0.1", port: proxy.port };
  try {
    await someAtOnce(all, async (each) => {
      progress.detail(`answers: ${each.name}`);
      each.child = Child.start(each.runtime, setting.environment);
      await each.attempt((child) => prepare(each, child, listed, point, { ...setting, target }));
    });
    await excludeWrong(all, listed.scenario, progress);
    await measureRounds(all, hashOf(listed.path) + point, setting);
    await someAtOnce(all, async (each) => {
      progress.detail(`heap: ${each.name}`);
      await each.attempt(async (child) => {
        each.peakHeap = await child.request({ do: "peakHeap", milliseconds: options.warmWindow });
        await child.request({ do: "close" });
        await child.end();
      });
    });
  } finally {
    await Promise.all(all.map((each) => each.child?.end()));
  }
  if (childrenAreStopping()) throw new Error("The run is ending");
  for (const each of all) {
    if (each.status === "failed") {
      progress.note(`FAILED ${listed.scenario.name}: ${each.name}: ${each.reason}`);
    }
  }
  return all.map((each) => resultOf(each, listed.scenario.name, point));
}

/** Warms all up, then gives each a window in every round. */
async function measureRounds(
  all: readonly Competitor[],
  salt: number,
  { options, progress }: Setting,
): Promise<void> {
  for (const each of all) {
    progress.detail(`warming up ${each.name}`);
    await each.attempt(async (child) => {
      each.warmup = await child.request({
        do: "warmUp",
        window: options.warmWindow,
        limit: options.warmLimit,
      });
    });
  }
  for (const [round, order] of roundOrders(all.length, options.rounds, options.seed + salt).entries()) {
    progress.detail(`round ${round + 1} of ${options.rounds}`);
    for (const index of order) {
      const each = all[index]!;
      await each.attempt(async (child) => {
        each.rounds.push(await child.request({ do: "window", milliseconds: options.window }));
      });
    }
  }
}

/** Untimed work, for as many at once as there are processors. */
async function someAtOnce<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = [...items];
  const next = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(4, navigator.hardwareConcurrency) }, next));
}

/** Operations that are counted by the proxy at most, after as many that open and prepare. */
const COUNTED_OPERATIONS = 2;
/** Milliseconds after which one is enough. */
const COUNTING_LIMIT = 100;

/** Counts bytes through a proxy, opens for measuring, and gets the answer. */
async function prepare(
  each: Competitor,
  child: Child,
  listed: ListedScenario,
  point: number,
  { target }: Setting,
): Promise<void> {
  const request = { do: "open", driver: each.driver.name, scenario: listed.path, point } as const;
  {
    await using proxy = startProxy(target.host, target.port);
    await child.request({ ...request, target: { ...target, host: "127.0.0.1", port: proxy.port } });
    const some = { do: "run", operations: COUNTED_OPERATIONS, limit: COUNTING_LIMIT } as const;
    await child.request(some);
    const before = { ...proxy.counts };
    const count = await child.request(some);
    // Goodbyes may still be under way.
    await new Promise((resolve) => setTimeout(resolve, 5));
    each.network = {
      sent: (proxy.counts.sent - before.sent) / count,
      received: (proxy.counts.received - before.received) / count,
    };
    await child.request({ do: "close" });
  }
  await child.request({ ...request, target });
  each.answer = { who: each.name, ...await child.request({ do: "answer" }) };
}

async function excludeWrong(
  all: readonly Competitor[],
  scenario: Scenario,
  progress: Progress,
): Promise<void> {
  const given = all.flatMap((each) => each.child !== undefined && each.answer ? [each.answer] : []);
  const wrong = compareAnswers(given, scenario.expect);
  for (const each of all) {
    const reason = wrong.get(each.name);
    if (reason === undefined) continue;
    progress.note(`EXCLUDED from ${scenario.name}: ${each.name} ${reason}`);
    await each.drop("excluded", reason);
  }
}

function resultOf(each: Competitor, scenario: string, point: number): Measurement {
  return {
    scenario,
    point,
    runtime: each.runtime.name,
    driver: each.driver.name,
    status: each.status,
    reason: each.reason,
    rounds: each.status === "measured" ? each.rounds : [],
    warmup: each.warmup,
    peakHeap: each.peakHeap,
    network: each.network,
  };
}

/** Measures one competitor alone: the control at the beginning and at the end of a run. */
export async function measureControl(
  listed: ListedScenario,
  { runtime, driver }: { runtime: Runtime; driver: Driver },
  { options, target, environment }: Setting,
): Promise<ControlCost> {
  const child = Child.start(runtime, environment);
  try {
    await child.request({ do: "open", driver: driver.name, scenario: listed.path, point: 0, target });
    await child.request({ do: "warmUp", window: options.warmWindow, limit: options.warmLimit * 2 });
    const rounds: Round[] = [];
    for (let i = 0; i < options.rounds; i++) {
      rounds.push(await child.request({ do: "window", milliseconds: options.window }));
    }
    await child.request({ do: "close" });
    return { cpu: median(rounds.map(({ cpu }) => cpu)), wall: median(rounds.map(({ p50 }) => p50)) };
  } finally {
    await child.end();
  }
}

function hashOf(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash, 31) + text.charCodeAt(i) | 0;
  return hash >>> 8;
}
