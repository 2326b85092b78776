/**
 * Finds out that a caller waits for itself: for a query that stands behind a stream or a COPY of the same connection,
 * inside the loop that should take the stream's rows, or give the COPY its data; or for one that is to run again behind
 * the transaction in whose callback it is awaited.
 */

import { TimeoutError } from "../errors.ts";

/** What is watched. */
export interface Watched {
  /** Whether requests wait for what is up to the caller. */
  waitsForCaller(): boolean;
  /** Whether it is the server's turn, not the caller's. */
  awaitsServer(): boolean;
  /** Fails the requests that wait. */
  refuse(failure: (cause?: Error) => Error): void;
}

/** Refuses what waits behind a caller who has done nothing for some time. */
export class CallerWatch {
  readonly #watched: Watched;
  readonly #limit: number;
  #timer: ReturnType<typeof setTimeout> | undefined = undefined;
  #steps: number = 0;

  /** @param limit milliseconds in which a caller who is not waiting for itself does something */
  constructor(watched: Watched, limit: number) {
    this.#watched = watched;
    this.#limit = limit;
  }

  /** The caller has taken rows, or given data. */
  step(): void {
    this.#steps++;
  }

  /** To be called when requests came or were answered. */
  look(): void {
    const waits = this.#watched.waitsForCaller();
    if (waits === (this.#timer !== undefined)) return;
    if (waits) this.#arm();
    else this.stop();
  }

  /** Nothing is watched any more. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #arm(): void {
    const steps = this.#steps;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (!this.#watched.waitsForCaller()) return;
      if (this.#steps !== steps || this.#watched.awaitsServer()) return this.#arm();
      this.#watched.refuse((cause) => waitedTooLong(this.#limit, cause));
    }, this.#limit);
  }
}

function waitedTooLong(limit: number, cause: Error | undefined): TimeoutError {
  if (cause !== undefined) {
    return new TimeoutError(
      `Waited ${limit} ms to run again, since the server had lost the query's prepared statement: a stream, a COPY or a ` +
        "transaction block on the same connection has not ended",
      { cause },
    );
  }
  return new TimeoutError(
    `Waited ${limit} ms for a stream or COPY on the same connection to go on: inside its loop, use another ` +
      "connection, a pool, or a stream in a transaction",
  );
}
