/** Everything that runs on a connection runs on a pool: streams, COPY, LISTEN, batches, transactions. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { NotificationEvent } from "../../mod.ts";
import { counts, terminate, withPool } from "../_support/pools.ts";
import { startProxy } from "../_support/proxy.ts";
import { ask, leavesNoSession, limit, testTarget, testUrl, uniqueName, until } from "../_support/server.ts";
import { rejectionOf, sleep } from "../_support/session.ts";

const XID = "select pg_current_xact_id_if_assigned()::text as xid, pg_backend_pid() as pid";

test("a stream has a connection to itself, gives it back at its end, when left, and when it fails", async () => {
  await withPool(async (pool) => {
    const { sql } = pool;
    let n = 0;
    for await (const row of sql<{ i: number }>`select generate_series(1, 5000) as i`.stream({ batch: 100 })) {
      assert.equal(row.i, ++n);
      if (n === 1000) assert.deepEqual((await pool.query("select 1 as a")).rows, [{ a: 1 }]);
    }
    assert.equal(n, 5000);
    await until(() => pool.stats().busy === 0);
    for await (const _ of sql`select generate_series(1, 1000000)`) break;
    await until(() => pool.stats().busy === 0);
    const error = await rejectionOf((async () => {
      for await (const _ of sql`select 1 / (100 - i) from generate_series(1, 200) i`.stream({ batch: 10 }));
    })());
    assert.equal(error.code, "22012");
    await until(() => pool.stats().busy === 0);
    const controller = new AbortController();
    const aborted = await rejectionOf((async () => {
      const stream = sql`select i, pg_sleep(0.01) from generate_series(1, 100000) i`.with({
        signal: controller.signal,
      });
      for await (const _ of stream.stream({ batch: 1 })) controller.abort(new Error("enough"));
    })());
    assert.equal(aborted.message, "enough");
    await until(() => pool.stats().busy === 0, 5_000, "the end of the cancel");
    assert.ok(pool.stats().total <= 2);
    await Promise.all(Array.from({ length: 10 }, () => pool.query("select 1")));
  }, { max: 2 });
});

test("as many streams as connections at once, and more behind them", async () => {
  await withPool(async (pool) => {
    const sums = await Promise.all(Array.from({ length: 12 }, async (_, i) => {
      let sum = 0;
      for await (const row of pool.sql<{ n: number }>`select generate_series(1, ${500 + i}::int4) as n`) {
        sum += row.n;
      }
      return sum;
    }));
    assert.deepEqual(sums, sums.map((_, i) => (500 + i) * (501 + i) / 2));
    // One may be on its way that nobody needs any more.
    await until(() => pool.stats().opening === 0);
    assert.deepEqual(counts(pool), { total: 3, idle: 3, busy: 0, opening: 0, waiting: 0 });
  }, { max: 3 });
});

test("COPY in, out and by rows beside other work", async () => {
  const table = uniqueName("copied");
  await ask(`create table ${table} (a int, b text)`);
  await withPool(async (pool) => {
    const others = Array.from(
      { length: 50 },
      (_, i) => pool.query("select $1::int4 as i, pg_sleep(0.002)", [i]),
    );
    const loads = Array.from({ length: 4 }, async (_, i) => {
      const writer = pool.copyFrom(`copy ${table} from stdin`).getWriter();
      for (let j = 0; j < 250; j++) await writer.write(`${i * 250 + j}\tx\n`);
      await writer.close();
    });
    await Promise.all([...others, ...loads]);
    assert.equal(
      await pool.copyRows(table, ["a", "b"], Array.from({ length: 100 }, (_, i) => [1000 + i, "y"])),
      100,
    );
    let bytes = 0;
    for await (const chunk of pool.copyTo(`copy (select a from ${table} order by a) to stdout`)) {
      bytes += chunk.length;
    }
    assert.equal(bytes, Array.from({ length: 1100 }, (_, i) => `${i}\n`).join("").length);
    const refused = await rejectionOf((async () => {
      const writer = pool.copyFrom(`copy ${table} from stdin`).getWriter();
      await writer.write("not a number\tx\n");
      await writer.close();
    })());
    assert.equal(refused.code, "22P02");
    await until(() => pool.stats().busy === 0);
    assert.ok(pool.stats().total <= 3);
    assert.deepEqual((await pool.query(`select count(*)::int as n from ${table}`)).rows, [{ n: 1100 }]);
  }, { max: 3 });
  await ask(`drop table ${table}`);
});

test("queries never join a transaction: 2,000 operations on four connections, half of them transactions", async () => {
  await withPool(async (pool) => {
    const xids = new Set<string>();
    await Promise.all(Array.from({ length: 2_000 }, async (_, i) => {
      if (i % 2 === 0) {
        const { rows } = await pool.query(`${XID}, $1::int4 as i`, [i]);
        assert.deepEqual({ xid: rows[0]!["xid"], i: rows[0]!["i"] }, { xid: null, i });
        return;
      }
      await pool.transaction(async (tx) => {
        const own = await tx.query<{ xid: string; pid: number }>(
          "select pg_current_xact_id()::text as xid, pg_backend_pid() as pid",
        );
        const inside = await Promise.all([tx.query(XID), tx.query(XID)]);
        for (const { rows } of inside) assert.deepEqual(rows, own.rows);
        assert.ok(!xids.has(own.rows[0]!.xid));
        xids.add(own.rows[0]!.xid);
      });
    }));
    assert.equal(xids.size, 1_000);
    await until(() => pool.stats().idle === 4);
    assert.deepEqual(counts(pool), { total: 4, idle: 4, busy: 0, opening: 0, waiting: 0 });
  }, { max: 4, within: 60_000, acquireTimeout: 60_000 });
});

test("transactions: options, nesting, retry, and what a callback throws", async () => {
  const table = uniqueName("tx");
  await ask(`create table ${table} (a int); insert into ${table} values (0)`);
  await withPool(async (pool) => {
    const shown = await pool.transaction(
      { isolation: "serializable", readOnly: true },
      async (tx) =>
        (await tx.query(
          "select current_setting('transaction_isolation') as i, current_setting('transaction_read_only') as r",
        )).rows,
    );
    assert.deepEqual(shown, [{ i: "serializable", r: "on" }]);
    await pool.transaction(async (tx) => {
      await tx.query(`insert into ${table} values (1)`);
      await rejectionOf(tx.transaction(async (nested) => {
        await nested.query(`insert into ${table} values (2)`);
        throw new Error("not this one");
      }));
    });
    assert.deepEqual((await pool.query(`select a from ${table} order by a`)).rows, [{ a: 0 }, { a: 1 }]);
    let [attempts, reads] = [0, 0];
    const increment = () =>
      pool.transaction({ isolation: "serializable", retry: 20 }, async (tx) => {
        attempts++;
        const { rows } = await tx.query<{ a: number }>(`select max(a) as a from ${table}`);
        // The first two have read before either writes.
        if (++reads <= 2) await until(() => reads >= 2);
        await tx.query(`insert into ${table} values ($1)`, [rows[0]!.a + 1]);
      });
    await Promise.all(Array.from({ length: 6 }, increment));
    assert.ok(attempts > 6, "somebody had to try again");
    assert.deepEqual((await pool.query(`select max(a) as a from ${table}`)).rows, [{ a: 7 }]);
    const mine = new Error("mine");
    assert.equal(await rejectionOf(pool.transaction(() => Promise.reject(mine))), mine);
    await until(() => pool.stats().busy === 0);
  }, { max: 4 });
  await ask(`drop table ${table}`);
});

test("batches on a pool succeed or fail together, and never beside others of their connection", async () => {
  await withPool(async (pool) => {
    const { sql } = pool;
    await Promise.all(Array.from({ length: 60 }, async (_, i) => {
      if (i % 3 === 0) return void await pool.query("select $1::int4", [i]);
      if (i % 3 === 1) {
        const results = await pool.batch([sql`select ${i}::int4 as i`, sql`select ${i + 1}::int4 as i`]);
        return assert.deepEqual(results.map(({ rows }) => rows), [[{ i }], [{ i: i + 1 }]]);
      }
      assert.equal(
        (await rejectionOf(pool.batch([sql`select 1`, sql`select 1/0`, sql`select 2`]))).code,
        "22012",
      );
    }));
    const settled = await pool.batch([sql`select 1 as a`, sql`select 1/0`, sql`select 3 as a`], {
      sync: "each",
    });
    assert.deepEqual(settled.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
  }, { max: 2 });
});

test("listen(): all channels on one connection of their own, opened again after a loss, with one gap for each", async () => {
  const [a, b] = [uniqueName("a"), uniqueName("b")];
  await withPool(async (pool) => {
    const heard: NotificationEvent[] = [];
    const subscriptions = [
      await pool.listen(a, (event) => heard.push(event)),
      await pool.listen(b, (event) => heard.push(event)),
    ];
    await pool.notify(a, "1");
    await pool.notify(b, "2");
    await until(() => heard.length === 2);
    assert.deepEqual(heard.map((event) => event.type === "notify" && event.payload), ["1", "2"]);
    assert.equal(pool.stats().total, 1, "the pool's own connections are not used for it");
    const listeners = async () =>
      (await ask(
        `select pid from pg_stat_activity where query ilike 'listen %${a}%' or query ilike 'listen %${b}%'`,
      ))
        .map(([pid]) => Number(pid));
    const before = await listeners();
    assert.equal(before.length, 1);
    await terminate(before);
    await until(() => heard.length === 4, 10_000, "the gaps");
    assert.deepEqual(
      heard.slice(2).map((event) => [event.type, event.channel]).sort(),
      [["gap", a], ["gap", b]].sort(),
    );
    await pool.notify(b, "3");
    await until(() => heard.length === 5);
    for (const each of subscriptions) await each.close();
    await until(async () => (await listeners()).length === 0);
  }, { max: 2 });
});

test("listen() during the pause before a reconnect does not lead to two connections", async () => {
  const [a, b] = [uniqueName("a"), uniqueName("b")];
  const proxy = await startProxy({ target: testTarget() });
  const url = new URL(testUrl());
  url.host = `${proxy.host}:${proxy.port}`;
  await withPool(async (pool) => {
    const heard: string[] = [];
    const note = (event: NotificationEvent) =>
      void heard.push(event.type === "notify" ? `${event.channel} ${event.payload}` : `gap ${event.channel}`);
    await pool.listen(a, note);
    // The line breaks, and two attempts to come back fail.
    proxy.cut({ direction: "backend", after: 0, how: "end" });
    await until(() => proxy.connections() >= 3 && proxy.open() === 0);
    proxy.cut(undefined);
    await pool.listen(b, note);
    await until(() => heard.includes(`gap ${a}`), 5_000);
    for (const channel of [a, b]) await ask(`notify "${channel}", 'once'`);
    await until(() => [a, b].every((channel) => heard.includes(`${channel} once`)));
    await sleep(150);
    assert.deepEqual(heard.filter((each) => each.endsWith("once")).sort(), [`${a} once`, `${b} once`].sort());
    assert.equal(proxy.open(), 1);
  }, { url: url.href });
  await limit(proxy.close());
});

test("100 channels that are listened to at once are all heard", async () => {
  await withPool(async (pool) => {
    const channels = Array.from({ length: 100 }, () => uniqueName("many"));
    const heard = new Set<string>();
    const listening = channels.map(async (channel, i) => {
      for (let turn = 0; turn < i % 7; turn++) await sleep(1);
      await pool.listen(channel, (event) => void (event.type === "notify" && heard.add(event.channel)));
    });
    await limit(Promise.all(listening));
    for (const channel of channels) await pool.notify(channel);
    await until(() => heard.size === 100, 5_000, "all notifications");
  });
});

leavesNoSession();
