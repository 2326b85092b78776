/** Ends at any moment: every promise settles, soon, and says what is known. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, type Connection } from "../../mod.ts";
import { seededRandom, startProxy } from "../_support/proxy.ts";
import { ask, leavesNoSession, limit, testTarget, testUrl, until } from "../_support/server.ts";
import { type Failure, rejectionOf, sleep } from "../_support/session.ts";

/** Work of every kind, started at once. */
function startAll(conn: Connection): Promise<unknown>[] {
  const controller = new AbortController();
  setTimeout(() => controller.abort(new Error("mine")), 3);
  const stream = async () => {
    for await (const _ of conn.sql`select generate_series(1, 50)`.stream({ batch: 5 }));
  };
  const started: Promise<unknown>[] = [
    conn.query("select $1::int8", [1]),
    conn.query("select $1::int4[]", [[1, 2]]),
    conn.exec("select 1; select pg_sleep(0.002)"),
    conn.batch([conn.sql`select 1`, conn.sql`select ${[1]}::int4[]`, conn.sql`select 2`]),
    conn.batch([conn.sql`select 1`, conn.sql`select 1/0`], { sync: "each" }),
    conn.transaction(async (tx) => {
      await Promise.all([tx.sql`select 1`, tx.sql`select ${[1]}::int4[]`]);
      await tx.transaction((nested) => nested.sql`select pg_sleep(0.001)`);
      for await (const _ of tx.sql`select generate_series(1, 20)`.stream({ batch: 5 }));
    }),
    stream(),
    conn.query("select pg_sleep(0.01)", [], { signal: controller.signal }),
    conn.query("select 1", [], { timeout: 5 }),
    conn.query("select 1", [], { pipeline: false }),
    conn.prepare("select 1").then((statement) => statement.query().then(() => statement.close())),
    conn.sql`select 1`.describe(),
    conn.query("select $1::int8", [2]),
  ];
  // They are looked at later.
  for (const each of started) each.catch(() => {});
  return started;
}

const KNOWN = /^(ConnectionError|PipelineAbortedError|TimeoutError|PostgresError|PipegresError)$/;

async function settlesSoon(promises: readonly Promise<unknown>[], what: string): Promise<void> {
  const settled = await limit(Promise.allSettled(promises), 3_000, what);
  for (const each of settled) {
    if (each.status === "fulfilled") continue;
    const { name, message } = each.reason as Failure;
    assert.ok(KNOWN.test(name) || message === "mine", `${what}: ${name}: ${message}`);
  }
}

test("a connection that is lost at any moment settles everything", async () => {
  const seed = Date.now() % 1_000_000_000;
  console.log(`seed ${seed}`);
  const random = seededRandom(seed);
  const proxy = await startProxy({ target: testTarget() });
  try {
    const url = new URL(testUrl());
    url.port = String(proxy.port);
    for (let round = 0; round < 60; round++) {
      proxy.cut(undefined);
      const conn = await limit(connect(url));
      const started = startAll(conn);
      // Counted from the connection's first byte on: some rounds end inside the work, some behind it.
      const direction = round % 2 === 0 ? "backend" : "frontend";
      const how = round % 4 < 2 ? "end" : "reset";
      proxy.cut({ direction, after: 300 + Math.floor(random() * 3_500), how });
      await settlesSoon(started, `round ${round}, ${direction} ${how}`);
      const lost = conn.closed;
      const next = await limit(Promise.allSettled(startAll(conn)), 3_000, `round ${round}, afterwards`);
      // The batch of which each settles for itself resolves with its failures.
      if (lost) assert.equal(next.filter(({ status }) => status === "fulfilled").length, 1);
      await limit(conn.close({ timeout: 0 }), 1_000);
    }
  } finally {
    await proxy.close();
  }
});

test("a backend that is terminated at any moment settles everything", async () => {
  for (let round = 0; round < 15; round++) {
    const conn = await limit(connect(testUrl()));
    const started = startAll(conn);
    await sleep(round % 5);
    await ask(`select pg_terminate_backend(${conn.processId})`);
    await settlesSoon(started, `round ${round}`);
    await until(() => conn.closed);
    const failure = await rejectionOf(conn.query("select 1"), 1_000);
    assert.equal(failure.name, "ConnectionError");
    assert.equal(failure.sent, false);
    await limit(conn.close(), 1_000);
  }
});

test("a close at any moment settles everything", async () => {
  for (const timeout of [0, 5, 3_000]) {
    for (let round = 0; round < 8; round++) {
      const conn = await limit(connect(testUrl()));
      const started = startAll(conn);
      if (round > 0) await sleep(round);
      const closed = conn.close({ timeout });
      await settlesSoon(started, `timeout ${timeout}, round ${round}`);
      await limit(closed, 4_000);
      assert.equal((await rejectionOf(conn.query("select 1"), 1_000)).name, "ConnectionError");
      assert.equal(
        (await rejectionOf(conn.begin().then((tx) => tx.query("select 1")), 1_000)).name,
        "ConnectionError",
      );
    }
  }
});

test("a close that waits lets queries finish, and nobody begins anew", async () => {
  const conn = await limit(connect(testUrl()));
  const query = conn.query("select pg_sleep(0.1), 7 as n");
  const closed = conn.close();
  const late = [
    rejectionOf(conn.query("select 1")),
    rejectionOf(conn.begin().then((tx) => tx.query("select 1"))),
    rejectionOf(conn.transaction((tx) => tx.query("select 1"))),
    rejectionOf(conn.sql`select 1`.stream().next()),
  ];
  for (const failure of await Promise.all(late)) assert.equal(failure.name, "ConnectionError");
  assert.equal((await query).rows[0]!["n"], 7);
  await limit(closed);
});

test("a close does not wait for those who have given up", async () => {
  const conn = await limit(connect(testUrl()));
  const tx = await conn.begin();
  await tx.query("select 1");
  const controller = new AbortController();
  const waiting = rejectionOf(conn.query("select 1", [], { signal: controller.signal }));
  const began = performance.now();
  const closed = conn.close({ timeout: 4_000 });
  controller.abort(new Error("mine"));
  assert.equal((await waiting).message, "mine");
  await limit(closed, 3_000);
  assert.ok(performance.now() - began < 1_000);
  assert.equal((await rejectionOf(tx.query("select 1"), 1_000)).name, "ConnectionError");
});

test("a close ends a stream that nobody reads on", async () => {
  const conn = await limit(connect(testUrl()));
  const rows = conn.sql`select generate_series(1, 100000)`.stream({ batch: 2 });
  await rows.next();
  const waiting = rejectionOf(conn.query("select 1"));
  await limit(conn.close({ timeout: 50 }), 2_000);
  assert.equal((await waiting).name, "ConnectionError");
  const rest = async () => {
    while (!(await rows.next()).done);
  };
  assert.equal((await rejectionOf(rest())).name, "ConnectionError");
});

leavesNoSession();
