/**
 * CPU time per operation, without what the measuring itself costs before and after its loop.
 *
 * Reading CPU time is a system call, dear beside the shortest operations: it is read every few milliseconds.
 */

/** How often CPU time is read inside a window, in milliseconds. */
const MARK_EVERY = 5;

/** Where the time comes from. */
export interface Clocks {
  /** Milliseconds. */
  now(): number;
  /** Microseconds of CPU time of this process. */
  cpu(): number;
}

/** Wraps an operation: counts its calls and reads the CPU time between them. */
export class CpuReader {
  /** Whether mitata's loop has begun; what it runs before is not counted. */
  inLoop: boolean = false;
  calls: number = 0;
  readonly #operation: () => Promise<unknown>;
  readonly #clocks: Clocks;
  #next: number = 0;
  #firstCpu: number = -1;
  #lastCpu: number = 0;
  #lastCalls: number = 0;

  constructor(operation: () => Promise<unknown>, clocks: Clocks) {
    this.#operation = operation;
    this.#clocks = clocks;
  }

  /** CPU time in microseconds per operation. */
  get perOperation(): number {
    return (this.#lastCpu - this.#firstCpu) / this.#lastCalls;
  }

  /** Reads before an operation, some times a window: for many short ones. */
  readonly runQuick = (): Promise<unknown> => {
    if (this.inLoop) {
      const now = this.#clocks.now();
      if (now >= this.#next) {
        this.#read();
        this.#next = now + MARK_EVERY;
      }
      this.calls++;
    }
    return this.#operation();
  };

  /** Reads after operations, after each of them where they are long: for few of them. */
  readonly runSlow = (): Promise<unknown> => {
    if (!this.inLoop) return this.#operation();
    if (this.calls === 0) this.#read();
    this.calls++;
    return this.#operation().then((result) => {
      const now = this.#clocks.now();
      if (now >= this.#next || this.#lastCalls === 0) {
        this.#read();
        this.#next = now + MARK_EVERY;
      }
      return result;
    });
  };

  #read(): void {
    this.#lastCpu = this.#clocks.cpu();
    this.#lastCalls = this.calls;
    if (this.#firstCpu < 0) this.#firstCpu = this.#lastCpu;
  }
}
