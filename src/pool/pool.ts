/** Opens, uses and closes connections as pool_state says; owns the pool's timers. */

import { openTarget, type Target } from "../connection/open.ts";
import type { Lease } from "../connection/lease.ts";
import type { ServerConnection } from "../connection/server_connection.ts";
import { type AcquireTrace, channels, traceWork } from "../connection/tracing.ts";
import { demandsWrites, reportsReadOnly } from "../connection/session_attributes.ts";
import type { Request, RequestOwner } from "../engine/request.ts";
import { PoolError, TimeoutError } from "../errors.ts";
import { unrefTimer } from "../transport/timers.ts";
import { IDLE } from "../wire/message_types.ts";
import { bounded } from "./bounded.ts";
import {
  blockOpened,
  fail,
  type Fullness,
  isLasting,
  leftOpen,
  poolClosed,
  returned,
  tooManyWaiters,
  waitedTooLong,
} from "./pool_errors.ts";
import { type Need, OWN, PoolEntry, PoolState, SHARED, type Waiter } from "./pool_state.ts";
import type { PoolBehaviour, PoolStats } from "./pool_types.ts";
import { SessionWatch } from "./session_watch.ts";
import { TurnClock } from "./turn_clock.ts";

export type { PoolBehaviour, PoolStats } from "./pool_types.ts";

/** A connection of one's own. */
export interface OwnedConnection {
  readonly connection: ServerConnection;
  /** Writes on it; `release` cleans the session and gives the connection back. */
  readonly lease: Lease;
}

type Entry = PoolEntry<ServerConnection>;

/** What timers can count, 24 days. */
const MAX_TIMER = 0x7fff_ffff;

/** Connections to one target. Nothing is opened before it is needed. */
export class ConnectionPool implements RequestOwner {
  readonly #resolve: () => Promise<Target>;
  readonly #behaviour: PoolBehaviour;
  readonly #state: PoolState<ServerConnection>;
  /** Aborts when nothing is to be opened any more, nor waited for. */
  readonly #ending: AbortController = new AbortController();
  /** Attempts to open that have not come to their end. */
  readonly #attempts: Set<Promise<void>> = new Set();
  /** Of requests that have a connection to themselves. */
  readonly #watches: WeakMap<Request, SessionWatch> = new WeakMap();
  #target: Promise<Target> | undefined = undefined;
  #demandsWrites: boolean = false;
  #connectError: unknown = undefined;
  #closed: Promise<void> | undefined = undefined;
  /** Whether what is unfinished is given up. */
  #forced: boolean = false;
  #whenQuiet: (() => void) | undefined = undefined;
  #timer: ReturnType<typeof setTimeout> | undefined = undefined;
  #timerAt: number = Infinity;
  readonly #clock: TurnClock = new TurnClock();
  /** Whether the timer keeps the process alive. */
  #timerHolds: boolean = false;

  constructor(resolve: () => Promise<Target>, behaviour: PoolBehaviour) {
    this.#resolve = resolve;
    this.#behaviour = behaviour;
    this.#state = new PoolState(behaviour);
  }

  /** Adds a request, or the first of a batch; it goes to the connection that suits best. */
  submit(request: Request): void {
    if (this.#closed !== undefined) return fail(request, poolClosed);
    this.#submit(request);
  }

  #submit(request: Request): void {
    const need = request.alone ? OWN : SHARED;
    const entry = this.#state.take(need, this.#clock.now());
    if (entry !== undefined) this.#run(entry, request, need);
    else this.#queue(request, need);
  }

  /** A function of its own: where there are closures, engines keep variables in an object, also when none is made. */
  #queue(request: Request, need: Need): void {
    // The turn may have begun long ago: who waits counts from when they came.
    const now = performance.now();
    if (!this.#state.admits(this.#behaviour.maxWaiters, now)) return fail(request, () => this.#tooMany());
    for (let each: Request | null = request; each !== null; each = each.next) each.parameters.snapshot();
    const waiter: QueuedRequest = {
      need,
      since: now,
      place: 0,
      grant: (entry) => this.#run(entry, request, need),
      refuse: (error) => fail(request, () => error),
    };
    request.place = waiter;
    this.#wait(waiter);
  }

  /** Withdraws or cancels a request whose caller has given up. */
  giveUp(request: Request): void {
    const { place } = request;
    if (place instanceof PoolEntry) (place as Entry).connection!.giveUp(request);
    else if (place !== null && this.#leave(place as QueuedRequest)) request.settle();
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
    for (;;) {
      const entry = this.#state.take(OWN, performance.now()) ?? await this.#waitToOwn(signal);
      const connection = entry.connection!;
      const lease = await connection.acquire();
      if (!connection.closed) return this.#own(entry, lease);
      // It died before it could be used; another one may do.
      lease.release();
      this.#lost(entry);
      this.#finish(entry, OWN);
      if (this.#ending.signal.aborted) throw poolClosed();
    }
  }

  #waitToOwn(signal: AbortSignal | undefined): Promise<Entry> {
    const now = performance.now();
    if (!this.#state.admits(this.#behaviour.maxWaiters, now)) throw this.#tooMany();
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        if (this.#leave(waiter)) reject(signal!.reason);
      };
      const waiter: QueuedRequest = {
        need: OWN,
        since: now,
        place: 0,
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

  #own(entry: Entry, lease: Lease): OwnedConnection {
    const connection = entry.connection!;
    if (this.#behaviour.allowExitOnIdle) connection.setKeepAlive(true);
    const watch = new SessionWatch();
    let released = false;
    return {
      connection,
      lease: {
        get held(): boolean {
          return !released;
        },
        submit: (request) => {
          if (released) return fail(request, returned);
          request.place = entry;
          watch.observe(request);
          lease.submit(request);
        },
        release: () => {
          if (released) return;
          released = true;
          this.#takeBack(entry, watch, lease);
        },
      },
    };
  }

  /** Opens a connection that is not one of the pool's. */
  async openOutside(signal: AbortSignal): Promise<ServerConnection> {
    return await openTarget(await this.#resolveTarget(), signal);
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
   * @param timeout milliseconds until what is unfinished is given up; of several calls the shortest one counts
   */
  close(timeout: number): Promise<void> {
    const closed = this.#closed ??= this.#close();
    if (timeout <= 0) this.#force();
    else if (timeout <= MAX_TIMER) {
      const timer = setTimeout(() => this.#force(), timeout);
      closed.then(() => clearTimeout(timer));
    }
    return closed;
  }

  #force(): void {
    this.#forced = true;
    this.#whenQuiet?.();
  }

  async #close(): Promise<void> {
    // A turn for what was issued in the same one as close().
    await Promise.resolve();
    if (!this.#forced && !this.#quiet) await new Promise<void>((resolve) => this.#whenQuiet = resolve);
    this.#ending.abort(poolClosed());
    clearTimeout(this.#timer);
    this.#refuseAll(poolClosed());
    const closing = this.#state.entries.map((entry) => entry.connection?.close(0));
    await Promise.all([...closing, ...this.#attempts]);
  }

  get #quiet(): boolean {
    const { total, idle, opening, waiting } = this.#state;
    return waiting === 0 && total === idle + opening;
  }

  #tellQuiet(): void {
    if (this.#whenQuiet !== undefined && this.#quiet) this.#whenQuiet();
  }

  // Work on connections.

  #run(entry: Entry, request: Request, need: Need): void {
    const connection = entry.connection!;
    if (this.#behaviour.allowExitOnIdle) connection.setKeepAlive(true);
    if (this.#seals(request)) entry.sealed = true;
    if (need === OWN) {
      const watch = new SessionWatch();
      watch.observe(request);
      this.#watches.set(request, watch);
    }
    request.owner = this;
    request.place = entry;
    connection.submit(request);
  }

  /** Whether nothing is to come behind a request until it has settled. */
  #seals(request: Request): boolean {
    return request.last || !this.#behaviour.pipelined;
  }

  /** A request that the pool gave to a connection has settled. Not for use from outside. */
  onSettled(request: Request): void {
    const entry = request.place as Entry;
    const connection = entry.connection!;
    if (this.#seals(request)) entry.sealed = false;
    const blockOpen = connection.session.transactionStatus !== IDLE && !connection.closed;
    if (blockOpen) request.fail(leftOpen);
    if (entry.owned) return this.#takeBack(entry, this.#watches.get(request)!);
    // Others may be inside already, and must not learn that their part is done.
    if (blockOpen) connection.destroy(blockOpened);
    if (request.failure !== null && request.serverError?.["C"] === "25006") this.#onRefusedWrite(entry);
    this.#finish(entry, SHARED);
  }

  /** Nothing of a request was sent: its connection is gone, another one may do it. Not for use from outside. */
  reroute(request: Request): boolean {
    this.#lost(request.place as Entry);
    request.owner = null;
    if (this.#ending.signal.aborted || request.aborted) return false;
    for (let each: Request | null = request; each !== null; each = each.next) each.reset();
    this.#submit(request);
    return true;
  }

  /** An owner is done: their session is cleaned, and the next one gets it. */
  #takeBack(entry: Entry, watch: SessionWatch, lease?: Lease): void {
    const connection = entry.connection!;
    if (watch.refusedWrite) this.#onRefusedWrite(entry);
    const finish = () => {
      lease?.release();
      this.#finish(entry, OWN);
    };
    if (!watch.isDirty(connection)) return finish();
    const submit = (request: Request) => (lease ?? connection).submit(request);
    watch.clean(connection, submit).then(async () => {
      lease?.release();
      // What the user prepared has been undone with the rest.
      if (watch.changed && !connection.closed) {
        await this.#prepare(connection).catch((error) => connection.destroy(() => error as Error));
      }
      finish();
    });
  }

  /** Writing was asked for: a server that is read-only by now is of no use. */
  #onRefusedWrite(entry: Entry): void {
    if (!this.#demandsWrites) return;
    const { host, session } = entry.connection!;
    const readOnly = reportsReadOnly(session);
    // The server can be written to: the transaction was made read-only.
    if (readOnly === false) return;
    this.#state.retire(entry);
    if (readOnly === undefined) return;
    for (const each of this.#state.entries) {
      const other = each.connection?.host;
      if (other?.host === host.host && other.port === host.port) this.#state.retire(each);
    }
    this.#closeExpired(performance.now());
  }

  #finish(entry: Entry, need: Need): void {
    const now = this.#clock.now();
    if (this.#demandsWrites && reportsReadOnly(entry.connection!.session)) this.#state.retire(entry);
    this.#state.finished(entry, need, now);
    if (!entry.free) return; // others are at work on it
    if (entry.retired) this.#closeExpired(now);
    else {
      if (this.#behaviour.allowExitOnIdle) entry.connection!.setKeepAlive(false);
      this.#arm();
    }
    this.#tellQuiet();
  }

  #lost(entry: Entry): void {
    this.#state.lost(entry);
    this.#openWanted();
    this.#tellQuiet();
  }

  // Waiting.

  #wait(waiter: QueuedRequest): void {
    this.#state.wait(waiter);
    this.#openWanted();
    this.#arm();
  }

  #leave(waiter: Waiter<ServerConnection>): boolean {
    const left = this.#state.leave(waiter);
    this.#arm();
    this.#tellQuiet();
    return left;
  }

  #refuseAll(error: unknown): void {
    for (const waiter of this.#state.takeWaiters()) (waiter as QueuedRequest).refuse(error);
    this.#tellQuiet();
  }

  // Opening.

  #openWanted(): void {
    if (this.#ending.signal.aborted) return;
    for (;;) {
      const entry = this.#state.startOpening(performance.now());
      if (entry === undefined) return;
      const attempt = this.#open(entry).finally(() => this.#attempts.delete(attempt));
      this.#attempts.add(attempt);
    }
  }

  async #open(entry: Entry): Promise<void> {
    let connection: ServerConnection | undefined;
    try {
      const target = await this.#resolveTarget();
      this.#demandsWrites = demandsWrites(target.options.targetSessionAttrs);
      connection = await openTarget(target, this.#ending.signal);
      await this.#prepare(connection);
      // The pool may have been closed when the connection was open already, but nobody here knew.
      this.#ending.signal.throwIfAborted();
      if (connection.closed) throw new PoolError("Connection lost at once");
    } catch (error) {
      const closed = connection?.close(0);
      this.#onOpenFailed(entry, error);
      return await closed;
    }
    this.#connectError = undefined;
    // What onConnect has begun to listen to ends with the connection, too.
    const before = connection.onEnded;
    connection.onEnded = () => {
      before?.();
      this.#lost(entry);
    };
    this.#state.opened(entry, connection, performance.now(), Math.random());
    if (entry.idle && this.#behaviour.allowExitOnIdle) connection.setKeepAlive(false);
    this.#openWanted();
    this.#arm();
  }

  async #resolveTarget(): Promise<Target> {
    try {
      return await (this.#target ??= this.#resolve());
    } catch (error) {
      this.#target = undefined;
      throw error;
    }
  }

  /** Lets the user prepare a session, in bounded time. */
  async #prepare(connection: ServerConnection): Promise<void> {
    const { onConnect } = this.#behaviour;
    if (onConnect === undefined) return;
    const { connectTimeout } = (await this.#resolveTarget()).options;
    await bounded(() => onConnect(connection), {
      signal: this.#ending.signal,
      timeout: connectTimeout,
      late: () => new TimeoutError(`onConnect did not end within ${connectTimeout} ms (connectTimeout)`),
    });
  }

  #onOpenFailed(entry: Entry, error: unknown): void {
    this.#state.openFailed(entry, performance.now(), Math.random());
    if (this.#ending.signal.aborted) return;
    this.#connectError = error;
    // Who waits learns at once what waiting cannot mend.
    if (isLasting(error) && this.#state.total === this.#state.opening) this.#refuseAll(error);
    this.#arm();
    this.#tellQuiet();
  }

  // Time.

  /** Makes sure that the pool looks again when the next limit passes. */
  #arm(): void {
    if (this.#ending.signal.aborted) return;
    const { acquireTimeout } = this.#behaviour;
    const waitingSince = this.#state.waitingSince;
    // Nobody waits for maintenance.
    const holds = waitingSince !== undefined;
    let deadline = this.#state.nextDeadline() ?? Infinity;
    if (holds && acquireTimeout > 0) deadline = Math.min(deadline, waitingSince + acquireTimeout);
    if (deadline >= this.#timerAt && holds === this.#timerHolds) return;
    clearTimeout(this.#timer);
    this.#timerAt = deadline;
    this.#timerHolds = holds;
    if (deadline === Infinity) return;
    const wait = Math.min(MAX_TIMER, Math.max(1, Math.ceil(deadline - performance.now())));
    this.#timer = setTimeout(() => this.#tick(), wait);
    if (!holds) unrefTimer(this.#timer);
  }

  #tick(): void {
    this.#timerAt = Infinity;
    const now = performance.now();
    const { acquireTimeout } = this.#behaviour;
    if (acquireTimeout > 0) {
      const fullness = this.#fullness();
      for (const waiter of this.#state.takeOverdue(now, acquireTimeout)) {
        (waiter as QueuedRequest).refuse(waitedTooLong(fullness, acquireTimeout, this.#connectError));
      }
    }
    this.#closeExpired(now);
    this.#openWanted();
    this.#arm();
    this.#tellQuiet();
  }

  #closeExpired(now: number): void {
    for (const entry of this.#state.takeExpired(now)) entry.connection!.close(0);
    this.#openWanted();
  }

  #tooMany(): PoolError {
    return tooManyWaiters(this.#fullness(), this.#behaviour.maxWaiters);
  }

  #fullness(): Fullness {
    return { ...this.stats(), max: this.#behaviour.max };
  }
}

/** A waiter that can be told why it waits in vain. */
interface QueuedRequest extends Waiter<ServerConnection> {
  readonly refuse: (error: unknown) => void;
}
