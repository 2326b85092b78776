/** close() of a pool in every state: in bounded time, once, and with everything settled. */

import assert from "node:assert/strict";
import { createServer, type Server, type Socket } from "node:net";
import { test } from "node:test";
import { ConfigurationError, ConnectionError, createPool, type Pool, PoolError } from "../../mod.ts";
import { selectTransport } from "../../src/transport/select.ts";
import type { TransportFactory } from "../../src/transport/transport.ts";
import { counts, pidOf, terminate, withPool } from "../_support/pools.ts";
import { startProxy } from "../_support/proxy.ts";
import { ask, leavesNoSession, limit, testTarget, testUrl, until } from "../_support/server.ts";
import { rejectionOf, sleep } from "../_support/session.ts";

const NOTHING = { total: 0, idle: 0, busy: 0, opening: 0, waiting: 0 };

/** Closes twice, in bounded time; nothing is left, and nothing works afterwards. */
async function closes(pool: Pool, timeout?: number, within = 2_000): Promise<void> {
  const options = timeout === undefined ? {} : { timeout };
  const began = performance.now();
  await limit(Promise.all([pool.close(options), pool.close(options)]), 10_000, "close");
  const took = performance.now() - began;
  assert.ok(took < within, `close took ${took} ms`);
  assert.deepEqual(counts(pool), NOTHING);
  for (
    const work of [
      pool.query("select 1"),
      pool.exec("select 1"),
      pool.acquire(),
      pool.transaction(() => 1),
      pool.listen("closed", () => {}),
      pool.listen("closed").next(),
    ]
  ) {
    const error = await rejectionOf(work, 1_000);
    assert.ok(error instanceof PoolError);
    assert.equal(error.message, "Pool is closed");
  }
  await limit(pool.close(), 1_000, "close once more");
}

const proxied = (proxy: { host: string; port: number }): string => {
  const url = new URL(testUrl());
  url.host = `${proxy.host}:${proxy.port}`;
  return url.href;
};

test("close() of a pool that was never used, and in the middle of its first connect", async () => {
  await closes(createPool(testUrl()));
  const pool = createPool(testUrl());
  const query = pool.query("select 1 as a");
  await closes(pool, 5_000, 5_000);
  assert.deepEqual((await limit(query)).rows, [{ a: 1 }], "what was issued before has its answer");
});

test("close() after a failed connect, and while connecting is tried again", async () => {
  const pool = createPool("postgres://x@127.0.0.1:1/x", { acquireTimeout: 10_000 });
  const error = rejectionOf(pool.query("select 1"));
  await sleep(100);
  await closes(pool, 100);
  assert.ok(await error instanceof PoolError);
});

test("close() while servers say nothing at all: no attempt outlives it", async () => {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  for (const timeout of [0, 100]) {
    const pool = createPool(`postgres://x@127.0.0.1:${port}/x?sslmode=disable`, { max: 3 });
    const errors = [1, 2, 3, 4].map(() => rejectionOf(pool.query("select 1")));
    await until(() => sockets.size === 3);
    await closes(pool, timeout);
    for (const error of errors) assert.ok(await error instanceof PoolError);
    await until(() => sockets.size === 0, 2_000, "the end of every socket");
  }
  await new Promise((resolve) => server.close(resolve));
});

test("close() lets running and waiting work finish, also what still needs a connection", async () => {
  const pool = createPool(testUrl(), { max: 2 });
  const works = [
    ...Array.from({ length: 10 }, (_, i) => pool.query("select pg_sleep(0.02), $1::int4 as i", [i])),
    ...Array.from(
      { length: 4 },
      (_, i) => pool.transaction((tx) => tx.query("select $1::int4 as i", [10 + i])),
    ),
  ];
  const closing = pool.close();
  assert.equal((await rejectionOf(pool.query("select 1"))).message, "Pool is closed");
  const results = await limit(Promise.all(works));
  assert.deepEqual(results.map(({ rows }) => rows[0]!["i"]), results.map((_, i) => i));
  await limit(closing, 2_000);
  assert.deepEqual(counts(pool), NOTHING);
});

test("close() waits for a transaction, which may go on; the pool's own methods reject", async () => {
  const pool = createPool(testUrl(), { max: 2 });
  const tx = await pool.begin();
  await tx.query("select 1");
  const closing = pool.close();
  await sleep(30);
  assert.deepEqual((await tx.query("select 2 as a")).rows, [{ a: 2 }]);
  assert.equal((await rejectionOf(pool.query("select 1"))).message, "Pool is closed");
  await tx.commit();
  await limit(closing, 1_000);
});

test("close({ timeout }) gives up what is not finished by then: everything rejects", async () => {
  for (const timeout of [0, 100]) {
    const pool = createPool(testUrl(), { max: 2 });
    const pid = await pidOf(pool);
    const own = await pool.acquire();
    const works = [
      own.query("select pg_sleep(2)"),
      pool.query("select pg_sleep(2)"),
      pool.query("select 1"),
      pool.acquire(),
      pool.sql`select pg_sleep(2)`.stream().next(),
    ].map((work) => rejectionOf(work));
    await until(async () =>
      (await ask(`select 1 from pg_stat_activity where pid = ${pid} and state = 'active'`)).length > 0
    );
    await closes(pool, timeout);
    for (const error of await limit(Promise.all(works))) {
      assert.ok(error instanceof ConnectionError || error instanceof PoolError, String(error));
      assert.match(error.message, /closed/);
    }
    await own.close();
  }
});

test("a later close() with less patience ends an earlier one", async () => {
  const pool = createPool(testUrl());
  const error = rejectionOf(pool.query("select pg_sleep(3)"));
  await until(() => pool.stats().busy === 1);
  const patient = pool.close({ timeout: 60_000 });
  await sleep(50);
  const began = performance.now();
  await limit(Promise.all([pool.close({ timeout: 0 }), patient]), 2_000);
  assert.ok(performance.now() - began < 1_000);
  assert.ok(await error instanceof ConnectionError);
});

test("close() with a timeout that is no number from 0 on rejects, and the pool works on", async () => {
  await withPool(async (pool) => {
    const listening = pool.listen("works_on");
    await limit(listening.listening, 5_000, "LISTEN");
    for (const timeout of [NaN, -1]) {
      const error = await rejectionOf(pool.close({ timeout }));
      assert.ok(error instanceof ConfigurationError);
      assert.equal(error.message, `Cannot use timeout ${timeout}: wanted a number from 0 on`);
    }
    await pool.notify("works_on");
    assert.equal((await limit(listening.next())).value?.type, "notify");
  });
});

test("close() does not wait for who leaves the line", async () => {
  const pool = createPool("postgres://x@127.0.0.1:1/x", { acquireTimeout: 0 });
  const controller = new AbortController();
  const waiting = rejectionOf(pool.acquire({ signal: controller.signal }));
  const closing = pool.close({ timeout: 20_000 });
  await sleep(50);
  controller.abort(new Error("no more"));
  await waiting;
  await limit(closing, 1_000);
});

test("close() after backends were killed: idle, in a query, in a transaction, in a stream", async () => {
  const pool = createPool(testUrl(), { max: 4 });
  const tx = await pool.begin();
  const own = await pool.acquire();
  const stream = pool.sql`select generate_series(1, 1000000) as i`.stream();
  await stream.next();
  const pids = [await pidOf(pool), await pidOf(tx), own.processId!];
  const running = rejectionOf(own.query("select pg_sleep(20)"));
  await terminate(pids);
  assert.ok(await running instanceof ConnectionError);
  await closes(pool, 500);
  await rejectionOf(tx.query("select 1"));
  await rejectionOf((async () => {
    for await (const _ of stream);
  })());
});

test("close() with a proxy that resets, ends or holds the line", async () => {
  for (const how of ["reset", "end", "hold"] as const) {
    const proxy = await startProxy({ target: testTarget() });
    const pool = createPool(proxied(proxy), { max: 3 });
    await Promise.all([1, 2, 3].map(() => pool.query("select pg_sleep(0.02)")));
    const errors = [1, 2, 3].map(() => rejectionOf(pool.query("select pg_sleep(0.3)")));
    await sleep(30);
    if (how === "hold") proxy.hold("backend");
    else proxy.cut({ direction: "backend", after: 0, how });
    await closes(pool, 200);
    for (const error of errors) assert.ok(await error instanceof ConnectionError);
    await limit(proxy.close(), 5_000);
  }
});

test("close() with an open cursor, an open COPY and a listener", async () => {
  const pool = createPool(testUrl(), { max: 4 });
  const stream = pool.sql`select generate_series(1, 1000000) as i`.stream({ batch: 10 });
  await stream.next();
  await ask("create table if not exists pool_closing (a int)");
  const copy = pool.copyFrom("copy pool_closing from stdin").getWriter();
  const written = copy.write("1\n").then(() => copy.closed);
  const listening = pool.listen("closing");
  await limit(listening.listening, 5_000);
  await sleep(30);
  const errors = [rejectionOf(written)];
  await closes(pool, 100);
  await Promise.all(errors);
  assert.deepEqual(await limit(listening.next(), 1_000), { done: true, value: undefined });
  await rejectionOf((async () => {
    for await (const _ of stream);
  })());
  assert.deepEqual(await ask("select * from pool_closing"), []);
  await ask("drop table pool_closing");
});

test("await using closes the pool, also when its block throws", async () => {
  let kept: Pool | undefined;
  await assert.rejects(async () => {
    await using pool = createPool(testUrl());
    kept = pool;
    await pool.query("select 1");
    throw new Error("out of here");
  }, /out of here/);
  assert.deepEqual(counts(kept!), NOTHING);
});

/** The runtime's own transport, which calls `onReady` when a server has first said that it is ready. */
async function announcing(onReady: () => void): Promise<TransportFactory> {
  const factory = await selectTransport();
  return {
    ...factory,
    async connect(target) {
      const transport = await factory.connect(target);
      const start = transport.start.bind(transport);
      transport.start = (handler) =>
        start({
          onBytes(chunk) {
            const isReady = chunk.at(-6) === 0x5a /* 'Z' */;
            handler.onBytes(chunk);
            if (isReady) onReady();
          },
          onEnd: (cause) => handler.onEnd(cause),
        });
      return transport;
    },
  };
}

test("close() at any step of a connection that has just been opened leaves it to nobody", async () => {
  for (let steps = 0; steps < 40; steps++) {
    let closed: Promise<void> | undefined;
    const transport = await announcing(async () => {
      for (let i = 0; i < steps; i++) await undefined;
      closed ??= pool.close({ timeout: 0 });
    });
    const pool: Pool = createPool(testUrl(), { transport, max: 1 });
    const query = pool.query("select 1").catch((error) => error);
    await limit(until(() => closed !== undefined, 5_000, "ready"), 6_000);
    await limit(closed!, 5_000, `close after ${steps} steps`);
    assert.deepEqual(counts(pool), NOTHING, `closed ${steps} steps after the server was ready`);
    await limit(query, 1_000, "the query");
  }
});

leavesNoSession();
