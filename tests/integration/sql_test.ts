/** Templates, helpers and composition on the real server. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { connect, type Connection, type PostgresError, sql as unbound, ValueError } from "../../mod.ts";
import { leavesNoSession, limit, testUrl } from "../_support/server.ts";

function using(name: string, body: (connection: Connection) => Promise<void>): void {
  test(name, async () => {
    await using connection = await limit(connect(testUrl()));
    await limit(
      connection.exec("create temp table t (id int primary key, name text, tags text[], doc jsonb)"),
    );
    await limit(body(connection), 30_000, name);
  });
}

using("values are parameters, whatever they hold", async ({ sql }) => {
  for (const value of ["'; drop table t; --", "$1", "\\", '"', "${x}", "", " ", "\u2028😀", "%s"]) {
    assert.equal(await sql`select ${value}::text`.scalar(), value);
  }
});

using("id() quotes each part", async (connection) => {
  const { sql } = connection;
  const odd = 'we"ird.; -- näme';
  await connection.exec(`create temp table "we""ird.; -- näme" ("a""b" int)`);
  await sql`insert into ${sql.id(odd)} (${sql.id('a"b')}) values (${7})`;
  assert.deepEqual(await sql`select ${sql.id(odd, 'a"b')} from ${sql.id("pg_temp", odd)}`, [{ 'a"b': 7 }]);
  for (const bad of [[], [""], ["a", ""], ["a\0b"]]) assert.throws(() => sql.id(...bad), ValueError);
  assert.throws(() => sql.id(1 as unknown as string), ValueError);
});

using("list() makes an IN list, also an empty one", async ({ sql }) => {
  const among = (values: number[]) =>
    sql`select i from generate_series(1, 5) i where i in (${sql.list(values)})`.arrays();
  assert.deepEqual(await among([2, 4, 9]), [[2], [4]]);
  assert.deepEqual(await among([]), []);
  const hostile = ["a'b", "c), (d"];
  assert.deepEqual(
    await sql`select x from unnest(${hostile}::text[]) x where x in (${sql.list(hostile)})`.arrays(),
    [
      ["a'b"],
      ["c), (d"],
    ],
  );
});

using("values() inserts rows of objects and of arrays", async ({ sql }) => {
  await sql`insert into t ${sql.values([{ id: 1, name: "a" }, { name: "b", id: 2 }])}`;
  await sql`insert into t (id, name) ${sql.values([[3, "c"], [4, null]])}`;
  await sql`insert into t ${sql.values([{ id: 5, name: "e", other: "ignored" }], ["name", "id"])}`;
  assert.deepEqual(await sql`select id, name from t order by id`.arrays(), [
    [1, "a"],
    [2, "b"],
    [3, "c"],
    [4, null],
    [5, "e"],
  ]);
  assert.deepEqual(
    await sql`select * from (${sql.values([[1, 2], [3, 4]])}) v`.arrays().then((rows) => rows.length),
    2,
  );
});

using("values() refuses rows that do not match, before anything is sent", async ({ sql }) => {
  const bad: readonly (() => unknown)[] = [
    () => sql.values([]),
    () => sql.values([[]]),
    () => sql.values([{}]),
    () => sql.values([[1, 2], [3]]),
    () => sql.values([[1], { a: 1 }]),
    () => sql.values([{ id: 1 }, { id: 2, name: "lost" }]),
    () => sql.values([{ a: 1 }, [1]]),
  ];
  for (const make of bad) assert.throws(make, ValueError, String(make));
  // A property that is missing is not NULL by accident.
  await assert.rejects(
    sql`insert into t ${sql.values([{ id: 1, name: "a" }, { id: 2 }])}`.result(),
    ValueError,
  );
  assert.equal(await sql`select count(*) from t`.scalar(), 0n);
});

using("set() assigns what is set", async ({ sql }) => {
  await sql`insert into t (id, name, tags) values (1, 'a', '{x}')`;
  await sql`update t set ${sql.set({ name: "b", tags: null, doc: undefined })} where id = ${1}`;
  assert.deepEqual(await sql`select name, tags from t`, [{ name: "b", tags: null }]);
  assert.throws(() => sql.set({}), ValueError);
  assert.throws(() => sql.set({ a: undefined }), ValueError);
});

using("join(), and() and empty build conditions", async ({ sql }) => {
  const on = (flag: boolean) => flag && sql`i > ${3}`;
  const where = (flag: boolean) =>
    sql`select i from generate_series(1, 5) i where ${
      sql.and(on(flag), sql`i < ${5}`, undefined, null, sql.empty)
    }`.arrays();
  assert.deepEqual(await where(true), [[4]]);
  assert.deepEqual(await where(false), [[1], [2], [3], [4]]);
  assert.deepEqual(await sql`select i from generate_series(1, 2) i where ${sql.and()}`.arrays(), [[1], [2]]);
  // Each condition stands in parentheses.
  assert.deepEqual(await sql`select ${sql.and(sql`false or true`, sql`false`)} as x`, [{ x: false }]);
  assert.deepEqual(await sql`select ${sql.join([1, 2, sql`3`])}`.arrays(), [["1", "2", 3]]);
  assert.deepEqual(await sql`select ${sql.join([sql`1`, sql`2`], " + ")} as x`, [{ x: 3 }]);
  assert.deepEqual(await sql`select ${sql.join([sql`1`, sql`2`], sql` + ${10}::int4 + `)} as x`, [{ x: 13 }]);
  assert.deepEqual(await sql`select 1 as x ${sql.join([])}${sql.empty}`, [{ x: 1 }]);
});

using("json(), array() and typed() say what a value is", async ({ sql }) => {
  assert.deepEqual(
    await sql`select ${sql.json([1, 2])}::jsonb as j, jsonb_typeof(${sql.json(null)}::jsonb) as n`,
    [
      { j: [1, 2], n: "null" },
    ],
  );
  assert.equal(await sql`select ${sql.json("a")}::jsonb = '"a"'::jsonb`.scalar(), true);
  assert.equal(await sql`select pg_typeof(${sql.array([1, 2], "int2")})::text`.scalar(), "smallint[]");
  assert.deepEqual(await sql`select ${sql.array([])}::text[] as a`, [{ a: [] }]);
  assert.equal(await sql`select pg_typeof(${sql.typed(1, "int8")})::text`.scalar(), "bigint");
  assert.equal(await sql`select pg_typeof(${sql.typed([1], "int4[]")})::text`.scalar(), "integer[]");
  await assert.rejects(sql`select ${sql.typed(1, "no_such_type")}`.result(), ValueError);
});

using("raw() is text as it is", async ({ sql }) => {
  assert.deepEqual(await sql`select ${sql.raw("1 + 1")} as x`, [{ x: 2 }]);
});

using("a query inside a query becomes a part of it and does not run by itself", async (connection) => {
  const { sql } = connection;
  const inner = sql`select i from generate_series(${1}::int4, ${4}::int4) i`;
  const middle = sql`select sum(i) as s from (${inner}) x where i <> ${2}`;
  const outer = sql`select s * ${10}::int4 as n from (${middle}) y`;
  assert.equal(await outer.scalar(), 80n);
  assert.equal(await middle.scalar(), 8n, "it still can run");
  assert.deepEqual(await connection.sql`select * from (${unbound`select ${"x"}::text as a`}) z`, [{
    a: "x",
  }]);
});

using("one fragment used twice has its parameters twice", async ({ sql }) => {
  const three = sql`${3}::int4`;
  assert.deepEqual(await sql`select ${three} + ${three} as x`, [{ x: 6 }]);
});

using("a deep and a wide composition", async ({ sql }) => {
  let deep = sql`${0}::int4`;
  for (let i = 1; i <= 200; i++) deep = sql`(${deep} + ${i}::int4)`;
  assert.equal(await sql`select ${deep}`.scalar(), 20_100);
  const wide = sql.join(Array.from({ length: 5_000 }, (_, i) => sql`${i}::int4`));
  assert.equal(await sql`select cardinality(array[${wide}])`.scalar(), 5_000);
});

using("a query runs once, however often it is awaited, and not before", async (connection) => {
  const { sql } = connection;
  const insert = sql`insert into t (id) values (${1}) returning id`;
  assert.equal(await sql`select count(*) from t`.scalar(), 0n);
  assert.deepEqual(await Promise.all([insert, insert, insert.result().then(({ rows }) => rows)]), [
    [{ id: 1 }],
    [{ id: 1 }],
    [{ id: 1 }],
  ]);
  assert.deepEqual(await insert, [{ id: 1 }]);
  await assert.rejects(insert.arrays(), ValueError);
  assert.equal(await sql`select count(*) from t`.scalar(), 1n);
});

using("the tag can be taken off its connection; catch() and finally() work", async ({ sql }) => {
  const order: string[] = [];
  const rows = await sql`selec`.catch((error: unknown) => (error as PostgresError).code).finally(() =>
    void order.push("finally")
  );
  assert.equal(rows, "42601");
  assert.deepEqual(order, ["finally"]);
});

using("NUL in text, identifier or parameter is refused before anything is sent", async (connection) => {
  const { sql } = connection;
  await assert.rejects(connection.query("select 1\0"), ValueError);
  await assert.rejects(connection.exec("select 1\0; drop table t"), ValueError);
  await assert.rejects(sql`select ${sql.raw("1\0")}`.result(), ValueError);
  assert.throws(() => sql.id("a\0"), ValueError);
  // No text type holds it; which type a parameter has, only the server knows.
  await assert.rejects(sql`select ${"a\0b"}::text`.result(), { code: "22021" });
  assert.equal(await sql`select 1`.scalar(), 1);
});

leavesNoSession();
