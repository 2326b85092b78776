/** Prepared statements whose parameters have other types by now, whoever changed that. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Connection, sql, ValueError } from "../../mod.ts";
import { ask, leavesNoSession, limit, withSchema } from "../_support/server.ts";
import { rejectionOf, withConnection } from "../_support/session.ts";

/** Another type for a column, a value that is no value of the type before, and what is read of it. */
const STEPS: readonly (readonly [type: string, value: unknown, read?: unknown])[] = [
  ["int2", 7],
  ["int4", 70_000],
  ["int8", 5_000_000_000, 5_000_000_000n],
  ["text", "abc"],
  ["jsonb", { a: [1] }],
  ["int4[]", [1, 2]],
  ["timestamptz", new Date(86_400_000)],
  ["timestamp", new Date(0)],
  ["bool", true],
  ["bytea", new Uint8Array([1, 2])],
  ["uuid", "00000000-0000-4000-8000-000000000000"],
  ["point", { x: 1, y: 2 }],
  ["e", "y"],
  ["e[]", ["y", "z"]],
  ["c", { a: 1, m: "z" }],
  ["int4range", "[1,5)"],
  ["float8", 1.5],
];

type Change = (text: string) => Promise<unknown>;

/** Runs with a table of one column, and something that changes it: another session, or the same. */
async function eachWay(
  use: (conn: Connection, change: Change, foreign: boolean) => Promise<void>,
): Promise<void> {
  for (const foreign of [true, false]) {
    await withSchema(async (schema) => {
      const path = `set search_path = ${schema};`;
      await ask(`${path} create type e as enum ('y', 'z'); create type c as (a int, m e);
        create table t (v int2, n int default 0)`);
      await withConnection(async (conn) => {
        await use(conn, (text) => foreign ? ask(path + text) : conn.exec(text), foreign);
      }, { parameters: { search_path: schema, TimeZone: "Asia/Tokyo" } });
    });
  }
}

const insert = "insert into t (v) values ($1) returning v";
const alterTo = (type: string) => `alter table t alter v type ${type} using null`;

test("a column that has another type takes its values at once, and reads them", () =>
  eachWay(async (conn, change) => {
    for (const [type, value, read = value] of STEPS) {
      await change(alterTo(type));
      for (let i = 0; i < 3; i++) {
        const { rows } = await conn.query(insert, [value]);
        if (type !== "int4range") assert.deepEqual(rows, [{ v: read }], `${type}, execution ${i}`);
      }
      const settled = await Promise.all([1, 2, 3].map(() => conn.query(insert, [value])));
      assert.equal(settled.length, 3);
      // A value of no type at all is refused as ever.
      await rejectionOf(conn.query(insert, [undefined])).then((error) =>
        assert.ok(error instanceof ValueError)
      );
    }
  }));

test("pipelined, none of them fails, and none runs twice", () =>
  eachWay(async (conn, change) => {
    for (const [type, value] of STEPS) {
      await conn.exec("truncate t");
      await change(alterTo(type));
      await limit(Promise.all(Array.from({ length: 20 }, () => conn.query(insert, [value]))));
      assert.equal(await conn.sql`select count(*)::int from t`.scalar(), 20, type);
    }
  }));

test("in a transaction one query is refused at most, and the next transaction works", () =>
  eachWay(async (conn, change) => {
    for (const [type, value, read = value] of STEPS) {
      await change(alterTo(type));
      const run = () => conn.transaction((tx) => tx.query(insert, [value]));
      await run().catch(() => {});
      const { rows } = await run();
      if (type !== "int4range") assert.deepEqual(rows, [{ v: read }], type);
    }
  }));

test("a batch is refused once at most", () =>
  eachWay(async (conn, change) => {
    for (const [type, value, read = value] of STEPS) {
      await conn.exec("truncate t");
      await change(alterTo(type));
      const run = () => conn.batch([sql`insert into t (v) values (${value})`, sql`select v from t`]);
      await run().catch(() => {});
      const [, { rows }] = await run() as [unknown, { rows: unknown[] }];
      if (type !== "int4range") assert.deepEqual(rows.at(-1), { v: read }, type);
    }
  }));

test("a type that is dropped and made again is taken as a parameter at once", () =>
  eachWay(async (conn, change) => {
    const texts: readonly (readonly [string, unknown[], unknown])[] = [
      ["select $1::e as v", ["y"], "y"],
      ["select $1::e[] as v", [["y"]], ["y"]],
      ["select $1::c as v", [{ a: 1, m: "y" }], { a: 1, m: "y" }],
      ["select $1::c[] as v", [[{ a: 1, m: "y" }]], [{ a: 1, m: "y" }]],
    ];
    for (let round = 0; round < 3; round++) {
      for (const [text, values, read] of texts) {
        for (let i = 0; i < 3; i++) {
          assert.deepEqual((await conn.query(text, values)).rows, [{ v: read }], text);
        }
      }
      await change(
        "drop type c; drop type e; create type e as enum ('y', 'x'); create type c as (a int, m e)",
      );
    }
    await change("drop type c; create type c as (a text, m e, z int)");
    for (let i = 0; i < 2; i++) {
      assert.deepEqual(
        (await conn.query("select $1::c as v", [{ a: "one", m: "x", z: 3 }])).rows,
        [{ v: { a: "one", m: "x", z: 3 } }],
      );
    }
  }));

test("what the session alters and rolls back leaves no parameter of the other type", () =>
  eachWay(async (conn, _, foreign) => {
    if (foreign) return;
    const stamp = async () => (await conn.query(insert, [new Date(0)])).rows;
    await conn.exec(alterTo("timestamp"));
    for (let i = 0; i < 2; i++) assert.deepEqual(await stamp(), [{ v: new Date(0) }]);
    const undo = async (begin: string, end: string): Promise<void> => {
      await conn.exec(`begin; ${begin}`);
      await conn.exec(alterTo("timestamptz"));
      for (let i = 0; i < 2; i++) assert.deepEqual(await stamp(), [{ v: new Date(0) }]);
      await conn.exec(end);
    };
    await undo("", "rollback");
    assert.deepEqual(await stamp(), [{ v: new Date(0) }]);
    await undo("savepoint a", "rollback to savepoint a; commit");
    assert.deepEqual(await stamp(), [{ v: new Date(0) }]);
    const batch = conn.batch([
      sql.raw(alterTo("timestamptz")) as never,
      sql`insert into t (v) values (${new Date(0)})`,
      sql`select 1 / ${0}::int`,
    ]);
    assert.equal((await rejectionOf(batch)).code, "22012");
    await conn.query("insert into t (v) values ($1)", [new Date(0)]);
    const { rows } = await conn.query("select distinct v from t");
    assert.deepEqual(rows, [{ v: new Date(0) }]);
  }));

test("a value that does not suit is refused each time, alone, and leaves its block alive", () =>
  eachWay(async (conn) => {
    for (let i = 0; i < 4; i++) {
      const bad = conn.query("select $1::int4 as v", ["abc"]);
      const [error, { rows }] = await Promise.all([
        rejectionOf(bad),
        conn.query("select $1::int4 as v", [i]),
      ]);
      assert.equal(error.code, "22P02");
      assert.deepEqual(rows, [{ v: i }]);
      await conn.transaction(async (tx) => {
        await tx.query("select $1::int4 as v", [1]);
        const refused = await rejectionOf(tx.query("select $1::int4 as v", [{ a: 1 }]));
        assert.ok(refused instanceof ValueError, String(refused));
        assert.equal(await tx.sql`select 1`.scalar(), 1);
      });
    }
  }));

leavesNoSession();
