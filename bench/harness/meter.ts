/** Measures windows of one operation: mitata times each operation, CPU and garbage collection are read around them. */

import { PerformanceObserver } from "node:perf_hooks";
import process from "node:process";
import { CpuReader } from "./cpu_reader.ts";
import { loadPackage } from "./packages.ts";
import type { Round } from "./results.ts";
import { isWarm } from "./schedule.ts";

/** What is used of mitata. */
interface Mitata {
  measure(operation: () => unknown, options: Record<string, unknown>): Promise<MitataStats>;
}

interface MitataStats {
  readonly avg: number;
  readonly p50: number;
  readonly p75: number;
  readonly p99: number;
  readonly ticks: number;
}

/** Operations that take longer, in microseconds, are worth a reading after each of them. */
const SLOW_OPERATION = 1_000;
/** Operations in a window at least; of those that are longer than the window, one. */
const MIN_SLOW = 2;
const MIN_QUICK = 50;

/** Measures one operation of one driver. */
export class Meter {
  readonly #operation: () => Promise<unknown>;
  readonly #mitata: Mitata;
  readonly #gc: GcTimer = new GcTimer();
  /** Of the last window, in microseconds. */
  #p50: number = SLOW_OPERATION;

  private constructor(operation: () => Promise<unknown>, mitata: Mitata) {
    this.#operation = operation;
    this.#mitata = mitata;
  }

  /** Loads mitata. */
  static async create(operation: () => Promise<unknown>): Promise<Meter> {
    return new Meter(operation, await loadPackage<Mitata>("mitata"));
  }

  /**
   * Runs operations for about `milliseconds`.
   *
   * CPU time is read between operations, so that mitata's own work before and after its loop is left out.
   */
  async window(milliseconds: number): Promise<Round> {
    const slow = this.#p50 >= SLOW_OPERATION;
    const cpu = new CpuReader(this.#operation, { now: () => performance.now(), cpu: cpuMicroseconds });
    const stats = await this.#mitata.measure(slow ? cpu.runSlow : cpu.runQuick, {
      min_cpu_time: milliseconds * 1e6,
      min_samples: !slow ? MIN_QUICK : this.#p50 > milliseconds * 1000 ? 1 : MIN_SLOW,
      // Every operation is timed by itself: no batches.
      batch_threshold: 0,
      warmup_threshold: 0,
      // mitata makes an array of 8 MB before its loop: that must not be collected in the window.
      gc: () => {
        collectGarbage();
        this.#gc.start();
      },
      // mitata asks for the time in its loop only.
      now: () => {
        cpu.inLoop = true;
        return performance.now() * 1e6;
      },
    });
    const [mean, p50, p75, p99] = [stats.avg, stats.p50, stats.p75, stats.p99].map((time) => time / 1000);
    this.#p50 = p50!;
    return {
      operations: cpu.calls,
      mean: mean!,
      p50: p50!,
      p75: p75!,
      p99: p99!,
      cpu: cpu.perOperation,
      gc: await this.#gc.stop(cpu.calls),
    };
  }

  /** Runs windows until they become no cheaper, or `limit` milliseconds have passed. */
  async warmUp(window: number, limit: number): Promise<{ milliseconds: number; stable: boolean }> {
    const began = performance.now();
    await this.#operation();
    // A window of at least two would go past the limit; so long an operation warms up by itself.
    if ((performance.now() - began) * 3 > limit) {
      return { milliseconds: performance.now() - began, stable: false };
    }
    const costs: number[] = [];
    for (;;) {
      costs.push((await this.window(window)).cpu);
      const milliseconds = performance.now() - began;
      if (isWarm(costs)) return { milliseconds, stable: true };
      if (milliseconds >= limit) return { milliseconds, stable: false };
    }
  }

  /** Bytes above the heap before, at most, while operations run for `milliseconds`. Untimed: looking costs. */
  async peakHeap(milliseconds: number): Promise<number> {
    collectGarbage();
    const baseline = heapBytes();
    let peak = baseline;
    const look = () => {
      peak = Math.max(peak, heapBytes());
    };
    const timer = setInterval(look, 2);
    const end = performance.now() + milliseconds;
    do {
      await this.#operation();
      look();
    } while (performance.now() < end);
    clearInterval(timer);
    return peak - baseline;
  }
}

/** User and system time of this process so far. */
export function cpuMicroseconds(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function heapBytes(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** A full collection, where the runtime lets us. */
export function collectGarbage(): void {
  const global = globalThis as { gc?: () => void; Bun?: { gc(full: boolean): void } };
  if (global.Bun) global.Bun.gc(true);
  else global.gc?.();
}

/** Time of garbage collection, which only Node.js tells. */
class GcTimer {
  #observer: PerformanceObserver | undefined;
  #milliseconds: number = 0;
  #began: number = 0;

  constructor() {
    if ("Deno" in globalThis || "Bun" in globalThis) return;
    this.#observer = new PerformanceObserver((list) => this.#add(list.getEntries()));
    this.#observer.observe({ entryTypes: ["gc"] });
  }

  /** Collections that began before do not count, whenever they are told. */
  start(): void {
    this.#milliseconds = 0;
    this.#began = performance.now();
  }

  /** Microseconds per operation. */
  async stop(operations: number): Promise<number | null> {
    if (this.#observer === undefined) return null;
    // Entries are handed over in a later turn.
    await new Promise((resolve) => setImmediate(resolve));
    this.#add(this.#observer.takeRecords());
    return this.#milliseconds * 1000 / operations;
  }

  #add(entries: readonly { startTime: number; duration: number }[]): void {
    for (const { startTime, duration } of entries) {
      if (startTime >= this.#began) this.#milliseconds += duration;
    }
  }
}
