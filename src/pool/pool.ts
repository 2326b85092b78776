/** Opens, uses and closes connections as pool_state says; owns the pool's timers. */

import { openTarget, type Target } from "../connection/open.ts";
import type { Lease } from "../connection/lease.ts";
import type { ServerConnection } from "../connection/server_connection.ts";
import { type AcquireTrace, channels, traceWork } from "../connection/tracing.ts";
import { demandsWrites } from "../connection/session_attributes.ts";
import type { Request } from "../engine/request.ts";
import { ConfigurationError, PoolError, PostgresError } from "../errors.ts";
import { unrefTimer } from "../transport/timers.ts";
import { IDLE } from "../wire/message_types.ts";
import { type Need, OWN, PoolEntry, type PoolLimits, PoolState, SHARED, type Waiter } from "./pool_state.ts";
import { SessionWatch } from "./session_watch.ts";

/** How a pool behaves; times in milliseconds. */
export interface PoolBehaviour extends PoolLimits {
  /** 0: no limit. */
  readonly acquireTimeout: number;
  readonly maxWaiters: number;
  readonly allowExitOnIdle: boolean;
  /** Prepares a connection that has just been opened; when it rejects, the connection is closed. */
  readonly onConnect: ((connection: ServerConnection) => Promise<void>) | undefined;
}

/** How a pool is doing. */
export interface PoolStats {
  /** Connections, those being opened included. */
  readonly total: number;
  /** Connections without work. */
  readonly idle: number;
  /** Connections with work. */
  readonly busy: number;
  /** Connections being opened. */
  readonly opening: number;
  /** Queries, transactions and sessions that wait for a connection. */
  readonly waiting: number;
  /** Milliseconds that the first of them has waited; 0 when nobody waits. */
  readonly waitTime: number;
}

/** A connection of one's own. */
export interface OwnedConnection {
  readonly connection: ServerConnection;
  /** Writes on it; `release` cleans the session and gives the connection back. */
  readonly lease: Lease;
}

type Entry = PoolEntry<ServerConnection>;

/** Connections to one target. Nothing is opened before it is needed. */
export class ConnectionPool {
  readonly #resolve: () => Promise<Target>;
  readonly #behaviour: PoolBehaviour;
  readonly #state: PoolState<ServerConnection>;
  readonly #opening: AbortController = new AbortController();
  readonly #places: WeakMap<Request, Entry | Waiter<ServerConnection>> = new WeakMap();
  #target: Promise<Target> | undefined = undefined;
  #demandsWrites: boolean = false;
  #connectError: unknown = undefined;
  #closed: Promise<void> | undefined = undefined;
  #timer: ReturnType<typeof setTimeout> | undefined = undefined;
  #timerAt: number = Infinity;
  #whenQuiet: (() => void) | undefined = undefined;

  constructor(resolve: () => Promise<Target>, behaviour: PoolBehaviour) {
    this.#resolve = resolve;
    this.#behaviour = behaviour;
    this.#state = new PoolState(behaviour);
  }

  /** Adds a request, or the first of a batch; it goes to the connection that suits best. */
  submit(request: Request): void {
    this.#submit(request, performance.now());
  }

  #submit(request: Request, since: number): void {
    if (this.#closed !== undefined) return fail(request, poolClosed);
    const need = request.alone ? OWN : SHARED;
    const entry = this.#state.take(need, performance.now());
    if (entry !== undefined) return this.#run(entry, request, need, since);
    if (this.#state.waiting >= this.#behaviour.maxWaiters) return fail(request, () => this.#tooMany());
    for (let each: Request | null = request; each !== null; each = each.next) each.parameters.snapshot();
    const waiter: QueuedRequest = {
      need,
      since,
      grant: (entry) => this.#run(entry, request, need, since),
      refuse: (error) => fail(request, () => error),
    };
    this.#places.set(request, waiter);
    this.#wait(waiter);
  }

  /** Withdraws or cancels a request whose caller has given up. */
  giveUp(request: Request): void {
    const place = this.#places.get(request);
    if (place instanceof PoolEntry) return place.connection!.giveUp(request);
    if (place !== undefined && this.#state.leave(place)) request.settle();
  }

  /**
   * Waits for a connection of one's own.
   *
   * @throws {PoolError} when none is to be had in time, or the pool is closed
   * @throws the signal's reason
   */
  acquire(signal?: AbortSignal): Promise<OwnedConnection> {
    const createTrace = (): AcquireTrace => ({
      startedAt: performance.now(),
      endedAt: undefined,
      error: undefined,
    });
    return traceWork(channels.acquire, createTrace, () => this.#acquire(signal));
  }

  async #acquire(signal: AbortSignal | undefined): Promise<OwnedConnection> {
    signal?.throwIfAborted();
    if (this.#closed !== undefined) throw poolClosed();
    const now = performance.now();
    const entry = this.#state.take(OWN, now) ?? await this.#waitToOwn(now, signal);
    return await this.#own(entry);
  }

  #waitToOwn(since: number, signal: AbortSignal | undefined): Promise<Entry> {
    if (this.#state.waiting >= this.#behaviour.maxWaiters) throw this.#tooMany();
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        if (this.#state.leave(waiter)) reject(signal!.reason);
      };
      const waiter: QueuedRequest = {
        need: OWN,
        since,
        grant: (entry) => {
          signal?.removeEventListener("abort", onAbort);
          resolve(entry);
        },
        refuse: (error) => {
          signal?.removeEventListener("abort", onAbort);
          reject(error);
        },
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#wait(waiter);
    });
  }

  async #own(entry: Entry): Promise<OwnedConnection> {
    const connection = entry.connection!;
    if (this.#behaviour.allowExitOnIdle) connection.setKeepAlive(true);
    const lease = await connection.acquire();
    const watch = new SessionWatch();
    let released = false;
    return {
      connection,
      lease: {
        submit: (request) => {
          if (released) return fail(request, returned);
          this.#places.set(request, entry);
          watch.observe(request);
          lease.submit(request);
        },
        release: () => {
          if (released) return;
          released = true;
          watch.clean(connection, lease).then(() => {
            lease.release();
            this.#finish(entry, OWN);
          });
        },
      },
    };
  }

  /** Opens a connection that is not one of the pool's. */
  async openOutside(signal: AbortSignal): Promise<ServerConnection> {
    this.#target ??= this.#resolve();
    return await openTarget(await this.#target, signal);
  }

  /** How the pool is doing. */
  stats(): PoolStats {
    const { total, idle, opening, waiting, waitingSince } = this.#state;
    return {
      total,
      idle,
      busy: total - idle - opening,
      opening,
      waiting,
      waitTime: waitingSince === undefined ? 0 : performance.now() - waitingSince,
    };
  }

  /**
   * Lets work finish, then closes every connection. Idempotent; never rejects.
   *
   * @param timeout milliseconds until what is unfinished is given up
   */
  close(timeout: number): Promise<void> {
    return this.#closed ??= this.#close(timeout);
  }

  async #close(timeout: number): Promise<void> {
    // A turn for what was issued in the same one as close().
    await Promise.resolve();
    if (timeout > 0 && !this.#quiet) {
      let timer: ReturnType<typeof setTimeout> | undefined = undefined;
      await new Promise<void>((resolve) => {
        this.#whenQuiet = resolve;
        timer = setTimeout(resolve, timeout);
      });
      clearTimeout(timer);
    }
    this.#opening.abort(poolClosed());
    for (const waiter of this.#state.takeWaiters()) (waiter as QueuedRequest).refuse(poolClosed());
    clearTimeout(this.#timer);
    const closing = [...this.#state.entries].map((entry) => entry.connection?.close(0));
    await Promise.all(closing);
  }

  get #quiet(): boolean {
    const { total, idle, opening, waiting } = this.#state;
    return waiting === 0 && total === idle + opening;
  }

  // Work on connections.

  #run(entry: Entry, request: Request, need: Need, since: number): void {
    const connection = entry.connection!;
    if (this.#behaviour.allowExitOnIdle) connection.setKeepAlive(true);
    if (request.last) entry.sealed = true;
    this.#places.set(request, entry);
    const before = request.observer;
    request.observer = (settled) => {
      request.observer = before;
      before?.(settled);
      this.#onSettled(entry, need, settled);
    };
    request.reroute = () => {
      // Nothing was sent: the connection is gone, and another one may do it.
      request.observer = before;
      request.reroute = null;
      this.#lost(entry);
      if (this.#closed !== undefined || request.aborted) return false;
      for (let each: Request | null = request; each !== null; each = each.next) each.reset();
      this.#submit(request, since);
      return true;
    };
    connection.submit(request);
  }

  #onSettled(entry: Entry, need: Need, request: Request): void {
    const connection = entry.connection!;
    const code = request.serverError?.["C"];
    // 25006 read_only_sql_transaction where writing was asked for: the server has been demoted.
    if (code === "25006" && this.#demandsWrites) this.#state.retire(entry);
    const lastOne = need === OWN || entry.load === 1;
    if (lastOne && !connection.closed && connection.session.transactionStatus !== IDLE) {
      request.fail(leftOpen);
      connection.destroy(leftOpen);
    }
    this.#finish(entry, need);
  }

  #finish(entry: Entry, need: Need): void {
    const now = performance.now();
    this.#state.finished(entry, need, now);
    if (entry.idle) {
      if (this.#behaviour.allowExitOnIdle) entry.connection!.setKeepAlive(false);
      this.#arm();
    } else if (entry.retired && entry.load === 0) this.#closeExpired(now);
    if (this.#whenQuiet !== undefined && this.#quiet) this.#whenQuiet();
  }

  #lost(entry: Entry): void {
    this.#state.lost(entry);
    if (this.#closed === undefined) this.#openWanted();
    if (this.#whenQuiet !== undefined && this.#quiet) this.#whenQuiet();
  }

  // Opening.

  #wait(waiter: QueuedRequest): void {
    this.#state.wait(waiter);
    this.#openWanted();
    this.#arm();
  }

  #openWanted(): void {
    for (;;) {
      const entry = this.#state.startOpening(performance.now());
      if (entry === undefined) return;
      this.#open(entry);
    }
  }

  async #open(entry: Entry): Promise<void> {
    let connection: ServerConnection | undefined;
    try {
      this.#target ??= this.#resolve();
      const target = await this.#target;
      this.#demandsWrites = demandsWrites(target.options.targetSessionAttrs);
      connection = await openTarget(target, this.#opening.signal);
      await this.#behaviour.onConnect?.(connection);
      if (this.#closed !== undefined && this.#opening.signal.aborted) throw poolClosed();
    } catch (error) {
      connection?.close(0);
      this.#onOpenFailed(entry, error);
      return;
    }
    this.#connectError = undefined;
    if (connection.closed) return this.#onOpenFailed(entry, new PoolError("Connection lost at once"));
    connection.onEnded = () => this.#lost(entry);
    this.#state.opened(entry, connection, performance.now(), Math.random());
    if (entry.idle && this.#behaviour.allowExitOnIdle) connection.setKeepAlive(false);
    this.#openWanted();
    this.#arm();
  }

  #onOpenFailed(entry: Entry, error: unknown): void {
    this.#connectError = error;
    if (error instanceof ConfigurationError) this.#target = undefined;
    this.#state.openFailed(entry, performance.now(), Math.random());
    if (this.#closed !== undefined) return;
    // Who waits learns at once what waiting cannot mend.
    if (isLasting(error) && this.#state.total === this.#state.opening) {
      for (const waiter of this.#state.takeWaiters()) (waiter as QueuedRequest).refuse(error);
    }
    this.#arm();
  }

  // Time.

  /** Makes sure that the pool looks again when the next limit passes. */
  #arm(): void {
    const { acquireTimeout } = this.#behaviour;
    const waitingSince = this.#state.waitingSince;
    let deadline = this.#state.nextDeadline() ?? Infinity;
    if (waitingSince !== undefined && acquireTimeout > 0) {
      deadline = Math.min(deadline, waitingSince + acquireTimeout);
    }
    if (deadline >= this.#timerAt || deadline === Infinity || this.#closed !== undefined) return;
    clearTimeout(this.#timer);
    this.#timerAt = deadline;
    this.#timer = setTimeout(() => this.#tick(), Math.max(1, Math.ceil(deadline - performance.now())));
    // Nobody waits for maintenance.
    if (waitingSince === undefined) unrefTimer(this.#timer);
  }

  #tick(): void {
    this.#timerAt = Infinity;
    const now = performance.now();
    const { acquireTimeout } = this.#behaviour;
    if (acquireTimeout > 0) {
      for (const waiter of this.#state.takeOverdue(now, acquireTimeout)) {
        (waiter as QueuedRequest).refuse(this.#timedOut(acquireTimeout));
      }
    }
    this.#closeExpired(now);
    this.#openWanted();
    this.#arm();
  }

  #closeExpired(now: number): void {
    for (const entry of this.#state.takeExpired(now)) entry.connection!.close(0);
    this.#openWanted();
  }

  // Errors that teach.

  #tooMany(): PoolError {
    return new PoolError(
      `Pool has too many waiters: ${this.#describe()}, maxWaiters ${this.#behaviour.maxWaiters}`,
    );
  }

  #timedOut(acquireTimeout: number): PoolError {
    const cause = this.#connectError;
    const reason = cause !== undefined
      ? `, and the last attempt to connect failed: ${cause instanceof Error ? cause.message : String(cause)}`
      : ". Does a transaction use the pool's methods in place of its own?";
    return new PoolError(
      `No connection within ${acquireTimeout} ms (acquireTimeout): ${this.#describe()}${reason}`,
      {
        ...(cause === undefined ? {} : { cause }),
      },
    );
  }

  #describe(): string {
    const { total, busy, waiting } = this.stats();
    return `size ${total} of ${this.#behaviour.max}, busy ${busy}, waiting ${waiting}`;
  }
}

/** A waiter that can be told why it waits in vain. */
interface QueuedRequest extends Waiter<ServerConnection> {
  readonly refuse: (error: unknown) => void;
}

/** Whether trying again soon cannot help: the server, or the configuration, says no. */
function isLasting(error: unknown): boolean {
  if (error instanceof ConfigurationError) return true;
  // 53300 too_many_connections and class 57P (starting up, shutting down) pass; a wrong password does not.
  return error instanceof PostgresError && !error.code.startsWith("57P") && !error.code.startsWith("53");
}

function fail(request: Request, failure: () => unknown): void {
  for (let each: Request | null = request; each !== null; each = each.next) {
    each.fail(failure as () => Error);
    each.settle();
  }
}

function returned(): PoolError {
  return new PoolError("Connection was given back to the pool");
}

function leftOpen(): PoolError {
  return new PoolError("Script left a transaction block open: it was rolled back");
}

function poolClosed(): PoolError {
  return new PoolError("Pool is closed");
}
