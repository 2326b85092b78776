/** Giving up: signals and time limits at every moment, and neighbours that must not notice. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, type Connection } from "../../mod.ts";
import {
  authenticationOk,
  backendKeyData,
  bindComplete,
  commandComplete,
  dataRow,
  parameterDescription,
  parameterStatus,
  parseComplete,
  readyForQuery,
  rowDescription,
} from "../_support/backend_writer.ts";
import { seededRandom, startProxy } from "../_support/proxy.ts";
import { type ScriptedSession, startScriptedBackend } from "../_support/scripted_backend.ts";
import { ask, leavesNoSession, limit, testTarget, testUrl, uniqueName, until } from "../_support/server.ts";
import { rejectionOf, sleep, withConnection } from "../_support/session.ts";

const mine = new Error("mine");

async function throughProxy(
  body: (conn: Connection, proxy: Awaited<ReturnType<typeof startProxy>>) => Promise<void>,
): Promise<void> {
  const proxy = await startProxy({ target: testTarget(), record: true });
  const url = new URL(testUrl());
  url.port = String(proxy.port);
  try {
    await withConnection((conn) => body(conn, proxy), { url: url.href });
  } finally {
    await proxy.close();
  }
}

async function answers(conn: Connection, milliseconds = 2_000): Promise<void> {
  assert.deepEqual(await limit(conn.query("select 42 as a"), milliseconds).then(({ rows }) => rows), [{
    a: 42,
  }]);
}

test("1,000 aborts at random moments hit no neighbour", async () => {
  const seed = Date.now() % 1_000_000_000;
  console.log(`seed ${seed}`);
  const random = seededRandom(seed);
  await withConnection(async (conn) => {
    let aborted = 0;
    let answered = 0;
    const neighbours: Promise<void>[] = [];
    const issueNeighbours = (round: number) => {
      for (let i = Math.floor(random() * 3); i >= 0; i--) {
        const n = round * 10 + i;
        const text = i === 1 ? "select $1::int8 as n, pg_sleep(0.0005)" : "select $1::int8 as n";
        neighbours.push(conn.query(text, [n]).then(({ rows }) => assert.equal(rows[0]!["n"], BigInt(n))));
      }
    };
    for (let round = 0; round < 1_000; round++) {
      const controller = new AbortController();
      issueNeighbours(round);
      const victim = conn.query("select pg_sleep($1), $2::int8 as n", [random() * 0.002, round], {
        signal: controller.signal,
      });
      const wait = random() * 3;
      if (wait < 0.3) controller.abort(mine);
      else if (wait < 0.6) queueMicrotask(() => controller.abort(mine));
      else setTimeout(() => controller.abort(mine), wait);
      issueNeighbours(round);
      const outcome = await limit(victim, 10_000).then(({ rows }) => rows[0]!["n"], (error) => error);
      if (outcome === mine) aborted++;
      else if (outcome === BigInt(round)) answered++;
      else throw outcome;
      // Neighbours of several rounds are on their way at once.
      if (round % 7 === 0) await limit(Promise.all(neighbours.splice(0)), 10_000, "neighbours");
    }
    await limit(Promise.all(neighbours), 10_000, "neighbours");
    assert.equal(conn.closed, false);
    assert.ok(aborted > 100 && aborted + answered === 1_000, `${aborted} aborted, ${answered} answered`);
  }, { within: 120_000 });
});

test("an aborted query rejects at once with the reason, and the connection is free soon", async () => {
  await withConnection(async (conn) => {
    for (let round = 0; round < 20; round++) {
      const controller = new AbortController();
      const query = rejectionOf(conn.query("select pg_sleep(30)", [], { signal: controller.signal }));
      if (round > 0) await sleep(round);
      const began = performance.now();
      controller.abort(mine);
      assert.equal(await query, mine);
      assert.ok(performance.now() - began < 100);
      await answers(conn);
    }
  });
});

test("a value that waits for its description is given up without being executed", async () => {
  await withConnection(async (conn) => {
    const table = uniqueName("held");
    await conn.exec(`create temp table ${table} (a int[])`);
    for (let round = 0; round < 30; round++) {
      const controller = new AbortController();
      const text = `insert into ${table} select $1 from pg_sleep(10) -- ${round}`;
      const query = rejectionOf(conn.query(text, [[round]], { signal: controller.signal }));
      if (round % 3 === 0) controller.abort(mine);
      else if (round % 3 === 1) queueMicrotask(() => controller.abort(mine));
      else setTimeout(() => controller.abort(mine), 1);
      assert.equal(await query, mine);
      await answers(conn);
    }
    assert.deepEqual((await conn.query(`select * from ${table}`)).rows, []);
  });
});

test("aborted before it is sent: nothing is sent; after it is answered: no cancel", async () => {
  await throughProxy(async (conn, proxy) => {
    const sent = () => proxy.recorded.length;
    const controller = new AbortController();
    controller.abort(mine);
    const before = sent();
    const options = { signal: controller.signal };
    for (
      const query of [
        () => conn.query("select 1", [], options),
        () => conn.exec("select 1", options),
        () => conn.sql`select 1`.with(options),
        () => conn.sql`select 1`.with(options).stream().next(),
        () => conn.sql`select 1`.with(options).describe(),
      ]
    ) assert.equal(await rejectionOf(query()), mine);
    assert.equal(sent(), before);
    const late = new AbortController();
    await conn.query("select 1", [], { signal: late.signal, timeout: 30 });
    late.abort(mine);
    await sleep(60);
    await answers(conn);
    assert.equal(proxy.connections(), 1);
  });
});

test("a query that waits is taken out of the queue", async () => {
  await throughProxy(async (conn, proxy) => {
    const first = conn.query("select pg_sleep(0.15), 'first' as a", [], { pipeline: false });
    const controller = new AbortController();
    const waiting = ["second", "third"].map((text) =>
      rejectionOf(conn.query(`select '${text} secret'`, [], { signal: controller.signal }))
    );
    const last = conn.query("select 'last' as a");
    controller.abort(mine);
    assert.deepEqual(await Promise.all(waiting), [mine, mine]);
    assert.equal((await first).rows[0]!["a"], "first");
    assert.deepEqual((await last).rows, [{ a: "last" }]);
    const text = proxy.recorded.map(({ bytes }) => new TextDecoder().decode(bytes)).join("");
    assert.ok(!text.includes("secret"));
    assert.equal(proxy.connections(), 1);
    // The same in the line before a transaction, and inside one.
    const tx = await conn.begin();
    await tx.query("select 1");
    const again = new AbortController();
    const outside = rejectionOf(conn.query("select 1", [], { signal: again.signal }));
    const busy = tx.query("select pg_sleep(0.05)", [], { pipeline: false });
    const inside = rejectionOf(tx.query("select 1", [], { signal: again.signal }));
    again.abort(mine);
    assert.deepEqual([await outside, await inside], [mine, mine]);
    await busy;
    await tx.query("select 1");
    await tx.commit();
    await answers(conn);
  });
});

test("the second of three that are pipelined is given up: the others are fine", async () => {
  await withConnection(async (conn) => {
    for (let round = 0; round < 50; round++) {
      const controller = new AbortController();
      const first = conn.query("select pg_sleep(0.002), 'first' as a");
      const second = rejectionOf(conn.query("select pg_sleep(30)", [], { signal: controller.signal }));
      const third = conn.query("select 'third' as a");
      setTimeout(() => controller.abort(mine), round / 10);
      assert.equal(await second, mine);
      assert.equal((await limit(first, 2_000)).rows[0]!["a"], "first");
      assert.equal((await limit(third, 2_000)).rows[0]!["a"], "third");
    }
  });
});

test("time limits reject with a TimeoutError that names the query", async () => {
  await withConnection(async (conn) => {
    const began = performance.now();
    const failure = await rejectionOf(
      conn.sql`select pg_sleep(30)`.with({ timeout: 50, label: "naps.long" }),
    );
    assert.equal(failure.name, "TimeoutError");
    assert.match(failure.message, /"naps\.long".*50 ms/);
    assert.ok(performance.now() - began < 1_000);
    await answers(conn);
    const statement = await conn.prepare("select pg_sleep($1)");
    assert.equal((await rejectionOf(statement.query([30], { timeout: 30 }))).name, "TimeoutError");
    assert.equal((await rejectionOf(conn.exec("select pg_sleep(30)", { timeout: 30 }))).name, "TimeoutError");
    await answers(conn);
    for (const timeout of [0, Infinity, 2 ** 40, 10_000]) {
      await conn.query("select pg_sleep(0.01)", [], { timeout });
    }
    // A query that waits for another one is limited as well.
    const other = conn.query("select pg_sleep(0.2)", [], { pipeline: false });
    assert.equal((await rejectionOf(conn.query("select 1", [], { timeout: 20 }))).name, "TimeoutError");
    await other;
  });
});

test("in a transaction a cancelled query fails the block, a waiting one does not", async () => {
  await withConnection(async (conn) => {
    const failure = await rejectionOf(conn.transaction(async (tx) => {
      // So that the block is open, and the time is spent running.
      await tx.query("select 1");
      await rejectionOf(tx.sql`select pg_sleep(30)`.with({ timeout: 20 }));
      assert.equal((await rejectionOf(tx.query("select 1"))).code, "25P02");
    }));
    assert.equal(failure.cause?.name, "TimeoutError");
    // BEGIN travels alone before a query that may be given up.
    const own = await rejectionOf(
      conn.transaction((tx) => tx.sql`select pg_sleep(30)`.with({ timeout: 20 })),
    );
    assert.equal(own.name, "TimeoutError");
    assert.equal(own.rollbackError, undefined);
    await answers(conn);
    assert.equal(conn.transactionStatus, "idle");
  });
});

test("a session's queryTimeout ends what takes longer, and nothing else", async () => {
  await withConnection(async (conn) => {
    const [slow, ...quick] = await Promise.allSettled([
      conn.query("select pg_sleep(30)"),
      ...Array.from({ length: 5 }, (_, i) => conn.query("select $1::int8 as n", [i])),
    ]);
    assert.ok(slow.status === "rejected" && slow.reason.code === "57014");
    assert.ok(quick.every(({ status }) => status === "fulfilled"));
    await answers(conn);
  }, { queryTimeout: 100 });
});

test("a connection that dies while a cancel is under way settles everything", async () => {
  await withConnection(async (conn) => {
    const controller = new AbortController();
    const victim = rejectionOf(conn.query("select pg_sleep(30)", [], { signal: controller.signal }));
    const behind = limit(conn.query("select 1")).then(() => undefined, (error) => error);
    await until(async () =>
      (await ask(`select state from pg_stat_activity where pid = ${conn.processId}
      and query like '%pg_sleep(30)%' and state = 'active'`)).length === 1
    );
    controller.abort(mine);
    await ask(`select pg_terminate_backend(${conn.processId})`);
    assert.equal(await victim, mine);
    // Unless the cancel came first.
    assert.ok([undefined, "ConnectionError"].includes((await behind)?.name));
    await until(() => conn.closed);
  });
});

/** A backend that takes a first query and never answers it; cancels are treated by `onCancel`. */
function startDeafBackend(onCancel: (session: ScriptedSession) => Promise<void>, keyData: boolean) {
  return startScriptedBackend(async (session) => {
    const first = await session.receive();
    if (first?.type === "CancelRequest") return await onCancel(session);
    const key = keyData ? [backendKeyData(4711, new Uint8Array([1, 2, 3, 4]))] : [];
    session.send(authenticationOk, parameterStatus("client_encoding", "UTF8"), ...key, readyForQuery());
    await session.drain();
  });
}

for (
  const [name, onCancel, keyData] of [
    [
      "closes the cancel connection and goes on",
      (session: ScriptedSession) => Promise.resolve(session.end()),
      true,
    ],
    ["never answers the cancel", (session: ScriptedSession) => session.drain(), true],
    ["gives no key to cancel with", (session: ScriptedSession) => session.drain(), false],
  ] as const
) {
  test(`a server that ${name}: rejected at once, the connection given up in bounded time`, async () => {
    const backend = await startDeafBackend(onCancel, keyData);
    const conn = await limit(connect(backend.url));
    const began = performance.now();
    const query = rejectionOf(conn.query("select pg_sleep(600)", [], { timeout: 20 }));
    const behind = rejectionOf(conn.query("select 1"), 9_000);
    const stream = rejectionOf(conn.sql`select 2`.stream().next(), 9_000);
    assert.equal((await query).name, "TimeoutError");
    assert.ok(performance.now() - began < 500);
    for (const failure of [await behind, await stream]) {
      assert.equal(failure.name, "ConnectionError");
      assert.equal(failure.sent, false);
    }
    assert.ok(performance.now() - began < 8_000);
    assert.equal(conn.closed, true);
    await limit(conn.close());
    await backend.close();
  });
}

test("a cancel that is not confirmed in time cannot hit the next query: the connection is given up", async () => {
  const backend = await startScriptedBackend(async (session, index) => {
    if (index > 0) {
      await session.expect("CancelRequest");
      return await session.drain();
    }
    await session.establish();
    await session.expectTypes("Parse", "Describe", "Bind", "Execute", "Sync");
    await sleep(60);
    session.send(
      parseComplete,
      parameterDescription([]),
      rowDescription(["a"]),
      bindComplete,
      dataRow(["1"]),
    );
    session.send(commandComplete("SELECT 1"), readyForQuery());
    // Nothing may come before the end.
    await session.expectEnd();
  });
  const conn = await limit(connect(backend.url));
  assert.equal((await rejectionOf(conn.query("select 1 as a", [], { timeout: 20 }))).name, "TimeoutError");
  assert.equal((await rejectionOf(conn.query("select 2"), 9_000)).name, "ConnectionError");
  await limit(conn.close());
  await backend.close();
});

leavesNoSession();
