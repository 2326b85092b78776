/** Streams that are left while the server makes a batch: it is cancelled, and nobody else is. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Connection, createPool, type Pool, type RowStream, type Transaction } from "../../mod.ts";
import { startProxy } from "../_support/proxy.ts";
import { leavesNoSession, limit, testTarget, testUrl } from "../_support/server.ts";
import { sleep, withConnection } from "../_support/session.ts";

/** Rows of which every tenth but the first takes 30 s. */
function slowSeries(on: Connection | Pool | Transaction, fast = 10): RowStream<{ i: number }> {
  return on.sql<{ i: number }>`select i, pg_sleep(case when i % 10 = 1 and i > ${fast}::int then 30 end)
    from generate_series(1, 100) i`.stream({ batch: 10 });
}

/** Ways to leave a stream while the server is at a batch. */
const LEAVERS: Readonly<Record<string, (on: Connection | Pool | Transaction) => Promise<unknown>>> = {
  "a loop that ends": async (on) => {
    for await (const _ of slowSeries(on)) break;
  },
  "batches that are not wanted": async (on) => {
    for await (const _ of slowSeries(on).batches()) break;
  },
  "disposal": async (on) => {
    await using rows = slowSeries(on);
    await rows.next();
  },
  "a return while a row is waited for": async (on) => {
    const rows = slowSeries(on, 0);
    const calls = [rows.next(), rows.next(), rows.return(), rows.next(), rows.return()];
    for (const call of calls) assert.deepEqual(await call, { done: true, value: undefined });
  },
  "a return behind rows that come, and before one that does not": async (on) => {
    const rows = slowSeries(on);
    const calls = Array.from({ length: 15 }, () => rows.next());
    const left = rows.return();
    assert.deepEqual((await Promise.all(calls)).map(({ value }) => value?.i), [
      ...Array.from({ length: 10 }, (_, i) => i + 1),
      ...Array(5).fill(undefined),
    ]);
    await left;
  },
  "a Web stream that is cancelled": async (on) => {
    const reader = slowSeries(on, 0).toReadable().getReader();
    const read = reader.read();
    await sleep(20);
    await reader.cancel();
    assert.deepEqual(await read, { done: true, value: undefined });
  },
};

test("a batch that nobody waits for any more is cancelled, and nothing else", async () => {
  for (const [name, leave] of Object.entries(LEAVERS)) {
    await withConnection(async (conn) => {
      const left = limit(leave(conn), 5_000, name);
      const neighbours = Array.from({ length: 5 }, (_, i) => conn.sql`select ${i}::int as i`.one());
      await left;
      assert.deepEqual(await limit(Promise.all(neighbours)), [0, 1, 2, 3, 4].map((i) => ({ i })), name);
    });
    await using db = createPool(testUrl(), { max: 1 });
    const left = limit(leave(db), 5_000, name);
    const neighbour = db.sql`select 1 as a`;
    await left;
    assert.deepEqual(await limit(neighbour), [{ a: 1 }], name);
    const { idle, busy } = db.stats();
    assert.deepEqual({ idle, busy }, { idle: 1, busy: 0 }, name);
    await using acquired = await db.acquire();
    await limit(leave(acquired), 5_000, name);
    assert.deepEqual(await limit(acquired.sql`select 1 as a`), [{ a: 1 }], name);
  }
});

test("a cancel for a stream that is left meets no neighbour, whenever it is left", async () => {
  await withConnection(async (conn) => {
    for (let round = 0; round < 40; round++) {
      // About as long as a stream that is left is waited for.
      const seconds = 0.08 + round / 1_000;
      const rows = conn.sql`select i, pg_sleep(case when i > 2 then ${seconds}::float8 end)
        from generate_series(1, 3) i`.stream({ batch: 2 });
      await rows.next();
      const left = rows.return();
      const neighbour = conn.sql`select pg_sleep(0.005), ${round}::int as round`.one();
      assert.deepEqual(await limit(left), { done: true, value: undefined });
      assert.equal((await limit(neighbour))["round"], round);
    }
  });
});

test("a stream that is left in a transaction block is waited for: a cancel would fail the block", async () => {
  const brief = (on: Connection | Pool | Transaction) =>
    on.sql`select i, pg_sleep(case when i > 10 then 0.05 end) from generate_series(1, 100) i`
      .stream({ batch: 10 });
  await withConnection(async (conn) => {
    await conn.exec("begin");
    for await (const _ of brief(conn)) break;
    assert.equal(conn.transactionStatus, "transaction");
    await conn.exec("commit");
    // The block is opened while those calls wait.
    const rows = brief(conn);
    const before = [conn.sql`select pg_sleep(0.3)`.result(), conn.query("begin")];
    await Promise.all([...before, rows.next(), rows.return()]);
    assert.equal(conn.transactionStatus, "transaction");
    await conn.exec("commit");
    await conn.transaction(async (tx) => {
      for await (const _ of brief(tx)) break;
      assert.deepEqual(await tx.sql`select 1 as a`, [{ a: 1 }]);
    });
  });
});

test("a batch that is made quickly is waited for: it costs no cancel", async () => {
  const proxy = await startProxy({ target: testTarget() });
  const url = new URL(testUrl());
  url.port = String(proxy.port);
  try {
    await withConnection(async (conn) => {
      for (let round = 0; round < 20; round++) {
        for await (const _ of conn.sql`select generate_series(1, 1000)`.stream({ batch: 10 })) break;
      }
      assert.equal(proxy.connections(), 1);
      for await (const _ of slowSeries(conn)) break;
      assert.equal(proxy.connections(), 2);
    }, { url: url.href });
  } finally {
    await proxy.close();
  }
});

leavesNoSession();
