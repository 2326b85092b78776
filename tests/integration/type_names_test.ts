/** Names and OIDs given to `sql.typed` and `sql.array`: what they stand for is the session's to say. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Connection, createPool, type Queryable, sql, ValueError } from "../../mod.ts";
import { ask, leavesNoSession, limit, testUrl, withSchema } from "../_support/server.ts";
import { rejectionOf, withConnection } from "../_support/session.ts";

/** Two schemas with types of the same names: only the first label tells them apart. */
async function withTwo(use: (one: string, two: string) => Promise<void>): Promise<void> {
  await withSchema((one) =>
    withSchema(async (two) => {
      for (const [schema, label] of [[one, "one"], [two, "two"]]) {
        await ask(`set search_path = ${schema}; create type mood as enum ('${label}', 'x');
          create type pair as (a int, m mood); create table t (v mood[], n int)`);
      }
      await use(one, two);
    })
  );
}

/** A text that only the type of its parameter distinguishes, run in each way. */
const WAYS: Readonly<Record<string, (db: Queryable, label: string) => Promise<unknown>>> = {
  typed: (db, label) => db.sql`select ${sql.typed(label, "mood")}::text as v`.scalar(),
  "typed array": (db, label) => db.sql`select (${sql.typed([label], "mood[]")})[1]::text as v`.scalar(),
  array: (db, label) => db.sql`select (${sql.array([label], "mood")})[1]::text as v`.scalar(),
  composite: (db, label) => db.sql`select ((${sql.typed({ a: 1, m: label }, "pair")}).m)::text as v`.scalar(),
  query: (db, label) =>
    db.query("select $1::text as v", [sql.typed(label, "mood")]).then(({ rows }) => rows[0]!["v"]),
  stream: async (db, label) => {
    const rows = await Array.fromAsync(db.sql`select ${sql.typed(label, "mood")}::text as v`);
    return (rows[0] as { v: unknown }).v;
  },
  json: async (db, label) =>
    JSON.parse(await db.sql`select ${sql.typed([label], "mood[]")} as v`.json())[0].v[0],
  batch: async (db, label) => {
    const [, second] = await db.batch([sql`select 1`, sql`select ${sql.typed(label, "mood")}::text as v`]);
    return second!.rows[0]!["v"];
  },
};

test("sessions of one pool with other search paths each have their own types", () =>
  withTwo(async (one, two) => {
    for (const [way, run] of Object.entries(WAYS)) {
      await using pool = createPool(testUrl(), { max: 2 });
      await using first = await limit(pool.acquire());
      await using second = await limit(pool.acquire());
      await first.exec(`set search_path = ${one}`);
      await second.exec(`set search_path = ${two}`);
      for (let i = 0; i < 3; i++) {
        assert.equal(await limit(run(first, "one")), "one", way);
        assert.equal(await limit(run(second, "two")), "two", way);
        assert.equal((await rejectionOf(run(first, "two"))).code, "22P02", way);
      }
    }
  }));

test("a name means what the search path says by now, however that was changed", () =>
  withTwo(async (one, two) => {
    const changes: Readonly<Record<string, (conn: Connection, schema: string) => Promise<unknown>>> = {
      set: (conn, schema) => conn.exec(`set search_path = ${schema}`),
      "set by query": (conn, schema) => conn.query(`set search_path = ${schema}`),
      "set_config": (conn, schema) => conn.query("select set_config('search_path', $1, false)", [schema]),
      "in a script": (conn, schema) => conn.exec(`select 1; set search_path = ${schema}; select 2`),
      "alter schema": async (conn) => {
        await conn.exec(`alter type ${one}.mood rename to other; alter type ${two}.mood set schema ${one};
          alter type ${one}.other set schema ${two}; alter type ${two}.other rename to mood`);
      },
    };
    for (const [name, change] of Object.entries(changes)) {
      for (const waits of [true, false]) {
        await withConnection(async (conn) => {
          await conn.exec(`set search_path = ${one}`);
          const read = (label: string) => WAYS["typed array"]!(conn, label);
          const isOne = await read("one").then(() => true, () => false);
          const [before, after] = isOne ? ["one", "two"] : ["two", "one"];
          for (let i = 0; i < 2; i++) assert.equal(await read(before!), before);
          const changed = change(conn, two);
          if (waits) await changed;
          const reads = [read(after!), read(after!)];
          await changed;
          assert.deepEqual(await limit(Promise.all(reads)), [after, after], `${name}, waits: ${waits}`);
        });
      }
    }
  }));

test("what a block did to the search path ends with it", () =>
  withTwo(async (one, two) => {
    await withConnection(async (conn) => {
      const read = (label: string, db: Queryable = conn) => WAYS["typed"]!(db, label);
      for (const end of ["commit", "rollback"] as const) {
        await conn.exec(`set search_path = ${one}`);
        for (let i = 0; i < 2; i++) {
          assert.equal(await read("one"), "one");
          const tx = await conn.begin();
          await tx.query(`set local search_path = ${two}`);
          assert.equal(await read("two", tx), "two");
          await tx[end]();
          assert.equal(await read("one"), "one");
          await conn.transaction(async (outer) => {
            await outer.transaction(async (nested) => {
              await nested.query(`set local search_path = ${two}`);
              assert.equal(await read("two", nested), "two");
              await nested.rollback();
            });
            assert.equal(await read("one", outer), "one");
          });
        }
      }
    });
  }));

test("a name's first use keeps its place, alone, in a transaction and in its first query", () =>
  withTwo(async (one) => {
    const insert = (db: Queryable) =>
      db.sql`insert into t values (${sql.typed(["x"], "mood[]")}, 1)`.result();
    const count = (db: Queryable) => db.sql`select count(*)::int from t`.scalar();
    for (const warm of [false, true]) {
      const path = { parameters: { search_path: one } };
      await withConnection(async (conn) => {
        await conn.exec("truncate t");
        if (warm) await conn.transaction((tx) => tx.query("select 1"));
        const [before, , after] = await limit(Promise.all([count(conn), insert(conn), count(conn)]));
        assert.deepEqual([before, after], [0, 1]);
      }, path);
      await withConnection(async (conn) => {
        await conn.transaction(async (tx) => {
          if (warm) await tx.query("select 1");
          const [, after] = await limit(Promise.all([insert(tx), count(tx)]));
          assert.equal(after, 2);
        });
        assert.equal(await count(conn), 2);
      }, path);
      await withConnection(async (conn) => {
        const outcomes = await conn.transaction(async (tx) => {
          const settled = await limit(
            Promise.allSettled([insert(tx), tx.query("select 1 / 0"), insert(tx), count(tx)]),
          );
          await tx.rollback();
          return settled.map(({ status }) => status);
        });
        assert.deepEqual(outcomes, ["fulfilled", "rejected", "rejected", "rejected"]);
      }, path);
    }
  }));

test("a name that is not known is refused, and known as soon as it is made", () =>
  withSchema((schema) =>
    withConnection(async (conn) => {
      const read = (db: Queryable) => db.sql`select ${sql.typed(["a"], "fresh[]")} as v`.scalar();
      for (const name of ["fresh", "fresh[]", "x y z(", "no_schema.fresh", ""]) {
        for (let i = 0; i < 2; i++) {
          const failing = conn.sql`select ${sql.typed("a", name)}`.result();
          const beside = conn.sql`select 1`.scalar();
          const error = await rejectionOf(failing);
          assert.ok(error instanceof ValueError, String(error));
          assert.match(error.message, /^Cannot encode parameter \$1: type ".*" is not known/);
          assert.equal(await beside, 1);
          await conn.transaction(async (tx) => {
            assert.ok(await rejectionOf(tx.sql`select ${sql.typed("a", name)}`) instanceof ValueError);
            assert.equal(await tx.sql`select 2`.scalar(), 2);
            const batch = tx.batch([sql`select 1`, sql`select ${sql.typed("a", name)}`]);
            assert.ok(await rejectionOf(batch) instanceof ValueError);
            assert.equal(await tx.sql`select 2`.scalar(), 2);
          });
        }
      }
      await conn.query("begin");
      await rejectionOf(conn.query("select 1 / 0"));
      assert.equal((await rejectionOf(read(conn))).code, "25P02");
      await conn.query("rollback");
      await ask(`create type ${schema}.fresh as enum ('a')`);
      assert.deepEqual(await read(conn), ["a"]);
      // Dropped and made again by somebody else.
      for (let i = 0; i < 2; i++) {
        await ask(`drop type ${schema}.fresh; create type ${schema}.fresh as enum ('b', 'a')`);
        await conn.transaction((tx) => read(tx)).catch(() => {});
        assert.deepEqual(await read(conn), ["a"]);
      }
    }, { parameters: { search_path: schema } })
  ));

test("a type given by its OID is looked up, arrays and composites as well", () =>
  withTwo(async (one) => {
    for (let i = 0; i < 2; i++) {
      await withConnection(async (conn) => {
        const oid = async (name: string) => Number(await conn.sql`select ${name}::regtype::oid`.scalar());
        const [mood, moods, pair, pairs] = await Promise.all(["mood", "mood[]", "pair", "pair[]"].map(oid));
        const value = { a: 1, m: "x" };
        const cases: readonly (readonly [unknown, unknown])[] = [
          [sql.typed("one", mood!), "one"],
          [sql.typed(["one", null], moods!), ["one", null]],
          [sql.array(["one"], mood!), ["one"]],
          [sql.typed(value, pair!), value],
          [sql.typed([value], pairs!), [value]],
          [sql.array([value], pair!), [value]],
        ];
        for (const [parameter, read] of i === 0 ? cases : cases.toReversed()) {
          for (let n = 0; n < 3; n++) {
            assert.deepEqual(await conn.sql`select ${parameter} as v`.scalar(), read);
          }
        }
        assert.ok(await rejectionOf(conn.sql`select ${sql.typed([1], 4_000_000_000)}`) instanceof Error);
        assert.equal(await conn.sql`select 1`.scalar(), 1);
      }, { parameters: { search_path: one } });
    }
  }));

leavesNoSession();
