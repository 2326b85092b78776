/** The first use of a type that nobody has looked up yet: by many at once, in a batch, with values that change. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, createPool, sql, TimeoutError } from "../../mod.ts";
import { ask, leavesNoSession, limit, testUrl, withSchema } from "../_support/server.ts";
import { rejectionOf, withConnection } from "../_support/session.ts";

async function withTypes(use: (schema: string) => Promise<void>): Promise<void> {
  await withSchema(async (schema) => {
    await ask(`create type ${schema}.e as enum ('y', 'z')`);
    await ask(`create type ${schema}.c as (a int, b int)`);
    await ask(`create table ${schema}.t (m ${schema}.e[])`);
    await use(schema);
  });
}

test("many first uses at once, on a pool and on a connection, all find the type", async () => {
  await withTypes(async (schema) => {
    for (let round = 0; round < 10; round++) {
      const pool = createPool(testUrl(), { max: 5 });
      const conn = await limit(connect(testUrl()));
      try {
        for (const db of [pool, conn]) {
          const all = Array.from(
            { length: 20 },
            (_, i) =>
              i % 2
                ? db.query(`select $1::${schema}.c as c, $2::${schema}.e[] as e, ${i}`, [{ a: 1, b: i }, [
                  "y",
                ]])
                : db.query(`select $1::${schema}.e[] as e, ${i}`, [["y"]]),
          );
          for (const { rows } of await limit(Promise.all(all))) assert.deepEqual(rows[0]?.["e"], ["y"]);
        }
      } finally {
        await limit(conn.close());
        await limit(pool.close({ timeout: 0 }));
      }
    }
  });
});

test("a batch finds a type that it is the first to use", async () => {
  await withTypes(async (schema) => {
    for (const sync of ["one", "each"] as const) {
      await withConnection(async (conn) => {
        const insert = sql`insert into ${sql.id(schema, "t")} values (${["y"]})`;
        const results = await limit(conn.batch([insert, sql`select 1 as a`], { sync: sync as "one" }));
        assert.equal(results.length, 2);
        assert.equal(
          await conn.sql`select count(*)::int from ${sql.id(schema, "t")} where m = '{y}'`.scalar(),
          1,
        );
        await ask(`truncate ${schema}.t`);
      });
    }
  });
});

test("values are those of the call, on the first use and while they wait", async () => {
  await withTypes(async (schema) => {
    const text =
      `select $1::${schema}.e[]::text as e, $2::timestamptz as t, $3::jsonb as j, $4::${schema}.c as c`;
    for (const ready of [false, true]) {
      await withConnection(async (conn) => {
        const make = () => ({ e: ["y"], t: new Date(0), j: { a: [1] }, c: { a: 1, b: 2 } });
        if (ready) await conn.query(text, Object.values(make()));
        const { e, t, j, c } = make();
        const json = sql.json({ a: { b: 1 } });
        const behind = conn.query("select 1", [], { pipeline: false });
        const asked = conn.query(text, [e, t, j, c]);
        const fixed = conn.query("select $1::jsonb as j", [json]);
        e[0] = "z";
        t.setTime(1e12);
        j.a.push(2);
        c.a = 9;
        (json as unknown as { value: { a: { b: number } } }).value.a.b = 7;
        await limit(behind);
        const [row] = (await limit(asked)).rows;
        assert.deepEqual(row, { e: "{y}", t: new Date(0), j: { a: [1] }, c: { a: 1, b: 2 } });
        assert.deepEqual((await limit(fixed)).rows, [{ j: { a: { b: 1 } } }]);
      });
    }
  });
});

test("a composite whose attribute has another type now is looked up again", async () => {
  await withTypes(async (schema) => {
    await withConnection(async (conn) => {
      const read = async (text: string) =>
        (await limit(conn.query(`select row(${text}, 2)::${schema}.c as c`))).rows;
      for (let i = 0; i < 2; i++) assert.deepEqual(await read("1"), [{ c: { a: 1, b: 2 } }]);
      await ask(`alter type ${schema}.c alter attribute a type text`);
      const query = () => limit(conn.query(`select row('abcd', 2)::${schema}.c as c`));
      // The first execution comes as text, which does not say the types of attributes: what it gives is not looked at.
      await query().catch(() => {});
      assert.deepEqual((await query()).rows, [{ c: { a: "abcd", b: 2 } }]);
    });
  });
});

test("an interval of the largest months and days is finite, in both formats", async () => {
  await withConnection(async (conn) => {
    for (const text of ["2147483647 mons 2147483647 days", "-2147483648 mons -2147483648 days"]) {
      const values: unknown[] = [];
      for (let i = 0; i < 3; i++) {
        values.push(
          await limit(conn.query("select $1::interval as v", [text]).then(({ rows }) => rows[0]?.["v"])),
        );
      }
      values.push((await limit(conn.exec(`select '${text}'::interval as v`)))[0]?.rows[0]?.["v"]);
      for (const value of values) {
        assert.equal(Number.isFinite((value as { months: number }).months), true, String(value));
        assert.deepEqual(value, values[0]);
      }
    }
    // Before PostgreSQL 17 no interval is infinite.
    const knowsInfinite = parseInt(conn.parameters.get("server_version")!) >= 17;
    for (const text of knowsInfinite ? ["infinity", "-infinity"] : []) {
      for (let i = 0; i < 3; i++) {
        assert.equal(String(await limit(conn.sql`select ${text}::interval`.scalar())), text);
      }
    }
  });
});

test("json() heeds its time limit while it describes", async () => {
  await withConnection(async (conn) => {
    const slow = conn.query("select pg_sleep(1)");
    const began = performance.now();
    const error = await rejectionOf(conn.sql`select 1 as one`.with({ timeout: 100 }).json());
    assert.ok(error instanceof TimeoutError, String(error));
    assert.ok(performance.now() - began < 900, "it does not wait for what is before it");
    await limit(slow);
  });
});

leavesNoSession();
