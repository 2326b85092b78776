/** Drives a PoolState by names of pieces of work, and checks its invariants after every step. */

import assert from "node:assert/strict";
import {
  type Need,
  OWN,
  type PoolEntry,
  type PoolLimits,
  PoolState,
  SHARED,
  type Waiter,
} from "../../src/pool/pool_state.ts";

/** A piece of work that waits or holds a connection. */
interface Work {
  readonly name: string;
  readonly need: Need;
  readonly last: boolean;
  /** Their number in the order they came. */
  readonly number: number;
  readonly waiter: Waiter<number>;
  entry: PoolEntry<number> | undefined;
}

/** A pool without connections; every method checks the invariants at its end. */
export class PoolModel {
  readonly state: PoolState<number>;
  /** The clock. */
  now: number = 1_000;
  /** What chance gives. */
  jitter: number = 0.5;
  readonly #limits: PoolLimits;
  readonly #work: Map<string, Work> = new Map();
  readonly #opening: PoolEntry<number>[] = [];
  /** In the order they were granted. */
  #held: string[] = [];
  #numbers: number = 0;
  #connections: number = 0;

  constructor(limits: PoolLimits) {
    this.#limits = limits;
    this.state = new PoolState(limits);
  }

  /** Shared work comes; whether it has a connection at once. `last`: nothing may come behind it. */
  share(name: string, { last = false } = {}): boolean {
    return this.#come(name, SHARED, last);
  }

  /** Somebody wants a connection of their own; whether they have it at once. */
  own(name: string): boolean {
    return this.#come(name, OWN, false);
  }

  /** Names of what has a connection, in the order they got it. */
  held(): string[] {
    return [...this.#held];
  }

  /** Names of what waits, in the order they came. */
  waiting(): string[] {
    return [...this.#work.values()].filter(({ entry }) => entry === undefined).map(({ name }) => name);
  }

  /** The connection of a piece of work. */
  entryOf(name: string): PoolEntry<number> {
    return this.#work.get(name)!.entry!;
  }

  /** Work is done. */
  finish(name: string): void {
    const { entry, need, last } = this.#work.get(name)!;
    this.#forget(name);
    if (last) entry!.sealed = false;
    this.state.finished(entry!, need, this.now);
    this.check();
  }

  /** Work that waits is given up; false when it does not wait. */
  leave(name: string): boolean {
    const work = this.#work.get(name);
    if (work === undefined) return false;
    const waits = work.entry === undefined;
    // Before, since others may get their turn inside.
    if (waits) this.#forget(name);
    assert.equal(this.state.leave(work.waiter), waits);
    this.check();
    return waits;
  }

  /** Names of those who have waited too long. */
  overdue(timeout: number): string[] {
    const waiting = this.waiting().map((name) => this.#work.get(name)!);
    const due = waiting.filter(({ waiter }) => waiter.since + timeout <= this.now);
    for (const { name } of due) this.#forget(name);
    const overdue = this.state.takeOverdue(this.now, timeout);
    assert.deepEqual(
      overdue,
      due.map(({ waiter }) => waiter),
      "others than are overdue, or in another order",
    );
    this.check();
    return due.map(({ name }) => name);
  }

  /** Names of all who waited. */
  takeWaiters(): string[] {
    const waiting = this.waiting();
    assert.deepEqual(this.state.takeWaiters(), waiting.map((name) => this.#work.get(name)!.waiter));
    for (const name of waiting) this.#forget(name);
    this.check();
    return waiting;
  }

  /** Starts to open one connection, if that is wanted. */
  startOpening(): PoolEntry<number> | undefined {
    const entry = this.state.startOpening(this.now);
    if (entry !== undefined) this.#opening.push(entry);
    return entry;
  }

  /** Starts to open as many connections as are wanted. */
  openWanted(): void {
    while (this.startOpening() !== undefined);
  }

  /** One connection that is being opened is open. */
  openOne(): void {
    this.state.opened(this.#opening.shift()!, ++this.#connections, this.now, this.jitter);
    this.check();
  }

  /** One connection that is being opened cannot be. */
  failOne(): void {
    this.state.openFailed(this.#opening.shift()!, this.now, this.jitter);
    this.check();
  }

  /** Opens all that is wanted. */
  openAll(): void {
    for (this.openWanted(); this.#opening.length > 0; this.openWanted()) this.openOne();
  }

  /** The connection of a piece of work is gone; the work itself is not finished yet. */
  loseConnectionOf(name: string): void {
    this.state.lost(this.entryOf(name));
    this.check();
  }

  /** An idle connection dies. */
  loseIdle(): void {
    this.state.lost([...this.state.entries].find(({ idle }) => idle)!);
    this.check();
  }

  /** Closes what is past its time; how many. */
  expire(): number {
    const expired = this.state.takeExpired(this.now);
    for (const entry of expired) {
      assert.ok(entry.load === 0 && !entry.owned, "a connection with work expired");
    }
    this.check();
    return expired.length;
  }

  /** The invariants. */
  check(): void {
    const { state } = this;
    const entries = [...state.entries];
    const works = [...this.#work.values()];
    const waiting = works.filter(({ entry }) => entry === undefined);
    assert.ok(state.total <= this.#limits.max, `${state.total} connections`);
    assert.equal(state.total, entries.length);
    assert.equal(state.opening, entries.filter(({ connection }) => connection === undefined).length);
    assert.equal(state.opening, this.#opening.length);
    assert.equal(state.waiting, waiting.length, "somebody is lost, or counted twice");
    assert.equal(
      state.waitingSince,
      waiting.length === 0 ? undefined : Math.min(...waiting.map(({ waiter }) => waiter.since)),
    );
    for (const entry of entries) {
      const here = works.filter((work) => work.entry === entry);
      const owners = here.filter(({ need }) => need === OWN);
      assert.equal(entry.load, here.length - owners.length, "load");
      assert.equal(entry.owned, owners.length > 0, "owned");
      assert.ok(owners.length === 0 || here.length === 1, "an owner shares its connection");
      assert.ok(!entry.draining || (!entry.owned && !entry.retired), "drains in vain");
    }
    const owners = waiting.filter(({ need }) => need === OWN).length;
    const sharers = waiting.length - owners;
    const draining = entries.filter((entry) => entry.draining).length;
    const sharable = entries.filter((entry) => entry.sharable);
    assert.ok(draining <= owners, "more connections drain than owners wait");
    if (owners > 0) {
      assert.ok(!entries.some(({ idle }) => idle), "an owner waits beside an idle connection");
      assert.ok(draining === owners || sharable.length === 0, "an owner has nothing that drains for it");
    }
    if (sharers > 0) {
      assert.ok(!sharable.some(({ load }) => load === 0), "shared work waits beside an idle connection");
      assert.ok(sharable.length === 0 || state.opening > 0, "shared work waits in vain");
    }
  }

  #come(name: string, need: Need, last: boolean): boolean {
    assert.ok(!this.#work.has(name), `${name} is there already`);
    const waiter: Waiter<number> = {
      need,
      since: this.now,
      place: 0,
      grant: (entry) => this.#grant(work, entry),
    };
    const work: Work = { name, need, last, number: ++this.#numbers, waiter, entry: undefined };
    const older = this.waiting().map((each) => this.#work.get(each)!);
    this.#work.set(name, work);
    const entry = this.state.take(need, this.now);
    if (entry === undefined) this.state.wait(waiter);
    else {
      assert.ok(!older.some((each) => each.need === need), `${name} goes before others of its kind`);
      this.#grant(work, entry);
    }
    // As the pool does.
    this.openWanted();
    this.check();
    return entry !== undefined;
  }

  #grant(work: Work, entry: PoolEntry<number>): void {
    assert.ok(
      this.#work.get(work.name) === work && work.entry === undefined,
      `${work.name} is granted twice`,
    );
    assert.ok(!entry.retired && !entry.gone && entry.connection !== undefined, "of no use");
    assert.ok(!this.#sealedBy(entry), "something comes behind work that may be cancelled");
    for (const each of this.#work.values()) {
      const before = each.entry === undefined && each.need === work.need && each.number < work.number;
      assert.ok(!before, `${work.name} goes before ${each.name}`);
    }
    if (work.need === SHARED) {
      this.#checkOvertaken(work, entry);
      this.#checkChoice(work, entry);
    }
    work.entry = entry;
    if (work.last) entry.sealed = true;
    this.#held.push(work.name);
  }

  /** Owners that came before shared work have a connection that drains for each of them, and it gets no idle one. */
  #checkOvertaken({ name, number }: Work, entry: PoolEntry<number>): void {
    const overtaken =
      [...this.#work.values()].filter((each) =>
        each.entry === undefined && each.need === OWN && each.number < number
      ).length;
    if (overtaken === 0) return;
    const draining = [...this.state.entries].filter((each) => each.draining).length;
    assert.ok(entry.load > 1, `${name} gets an idle connection before an owner`);
    assert.ok(draining >= overtaken, `${name} delays an owner`);
  }

  /** Shared work gets the first idle connection, or else the least loaded one. */
  #checkChoice({ name }: Work, entry: PoolEntry<number>): void {
    const load = entry.load - 1;
    const { entries } = this.state;
    for (const [i, each] of entries.entries()) {
      if (each === entry || !each.sharable) continue;
      assert.ok(each.load >= load, `${name} goes to one with load ${load} beside one with ${each.load}`);
      assert.ok(
        load > 0 || each.load > 0 || i > entries.indexOf(entry),
        `${name} goes past an idle connection`,
      );
    }
  }

  #sealedBy(entry: PoolEntry<number>): boolean {
    return [...this.#work.values()].some((work) => work.entry === entry && work.last);
  }

  #forget(name: string): void {
    this.#work.delete(name);
    this.#held = this.#held.filter((each) => each !== name);
  }
}

/** A pool with these limits, the others 0. */
export function createPoolModel(limits: Partial<PoolLimits>): PoolModel {
  return new PoolModel({ max: 10, minIdle: 0, idleTimeout: 0, maxLifetime: 0, ...limits });
}
