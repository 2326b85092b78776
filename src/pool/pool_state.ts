/**
 * Who gets which connection: a state machine without I/O and clock; `now` is an argument, in milliseconds.
 *
 * - Idle connection first, then a new one up to `max`, then the least loaded one that may be shared.
 * - Who wants a connection of their own waits for one without work. For each of them one connection takes no new shared
 *   work (it drains), so that it gets there; once idle it is theirs.
 * - Any other connection that becomes idle goes to whoever came first. Shared work that waits is spread evenly over
 *   what is open, being opened, and does not drain for those before it; new shared work does not go before it.
 * - A connection past its lifetime takes no new work, and is closed when it has none.
 * - After an attempt to open failed there is a pause that doubles, and then one attempt at a time until one succeeds.
 */

import { WaitingLine } from "./waiting_line.ts";

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
  /** Whether nothing may come behind the work it has: that may have to be cancelled. Set and cleared by the owner. */
  sealed: boolean = false;
  /** Whether it takes no new work at all and is closed when it has none. */
  retired: boolean = false;
  /** When it became idle. */
  idleSince: number = 0;
  /** When its lifetime is over. */
  retireAt: number = Infinity;
  /** Whether it has left the pool. */
  gone: boolean = false;

  /** Whether it is open and has no work. */
  get free(): boolean {
    return this.connection !== undefined && this.load === 0 && !this.owned;
  }

  /** Whether it may be given to somebody as their own. */
  get idle(): boolean {
    return this.free && !this.retired;
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
  /** Their number in line, set by the state. */
  place: number;
  /** Called with the connection they get; the entry counts them already. */
  readonly grant: (entry: PoolEntry<C>) => void;
}

/** Connections and those who wait for them. */
export class PoolState<C> {
  readonly #limits: PoolLimits;
  #entries: PoolEntry<C>[] = [];
  #opening: number = 0;
  /** No connection that may be shared has less work. */
  #least: number = 0;
  /** Where to look first for the next one with as much. */
  #turn: number = 0;
  /** Those who want a connection of their own. */
  readonly #owners: WaitingLine<Waiter<C>> = new WaitingLine();
  /** Those who can share one. */
  readonly #sharers: WaitingLine<Waiter<C>> = new WaitingLine();
  #places: number = 0;
  #serving: boolean = false;
  /** Until when no connection is opened, after one could not be. */
  #backoffUntil: number = 0;
  /** Rounds of attempts to open that failed, one after the other. */
  #failures: number = 0;

  constructor(limits: PoolLimits) {
    this.#limits = limits;
  }

  /** Connections, those being opened included. */
  get total(): number {
    return this.#entries.length;
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
    return this.#owners.length + this.#sharers.length;
  }

  /** Every connection. */
  get entries(): readonly PoolEntry<C>[] {
    return this.#entries;
  }

  /** When the one who waits longest came; `undefined` when nobody does. */
  get waitingSince(): number | undefined {
    return this.#first?.since;
  }

  /** A connection for a piece of work, counted as taken; `undefined` when it has to wait. */
  take(need: Need, now: number): PoolEntry<C> | undefined {
    if (need === OWN && this.waiting > 0) return undefined;
    if (need === OWN || this.#least === 0) {
      for (const entry of this.#entries) {
        if (entry.load === 0 && entry.idle && !entry.draining) return occupy(entry, need);
      }
    }
    if (need === OWN || this.#sharers.length > 0 || this.#mayOpen(now)) return undefined;
    const best = this.#leastLoaded();
    return best === undefined ? undefined : occupy(best, need);
  }

  /** In a burst most have as much work: of those of the least load each comes up in turn, and is mostly found at once. */
  #leastLoaded(): PoolEntry<C> | undefined {
    const entries = this.#entries;
    const count = entries.length;
    let best = -1;
    let least = Infinity;
    for (let i = 0, at = this.#turn; i < count && least > this.#least; i++, at++) {
      if (at >= count) at = 0;
      const entry = entries[at]!;
      if (entry.load >= least || !entry.sharable) continue;
      best = at;
      least = entry.load;
    }
    if (best < 0) return undefined;
    this.#least = least;
    this.#turn = best + 1;
    return entries[best];
  }

  /** A connection may take shared work with as much as it has now. */
  #noteLoad({ load }: PoolEntry<C>): void {
    if (load < this.#least) this.#least = load;
  }

  /** Whether one more may wait: those for whom a connection is opened do not count. */
  admits(maxWaiters: number, now: number): boolean {
    return this.waiting - this.#opening < maxWaiters || this.#mayOpen(now);
  }

  /** Joins the line. */
  wait(waiter: Waiter<C>): void {
    waiter.place = ++this.#places;
    if (waiter.need === SHARED) return this.#sharers.push(waiter);
    this.#owners.push(waiter);
    this.#drain();
  }

  /** Leaves the line; false when they do not wait. */
  leave(waiter: Waiter<C>): boolean {
    const line = waiter.need === OWN ? this.#owners : this.#sharers;
    if (!line.remove(waiter)) return false;
    this.#serve();
    return true;
  }

  /** Everybody in line, in order; the line is empty then. */
  takeWaiters(): Waiter<C>[] {
    const waiters = [...this.#owners.clear(), ...this.#sharers.clear()];
    this.#undrain();
    return waiters.sort((a, b) => a.place - b.place);
  }

  /** Those who have waited for `timeout` or longer, in order; they leave the line. */
  takeOverdue(now: number, timeout: number): Waiter<C>[] {
    const overdue: Waiter<C>[] = [];
    for (let first = this.#first; first !== undefined; first = this.#first) {
      if (first.since + timeout > now) break;
      (first.need === OWN ? this.#owners : this.#sharers).shift();
      overdue.push(first);
    }
    if (overdue.length > 0) this.#serve();
    return overdue;
  }

  /** A place for a connection to be opened now, because somebody waits or `minIdle` asks for it; else `undefined`. */
  startOpening(now: number): PoolEntry<C> | undefined {
    if (!this.#mayOpen(now) || !this.#wantsMore) return undefined;
    const entry = new PoolEntry<C>();
    this.#entries.push(entry);
    this.#opening++;
    return entry;
  }

  /** A connection is open. @param jitter 0 to 1: how much earlier than `maxLifetime` it is retired, up to a tenth */
  opened(entry: PoolEntry<C>, connection: C, now: number, jitter: number): void {
    this.#opening--;
    this.#failures = 0;
    this.#backoffUntil = 0;
    entry.connection = connection;
    entry.idleSince = now;
    this.#noteLoad(entry);
    const { maxLifetime } = this.#limits;
    if (maxLifetime > 0) entry.retireAt = now + maxLifetime * (1 - jitter / 10);
    this.#serve();
  }

  /** A connection could not be opened. @param jitter 0 to 1: a part of the pause that is left to chance */
  openFailed(entry: PoolEntry<C>, now: number, jitter: number): void {
    // Attempts that began together fail together: that is one failure.
    if (now >= this.#backoffUntil) {
      const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.min(this.#failures++, 10));
      this.#backoffUntil = now + pause * (0.5 + jitter / 2);
    }
    this.lost(entry);
  }

  /** A piece of work is done. */
  finished(entry: PoolEntry<C>, need: Need, now: number): void {
    if (need === OWN) entry.owned = false;
    else entry.load--;
    if (entry.gone) return;
    this.#noteLoad(entry);
    // A busy connection is never seen idle by a timer: its lifetime is looked at here.
    if (entry.retireAt <= now && !entry.retired) this.retire(entry);
    if (entry.free) entry.idleSince = now;
    if (this.waiting > 0) this.#serve();
  }

  /** A connection is gone. */
  lost(entry: PoolEntry<C>): void {
    if (entry.gone) return;
    entry.gone = true;
    this.#entries.splice(this.#entries.indexOf(entry), 1);
    if (entry.connection === undefined) this.#opening--;
    this.#serve();
  }

  /** A connection takes no new work. */
  retire(entry: PoolEntry<C>): void {
    entry.retired = true;
    entry.draining = false;
    this.#drain();
  }

  /** Idle connections whose time is over, and retired ones without work. They leave the pool: close them. */
  takeExpired(now: number): PoolEntry<C>[] {
    const { idleTimeout, minIdle } = this.#limits;
    let spare = this.idle - minIdle;
    const expired: PoolEntry<C>[] = [];
    for (const entry of this.#entries) {
      if (!entry.free) continue;
      const old = entry.retired || entry.retireAt <= now;
      const unused = idleTimeout > 0 && entry.idleSince + idleTimeout <= now && spare > 0;
      if (!old && !unused) continue;
      if (entry.idle) spare--;
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
    if (this.#failures > 0 && this.#mayOpen(Infinity) && this.#wantsMore) {
      deadline = Math.min(deadline, this.#backoffUntil);
    }
    return deadline === Infinity ? undefined : deadline;
  }

  #mayOpen(now: number): boolean {
    if (this.#entries.length >= this.#limits.max) return false;
    return this.#failures === 0 || (this.#opening === 0 && now >= this.#backoffUntil);
  }

  /** Whether there is use for one more connection. */
  get #wantsMore(): boolean {
    return this.waiting > this.#opening || this.idle + this.#opening < this.#limits.minIdle;
  }

  /** Who waits longest. */
  get #first(): Waiter<C> | undefined {
    const { first: owner } = this.#owners;
    const { first: sharer } = this.#sharers;
    if (owner === undefined || sharer === undefined) return owner ?? sharer;
    return owner.place < sharer.place ? owner : sharer;
  }

  /** Lets as many connections drain as owners wait for, if there are as many. */
  #drain(): void {
    if (this.#owners.length === 0) return;
    for (let more = this.#owners.length - this.#draining(); more > 0; more--) if (!this.#drainOne()) return;
  }

  /** Lets the least loaded connection drain; false when there is none left. */
  #drainOne(): boolean {
    const best = extreme(this.#entries, (entry) => entry.sharable, (a, b) => a.load < b.load);
    if (best !== undefined) best.draining = true;
    return best !== undefined;
  }

  /** Puts connections that drain for nobody any more back to work. */
  #undrain(): void {
    for (let spare = this.#draining() - this.#owners.length; spare > 0; spare--) {
      // The busiest has the longest way to idle.
      const busiest = extreme(this.#entries, (entry) => entry.draining, (a, b) => a.load > b.load)!;
      busiest.draining = false;
      this.#noteLoad(busiest);
    }
  }

  #draining(): number {
    let count = 0;
    for (const entry of this.#entries) if (entry.draining) count++;
    return count;
  }

  /** Gives connections to those in line. What a grant sets free is given away by the same loop. */
  #serve(): void {
    if (this.#serving) return;
    this.#serving = true;
    try {
      do this.#undrain(); while (this.#serveFirst());
      // For those behind shared work that waits: not before, since what is idle is for whoever came first.
      this.#drain();
    } finally {
      this.#serving = false;
    }
  }

  /** Serves one, or lets a connection drain for one; false when neither can be. */
  #serveFirst(): boolean {
    const { first: sharer } = this.#sharers;
    const precedes = (owner: Waiter<C> | undefined) =>
      owner !== undefined && (sharer === undefined || owner.place < sharer.place);
    const idle = this.#owners.length === 0 ? undefined : this.#idleEntry();
    if (idle !== undefined && precedes(this.#owners.first)) return grant(this.#owners, idle);
    // Those before have theirs. Not later: what is shared behind an owner would keep the last connection busy.
    if (precedes(this.#owners.at(this.#draining())) && this.#drainOne()) return true;
    const shared = sharer === undefined ? undefined : this.#sharedEntry();
    if (shared !== undefined) return grant(this.#sharers, shared);
    return idle !== undefined && grant(this.#owners, idle);
  }

  /** An idle connection for an owner: one that has drained for them, if there is any. */
  #idleEntry(): PoolEntry<C> | undefined {
    let best: PoolEntry<C> | undefined;
    for (const entry of this.#entries) {
      if (!entry.idle) continue;
      if (entry.draining) return entry;
      best ??= entry;
    }
    return best;
  }

  /** The least loaded connection that still has not more than its part of what waits. */
  #sharedEntry(): PoolEntry<C> | undefined {
    let best: PoolEntry<C> | undefined;
    let places = this.#opening;
    let work = this.#sharers.length;
    for (const entry of this.#entries) {
      if (!entry.sharable) continue;
      places++;
      work += entry.load;
      if (best === undefined || entry.load < best.load) best = entry;
    }
    return best !== undefined && best.load < Math.ceil(work / places) ? best : undefined;
  }
}

/** Milliseconds of the pause after the first failure to open, and of the longest one. */
const FIRST_PAUSE = 25;
const LONGEST_PAUSE = 1_000;

function grant<C>(line: WaitingLine<Waiter<C>>, entry: PoolEntry<C>): true {
  const waiter = line.shift()!;
  waiter.grant(occupy(entry, waiter.need));
  return true;
}

function occupy<C>(entry: PoolEntry<C>, need: Need): PoolEntry<C> {
  if (need === OWN) {
    entry.owned = true;
    entry.draining = false;
  } else entry.load++;
  return entry;
}

/** The first of those that suit which no other one precedes. */
function extreme<C>(
  entries: readonly PoolEntry<C>[],
  suits: (entry: PoolEntry<C>) => boolean,
  precedes: (a: PoolEntry<C>, b: PoolEntry<C>) => boolean,
): PoolEntry<C> | undefined {
  let best: PoolEntry<C> | undefined;
  for (const entry of entries) {
    if (suits(entry) && (best === undefined || precedes(entry, best))) best = entry;
  }
  return best;
}
