/**
 * Who may write on a connection: everybody, in turn, or the one who owns it.
 *
 * A transaction owns its connection from before its BEGIN until the server has answered its COMMIT or ROLLBACK.
 * Everybody else waits in one line, first come, first served, with those who want to own it next.
 */

import type { Request } from "../engine/request.ts";
import { TimeoutError } from "../errors.ts";

/** The right to write on a connection, alone. */
export interface Lease {
  /** Whether the right is still held: not once it was given back, or the connection or its session is gone. */
  readonly held: boolean;
  /** Adds a request to the connection's queue. */
  submit(request: Request): void;
  /** Gives the right back. Idempotent; later requests of this lease wait in line like everybody's. */
  release(): void;
}

/** A request, or somebody who wants to own the connection; `since` as the clock of `performance` says. */
type Waiter =
  & { readonly since: number }
  & ({ readonly request: Request } | { readonly grant: () => void; readonly refuse: (error: Error) => void });

/** The line before one connection. */
export class LeaseLine {
  readonly #submit: (request: Request) => void;
  readonly #timeout: number;
  #owner: Lease | undefined = undefined;
  /** Whether the connection is of no use any more: then nobody owns it, and nobody waits. */
  #dissolved: boolean = false;
  #waiters: Waiter[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined = undefined;

  /**
   * @param submit writes, or queues, on the connection
   * @param timeout milliseconds that anybody waits at most
   */
  constructor(submit: (request: Request) => void, timeout: number) {
    this.#submit = submit;
    this.#timeout = timeout;
  }

  /** Requests that wait, and who want to own the connection. */
  get waiting(): number {
    return this.#waiters.length;
  }

  /** Whether somebody owns the connection. */
  get owned(): boolean {
    return this.#owner !== undefined;
  }

  /** Whether nobody owns the connection, and nobody waits: requests need not come here. */
  get isEmpty(): boolean {
    return this.#owner === undefined && this.#waiters.length === 0;
  }

  /** A request of nobody in particular. */
  submit(request: Request): void {
    if (this.isEmpty) return this.#submit(request);
    for (let each: Request | null = request; each !== null; each = each.next) each.parameters.snapshot();
    this.#wait({ request, since: performance.now() });
  }

  /**
   * Waits until the connection can be owned. On a lost connection it is granted: the lease's requests reject.
   *
   * @param signal ends the wait
   * @throws {TimeoutError} when the connection is owned by somebody else for too long
   * @throws the signal's reason
   */
  acquire(signal?: AbortSignal): Promise<Lease> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      if (this.isEmpty) return resolve(this.#grant());
      const onAbort = () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(signal!.reason);
      };
      const stop = () => signal?.removeEventListener("abort", onAbort);
      const waiter: Waiter = {
        since: performance.now(),
        grant: () => {
          stop();
          resolve(this.#grant());
        },
        refuse: (error) => {
          stop();
          reject(error);
        },
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#wait(waiter);
    });
  }

  /** Takes a waiting request out of the line; false when it does not wait here. */
  withdraw(request: Request): boolean {
    const index = this.#waiters.findIndex((waiter) => "request" in waiter && waiter.request === request);
    if (index < 0) return false;
    this.#waiters.splice(index, 1);
    return true;
  }

  /** The connection is of no use any more: everybody goes on and learns so. */
  dissolve(): void {
    this.#dissolved = true;
    this.#owner = undefined;
    this.#advance();
  }

  #grant(): Lease {
    const isHeld = () => this.#owner === lease;
    const lease: Lease = {
      get held(): boolean {
        return isHeld();
      },
      submit: (request) => this.#owner === lease ? this.#submit(request) : this.submit(request),
      release: () => {
        if (this.#owner !== lease) return;
        this.#owner = undefined;
        this.#advance();
      },
    };
    if (!this.#dissolved) this.#owner = lease;
    return lease;
  }

  #wait(waiter: Waiter): void {
    this.#waiters.push(waiter);
    this.#timer ??= setTimeout(() => this.#onTimeout(), this.#timeout);
  }

  /** Refuses who has waited too long: most probably inside the very transaction it waits for. */
  #onTimeout(): void {
    this.#timer = undefined;
    const due = performance.now() - this.#timeout + 1;
    while (this.#waiters.length > 0 && this.#waiters[0]!.since <= due) {
      const waiter = this.#waiters.shift()!;
      if ("refuse" in waiter) waiter.refuse(waitedTooLong(this.#timeout));
      else {
        for (let each: Request | null = waiter.request; each !== null; each = each.next) {
          const isPrepared = each.statement !== null;
          each.fail(() => waitedTooLong(this.#timeout, isPrepared));
          each.settle();
        }
      }
    }
    const first = this.#waiters[0];
    if (first !== undefined) this.#timer = setTimeout(() => this.#onTimeout(), first.since - due);
  }

  #advance(): void {
    while (this.#owner === undefined) {
      const waiter = this.#waiters.shift();
      if (waiter === undefined) {
        clearTimeout(this.#timer);
        this.#timer = undefined;
        return;
      }
      if ("request" in waiter) this.#submit(waiter.request);
      else waiter.grant();
    }
  }
}

/** @param isPrepared whether it is the user's own prepared statement that waited */
function waitedTooLong(timeout: number, isPrepared: boolean = false): TimeoutError {
  const advice = isPrepared
    ? "prepare the statement by prepare() of the transaction itself"
    : "use the methods of the transaction itself";
  return new TimeoutError(
    `Waited ${timeout} ms for a transaction on the same connection to end: inside its callback, ${advice}`,
  );
}
