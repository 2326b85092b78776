/**
 * A session recorded from the real server and replayed: whole, cut at every single byte, and byte by byte, always with
 * the same outcome.
 */

import { test } from "node:test";
import assert from "node:assert/strict";
import { connect, type Connection, type Notice, PipegresError } from "../../mod.ts";
import { createMemoryFactory } from "../../src/transport/memory.ts";
import type { TransportFactory } from "../../src/transport/transport.ts";
import { concat } from "../_support/backend_writer.ts";
import { FrontendReader } from "../_support/frontend_reader.ts";
import { startProxy } from "../_support/proxy.ts";
import { hasTestRoles, leavesNoSession, limit, roleUrl, testTarget } from "../_support/server.ts";

/** Everything a user sees of a session; all queries are issued in one turn, so that what is written is always the same. */
async function play(connect: (onNotice: (notice: Notice) => void) => Promise<Connection>): Promise<unknown> {
  const notices: string[] = [];
  const connection = await connect(({ message }) => void notices.push(message));
  const { sql } = connection;
  const outcomes = await Promise.allSettled([
    connection.exec("select 1 as a, 'é€😀' as b; create temp table r (i int, t text); select 2 as c"),
    connection.query("insert into r select i, repeat('ä', i) from generate_series(1, 3) i returning *"),
    sql`select ${1}::int4 as n, ${"x"}::text as t, null as nothing, ${
      Uint8Array.of(1, 2).length
    }::int8 as big`.result(),
    sql`select ${1}::int4 as n, ${"x"}::text as t, null as nothing, ${7n}::int8 as big`.arrays(),
    connection.query("selec 1"),
    connection.query("select 1/0"),
    connection.exec("select 5 as five; select 1/0"),
    connection.query("do $$ begin raise notice 'look'; end $$"),
    connection.exec("listen replayed; notify replayed, 'payload'"),
    connection.query(""),
    sql`select i from r order by i`.describe(),
    connection.exec("begin; savepoint s; rollback"),
    connection.exec("copy (select 1) to stdout"),
    connection.query(
      "select '2026-08-18 01:02:03.5+00'::timestamptz as at, '{1,NULL}'::int4[] as l, 1.50::numeric as d",
    ),
    sql`select t from r where i = ${9}`.maybeOne(),
  ]);
  const seen = {
    outcomes: outcomes.map((outcome) =>
      outcome.status === "fulfilled" ? outcome.value : describe(outcome.reason)
    ),
    notices,
    parameters: [...connection.parameters],
    processId: connection.processId,
    transactionStatus: connection.transactionStatus,
  };
  await connection.close();
  return seen;
}

function describe(error: unknown): unknown {
  assert.ok(error instanceof PipegresError, String(error));
  return { ...error, name: error.name, message: error.message };
}

interface Recording {
  readonly seen: unknown;
  /** Up to the first ReadyForQuery. */
  readonly startup: Uint8Array;
  readonly replies: Uint8Array;
}

async function record(): Promise<Recording> {
  const { host, port } = testTarget();
  const proxy = await startProxy({ target: { host, port }, record: true });
  try {
    const url = new URL(roleUrl("app_trust"));
    url.port = String(proxy.port);
    const seen = await limit(play((onNotice) => connect(url.href, { onNotice, sslmode: "disable" })));
    const bytes = concat(
      ...proxy.recorded.filter(({ from }) => from === "backend").map(({ bytes }) => bytes),
    );
    let end = 0;
    for (let type = 0; type !== 0x5a /* 'Z' */; end += 1 + new DataView(bytes.buffer).getInt32(end + 1)) {
      type = bytes[end]!;
    }
    return { seen, startup: bytes.slice(0, end), replies: bytes.slice(end) };
  } finally {
    await proxy.close();
  }
}

/** A server that says what was recorded, the replies once all queries are there, in chunks as `chunk` makes them. */
function replayer(
  recording: Recording,
  chunk: (bytes: Uint8Array, offset: number) => Uint8Array[],
): TransportFactory {
  return createMemoryFactory((server) => {
    const reader = new FrontendReader();
    let state = 0;
    const send = (bytes: Uint8Array, offset: number) =>
      chunk(bytes, offset).forEach((piece) => server.write(piece));
    server.start({
      onBytes(bytes) {
        for (const { type } of reader.push(bytes)) {
          if (type === "StartupMessage") send(recording.startup, 0);
          else if (type !== "Terminate" && state++ === 0) send(recording.replies, recording.startup.length);
        }
      },
      onEnd() {},
    });
  });
}

function replay(
  recording: Recording,
  chunk: (bytes: Uint8Array, offset: number) => Uint8Array[],
): Promise<unknown> {
  const transport = replayer(recording, chunk);
  return limit(
    play((onNotice) =>
      connect({
        host: "localhost",
        user: "app_trust",
        database: "postgres",
        sslmode: "disable",
        transport,
        onNotice,
      })
    ),
  );
}

const skip = !hasTestRoles();

test("a recorded session, whole", { skip }, async () => {
  const recording = await record();
  assert.deepEqual(await replay(recording, (bytes) => [bytes]), recording.seen);
});

test("a recorded session, byte by byte and in chunks of every small size", { skip }, async () => {
  const recording = await record();
  for (const size of [1, 2, 3, 4, 5, 6, 7, 11, 64]) {
    const chunk = (bytes: Uint8Array) =>
      Array.from(
        { length: Math.ceil(bytes.length / size) },
        (_, i) => bytes.subarray(i * size, (i + 1) * size),
      );
    assert.deepEqual(await replay(recording, chunk), recording.seen, `chunks of ${size}`);
  }
});

test("a recorded session, cut at every single byte", { skip }, async () => {
  const recording = await record();
  const total = recording.startup.length + recording.replies.length;
  assert.ok(total > 1_500, `${total} bytes`);
  for (let position = 1; position < total; position++) {
    const chunk = (bytes: Uint8Array, offset: number) => {
      const at = position - offset;
      return at > 0 && at < bytes.length ? [bytes.subarray(0, at), bytes.subarray(at)] : [bytes];
    };
    assert.deepEqual(await replay(recording, chunk), recording.seen, `cut at ${position}`);
  }
});

leavesNoSession();
