/** What is on the way at once: windows, writes, memory, and queries that want to be alone. */

import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import type { Connection } from "../../mod.ts";
import {
  bindComplete,
  commandComplete,
  dataRow,
  parameterDescription,
  parseComplete,
  readyForQuery,
  rowDescription,
} from "../_support/backend_writer.ts";
import { type FrontendMessage, FrontendReader } from "../_support/frontend_reader.ts";
import { type Proxy, startProxy } from "../_support/proxy.ts";
import { type ScriptedSession, startScriptedBackend } from "../_support/scripted_backend.ts";
import { leavesNoSession, limit, testTarget, testUrl, uniqueName } from "../_support/server.ts";
import { rejectionOf, type SessionOptions, sleep, withConnection } from "../_support/session.ts";

const MB = 1_048_576;

for (
  const [name, options] of [
    ["the default window", {}],
    ["a window of 64 MB", { pipeline: { maxBytes: 64 * MB } }],
  ] as const
) {
  test(`200 parameters and 200 results of 1 MB cannot deadlock: ${name}`, async () => {
    await withConnection(async (conn) => {
      const pad = "x".repeat(MB);
      // Two megabytes at the server before it reads on: its socket buffers and ours are full both ways.
      const before = process.memoryUsage().rss;
      let most = 0;
      const began = performance.now();
      await Promise.all(Array.from({ length: 200 }, async (_, i) => {
        const { rows } = await conn.query("select $1::text || $2 as a, $2 as n", [pad, String(i)]);
        const [row] = rows as { a: string; n: string }[];
        assert.equal(row!.n, String(i));
        assert.equal(row!.a.length, MB + row!.n.length);
        if (i % 10 === 0) most = Math.max(most, process.memoryUsage().rss - before);
      }));
      const seconds = (performance.now() - began) / 1000;
      console.log(`${seconds.toFixed(1)} s, ${Math.round(most / MB)} MB more`);
      assert.ok(seconds < 60);
      assert.ok(most < 700 * MB, `${Math.round(most / MB)} MB more`);
    }, { within: 90_000, ...options });
  });
}

/** Plays a backend that answers to plan, and reports how much was unanswered at most. */
async function mostUnanswered(options: SessionOptions, issue: (conn: Connection) => Promise<unknown>) {
  let queries = 0;
  let bytes = 0;
  const most = { queries: 0, bytes: 0 };
  const answer = async (session: ScriptedSession) => {
    let segment: FrontendMessage[] = [];
    const due: FrontendMessage[][] = [];
    let ended = false;
    const reading = (async () => {
      for (let m = await session.receive(); m !== undefined; m = await session.receive()) {
        segment.push(m);
        if (m.type === "Bind") bytes += m.parameters.reduce((sum, value) => sum + (value?.length ?? 0), 0);
        if (m.type !== "Sync") continue;
        most.queries = Math.max(most.queries, ++queries);
        most.bytes = Math.max(most.bytes, bytes);
        due.push(segment);
        segment = [];
      }
      ended = true;
    })();
    while (!ended) {
      // Everything that may come without an answer comes first.
      await sleep(4);
      const next = due.shift();
      if (next === undefined) continue;
      queries--;
      for (const m of next) {
        if (m.type === "Bind") bytes -= m.parameters.reduce((sum, value) => sum + (value?.length ?? 0), 0);
        if (m.type === "Parse") session.send(parseComplete);
        else if (m.type === "Describe") session.send(parameterDescription([25]), rowDescription(["a"]));
        else if (m.type === "Bind") session.send(bindComplete);
        else if (m.type === "Execute") session.send(dataRow(["1"]), commandComplete("SELECT 1"));
        else if (m.type === "Sync") session.send(readyForQuery());
      }
    }
    await reading;
  };
  const backend = await startScriptedBackend(async (session) => {
    await session.establish();
    await answer(session);
  });
  try {
    await withConnection(issue, { url: backend.url, ...options });
  } finally {
    await backend.close();
  }
  return most;
}

function burst(count: number, value: string, pipeline = true) {
  return (conn: Connection) =>
    Promise.all(Array.from({ length: count }, () => conn.query("select $1", [value], { pipeline })));
}

test("no more queries are unanswered than maxQueries", async () => {
  for (const maxQueries of [1, 2, 5]) {
    const most = await mostUnanswered({ pipeline: { maxQueries } }, burst(30, "x"));
    assert.equal(most.queries, maxQueries);
  }
  assert.equal((await mostUnanswered({}, burst(30, "x"))).queries, 30);
});

test("no more bytes are unanswered than maxBytes and one query", async () => {
  const most = await mostUnanswered({ pipeline: { maxBytes: 10_000 } }, burst(30, "x".repeat(3_000)));
  assert.ok(most.bytes >= 9_000 && most.bytes < 13_100, String(most.bytes));
  // One query may always be on its way.
  assert.equal(
    (await mostUnanswered({ pipeline: { maxBytes: 100 } }, burst(5, "x".repeat(3_000)))).bytes,
    3_000,
  );
});

test("without pipelining nothing is sent behind an unanswered query", async () => {
  assert.equal((await mostUnanswered({ pipeline: false }, burst(10, "x"))).queries, 1);
  assert.equal((await mostUnanswered({}, burst(10, "x", false))).queries, 1);
  const most = await mostUnanswered({}, (conn) =>
    Promise.all([
      ...Array.from({ length: 3 }, () => conn.query("select $1", ["x"])),
      conn.query("select $1", ["alone"], { pipeline: false }),
      ...Array.from({ length: 2 }, () => conn.query("select $1", ["x"])),
    ]));
  assert.equal(most.queries, 3);
});

test("a session without pipelining keeps its statements", async () => {
  await withConnection(async (conn) => {
    for (let i = 0; i < 3; i++) await conn.query("select $1::int as kept", [i]);
    const { rows } = await conn.query(
      "select count(*)::int as n from pg_prepared_statements where statement like $1",
      [
        "%as kept",
      ],
    );
    assert.deepEqual(rows, [{ n: 1 }]);
  }, { pipeline: false });
});

async function recorded(body: (conn: Connection, proxy: Proxy) => Promise<unknown>): Promise<void> {
  const proxy = await startProxy({ target: testTarget(), record: true });
  const url = new URL(testUrl());
  url.port = String(proxy.port);
  try {
    await withConnection((conn) => body(conn, proxy), { url: url.href });
  } finally {
    await proxy.close();
  }
}

test("queries of one turn share one write", async () => {
  await recorded(async (conn, proxy) => {
    for (let round = 0; round < 3; round++) {
      const from = proxy.recorded.length;
      await Promise.all([
        conn.query("select $1::int", [1]),
        conn.sql`select ${"a"}::text`,
        conn.exec("select 2"),
        conn.batch([conn.sql`select 3`, conn.sql`select 4`]),
        conn.batch([conn.sql`select 5`, conn.sql`select 6`], { sync: "each" }),
      ]);
      const writes = proxy.recorded.slice(from).filter(({ from }) => from === "frontend");
      assert.equal(writes.length, 1);
    }
  });
});

test("one Sync stands behind each query, a batch, and a transaction's turn", async () => {
  await recorded(async (conn, proxy) => {
    const typesOf = async (body: () => Promise<unknown>): Promise<string> => {
      const from = proxy.recorded.length;
      await body();
      const reader = new FrontendReader(true);
      const parts = proxy.recorded.slice(from).filter(({ from }) => from === "frontend");
      const messages = parts.flatMap(({ bytes }) => reader.push(bytes));
      return messages.map(({ type }) =>
        ({ Bind: "B", Execute: "E", Sync: "S", Parse: "P", Describe: "D" })[type as "Bind"] ?? type
      ).join("");
    };
    const three = () => [1, 2, 3].map((i) => conn.sql`select ${i}::int8`);
    await conn.batch(three());
    await conn.transaction((tx) => Promise.all([1, 2, 3].map((i) => tx.sql`select ${i}::int8`)));
    assert.equal(await typesOf(() => Promise.all(three())), "BESBESBES");
    assert.equal(await typesOf(() => conn.batch(three())), "BEBEBES");
    assert.equal(await typesOf(() => conn.batch(three(), { sync: "each" })), "BESBESBES");
    assert.equal(
      await typesOf(() =>
        conn.transaction((tx) => Promise.all([1, 2, 3].map((i) => tx.sql`select ${i}::int8`)))
      ),
      "BEBEBEBES" + "Query",
    );
  });
});

test("a failing query of a pipeline fails alone, one of a batch with its neighbours", async () => {
  await withConnection(async (conn) => {
    const table = uniqueName("scope");
    await conn.exec(`create temp table ${table} (a int)`);
    const statements = () => [
      conn.sql`insert into ${conn.sql.id(table)} values (1)`,
      conn.sql`select 1/0`,
      conn.sql`insert into ${conn.sql.id(table)} values (2)`,
    ];
    const single = await Promise.allSettled(statements());
    assert.deepEqual(single.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
    const found = async () =>
      (await conn.query(`select a from ${table} order by a`)).rows.map((row) => row["a"]);
    assert.deepEqual(await found(), [1, 2]);
    const failure = await rejectionOf(conn.batch(statements()));
    assert.equal(failure.code, "22012");
    assert.match(failure.message, /query 2 of 3 failed, 1 before it was rolled back, 1 never ran/);
    assert.deepEqual(await found(), [1, 2]);
    const each = await conn.batch(statements(), { sync: "each" });
    assert.deepEqual(each.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
    assert.deepEqual(await found(), [1, 1, 2, 2]);
  });
});

test("a batch that holds COPY FROM STDIN is refused before anything is sent", async () => {
  await withConnection(async (conn) => {
    const table = uniqueName("copied");
    await conn.exec(`create temp table ${table} (a text)`);
    for (const text of [`copy ${table} from stdin`, `/* so */ COPY ${table} FROM STDIN`]) {
      const batch = conn.batch([
        conn.sql`insert into ${conn.sql.id(table)} values ('x')`,
        conn.sql.raw(text),
        conn.sql`select 1`,
      ]);
      assert.match((await rejectionOf(batch)).message, /copyFrom/);
    }
    await conn.batch([
      conn.sql`select 1`,
      conn.sql`insert into ${conn.sql.id(table)} values ('copy from stdin')`,
    ]);
    assert.equal((await conn.query(`select * from ${table}`)).rows.length, 1);
  });
});

test("rows that come slower than they are sent for keep their order", async () => {
  await withConnection(async (conn) => {
    const orders = await Promise.all(
      Array.from(
        { length: 600 },
        (_, i) =>
          (i % 3 === 0
            ? conn.exec(`select ${i} as n`).then(([result]) => result!.rows)
            : i % 3 === 1
            ? conn.query("select $1::int4 as n", [i]).then(({ rows }) => rows)
            : conn.query(`select $1::int4 as n, ${i % 7} as new_${i}`, [i]).then(({ rows }) => rows)).then((
              [row],
            ) => row!["n"]),
      ),
    );
    assert.deepEqual(orders, Array.from({ length: 600 }, (_, i) => i));
    await limit(conn.query(""));
  });
});

leavesNoSession();
