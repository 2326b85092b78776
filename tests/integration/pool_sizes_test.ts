/** How many connections a pool has, and how long. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigurationError, createPool } from "../../mod.ts";
import { counts, pidOf, withPool } from "../_support/pools.ts";
import { startProxy } from "../_support/proxy.ts";
import { leavesNoSession, testTarget, testUrl, until } from "../_support/server.ts";
import { sleep } from "../_support/session.ts";

test("a pool opens nothing before it is used, then one connection for each query at once, up to max", async () => {
  await withPool(async (pool) => {
    const empty = { total: 0, idle: 0, busy: 0, opening: 0, waiting: 0 };
    assert.deepEqual(counts(pool), empty);
    await sleep(20);
    assert.deepEqual(counts(pool), empty);
    await pool.query("select 1");
    assert.deepEqual(counts(pool), { ...empty, total: 1, idle: 1 });
    const sleepers = Array.from({ length: 3 }, () => pool.query("select pg_sleep(1)"));
    await until(() => pool.stats().busy === 3);
    const many = Array.from({ length: 20 }, () => pool.query("select pg_backend_pid() as pid"));
    assert.ok(pool.stats().total <= 3);
    await Promise.all([...sleepers, ...many]);
    assert.deepEqual(counts(pool), { ...empty, total: 3, idle: 3 });
    const pids = new Set((await Promise.all(many)).map(({ rows }) => rows[0]!["pid"]));
    assert.equal(pids.size, 3, "all connections take part");
  }, { max: 3 });
});

test("sequential queries stay on one connection", async () => {
  await withPool(async (pool) => {
    const pids = new Set<number>();
    for (let i = 0; i < 20; i++) pids.add(await pidOf(pool));
    for (let i = 0; i < 20; i++) await pool.transaction(async (tx) => void pids.add(await pidOf(tx)));
    assert.equal(pids.size, 1);
    assert.equal(pool.stats().total, 1);
  }, { max: 5 });
});

test("minIdle connections are opened with the first one, kept, and replaced when they die", async () => {
  await withPool(async (pool) => {
    await pool.query("select 1");
    await until(() => pool.stats().idle === 2, 5_000, "two idle connections");
    await sleep(150);
    assert.equal(pool.stats().idle, 2, "idleTimeout does not act on them");
    const pids = new Set<number>([await pidOf(pool)]);
    await pool.query("select pg_terminate_backend(pg_backend_pid())").catch(() => {});
    await until(() => pool.stats().idle === 2, 5_000, "two idle connections again");
    for (const pid of await Promise.all([pidOf(pool), pidOf(pool)])) pids.add(pid);
    assert.ok(pids.size >= 2);
  }, { max: 5, minIdle: 2, idleTimeout: 50 });
});

test("idleTimeout closes idle connections, and only those", async () => {
  await withPool(async (pool) => {
    const long = pool.query("select pg_sleep(0.4), pg_backend_pid() as pid");
    const own = await pool.acquire();
    const short = pool.query("select pg_sleep(0.02)");
    await short;
    assert.equal(pool.stats().total, 3);
    await until(() => pool.stats().total === 2, 5_000, "the end of the idle one");
    assert.ok((await long).rows[0]!["pid"]);
    await until(() => pool.stats().total === 1, 5_000, "the end of the other one");
    assert.equal((await own.query("select 1 as a")).rows[0]!["a"], 1);
    await own.close();
    await until(() => pool.stats().total === 0, 5_000, "the end of the last one");
    await pool.query("select 1");
  }, { max: 5, idleTimeout: 40 });
});

test("an idle time shorter than a query takes disturbs no query", async () => {
  await withPool(async (pool) => {
    for (let i = 0; i < 3; i++) await pool.query("select pg_sleep(0.1)");
    await pool.transaction(async (tx) => {
      await tx.query("select 1");
      await sleep(80);
      await tx.query("select pg_sleep(0.05)");
    });
  }, { max: 1, idleTimeout: 20 });
});

test("maxLifetime replaces connections that are never idle for long, without an error", async () => {
  await withPool(async (pool) => {
    const pids = new Set<number>();
    for (let i = 0; i < 12; i++) {
      const { rows } = await pool.query<{ pid: number }>("select pg_sleep(0.03), pg_backend_pid() as pid");
      pids.add(rows[0]!.pid);
    }
    assert.ok(pids.size >= 3, `${pids.size} backends`);
    assert.equal(pool.stats().total <= 1, true);
  }, { max: 1, maxLifetime: 50 });
});

test("maxLifetime replaces connections under shared work that never ends, without an error", async () => {
  await withPool(async (pool) => {
    const pids = new Set<number>();
    const until = performance.now() + 800;
    await Promise.all(Array.from({ length: 8 }, async () => {
      while (performance.now() < until) {
        const { rows } = await pool.query<{ pid: number }>("select pg_sleep(0.005), pg_backend_pid() as pid");
        pids.add(rows[0]!.pid);
      }
    }));
    assert.ok(pids.size >= 6, `${pids.size} backends`);
    assert.ok(pool.stats().total <= 2);
  }, { max: 2, maxLifetime: 100 });
});

test("maxLifetime does not end a transaction that is longer", async () => {
  await withPool(async (pool) => {
    const pids = await pool.transaction(async (tx) => {
      const before = await pidOf(tx);
      await sleep(150);
      return [before, await pidOf(tx)];
    });
    assert.equal(pids[0], pids[1]);
    await until(() => pool.stats().total === 0, 5_000, "the end of the connection");
    assert.notEqual(await pidOf(pool), pids[0]);
  }, { max: 1, maxLifetime: 50 });
});

test("a limit past what timers can count is no limit, and costs nothing", async () => {
  await withPool(async (pool) => {
    await pool.query("select 1");
    await sleep(50);
    assert.deepEqual(counts(pool), { total: 1, idle: 1, busy: 0, opening: 0, waiting: 0 });
  }, { idleTimeout: 1e12, maxLifetime: 1e13, acquireTimeout: Infinity });
});

test("stats() tells of opening, waiting and how long", async () => {
  const proxy = await startProxy({ target: testTarget() });
  const url = new URL(testUrl());
  url.host = `${proxy.host}:${proxy.port}`;
  try {
    await withPool(async (pool) => {
      proxy.hold("backend");
      const queries = Promise.all(
        Array.from({ length: 5 }, (_, i) => pool.query("select $1::int4 as i", [i])),
      );
      await until(() => pool.stats().opening === 2);
      assert.deepEqual(counts(pool), { total: 2, idle: 0, busy: 0, opening: 2, waiting: 5 });
      await until(() => pool.stats().waitTime > 10);
      proxy.release("backend");
      assert.deepEqual((await queries).map(({ rows }) => rows[0]!["i"]), [0, 1, 2, 3, 4]);
      assert.equal(pool.stats().waitTime, 0);
    }, { url: url.href, max: 2 });
  } finally {
    await proxy.close();
  }
});

test("options that make no sense are refused before anything is opened", () => {
  const wrong = [
    { max: 0 },
    { max: 1.5 },
    { max: NaN },
    { minIdle: -1 },
    { idleTimeout: -1 },
    { maxLifetime: NaN },
    { acquireTimeout: -5 },
    { maxWaiters: -1 },
  ];
  for (const options of wrong) {
    assert.throws(() => createPool(testUrl(), options), ConfigurationError, JSON.stringify(options));
  }
});

leavesNoSession();
