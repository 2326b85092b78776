/**
 * Who gets which connection: a state machine without I/O and clock; `now` is an argument, in milliseconds.
 *
 * - Idle connection first, then a new one up to `max`, then the least loaded one that may be shared.
 * - Who wants a connection of their own waits for one without work. For each of them one connection takes no new shared
 *   work, so that it gets there.
 * - Waiters are served in the order they came, each as soon as there is a connection that suits.
 */

/** What a piece of work needs. */
export const SHARED = 0;
/** A connection without other work, which nobody else gets until it is done. */
export const OWN = 1;

/** `SHARED` or `OWN`. */
export type Need = 0 | 1;

/** Limits; times in milliseconds, 0 for none. */
export interface PoolLimits {
  readonly max: number;
  readonly minIdle: number;
  readonly idleTimeout: number;
  readonly maxLifetime: number;
}

/** One connection's place. `C` is whatever the owner keeps with it. */
export class PoolEntry<C> {
  /** Set once it is open. */
  connection: C | undefined = undefined;
  /** Shared work on it. */
  load: number = 0;
  /** Whether somebody has it to themselves. */
  owned: boolean = false;
  /** Whether it takes no new shared work, for the sake of somebody who waits to own one. */
  draining: boolean = false;
  /** Whether nothing may come behind the work it has: that may have to be cancelled. */
  sealed: boolean = false;
  /** Whether it takes no new work at all and is closed when it has none. */
  retired: boolean = false;
  /** When it became idle. */
  idleSince: number = 0;
  /** When its lifetime is over. */
  retireAt: number = Infinity;

  /** Whether it is open and has no work. */
  get idle(): boolean {
    return this.connection !== undefined && this.load === 0 && !this.owned && !this.retired;
  }

  /** Whether it may get shared work besides what it has. */
  get sharable(): boolean {
    return this.connection !== undefined && !this.owned && !this.draining && !this.sealed && !this.retired;
  }
}

/** Somebody in line. */
export interface Waiter<C> {
  readonly need: Need;
  /** When they came. */
  readonly since: number;
  /** Called with the connection they get; the entry counts them already. */
  readonly grant: (entry: PoolEntry<C>) => void;
}

/** Connections and those who wait for them. */
export class PoolState<C> {
  readonly #limits: PoolLimits;
  readonly #entries: Set<PoolEntry<C>> = new Set();
  #opening: number = 0;
  /** In the order they came. */
  #waiters: Waiter<C>[] = [];
  #owners: number = 0;
  /** Until when no connection is opened, after one could not be. */
  #backoffUntil: number = 0;
  #failures: number = 0;

  constructor(limits: PoolLimits) {
    this.#limits = limits;
  }

  /** Connections, those being opened included. */
  get total(): number {
    return this.#entries.size;
  }

  /** Connections being opened. */
  get opening(): number {
    return this.#opening;
  }

  /** Connections without work. */
  get idle(): number {
    let idle = 0;
    for (const entry of this.#entries) if (entry.idle) idle++;
    return idle;
  }

  /** How many wait. */
  get waiting(): number {
    return this.#waiters.length;
  }

  /** Every connection. */
  get entries(): Iterable<PoolEntry<C>> {
    return this.#entries;
  }

  /** When the one who waits longest came; `undefined` when nobody does. */
  get waitingSince(): number | undefined {
    return this.#waiters[0]?.since;
  }

  /** A connection for a piece of work, counted as taken; `undefined` when it has to wait. */
  take(need: Need, now: number): PoolEntry<C> | undefined {
    if (this.#waiters.length > 0 && need === OWN) return undefined;
    let best: PoolEntry<C> | undefined;
    for (const entry of this.#entries) {
      if (entry.idle && !entry.draining) return occupy(entry, need);
      if (entry.sharable && (best === undefined || entry.load < best.load)) best = entry;
    }
    if (need === OWN || best === undefined || this.#mayOpen(now) || this.#sharedWait()) return undefined;
    return occupy(best, need);
  }

  /** Joins the line. */
  wait(waiter: Waiter<C>): void {
    this.#waiters.push(waiter);
    if (waiter.need === OWN) {
      this.#owners++;
      this.#drainOneMore();
    }
  }

  /** Leaves the line; false when they do not wait. */
  leave(waiter: Waiter<C>): boolean {
    const index = this.#waiters.indexOf(waiter);
    if (index < 0) return false;
    this.#removeWaiter(index);
    return true;
  }

  /** Everybody in line; the line is empty then. */
  takeWaiters(): Waiter<C>[] {
    const waiters = this.#waiters;
    this.#waiters = [];
    this.#owners = 0;
    for (const entry of this.#entries) entry.draining = false;
    return waiters;
  }

  /** Those who have waited for `timeout` or longer; they leave the line. */
  takeOverdue(now: number, timeout: number): Waiter<C>[] {
    let count = 0;
    while (count < this.#waiters.length && this.#waiters[count]!.since + timeout <= now) count++;
    const overdue = this.#waiters.slice(0, count);
    for (let i = 0; i < count; i++) this.#removeWaiter(0);
    return overdue;
  }

  /** A place for a connection to be opened now, because somebody waits or `minIdle` asks for it; else `undefined`. */
  startOpening(now: number): PoolEntry<C> | undefined {
    if (!this.#mayOpen(now)) return undefined;
    const wanted = this.#waiters.length > this.#opening || this.idle + this.#opening < this.#limits.minIdle;
    if (!wanted) return undefined;
    const entry = new PoolEntry<C>();
    this.#entries.add(entry);
    this.#opening++;
    return entry;
  }

  /** When a connection may be opened again; 0 when now. */
  get backoffUntil(): number {
    return this.#backoffUntil;
  }

  /** A connection is open. @param jitter 0 to 1: how much earlier than `maxLifetime` it is retired, up to a tenth */
  opened(entry: PoolEntry<C>, connection: C, now: number, jitter: number): void {
    this.#opening--;
    this.#failures = 0;
    this.#backoffUntil = 0;
    entry.connection = connection;
    entry.idleSince = now;
    const { maxLifetime } = this.#limits;
    if (maxLifetime > 0) entry.retireAt = now + maxLifetime * (1 - jitter / 10);
    this.#serve();
  }

  /** A connection could not be opened. @param jitter 0 to 1: a part of the pause that is left to chance */
  openFailed(entry: PoolEntry<C>, now: number, jitter: number): void {
    this.#opening--;
    this.#entries.delete(entry);
    const pause = Math.min(2_000, 25 * 2 ** Math.min(this.#failures++, 10));
    this.#backoffUntil = now + pause * (0.5 + jitter / 2);
    this.#serve();
  }

  /** A piece of work is done. */
  finished(entry: PoolEntry<C>, need: Need, now: number): void {
    if (need === OWN) entry.owned = false;
    else entry.load--;
    if (entry.load === 0) entry.sealed = false;
    if (!this.#entries.has(entry)) return;
    if (entry.load === 0 && !entry.owned) entry.idleSince = now;
    if (this.#waiters.length > 0) this.#serve();
  }

  /** A connection is gone. */
  lost(entry: PoolEntry<C>): void {
    if (!this.#entries.delete(entry)) return;
    if (entry.connection === undefined) this.#opening--;
    if (entry.draining) this.#drainOneMore();
  }

  /** A connection takes no new work. */
  retire(entry: PoolEntry<C>): void {
    entry.retired = true;
    if (entry.draining) {
      entry.draining = false;
      this.#drainOneMore();
    }
  }

  /** Idle connections whose time is over, and retired ones without work. They leave the pool: close them. */
  takeExpired(now: number): PoolEntry<C>[] {
    const { idleTimeout, minIdle } = this.#limits;
    let spare = this.idle - minIdle;
    const expired: PoolEntry<C>[] = [];
    for (const entry of this.#entries) {
      if (entry.connection === undefined || entry.load > 0 || entry.owned) continue;
      const old = entry.retired || entry.retireAt <= now;
      const unused = idleTimeout > 0 && entry.idleSince + idleTimeout <= now && spare > 0;
      if (!old && !unused) continue;
      spare--;
      expired.push(entry);
    }
    for (const entry of expired) this.lost(entry);
    return expired;
  }

  /** When to look again: an idle connection's time is over, or one may be opened; `undefined` for never. */
  nextDeadline(): number | undefined {
    let deadline = Infinity;
    const { idleTimeout, minIdle } = this.#limits;
    const spare = this.idle > minIdle;
    for (const entry of this.#entries) {
      if (!entry.idle) continue;
      deadline = Math.min(deadline, entry.retireAt);
      if (idleTimeout > 0 && spare) deadline = Math.min(deadline, entry.idleSince + idleTimeout);
    }
    if (this.#backoffUntil > 0 && this.#waiters.length > 0) deadline = Math.min(deadline, this.#backoffUntil);
    return deadline === Infinity ? undefined : deadline;
  }

  #mayOpen(now: number): boolean {
    return this.#entries.size < this.#limits.max && now >= this.#backoffUntil;
  }

  /** Whether shared work waits: new work must not go before it. */
  #sharedWait(): boolean {
    return this.#waiters.length > this.#owners;
  }

  #removeWaiter(index: number): void {
    const [waiter] = this.#waiters.splice(index, 1);
    if (waiter!.need !== OWN) return;
    this.#owners--;
    // One connection less has to drain: the busiest goes back to work.
    let busiest: PoolEntry<C> | undefined;
    for (const entry of this.#entries) {
      if (entry.draining && (busiest === undefined || entry.load > busiest.load)) busiest = entry;
    }
    if (busiest !== undefined && this.#draining() > this.#owners) busiest.draining = false;
  }

  #draining(): number {
    let count = 0;
    for (const entry of this.#entries) if (entry.draining) count++;
    return count;
  }

  /** Keeps the least loaded connection free of new shared work, if more are waited for than drain. */
  #drainOneMore(): void {
    if (this.#draining() >= this.#owners) return;
    let best: PoolEntry<C> | undefined;
    for (const entry of this.#entries) {
      if (entry.sharable && (best === undefined || entry.load < best.load)) best = entry;
    }
    if (best !== undefined) best.draining = true;
  }

  /** Gives connections to those in line. */
  #serve(): void {
    for (let i = 0; i < this.#waiters.length;) {
      const waiter = this.#waiters[i]!;
      const entry = waiter.need === OWN ? this.#idleEntry() : this.#sharedEntry();
      if (entry === undefined) {
        // Those behind may want what this one cannot use; shared work all wants the same.
        if (waiter.need === SHARED) {
          i = this.#nextOwner(i + 1);
          if (this.#idleEntry() === undefined) return;
        } else i++;
        continue;
      }
      this.#removeWaiter(i);
      occupy(entry, waiter.need);
      waiter.grant(entry);
    }
  }

  #nextOwner(from: number): number {
    while (from < this.#waiters.length && this.#waiters[from]!.need !== OWN) from++;
    return from;
  }

  #idleEntry(): PoolEntry<C> | undefined {
    for (const entry of this.#entries) if (entry.idle) return entry;
    return undefined;
  }

  /** The least loaded connection that still has not more than its part of what waits. */
  #sharedEntry(): PoolEntry<C> | undefined {
    let best: PoolEntry<C> | undefined;
    let places = this.#opening;
    let work = this.#waiters.length - this.#owners;
    for (const entry of this.#entries) {
      if (!entry.sharable) continue;
      places++;
      work += entry.load;
      if (best === undefined || entry.load < best.load) best = entry;
    }
    return best !== undefined && best.load < Math.ceil(work / places) ? best : undefined;
  }
}

function occupy<C>(entry: PoolEntry<C>, need: Need): PoolEntry<C> {
  if (need === OWN) {
    entry.owned = true;
    entry.draining = false;
  } else entry.load++;
  return entry;
}
