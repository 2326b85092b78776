/** What a run shows while it runs: one line that is written over on a terminal, a line a step elsewhere. */

import process from "node:process";

/** Shows where a run is, on standard error. */
export class Progress {
  readonly #began: number = performance.now();
  readonly #steps: number;
  readonly #terminal: boolean = process.stderr.isTTY === true;
  #done: number = 0;
  #step: string = "";

  /** @param steps scenarios, or whatever is counted */
  constructor(steps: number) {
    this.#steps = steps;
  }

  /** Begins a step. */
  step(name: string): void {
    this.#step = name;
    if (this.#terminal) this.detail("");
    else process.stderr.write(`${this.#head()} ${name}\n`);
  }

  /** What is being done within a step. */
  detail(text: string): void {
    if (!this.#terminal) return;
    const line = `${this.#head()} ${this.#step} ${text}`;
    process.stderr.write(`\r\x1b[2K${line.slice(0, (process.stderr.columns || 80) - 1)}`);
  }

  /** Ends a step. */
  finish(): void {
    this.#done++;
  }

  /** A line that stays. */
  note(text: string): void {
    process.stderr.write(`${this.#terminal ? "\r\x1b[2K" : ""}${text}\n`);
  }

  /** Clears the line. */
  end(): void {
    if (this.#terminal) process.stderr.write("\r\x1b[2K");
  }

  #head(): string {
    const seconds = (performance.now() - this.#began) / 1000;
    const rest = this.#done === 0
      ? ""
      : `, ${duration(seconds / this.#done * (this.#steps - this.#done))} to go`;
    return `[${this.#done + 1}/${this.#steps}, ${duration(seconds)}${rest}]`;
  }
}

function duration(seconds: number): string {
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
