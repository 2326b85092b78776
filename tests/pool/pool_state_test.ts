/** The rules of the pool, one by one, without connections and with a clock that tests move. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { OWN, type PoolEntry, PoolState, SHARED } from "../../src/pool/pool_state.ts";
import { createPoolModel, type PoolModel } from "./pool_model.ts";

/** A pool whose connections are all open and idle. */
function warm(max: number, limits: Parameters<typeof createPoolModel>[0] = {}): PoolModel {
  const pool = createPoolModel({ max, ...limits });
  for (let i = 0; i < max; i++) pool.share(`warm ${i}`);
  pool.openAll();
  for (const name of pool.held()) pool.finish(name);
  assert.equal(pool.state.idle, max);
  return pool;
}

const loads = (pool: PoolModel): number[] => [...pool.state.entries].map(({ load }) => load);

test("nothing is opened before somebody comes, then one connection for each, up to max", () => {
  const pool = createPoolModel({ max: 3 });
  assert.equal(pool.state.total, 0);
  assert.equal(pool.startOpening(), undefined);
  for (let i = 0; i < 5; i++) {
    pool.share(`q${i}`);
    pool.openWanted();
    assert.equal(pool.state.opening, Math.min(i + 1, 3));
  }
  assert.equal(pool.state.waiting, 5);
  pool.openAll();
  assert.deepEqual(loads(pool), [2, 2, 1]);
});

test("an idle connection goes before a new one, a new one before a busy one", () => {
  const pool = createPoolModel({ max: 2 });
  pool.share("a");
  pool.openAll();
  pool.finish("a");
  assert.equal(pool.share("b"), true);
  assert.equal(pool.share("c"), false);
  pool.openAll();
  assert.deepEqual(loads(pool), [1, 1]);
  assert.equal(pool.share("d"), true);
  assert.deepEqual(loads(pool), [2, 1]);
  pool.share("e");
  assert.deepEqual(loads(pool), [2, 2]);
});

test("shared work that waits is spread over what is open and what is being opened", () => {
  const pool = createPoolModel({ max: 10 });
  for (let i = 0; i < 1_000; i++) pool.share(`q${i}`);
  pool.openWanted();
  pool.openOne();
  assert.deepEqual(loads(pool).filter((load) => load > 0), [100]);
  pool.openAll();
  assert.deepEqual(loads(pool), Array.from({ length: 10 }, () => 100));
  assert.equal(pool.state.waiting, 0);
});

test("when opening fails, what waited for it goes to the connections that are open", () => {
  const pool = createPoolModel({ max: 2 });
  pool.share("a");
  pool.openAll();
  pool.share("b");
  pool.openWanted();
  assert.deepEqual(loads(pool), [1, 0]);
  pool.failOne();
  assert.deepEqual(loads(pool), [2]);
});

test("an owner gets an idle connection, and nobody else until it is back", () => {
  const pool = warm(1);
  assert.equal(pool.own("tx"), true);
  assert.equal(pool.share("q"), false);
  assert.equal(pool.own("tx2"), false);
  pool.finish("tx");
  assert.deepEqual(pool.held(), ["q"]);
  pool.finish("q");
  assert.deepEqual(pool.held(), ["tx2"]);
});

test("an owner does not starve under shared work that never ends", () => {
  for (const size of [1, 2, 5]) {
    const pool = warm(size);
    for (let i = 0; i < 3 * size; i++) pool.share(`q${i}`);
    pool.own("tx");
    let finished = 0;
    for (let i = 3 * size; !pool.held().includes("tx"); i++) {
      pool.share(`q${i}`);
      pool.finish(pool.held()[0]!);
      assert.ok(++finished < 20 * size, "the owner never gets its turn");
    }
  }
});

test("an owner behind shared work gets its turn although more comes: the connection drains for it then", () => {
  // What was first in line when the connection came back is shared; then it must drain.
  for (const first of ["owned", "sealed"]) {
    const pool = warm(1);
    if (first === "owned") pool.own("first");
    else pool.share("first", { last: true });
    pool.share("q");
    pool.own("tx");
    pool.finish("first");
    assert.deepEqual(pool.held(), ["q"]);
    assert.equal(pool.share("late"), false, "new shared work would go before the owner for ever");
    pool.finish("q");
    assert.deepEqual(pool.held(), ["tx"]);
  }
});

test("an owner that is first in line is served next: shared work that waits behind it comes later", () => {
  // Nothing could drain for it when it came.
  for (const first of ["owned", "sealed"]) {
    const pool = warm(1);
    if (first === "owned") pool.own("first");
    else pool.share("first", { last: true });
    for (const name of ["a", "b"]) pool.share(name);
    pool.own("tx");
    for (const name of ["c", "d"]) pool.share(name);
    pool.finish("first");
    assert.deepEqual(pool.held(), ["a", "b"]);
    pool.finish("a");
    pool.finish("b");
    assert.deepEqual(pool.held(), ["tx"]);
    pool.finish("tx");
    assert.deepEqual(pool.held(), ["c", "d"]);
  }
});

test("shared work behind an owner goes to connections that do not drain", () => {
  const pool = warm(2);
  pool.share("a", { last: true });
  pool.own("tx0");
  pool.share("b");
  pool.own("tx");
  for (const name of ["c", "d"]) pool.share(name);
  pool.finish("tx0");
  assert.deepEqual(pool.held(), ["a", "b"], "b's connection drains for tx");
  pool.finish("a");
  assert.deepEqual(pool.held(), ["b", "tx", "c", "d"], "which got another one");
});

test("when the connection that drains for an owner is lost, shared work does not take the last one", () => {
  const pool = warm(2);
  pool.own("tx0");
  pool.share("a");
  pool.own("tx");
  for (const name of ["b", "c"]) pool.share(name);
  pool.loseConnectionOf("a");
  pool.finish("tx0");
  assert.deepEqual(pool.held(), ["a", "tx"]);
});

test("shared work does not starve under owners that never end", () => {
  const pool = warm(2);
  pool.own("tx0");
  pool.own("tx1");
  for (let i = 2; i < 50; i++) pool.own(`tx${i}`);
  pool.share("q");
  for (let i = 50; !pool.held().includes("q"); i++) {
    pool.own(`tx${i}`);
    pool.finish(pool.held()[0]!);
    assert.ok(i < 150, "the query never gets its turn");
  }
});

test("for each owner that waits one connection drains, the least loaded; the others go on", () => {
  const pool = warm(3);
  for (let i = 0; i < 8; i++) pool.share(`q${i}`);
  assert.deepEqual(loads(pool), [3, 3, 2]);
  pool.own("tx");
  assert.deepEqual([...pool.state.entries].map(({ draining }) => draining), [false, false, true]);
  assert.equal(pool.share("more"), true);
  assert.deepEqual(loads(pool), [4, 3, 2]);
  pool.own("tx2");
  assert.deepEqual([...pool.state.entries].map(({ draining }) => draining), [false, true, true]);
});

test("an owner that leaves puts its connection back to work at once", () => {
  const pool = warm(1);
  pool.share("a");
  pool.own("tx");
  assert.equal(pool.share("b"), false);
  assert.equal(pool.leave("tx"), true);
  assert.deepEqual(pool.held(), ["a", "b"]);
  assert.equal(pool.leave("tx"), false);
  assert.equal(pool.leave("a"), false);
});

test("an owner that waited too long puts its connection back to work at once", () => {
  const pool = warm(1);
  pool.share("a");
  pool.own("tx");
  pool.now += 10;
  pool.share("b");
  assert.deepEqual(pool.overdue(11), []);
  assert.deepEqual(pool.overdue(10), ["tx"]);
  assert.deepEqual(pool.held(), ["a", "b"]);
});

test("when another connection comes free for an owner, the draining one goes back to work", () => {
  const pool = warm(2);
  pool.own("tx1");
  pool.share("a");
  pool.share("b");
  pool.own("tx2");
  assert.equal(pool.share("c"), false);
  pool.finish("tx1");
  // c came after tx2.
  assert.deepEqual(pool.held(), ["a", "b", "tx2", "c"]);
  assert.deepEqual(loads(pool).sort(), [0, 3]);
});

test("nothing comes behind work that may have to be cancelled, until it is done", () => {
  const pool = warm(1);
  pool.share("before");
  pool.share("last", { last: true });
  assert.equal(pool.share("after"), false);
  pool.finish("before");
  assert.deepEqual(pool.held(), ["last"]);
  pool.finish("last");
  assert.deepEqual(pool.held(), ["after"]);
  assert.equal(pool.share("more"), true);
});

test("owners wait for work that may have to be cancelled", () => {
  const pool = warm(1);
  pool.share("last", { last: true });
  pool.own("tx");
  pool.finish("last");
  assert.deepEqual(pool.held(), ["tx"]);
});

test("a lost connection's owner or work may finish late; the pool does not count it any more", () => {
  const pool = warm(2);
  pool.own("tx");
  pool.share("q");
  pool.loseConnectionOf("tx");
  assert.equal(pool.state.total, 1);
  pool.finish("tx");
  pool.loseConnectionOf("q");
  pool.finish("q");
  assert.deepEqual([pool.state.total, pool.state.idle, pool.state.waiting], [0, 0, 0]);
});

test("when a draining connection is lost another one drains", () => {
  const pool = warm(2);
  for (const name of ["a", "b", "c"]) pool.share(name);
  pool.own("tx");
  pool.loseConnectionOf("b");
  assert.deepEqual([...pool.state.entries].map(({ draining }) => draining), [true]);
});

test("after a failure there is a pause that doubles, and one attempt at a time", () => {
  const pool = createPoolModel({ max: 4 });
  for (let i = 0; i < 4; i++) pool.share(`q${i}`);
  pool.openWanted();
  assert.equal(pool.state.opening, 4);
  // All fail at the same time: that is one failure.
  for (let i = 0; i < 4; i++) pool.failOne();
  for (const pause of [25, 50, 100, 200, 400, 800, 1000, 1000]) {
    const deadline = pool.state.nextDeadline()!;
    assert.ok(deadline >= pool.now + pause / 2 && deadline <= pool.now + pause, `${deadline - pool.now}`);
    assert.equal(pool.startOpening(), undefined);
    pool.now = deadline;
    pool.openWanted();
    assert.equal(pool.state.opening, 1);
    assert.equal(pool.state.nextDeadline(), undefined, "nothing to look at while it is tried");
    pool.failOne();
  }
  pool.now = pool.state.nextDeadline()!;
  pool.openWanted();
  pool.openOne();
  assert.equal(pool.state.waiting, 4 - loads(pool)[0]!);
  pool.openWanted();
  assert.equal(pool.state.opening, pool.state.waiting, "all that is wanted again");
});

test("while a connection cannot be opened, shared work is pipelined on those that are open", () => {
  const pool = createPoolModel({ max: 3 });
  pool.share("a");
  pool.openAll();
  pool.share("b");
  pool.openWanted();
  pool.failOne();
  assert.equal(pool.share("c"), true);
  assert.deepEqual(loads(pool), [3]);
});

test("an idle connection is closed after idleTimeout, minIdle of them never", () => {
  const pool = warm(3, { idleTimeout: 100, minIdle: 1 });
  assert.equal(pool.state.nextDeadline(), pool.now + 100);
  pool.now += 99;
  assert.equal(pool.expire(), 0);
  pool.share("q");
  pool.now += 1;
  assert.equal(pool.expire(), 1, "two are idle, one of them stays");
  assert.equal(pool.state.total, 2);
  pool.now += 1_000;
  assert.equal(pool.expire(), 0, "neither the one in use nor the last idle one");
  pool.finish("q");
  assert.equal(pool.state.nextDeadline(), pool.now - 1_000, "two are idle again");
  assert.equal(pool.expire(), 1);
  pool.now += 10_000;
  assert.equal(pool.expire(), 0);
  assert.equal(pool.state.nextDeadline(), undefined);
});

test("minIdle is opened ahead of need and refilled, but never past max", () => {
  const pool = createPoolModel({ max: 2, minIdle: 5 });
  pool.openWanted();
  assert.equal(pool.state.opening, 2);
  pool.openAll();
  pool.loseIdle();
  pool.openWanted();
  assert.equal(pool.state.opening, 1);
  pool.failOne();
  assert.ok(pool.state.nextDeadline()! > pool.now, "it is tried again although nobody waits");
});

test("a connection past its lifetime is closed when it is idle, with up to a tenth of chance", () => {
  for (const jitter of [0, 0.5, 1]) {
    const pool = createPoolModel({ max: 1, maxLifetime: 1_000 });
    pool.jitter = jitter;
    pool.share("q");
    pool.openAll();
    pool.finish("q");
    const end = pool.now + 1_000 - 100 * jitter;
    assert.equal(pool.state.nextDeadline(), end);
    pool.now = end - 1;
    assert.equal(pool.expire(), 0);
    pool.now = end;
    assert.equal(pool.expire(), 1);
  }
});

test("a connection that is never idle takes no more work past its lifetime, so that it is replaced", () => {
  const pool = warm(1, { maxLifetime: 1_000 });
  pool.share("a");
  pool.share("b");
  pool.now += 1_001;
  pool.finish("a");
  assert.equal(pool.share("c"), false);
  assert.equal(pool.expire(), 0, "b is not disturbed");
  pool.finish("b");
  assert.equal(pool.expire(), 1);
  pool.openAll();
  assert.deepEqual(pool.held(), ["c"]);
});

test("an owner's connection is never retired under it", () => {
  const pool = warm(1, { maxLifetime: 1_000, idleTimeout: 10 });
  pool.own("tx");
  pool.now += 100_000;
  assert.equal(pool.expire(), 0);
  assert.equal(pool.state.nextDeadline(), undefined);
  pool.finish("tx");
  assert.equal(pool.expire(), 1);
});

test("a retired connection takes no work, and drains for nobody", () => {
  const pool = warm(2);
  for (const name of ["a", "b", "c"]) pool.share(name);
  pool.own("tx");
  const entry = pool.entryOf("b");
  assert.equal(entry.draining, true);
  pool.state.retire(entry);
  assert.equal(pool.entryOf("a").draining, true);
  pool.finish("b");
  assert.deepEqual(pool.held(), ["a", "c"]);
  assert.equal(pool.expire(), 1);
  pool.openAll();
  assert.deepEqual(pool.held(), ["a", "c", "tx"]);
});

test("maxWaiters does not count those for whom a connection is, or can be, opened", () => {
  const pool = createPoolModel({ max: 2 });
  const admits = (limit: number) => pool.state.admits(limit, pool.now);
  assert.equal(admits(0), true);
  pool.share("a");
  pool.openWanted();
  assert.equal(admits(0), true);
  pool.share("b");
  pool.openWanted();
  assert.equal(admits(0), false);
  assert.equal(admits(1), true);
  pool.share("c");
  assert.equal(admits(1), false);
  pool.openAll();
  assert.equal(admits(1), true);
});

test("takeWaiters empties the line, in the order they came", () => {
  const pool = warm(1);
  pool.share("a");
  pool.own("tx");
  for (const name of ["b", "c"]) pool.share(name);
  pool.own("tx2");
  assert.deepEqual(pool.takeWaiters(), ["tx", "b", "c", "tx2"]);
  assert.equal(pool.state.waiting, 0);
  assert.equal(pool.share("d"), true, "nothing drains any more");
});

test("work that ends inside its own grant lets the next one in, however many there are", () => {
  const state = new PoolState<number>({ max: 1, minIdle: 0, idleTimeout: 0, maxLifetime: 0 });
  let granted = 0;
  for (let i = 0; i < 100_000; i++) {
    const need = i % 3 === 0 ? OWN : SHARED;
    const grant = (entry: PoolEntry<number>): void => {
      granted++;
      state.finished(entry, need, 0);
    };
    state.wait({ need, since: 0, place: 0, grant });
  }
  state.opened(state.startOpening(0)!, 1, 0, 0);
  assert.deepEqual([granted, state.waiting, state.idle], [100_000, 0, 1]);
});
