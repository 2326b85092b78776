/**
 * Who may write on a connection: everybody, in turn, or the one who owns it.
 *
 * A transaction owns its connection from before its BEGIN until the server has answered its COMMIT or ROLLBACK.
 * Everybody else waits in one line, first come, first served, with those who want to own it next.
 */

import type { Request } from "../engine/request.ts";

/** The right to write on a connection, alone. */
export interface Lease {
  /** Adds a request to the connection's queue. */
  submit(request: Request): void;
  /** Gives the right back. Idempotent; later requests of this lease wait in line like everybody's. */
  release(): void;
}

type Waiter = { readonly request: Request } | { readonly grant: () => void };

/** The line before one connection. */
export class LeaseLine {
  readonly #submit: (request: Request) => void;
  #owner: Lease | undefined = undefined;
  #waiters: Waiter[] = [];

  /** @param submit writes, or queues, on the connection */
  constructor(submit: (request: Request) => void) {
    this.#submit = submit;
  }

  /** Requests that wait, and who want to own the connection. */
  get waiting(): number {
    return this.#waiters.length;
  }

  /** Whether somebody owns the connection. */
  get owned(): boolean {
    return this.#owner !== undefined;
  }

  /** A request of nobody in particular. */
  submit(request: Request): void {
    if (this.#owner === undefined && this.#waiters.length === 0) return this.#submit(request);
    for (let each: Request | null = request; each !== null; each = each.next) each.parameters.snapshot();
    this.#waiters.push({ request });
  }

  /** Waits until the connection can be owned. Never rejects: on a lost connection the lease's requests do. */
  acquire(): Promise<Lease> {
    return new Promise((resolve) => {
      const grant = () => resolve(this.#grant());
      if (this.#owner === undefined && this.#waiters.length === 0) grant();
      else this.#waiters.push({ grant });
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
    this.#owner = undefined;
    this.#advance();
  }

  #grant(): Lease {
    const lease: Lease = {
      submit: (request) => this.#owner === lease ? this.#submit(request) : this.submit(request),
      release: () => {
        if (this.#owner !== lease) return;
        this.#owner = undefined;
        this.#advance();
      },
    };
    this.#owner = lease;
    return lease;
  }

  #advance(): void {
    while (this.#owner === undefined) {
      const waiter = this.#waiters.shift();
      if (waiter === undefined) return;
      if ("request" in waiter) this.#submit(waiter.request);
      else waiter.grant();
    }
  }
}
