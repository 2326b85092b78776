/** How a session ends: by close(), by the server, by a broken line; everything settles. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { connect, type Connection, ConnectionError, type PostgresError } from "../../mod.ts";
import { startProxy } from "../_support/proxy.ts";
import {
  ask,
  leavesNoSession,
  limit,
  socketDirectory,
  testTarget,
  testUrl,
  until,
} from "../_support/server.ts";

const open = (): Promise<Connection> => limit(connect(testUrl()));

async function isGone(processId: number): Promise<boolean> {
  return (await ask(`select 1 from pg_stat_activity where pid = ${processId}`)).length === 0;
}

/** Runs and tells how long it took. */
async function timed(work: Promise<unknown>): Promise<number> {
  const began = performance.now();
  await limit(work, 10_000, "close");
  return performance.now() - began;
}

async function rejection(work: PromiseLike<unknown>): Promise<unknown> {
  return await limit(
    Promise.resolve(work.then((value) => assert.fail(`resolved with ${value}`), (error) => error)),
  );
}

function assertClosed(error: unknown): void {
  assert.ok(error instanceof ConnectionError, String(error));
  assert.equal(error.code, "CONNECTION_CLOSED");
}

test("close() ends the session on the server, twice is once, and later queries reject at once", async () => {
  const connection = await open();
  const pid = connection.processId!;
  assert.equal(connection.closed, false);
  assert.ok(await timed(Promise.all([connection.close(), connection.close()])) < 2_000);
  assert.ok(await timed(connection.close()) < 500);
  assert.equal(connection.closed, true);
  await until(() => isGone(pid), 2_000, "the end of the session");
  for (const work of [connection.query("select 1"), connection.exec("select 1"), connection.sql`select 1`]) {
    const error = await rejection(work);
    assertClosed(error);
    assert.equal((error as ConnectionError).sent, false);
  }
});

test("close() in the turn of queries lets them finish", async () => {
  const connection = await open();
  const queries = [
    connection.query("select pg_sleep(0.1), 1 as n"),
    connection.query("select $1::int4[] as n", [[2]]),
    connection.query("select 3 as n"),
  ];
  const closing = connection.close();
  const late = rejection(connection.query("select 4"));
  const rows = await limit(Promise.all(queries));
  assert.deepEqual(rows.map(({ rows }) => rows[0]?.["n"]), [1, [2], 3]);
  await limit(closing);
  assertClosed(await late);
});

test("close() waits no longer than its timeout, and everything settles", async () => {
  for (const timeout of [0, 100]) {
    const connection = await open();
    const queries = [
      connection.query("select pg_sleep(30)"),
      connection.query("select 2"),
      connection.exec("select 3"),
    ];
    const errors = Promise.all(queries.map(rejection));
    const pid = connection.processId;
    assert.ok(await timed(connection.close({ timeout })) < 2_000);
    for (const error of await limit(errors)) assertClosed(error);
    await ask(`select pg_terminate_backend(${pid})`);
  }
});

test("await using closes, also when its block throws", async () => {
  let kept: Connection | undefined;
  await assert.rejects(async () => {
    await using connection = await open();
    kept = connection;
    throw new Error("out of here");
  }, /out of here/);
  assert.equal(kept?.closed, true);
});

test("a terminated backend with queries queued: all settle, later ones reject at once", async () => {
  const connection = await open();
  const queries = [
    connection.query("select pg_sleep(30)"),
    ...[1, 2, 3, 4].map((n) => connection.query(`select ${n}`)),
  ];
  const settled = Promise.allSettled(queries);
  await until(async () =>
    (await ask(`select state from pg_stat_activity where pid = ${connection.processId}`))[0]?.[0] === "active"
  );
  await ask(`select pg_terminate_backend(${connection.processId})`);
  for (const outcome of await limit(settled, 5_000, "the queries")) {
    assert.ok(outcome.status === "rejected" && outcome.reason instanceof ConnectionError);
    assert.equal(outcome.reason.sent, "unknown");
    assert.match(outcome.reason.message, /terminating connection/);
    assert.equal((outcome.reason.cause as PostgresError).code, "57P01");
  }
  await until(() => connection.closed, 2_000, "the end of the connection");
  const began = performance.now();
  assert.ok(await rejection(connection.query("select 1")) instanceof ConnectionError);
  assert.ok(performance.now() - began < 500);
  assert.ok(await timed(connection.close()) < 2_000);
});

test("a backend that is terminated while idle ends the connection without an unhandled error", async () => {
  const connection = await open();
  await ask(`select pg_terminate_backend(${connection.processId})`);
  await until(() => connection.closed, 5_000, "the end of the connection");
  const error = await rejection(connection.sql`select 1`);
  assert.ok(error instanceof ConnectionError, String(error));
  assert.equal(error.sent, false);
  assert.ok(await timed(connection.close()) < 2_000);
});

for (const how of ["end", "reset"] as const) {
  test(`a line that breaks by ${how} inside an answer settles everything`, async () => {
    const { host, port } = testTarget();
    await using proxy = Object.assign(await startProxy({ target: { host, port } }), {
      async [Symbol.asyncDispose]() {
        await proxy.close();
      },
    });
    const url = new URL(testUrl());
    url.port = String(proxy.port);
    const connection = await limit(connect(url.href));
    await limit(connection.query("select 1"));
    const queries = [
      connection.query("select repeat('x', 1000000) as x"),
      connection.query("select 2"),
      connection.sql`select ${[1]}::int4[]`,
    ];
    const settled = Promise.allSettled(queries.map((query) => Promise.resolve(query)));
    proxy.cut({ direction: "backend", after: 200_000, how });
    for (const outcome of await limit(settled, 5_000, "the queries")) {
      assert.ok(
        outcome.status === "rejected" && outcome.reason instanceof ConnectionError,
        JSON.stringify(outcome),
      );
      assert.equal(outcome.reason.code, "CONNECTION_LOST");
    }
    assert.equal(connection.closed, true);
    assert.ok(await timed(connection.close()) < 2_000);
  });
}

test("queries in chunks of any size through a proxy, over SCRAM or whatever the server asks", async () => {
  const { host, port } = testTarget();
  const one = (bytes: Uint8Array) => Array.from(bytes, (byte) => Uint8Array.of(byte));
  const proxy = await startProxy({ target: { host, port }, backend: one, frontend: one, turns: 0 });
  const url = new URL(testUrl());
  url.port = String(proxy.port);
  const connection = await limit(connect(url.href));
  const values = ["é€😀", "x".repeat(500)];
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(await limit(connection.sql`select ${values}::text[] as v, ${i}::int4 as i`), [{
      v: values,
      i,
    }]);
  }
  await assert.rejects(limit(connection.query("selec")), { code: "42601" });
  await limit(connection.close());
  await limit(proxy.close());
});

test("a session over the Unix socket", { skip: socketDirectory() === undefined }, async () => {
  const { port, user, password } = testTarget();
  const options = {
    user,
    password,
    port,
    applicationName: new URL(testUrl()).searchParams.get("application_name")!,
  };
  await using connection = await limit(
    connect({ host: socketDirectory()!, database: "postgres", ...options }),
  );
  assert.equal(await limit(connection.sql`select inet_client_addr() is null`.scalar()), true);
});

leavesNoSession();
