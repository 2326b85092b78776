/** Sizes and counts at and past their limits. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { connect, type Connection, sql as unbound, ValueError } from "../../mod.ts";
import { assertLinear } from "../_support/linear.ts";
import { leavesNoSession, limit, testUrl } from "../_support/server.ts";

function using(name: string, body: (connection: Connection) => Promise<void>, options = {}): void {
  test(name, async () => {
    await using connection = await limit(connect(testUrl(), options));
    await limit(body(connection), 120_000, name);
  });
}

using("65,535 parameters are sent, 65,536 are refused with nothing sent", async (connection) => {
  const { sql } = connection;
  const values = Array.from({ length: 65_535 }, (_, i) => i);
  const among = (list: readonly unknown[]) =>
    sql`select count(*) from (values ${sql.join(list.map((n) => sql`(${n}::int4)`))}) v(x) where x >= 0`;
  assert.equal(await among(values).scalar(), 65_535n);
  for (const extra of [1, unbound.typed(1, "int4"), [1]]) {
    await assert.rejects(among([...values, extra]).result(), (error) => {
      assert.ok(error instanceof ValueError, `${(error as Error).name}: ${(error as Error).message}`);
      assert.match(error.message, /65536 parameters/);
      return true;
    });
    assert.equal(await sql`select 1`.scalar(), 1);
  }
});

using("too few and too many parameters are refused, the connection goes on", async (connection) => {
  for (const values of [[], [1], [1, 2, 3]]) {
    await assert.rejects(connection.query("select $1::int4, $2::int4", values));
    assert.deepEqual((await connection.query("select 1 as a")).rows, [{ a: 1 }]);
  }
});

using("a text of 2 MB, as simple and as extended query", async (connection) => {
  const text = `select ${"/* long */".repeat(210_000)} 1 as a`;
  for (let i = 0; i < 2; i++) {
    assert.deepEqual((await connection.query(text)).rows, [{ a: 1 }]);
    assert.deepEqual((await connection.exec(text))[0]?.rows, [{ a: 1 }]);
  }
});

for (const statementCache of [0, 10, 256]) {
  using(`10,000 distinct texts keep at most ${statementCache} statements`, async (connection) => {
    for (let round = 0; round < 20; round++) {
      const burst = Array.from(
        { length: 500 },
        (_, i) => connection.query(`select ${round * 500 + i} as n, $1::int4`, [i]),
      );
      const results = await Promise.all(burst);
      assert.deepEqual(results.map(({ rows }) => rows[0]?.["n"]), results.map((_, i) => round * 500 + i));
    }
    const [result] = await connection.exec("select count(*)::int as n from pg_prepared_statements");
    // One more may wait for the next Parse to close it.
    const count = result!.rows[0]!["n"] as number;
    assert.ok(count <= statementCache + 1 && count >= statementCache, `${count} statements`);
  }, { statementCache });
}

using(
  "an integer past its range is the server's or a ValueError, the connection goes on",
  async ({ sql }) => {
    await assert.rejects(sql`select ${2 ** 31}::int4`.result());
    await assert.rejects(sql`select ${2n ** 63n}::int8`.result());
    assert.equal(await sql`select ${2n ** 63n - 1n}::int8`.scalar(), 2n ** 63n - 1n);
  },
);

using("a value of 64 MB in linear time, as a result", async ({ sql }) => {
  await assertLinear(async (megabytes) => {
    const size = megabytes * 1_048_576;
    const began = performance.now();
    const value = await sql<string>`select repeat('x', ${size}::int4) as x`.scalar();
    const spent = performance.now() - began;
    assert.equal(value.length, size);
    assert.equal(value.charCodeAt(size - 1), 120);
    return spent;
  }, 16);
});

using("a value of 64 MB in linear time, as a parameter", async ({ sql }) => {
  await assertLinear(async (megabytes) => {
    const value = new Uint8Array(megabytes * 1_048_576).fill(7);
    const began = performance.now();
    const length = await sql<number>`select length(${value}::bytea)`.scalar();
    const spent = performance.now() - began;
    assert.equal(length, value.length);
    return spent;
  }, 16);
});

using("a pipeline larger than every buffer between cannot deadlock", async (connection) => {
  const chunk = "y".repeat(100_000);
  const echoes = await Promise.all(
    Array.from(
      { length: 300 },
      (_, i) => connection.query("select $1::text as t, $2::int4 as i", [chunk, i]),
    ),
  );
  echoes.forEach(({ rows }, i) => {
    assert.equal(rows[0]?.["i"], i);
    assert.equal((rows[0]?.["t"] as string).length, 100_000);
  });
});

using("a message past maxMessageBytes ends the connection with its reason", async (connection) => {
  await assert.rejects(connection.query("select repeat('x', 5000)"), {
    name: "ProtocolError",
    message: /past maxMessageBytes 4096/,
  });
  assert.equal(connection.closed || await connection.query("select 1").then(() => false, () => true), true);
}, { maxMessageBytes: 4096 });

using("parameters are read when the query is issued", async (connection) => {
  const bytes = Uint8Array.of(1, 2, 3);
  const list = [1, 2, 3];
  const doc = { a: [1] };
  const date = new Date(0);
  // The first of each text waits for its description, the later ones behind it.
  const queries = [1, 2, 3].map(() =>
    Promise.all([
      connection.query("select $1::bytea as v", [bytes]),
      connection.query("select $1::int4[] as v", [list]),
      connection.query("select $1::timestamptz as v", [date]),
    ])
  );
  bytes.fill(9);
  list[0] = 9;
  date.setTime(1e12);
  doc.a.push(2);
  for (const [b, l, d] of await Promise.all(queries)) {
    assert.deepEqual(b.rows[0]?.["v"], Uint8Array.of(1, 2, 3));
    assert.deepEqual(l.rows[0]?.["v"], [1, 2, 3]);
    assert.deepEqual(d.rows[0]?.["v"], new Date(0));
  }
});

using(
  "parameters behind the first query of a transaction are read when the query is issued, too",
  async (connection) => {
    for (const first of ["exec", "query"] as const) {
      await limit(connection.transaction(async (tx) => {
        const bytes = Uint8Array.of(1, 2, 3);
        const before = tx[first]("select 1");
        const later = [1, 2].map(() => tx.query<{ v: Uint8Array }>("select $1::bytea as v", [bytes]));
        bytes.fill(9);
        await before;
        for (const { rows } of await Promise.all(later)) assert.deepEqual(rows[0]?.v, Uint8Array.of(1, 2, 3));
      }));
    }
  },
);

using("views on a part of a buffer are that part only", async ({ sql }) => {
  const whole = Uint8Array.from({ length: 20 }, (_, i) => i);
  const part = whole.subarray(5, 8);
  const view = new DataView(whole.buffer, 10, 2);
  for (let i = 0; i < 2; i++) {
    assert.deepEqual(await sql`select ${part}::bytea as v`.scalar(), Uint8Array.of(5, 6, 7));
    assert.deepEqual(await sql`select ${view}::bytea as w`.scalar(), Uint8Array.of(10, 11));
    assert.deepEqual(await sql`select ${new Uint8Array(0)}::bytea as u`.scalar(), new Uint8Array(0));
  }
});

using("bytes received are the user's own", async ({ sql }) => {
  const first = await sql<Uint8Array>`select '\\x0102'::bytea as v`.scalar();
  const copy = first.slice();
  await sql`select repeat('z', 300000)`;
  assert.deepEqual(first, copy);
});

leavesNoSession();
