/** LISTEN and NOTIFY: names, payloads, order, ways to end, on a pool and on a connection. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Connection,
  createPool,
  type NotificationEvent,
  type NotificationStream,
  type Pool,
} from "../../mod.ts";
import { ask, leavesNoSession, limit, testUrl, uniqueName, until } from "../_support/server.ts";
import { rejectionOf, sleep, withConnection } from "../_support/session.ts";

async function withPool(body: (pool: Pool) => Promise<void>): Promise<void> {
  const pool = createPool(testUrl(), { max: 2 });
  try {
    await limit(body(pool), 30_000, "the test's body");
  } finally {
    await limit(pool.close({ timeout: 0 }));
  }
}

/** Runs `body` on a pool, a connection and an acquired session: `listen` is the same on all. */
async function everywhere(body: (on: Pool | Connection, pool: Pool) => Promise<void>): Promise<void> {
  await withPool((pool) => body(pool, pool));
  await withPool((pool) => withConnection((conn) => body(conn, pool)));
  await withPool(async (pool) => {
    await using session = await pool.acquire();
    await body(session, pool);
  });
}

async function payloads(stream: NotificationStream, count: number): Promise<string[]> {
  const received: string[] = [];
  for (let i = 0; i < count; i++) {
    const { value } = await limit(stream.next(), 5_000, `notification ${i + 1} of ${count}`);
    assert.equal(value?.type, "notify");
    received.push((value as { payload: string }).payload);
  }
  return received;
}

test("channels of any name, payloads of any length", async () => {
  await everywhere(async (on, pool) => {
    const id = uniqueName("");
    const names = [
      `${id}cacheInvalidated`,
      `${id}a.b`,
      `${id}x"; drop table t; --`,
      `${id}é`,
      `${id} `,
      ` ${id}`,
    ];
    for (const name of [...names, id.padEnd(63, "n"), id + "ä".repeat((63 - id.length) >> 1)]) {
      const stream = on.listen(name);
      await limit(stream.listening);
      for (const payload of ["", "x".repeat(7_999), "𝄞ß\n'\\"]) await pool.notify(name, payload);
      await pool.notify(name);
      assert.deepEqual(await payloads(stream, 4), ["", "x".repeat(7_999), "𝄞ß\n'\\", ""]);
      await stream.return();
    }
  });
  await withPool(async (pool) => {
    assert.equal((await rejectionOf(pool.notify("a", "x".repeat(8_000)))).code, "22023");
    for (const name of ["", "n".repeat(64), "ä".repeat(32), "a\0b", "a\ud800", "\udc00b"]) {
      assert.throws(() => pool.listen(name), { name: "ValueError" });
      assert.equal((await rejectionOf(pool.notify(name))).name, "ValueError");
    }
  });
});

test("events say who notified, and come in the order of the commits", async () => {
  await everywhere(async (on) => {
    const channel = uniqueName("c");
    await withConnection(async (other) => {
      const stream = on.listen(channel);
      await stream.listening;
      await other.notify(channel, "first");
      const { value } = await limit(stream.next());
      assert.deepEqual(value, { type: "notify", channel, payload: "first", processId: other.processId });
      await other.transaction(async (tx) => {
        await tx.notify(channel, "in a transaction");
        await tx.notify(channel, "twice");
        await tx.notify(channel, "twice");
      });
      await rejectionOf(other.transaction(async (tx) => {
        await tx.notify(channel, "rolled back");
        throw new Error("mine");
      }));
      const notified = Array.from({ length: 500 }, (_, i) => other.notify(channel, String(i)));
      assert.deepEqual(await payloads(stream, 502), [
        "in a transaction",
        "twice",
        ...Array.from({ length: 500 }, (_, i) => String(i)),
      ]);
      await limit(Promise.all(notified));
      await stream.return();
    });
  });
});

test("several listeners and channels share one connection of the pool", async () => {
  await withPool(async (pool) => {
    const [a, b] = [uniqueName("a"), uniqueName("b")];
    const streams = [pool.listen(a), pool.listen(a), pool.listen(b)];
    const events: NotificationEvent[] = [];
    const subscription = await limit(pool.listen(a, (event) => events.push(event)));
    await Promise.all(streams.map(({ listening }) => listening));
    const listening = `select count(*) from pg_stat_activity where query ilike 'listen%'
      and query like '%${a}%' or query like '%listen "${b}"%' and query not like 'select%'`;
    assert.equal(Number((await ask(listening))[0]![0]), 1);
    assert.equal(pool.stats().total, 0);
    await pool.notify(a, "1");
    await pool.notify(b, "2");
    assert.deepEqual(await Promise.all(streams.map((stream) => payloads(stream, 1))), [["1"], ["1"], ["2"]]);
    await until(() => events.length === 1);
    // One of several ends; the others go on.
    await streams[0]!.return();
    assert.deepEqual(await limit(streams[0]!.next()), { done: true, value: undefined });
    await pool.notify(a, "3");
    assert.deepEqual(await payloads(streams[1]!, 1), ["3"]);
    await until(() => events.length === 2);
    await subscription.close();
    assert.equal(await limit(subscription.ended), undefined);
    await pool.notify(a, "4");
    assert.deepEqual(await payloads(streams[1]!, 1), ["4"]);
    assert.equal(events.length, 2);
  });
});

test("what a callback throws does not stop it", async () => {
  await everywhere(async (on, pool) => {
    const channel = uniqueName("c");
    let calls = 0;
    await using _ = await limit(on.listen(channel, () => {
      calls++;
      throw new Error("mine");
    }));
    await pool.notify(channel, "1");
    await pool.notify(channel, "2");
    await until(() => calls === 2);
  });
});

test("ends by break, error of the loop, signal and disposal", async () => {
  await everywhere(async (on, pool) => {
    const [busy, channel] = [uniqueName("busy"), uniqueName("c")];
    const mine = new Error("mine");
    const notifying = setInterval(() => pool.notify(busy).catch(() => {}), 5);
    try {
      for await (const _ of on.listen(busy)) break;
      const thrown = (async () => {
        for await (const _ of on.listen(busy)) throw mine;
      })();
      assert.equal(await rejectionOf(thrown), mine);
    } finally {
      clearInterval(notifying);
    }
    const controller = new AbortController();
    const stream = on.listen(channel, { signal: controller.signal });
    await stream.listening;
    const [next, second] = [stream.next(), stream.next()];
    controller.abort(mine);
    assert.equal(await rejectionOf(next), mine);
    assert.deepEqual(await limit(second), { done: true, value: undefined });
    assert.deepEqual(await limit(stream.next()), { done: true, value: undefined });
    // Before the server listens, and before anything.
    const early = new AbortController();
    const unlistened = on.listen(channel, { signal: early.signal });
    early.abort(mine);
    assert.equal(await rejectionOf(unlistened.listening), mine);
    assert.equal(await rejectionOf(unlistened.next()), mine);
    const never = on.listen(channel, { signal: early.signal });
    assert.equal(await rejectionOf(never.next()), mine);
    assert.equal(await rejectionOf(on.listen(channel, () => {}, { signal: early.signal })), mine);
    const later = new AbortController();
    const subscription = await limit(on.listen(channel, () => {}, { signal: later.signal }));
    later.abort(mine);
    assert.equal(await limit(subscription.ended), mine);
    {
      await using disposed = on.listen(channel);
      await disposed.listening;
    }
    const returned = on.listen(channel);
    const waiting = returned.next();
    await returned.return();
    assert.deepEqual(await limit(waiting), { done: true, value: undefined });
  });
});

test("listening and unlistening without a wait ends as it was said last", async () => {
  await everywhere(async (on, pool) => {
    const channels = Array.from({ length: 5 }, () => uniqueName("c"));
    let seed = 12_345;
    for (let round = 0; round < 10; round++) {
      const open = new Map<string, NotificationStream[]>();
      for (let i = 0; i < 30; i++) {
        seed = Math.imul(seed, 1_103_515_245) + 12_345 >>> 0;
        const channel = channels[(seed >>> 8) % channels.length]!;
        const streams = open.get(channel) ?? [];
        open.set(channel, streams);
        if ((seed >>> 16) % 3 > 0) streams.push(on.listen(channel));
        else void streams.shift()?.return();
        if ((seed >>> 20) % 7 === 0) await Promise.resolve();
        if ((seed >>> 20) % 13 === 0) await sleep(1);
      }
      const streams = [...open.values()].flat();
      await limit(Promise.all(streams.map(({ listening }) => listening)));
      for (const [channel, each] of open) if (each.length > 0) await pool.notify(channel, `${round}`);
      for (const stream of streams) assert.deepEqual(await payloads(stream, 1), [`${round}`]);
      for (const stream of streams) await stream.return();
    }
  });
});

test("on a connection it goes on beside transactions, streams and COPY", async () => {
  await withPool((pool) =>
    withConnection(async (conn) => {
      const channel = uniqueName("c");
      const stream = conn.listen(channel);
      await stream.listening;
      await pool.notify(channel, "idle");
      await conn.transaction(async (tx) => {
        await tx.sql`select 1`;
        await pool.notify(channel, "in a transaction");
        await tx.sql`select 2`;
      });
      for await (
        const { i } of conn.sql<{ i: number }>`select generate_series(1, 30) i`.stream({ batch: 10 })
      ) {
        if (i === 5) await pool.notify(channel, "in a stream");
      }
      await conn.exec("create temp table t (a int)");
      await pool.notify(channel, "in a COPY");
      await conn.copyRows("t", ["a"], [[1]]);
      // Listening begun in a transaction of somebody else waits for its end.
      const late = uniqueName("late");
      let listening: NotificationStream | undefined;
      await conn.transaction(async (tx) => {
        listening = conn.listen(late);
        await tx.sql`select 1`;
      });
      await limit(listening!.listening);
      await pool.notify(late, "late");
      assert.deepEqual(await payloads(listening!, 1), ["late"]);
      assert.deepEqual(await payloads(stream, 4), ["idle", "in a transaction", "in a stream", "in a COPY"]);
    })
  );
});

/** How a block begins, and what ends it, whatever that does to a LISTEN inside. */
const BLOCKS: readonly [string, ...string[]][] = [
  ["begin", "commit"],
  ["begin", "rollback"],
  ["begin", "select 1/0", "commit"],
  ["begin; savepoint s", "rollback to s", "commit"],
  ["begin", "rollback and chain", "rollback"],
  ["begin", "insert into pairs values (1), (1)", "commit"], // which fails
];

for (const [begin, ...ends] of BLOCKS) {
  test(`listening that begins inside a block goes on behind it: ${ends.join("; ")}`, async () => {
    const body = async (conn: Connection) => {
      await conn.exec("create temp table pairs (a int unique deferrable initially deferred)");
      for (const wait of [true, false]) {
        const channels = [uniqueName("a"), uniqueName("b")];
        const work: Promise<unknown>[] = [];
        const run = async (text: string) => {
          work.push(conn.exec(text).catch(() => {}));
          if (wait) await limit(work.at(-1)!);
        };
        await run(begin);
        const streams = channels.map((channel) => conn.listen(channel));
        if (wait) await limit(Promise.all(streams.map(({ listening }) => listening)));
        for (const end of ends) await run(end);
        await limit(Promise.all([...work, ...streams.map(({ listening }) => listening)]));
        assert.equal(conn.transactionStatus, "idle");
        // One more listener is told when the server listens again.
        streams.push(conn.listen(channels[0]!));
        await limit(streams[2]!.listening);
        await ask(`select pg_notify('${channels[0]}', 'arrives')`);
        // Behind LISTEN, on the same connection.
        await conn.notify(channels[1]!, "arrives");
        for (const stream of streams) assert.deepEqual(await payloads(stream, 1), ["arrives"]);
        for (const stream of streams) await stream.return();
      }
      assert.deepEqual(await conn.sql`select pg_listening_channels()`, []);
    };
    await withConnection(body);
    await withPool(async (pool) => {
      await using session = await pool.acquire();
      await body(session);
    });
  });
}

test("what a query of one's own does to LISTEN is made good", async () => {
  await withConnection(async (conn) => {
    const [a, b] = [uniqueName("a"), uniqueName("b")];
    const streams = [conn.listen(a), conn.listen(b)];
    await limit(Promise.all(streams.map(({ listening }) => listening)));
    const texts = [["unlisten *"], [`unlisten ${a}`], ["discard all"], ["begin", "unlisten *", "commit"]];
    for (const run of [(text: string) => conn.exec(text), (text: string) => conn.query(text)]) {
      for (const script of texts) {
        for (const text of script) await run(text);
        for (const channel of [a, b]) await conn.notify(channel, script[0]);
        for (const stream of streams) assert.deepEqual(await payloads(stream, 1), [script[0]]);
      }
    }
    await conn.exec("begin; unlisten *; commit");
    for (const channel of [a, b]) await conn.notify(channel, "script");
    for (const stream of streams) assert.deepEqual(await payloads(stream, 1), ["script"]);
    await streams[0]!.return();
    assert.deepEqual(await conn.sql`select pg_listening_channels() c`, [{ c: b }]);
  });
});

test("closing a pool, a connection and a session ends listening", async () => {
  const channel = uniqueName("c");
  const pool = createPool(testUrl(), { max: 2 });
  const session = await limit(pool.acquire());
  const streams = [pool.listen(channel), session.listen(channel), pool.listen(`${channel}_2`)];
  const subscription = await limit(pool.listen(channel, () => {}));
  await Promise.all(streams.map(({ listening }) => limit(listening)));
  const waiting = streams.map((stream) => stream.next());
  await session.close();
  assert.deepEqual(await limit(waiting[1]!), { done: true, value: undefined });
  const opening = pool.listen(`${channel}_3`);
  await limit(pool.close());
  for (const each of waiting) assert.deepEqual(await limit(each), { done: true, value: undefined });
  assert.equal(await limit(subscription.ended), undefined);
  await limit(opening.listening.catch(() => {}));
  assert.deepEqual(await limit(opening.next()), { done: true, value: undefined });
  const late = pool.listen(channel);
  assert.equal((await rejectionOf(late.listening)).message, "Pool is closed");
  assert.equal((await rejectionOf(late.next())).message, "Pool is closed");
});

test("a connection that is given back listens no more", async () => {
  await withPool(async (pool) => {
    const channel = uniqueName("c");
    for (let i = 0; i < 5; i++) {
      await using session = await pool.acquire();
      await limit(session.listen(channel).listening);
    }
    await using session = await pool.acquire();
    assert.deepEqual(await session.sql`select pg_listening_channels()`, []);
  });
});

test("a channel that the server refuses is refused alone", async () => {
  const database = uniqueName("latin1");
  await ask(`create database ${database} encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0`);
  const pool = createPool(testUrl({ database }), { max: 2 });
  try {
    const session = await limit(pool.acquire());
    for (const on of [pool, session]) {
      const streams = ["good", "日本", "café"].map((name) => on.listen(name));
      await limit(Promise.all([streams[0]!.listening, streams[2]!.listening]));
      assert.equal((await rejectionOf(streams[1]!.listening)).code, "22P05");
      assert.equal((await rejectionOf(on.listen("日本", () => {}))).code, "22P05");
      for (const name of ["good", "café"]) await pool.notify(name, "1");
      for (const i of [0, 2]) assert.deepEqual(await payloads(streams[i]!, 1), ["1"]);
      for (const i of [0, 2]) await streams[i]!.return();
      // Alone it is refused as well, and leaves nothing behind.
      assert.equal((await rejectionOf(on.listen("日本", () => {}))).code, "22P05");
    }
    await limit(session.close());
  } finally {
    await limit(pool.close({ timeout: 0 }));
    await ask(`drop database ${database} with (force)`);
  }
});

test("the first attempt to connect fails as connecting does", async () => {
  const pool = createPool("postgres://nobody@127.0.0.1:1/none", { connectTimeout: 2_000 });
  const stream = pool.listen("c");
  const error = await rejectionOf(stream.next());
  assert.equal(error.name, "ConnectionError");
  assert.equal((await rejectionOf(pool.listen("c", () => {}))).name, "ConnectionError");
  await limit(pool.close());
});

leavesNoSession();
