/** Who waits for a connection, for how long, and what they are told. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Connection, createPool, PoolError, PostgresError, TimeoutError } from "../../mod.ts";
import { counts, pidOf, withPool } from "../_support/pools.ts";
import { ask, leavesNoSession, limit, testUrl, until } from "../_support/server.ts";
import { rejectionOf, sleep } from "../_support/session.ts";

test("nested use of an exhausted pool rejects at acquireTimeout, says how full it is and why; it works on", async () => {
  await withPool(async (pool) => {
    await Promise.all([1, 2].map(() => pool.query("select pg_sleep(0.05)")));
    const began = performance.now();
    const [first, second] = [await pool.begin(), await pool.begin()];
    const nested = await Promise.all([first, second].map(async (tx) => {
      await tx.query("select 1");
      return await rejectionOf(pool.query("select 2"));
    }));
    await Promise.all([first.commit(), second.commit()]);
    assert.ok(performance.now() - began < 5_000);
    for (const error of nested) {
      assert.ok(error instanceof PoolError, String(error));
      assert.match(
        error.message,
        /^No connection within 400 ms \(acquireTimeout\): size 2 of 2, busy 2, waiting \d+\. Does a transaction use the pool/,
      );
    }
    assert.equal((await pool.query("select 1 as a")).rows[0]!["a"], 1);
    assert.deepEqual(counts(pool), { total: 2, idle: 2, busy: 0, opening: 0, waiting: 0 });
  }, { max: 2, acquireTimeout: 400 });
});

test("acquireTimeout counts from when each one came", async () => {
  await withPool(async (pool) => {
    await using _own = await pool.acquire();
    const waits: Promise<number>[] = [];
    for (let i = 0; i < 5; i++) {
      const began = performance.now();
      waits.push(
        rejectionOf(i % 2 ? pool.acquire() : pool.query("select 1")).then(() => performance.now() - began),
      );
      await sleep(30);
    }
    for (const wait of await Promise.all(waits)) assert.ok(wait >= 145 && wait < 1_000, `${wait} ms`);
  }, { max: 1, acquireTimeout: 150 });
});

test("acquireTimeout counts from when each one came, also where the caller has worked on in between", async () => {
  await withPool(async (pool) => {
    const own = await pool.acquire();
    const first = rejectionOf(pool.query("select 1"));
    const end = performance.now() + 500;
    while (performance.now() < end);
    const second = pool.query("select 2 as n");
    // At the end of what the first one may wait.
    await limit(first);
    await own.close();
    assert.deepEqual((await limit(second)).rows, [{ n: 2 }]);
  }, { max: 1, acquireTimeout: 400 });
});

test("a server that cannot be reached: the timeout says what connecting failed with", async () => {
  const pool = createPool("postgres://x@127.0.0.1:1/x", { acquireTimeout: 300 });
  const error = await rejectionOf(pool.query("select 1"));
  assert.ok(error instanceof PoolError);
  assert.match(error.message, /last attempt to connect failed: .*127\.0\.0\.1:1/);
  assert.equal(error.cause?.code, "ECONNREFUSED");
  await limit(pool.close(), 2_000);
});

test("what waiting cannot mend rejects at once: a wrong password, a wrong database, a misspelt option", async () => {
  const wrong = [
    [testUrl({ user: "nobody_at_all", password: "wrong" }), "28P01"],
    [testUrl({ database: "no_such_database" }), "3D000"],
  ];
  for (const [url, code] of wrong) {
    const pool = createPool(url, { acquireTimeout: 20_000 });
    for (const work of [pool.query("select 1"), pool.acquire()]) {
      const error = await rejectionOf(work, 10_000);
      assert.ok(error instanceof PostgresError, String(error));
      assert.equal(error.code, code);
    }
    await limit(pool.close(), 2_000);
  }
});

test("maxWaiters rejects one more at once; those for whom a connection is opened are not counted", async () => {
  await withPool(async (pool) => {
    const first = Promise.all(
      [1, 2, 3, 4].map((n) => pool.query("select pg_sleep(0.1), $1::int4 as n", [n])),
    );
    const began = performance.now();
    const error = await rejectionOf(pool.query("select 5"));
    assert.ok(performance.now() - began < 100);
    assert.ok(error instanceof PoolError);
    assert.match(
      error.message,
      /^Pool has too many waiters: size 2 of 2, busy 0, connecting 2, waiting 4, maxWaiters 2$/,
    );
    assert.deepEqual((await first).map(({ rows }) => rows[0]!["n"]), [1, 2, 3, 4]);
    const owners = await Promise.all([pool.acquire(), pool.acquire()]);
    const waiting = [pool.acquire(), pool.query("select pg_backend_pid()")];
    assert.ok(await rejectionOf(pool.acquire()) instanceof PoolError);
    for (const each of owners) await each.close();
    await (await waiting[0] as Connection).close();
    await waiting[1];
  }, { max: 2, maxWaiters: 2 });
});

test("maxWaiters 0 lets nobody wait, yet connections are opened", async () => {
  await withPool(async (pool) => {
    await Promise.all([pool.transaction((tx) => pidOf(tx)), pool.query("select 1")]);
    const both = await Promise.all([pool.acquire(), pool.acquire()]);
    assert.ok(await rejectionOf(pool.query("select 1")) instanceof PoolError);
    for (const each of both) await each.close();
    await pool.query("select 1");
  }, { max: 2, maxWaiters: 0 });
});

test("acquire() with a signal leaves the line, and takes no connection with it", async () => {
  await withPool(async (pool) => {
    const own = await pool.acquire();
    const controller = new AbortController();
    const reason = new Error("changed my mind");
    const waits = [
      rejectionOf(pool.acquire({ signal: controller.signal })),
      rejectionOf(pool.begin({ signal: controller.signal })),
      rejectionOf(pool.transaction({ signal: controller.signal }, () => 1)),
    ];
    const next = pool.acquire();
    assert.equal(pool.stats().waiting, 4);
    controller.abort(reason);
    for (const wait of waits) assert.equal(await wait, reason);
    assert.equal(await rejectionOf(pool.acquire({ signal: controller.signal })), reason);
    assert.equal(pool.stats().waiting, 1);
    await own.close();
    await (await limit(next, 2_000)).close();
    assert.equal(pool.stats().idle, 1);
  }, { max: 1 });
});

test("a query with a signal or a timeout that waits is just removed; nothing is sent", async () => {
  await withPool(async (pool) => {
    const own = await pool.acquire();
    const controller = new AbortController();
    const reason = new Error("changed my mind");
    const table = `given_up_${own.processId}`;
    await own.exec(`create table ${table} (a int)`);
    const { sql } = pool;
    const aborted = [
      rejectionOf(sql`insert into ${sql.id(table)} values (1)`.with({ signal: controller.signal })),
      rejectionOf(pool.exec(`insert into ${table} values (2)`, { signal: controller.signal })),
      rejectionOf(sql`select 3`.with({ signal: controller.signal }).stream().next()),
    ];
    const late = [
      rejectionOf(sql`insert into ${sql.id(table)} values (4)`.with({ timeout: 30, label: "late" })),
      rejectionOf(sql`select 5`.with({ timeout: 30 }).stream().next()),
    ];
    await sleep(0);
    controller.abort(reason);
    for (const each of aborted) assert.equal(await each, reason);
    for (const each of late) assert.ok(await each instanceof TimeoutError);
    assert.equal(pool.stats().waiting, 0);
    assert.deepEqual((await own.query(`select * from ${table}`)).rows, []);
    await own.exec(`drop table ${table}`);
    await own.close();
    await pool.query("select 1");
  }, { max: 1 });
});

test("a query that times out frees its connection: the next one runs at once on the same backend", async () => {
  await withPool(async (pool) => {
    const pid = await pidOf(pool);
    const began = performance.now();
    const late = rejectionOf(pool.sql`select pg_sleep(20)`.with({ timeout: 100 }).result());
    const behind = pidOf(pool);
    assert.ok(await late instanceof TimeoutError);
    assert.ok(performance.now() - began < 2_000);
    assert.equal(await limit(behind, 2_000), pid);
    assert.deepEqual(counts(pool), { total: 1, idle: 1, busy: 0, opening: 0, waiting: 0 });
  }, { max: 1 });
});

test("a cancel hits nobody else: 400 queries beside ones that are given up at any moment", async () => {
  await withPool(async (pool) => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 400 }, async (_, i) => {
        if (i % 4 === 0) {
          const signal = AbortSignal.timeout(1 + i % 60);
          await pool.sql`select pg_sleep(0.05), ${i}::int4 as i`.with({ signal });
          return;
        }
        const { rows } = await pool.query("select $1::int4 as i, pg_sleep(0.001)", [i]);
        assert.equal(rows[0]!["i"], i);
      }),
    );
    outcomes.forEach((outcome, i) => {
      if (outcome.status === "rejected" && i % 4 !== 0) throw outcome.reason;
      if (outcome.status === "rejected") assert.equal(outcome.reason.name, "TimeoutError");
    });
    await until(() => pool.stats().busy === 0, 6_000, "the end of the cancels");
  }, { max: 3, within: 60_000 });
});

test("owners and shared work take turns: neither starves while the other never ends", async () => {
  await withPool(async (pool) => {
    const done = { owners: 0, queries: 0 };
    let running = true;
    const loop = async (work: () => Promise<unknown>) => {
      while (running) await work();
    };
    const loops = [
      ...Array.from({ length: 8 }, () =>
        loop(async () => {
          await pool.query("select pg_sleep(0.002)");
          done.queries++;
        })),
      ...Array.from({ length: 8 }, () =>
        loop(async () => {
          await pool.transaction((tx) => tx.query("select pg_sleep(0.002)"));
          done.owners++;
        })),
    ];
    await sleep(1_000);
    running = false;
    await Promise.all(loops);
    assert.ok(done.owners > 20 && done.queries > 20, JSON.stringify(done));
    assert.ok(done.owners > done.queries / 20, JSON.stringify(done));
  }, { max: 2 });
});

test("a transaction that waits is not overtaken by queries that came later", async () => {
  await withPool(async (pool) => {
    const own = await pool.acquire();
    const order: string[] = [];
    const note = (name: string, work: Promise<unknown>) => work.then(() => order.push(name));
    const works = [
      note("before", pool.query("select 1")),
      note("transaction", pool.transaction((tx) => tx.query("select 2"))),
      ...[1, 2, 3].map((i) => note(`later ${i}`, pool.query("select pg_sleep(0.02)"))),
    ];
    await own.close();
    await limit(Promise.all(works));
    assert.deepEqual(order, ["before", "transaction", "later 1", "later 2", "later 3"]);
  }, { max: 1 });
});

test("pipeline: false has a connection to itself", async () => {
  await withPool(async (pool) => {
    const slow = pool.query("select pg_sleep(0.2)");
    await sleep(50);
    const alone = pool.sql`select pg_sleep(0.2)`.with({ pipeline: false }).result();
    await sleep(20);
    const behind = pool.query("select pg_backend_pid()");
    await until(async () =>
      (await ask(
        "select 1 from pg_stat_activity where query like '%pg_sleep(0.2)%' and pid <> pg_backend_pid()",
      )).length >= 1
    );
    await Promise.all([slow, alone, behind]);
  }, { max: 1 });
});

test("pipeline: false of a pool: each query waits for the first connection that comes free", async () => {
  await withPool(async (pool) => {
    const order: string[] = [];
    const note = (name: string, work: Promise<unknown>) => work.then(() => order.push(name));
    const open = await Promise.all([pool.acquire(), pool.acquire()]);
    await Promise.all(open.map((conn) => conn.close()));
    const works = [
      note("slow", pool.query("select pg_sleep(0.5)")),
      note("brief", pool.query("select pg_sleep(0.01)")),
      note("batch", pool.batch([pool.sql`select 1`, pool.sql`select 2`])),
      note("transaction", pool.transaction((tx) => tx.query("select 3"))),
      note("query", pool.query("select 4")),
    ];
    assert.deepEqual(counts(pool), { total: 2, idle: 0, busy: 2, opening: 0, waiting: 3 });
    await limit(Promise.all(works));
    assert.deepEqual(order, ["brief", "batch", "transaction", "query", "slow"]);
    await rejectionOf(pool.query("select 1/0"));
    await rejectionOf(pool.batch([pool.sql`select 1`, pool.sql`select 1/0`]));
    assert.deepEqual(counts(pool), { total: 2, idle: 2, busy: 0, opening: 0, waiting: 0 });
  }, { max: 2, pipeline: false });
});

leavesNoSession();
