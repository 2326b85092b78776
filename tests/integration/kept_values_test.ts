/** A query that has to wait sends the values that it was given, whatever the caller makes of their list meanwhile. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Queryable } from "../../mod.ts";
import { withPool } from "../_support/pools.ts";
import { leavesNoSession } from "../_support/server.ts";
import { withConnection } from "../_support/session.ts";

const TEXT = "select $1::int4 as n, $2::text as t";

/** Issues queries from one list that is written over behind each of them: of plain values, and with an array in it. */
async function check(on: Pick<Queryable, "query">, what: string): Promise<void> {
  const plain: unknown[] = [0, ""];
  const array: unknown[] = [0, [""]];
  const results = [1, 2, 3].flatMap((n) => {
    plain[0] = array[0] = n;
    plain[1] = (array[1] as string[])[0] = `t${n}`;
    return [on.query(TEXT, plain), on.query(TEXT.replace("text", "text[]"), array)];
  });
  (array[1] as string[]).fill("late");
  plain.fill("9");
  array.fill("{}");
  const rows = (await Promise.all(results)).map((result) => result.rows);
  assert.deepEqual(rows, [1, 2, 3].flatMap((n) => [[{ n, t: `t${n}` }], [{ n, t: [`t${n}`] }]]), what);
}

for (const pipeline of [undefined, false, { maxQueries: 1 }] as const) {
  test(`values are those given, on a connection with pipeline ${JSON.stringify(pipeline) ?? "as it is"}`, () =>
    withConnection(async (conn) => {
      for (const use of ["first use", "second use"]) {
        await check(conn, use);
        const slow = conn.sql`select pg_sleep(0.05)`.with({ pipeline: false }).scalar();
        await check(conn, `${use}, behind a slow query`);
        await slow;
        const block = await conn.begin();
        const waiting = check(conn, `${use}, behind a transaction`);
        await check(block, `${use}, in a transaction`);
        await block.commit();
        await waiting;
        const statement = await conn.prepare(TEXT);
        const before = conn.sql`select pg_sleep(0.05)`.with({ pipeline: false }).scalar();
        const values = [1, "t1"];
        const result = statement.query(values);
        values.fill("9");
        assert.deepEqual((await result).rows, [{ n: 1, t: "t1" }], `${use}, prepared`);
        await before;
        await statement.close();
      }
    }, pipeline === undefined ? {} : { pipeline }));

  test(`values are those given, on a pool with pipeline ${JSON.stringify(pipeline) ?? "as it is"}`, () =>
    withPool(async (pool) => {
      for (const use of ["opening", "first use", "second use"]) await check(pool, use);
      const owned = await pool.acquire();
      const waiting = check(pool, "behind an owner");
      await check(owned, "of an owner");
      await owned.close();
      await waiting;
    }, pipeline === undefined ? { max: 1 } : { max: 1, pipeline }));
}

leavesNoSession();
