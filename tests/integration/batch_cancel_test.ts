/** Batches that are given up: at every moment, as a whole, and without a neighbour that notices. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { createPool, sql, TimeoutError } from "../../mod.ts";
import { seededRandom } from "../_support/proxy.ts";
import { ask, leavesNoSession, limit, testUrl, until, withSchema } from "../_support/server.ts";
import { rejectionOf, withConnection } from "../_support/session.ts";

const mine = () => new Error("mine");

test("a batch heeds signal and timeout: cancelled in its midst, nothing of it stands", async () => {
  await withSchema(async (schema) => {
    await ask(`create table ${schema}.t (a int)`);
    const table = sql.id(schema, "t");
    const batch = () => [sql`insert into ${table} values (1)`, sql`select pg_sleep(20)`, sql`select 1`];
    await withConnection(async (conn) => {
      for (const inBlock of [false, true]) {
        if (inBlock) await conn.exec("begin");
        const began = performance.now();
        const error = await rejectionOf(conn.batch(batch(), { timeout: 100 }));
        assert.ok(error instanceof TimeoutError, String(error));
        if (inBlock) await conn.exec("rollback");
        assert.equal(await limit(conn.sql`select count(*)::int from ${table}`.scalar(), 4_000), 0);
        const abort = new AbortController();
        const given = rejectionOf(conn.batch(batch(), { signal: abort.signal }));
        setTimeout(() => abort.abort(mine()), 50);
        assert.equal((await given).message, "mine");
        assert.equal(await limit(conn.sql`select 1`.scalar(), 4_000), 1);
        assert.ok(performance.now() - began < 8_000);
      }
      const each = await limit(
        conn.batch([sql`select 1`, sql`select pg_sleep(20)`], { sync: "each", timeout: 100 }),
      );
      assert.deepEqual(each.map(({ status }) => status), ["fulfilled", "rejected"]);
      assert.equal(
        (await rejectionOf(conn.batch([sql`select 1`], { signal: AbortSignal.abort(mine()) }))).message,
        "mine",
      );
    });
    // One that waits for a connection is taken out of the line.
    const pool = createPool(testUrl(), { max: 1 });
    try {
      const session = await limit(pool.acquire());
      assert.ok(await rejectionOf(pool.batch(batch(), { timeout: 50 })) instanceof TimeoutError);
      await limit(session.close());
      assert.equal(await limit(pool.sql`select count(*)::int from ${table}`.scalar()), 0);
    } finally {
      await limit(pool.close({ timeout: 0 }));
    }
  });
});

test("300 batches given up at random moments, with innocent neighbours before and behind", async () => {
  const seed = Date.now() % 1_000_000;
  console.log(`# seed ${seed}`);
  const random = seededRandom(seed);
  const pool = createPool(testUrl(), { max: 3 });
  let given = 0;
  try {
    const ask = async (nonce: number) => {
      const { rows } = await pool.query<{ v: number }>("select $1::int4 as v", [nonce]);
      assert.deepEqual(rows, [{ v: nonce }]);
    };
    const attempt = async (number: number) => {
      const abort = new AbortController();
      const size = 1 + Math.floor(random() * 6);
      const list = Array.from(
        { length: size },
        (_, i) =>
          i % 3 === 1 ? sql`select pg_sleep(${random() * 0.01})` : sql`select ${number * 100 + i}::int4 as v`,
      );
      const pause = random() * 15;
      const neighbours = [ask(number), ask(number + 1)];
      const batch = pool.batch(list, { signal: abort.signal }).then(
        (results) => {
          results.forEach(({ rows }, i) => {
            if (i % 3 !== 1) assert.deepEqual(rows, [{ v: number * 100 + i }]);
          });
        },
        (error: Error) => {
          given++;
          assert.equal(error.message, "mine");
        },
      );
      neighbours.push(ask(number + 2));
      if (pause < 1) abort.abort(mine());
      else setTimeout(() => abort.abort(mine()), pause);
      await Promise.all([batch, ...neighbours]);
    };
    for (let round = 0; round < 30; round++) {
      await limit(Promise.all(Array.from({ length: 10 }, (_, i) => attempt(round * 1000 + i * 10))), 20_000);
    }
    assert.ok(given > 20, `${given} were given up`);
    // The last cancel may be on its way.
    await until(() => pool.stats().busy === 0);
    const { total, waiting } = pool.stats();
    assert.ok(total <= 3 && waiting === 0, JSON.stringify(pool.stats()));
  } finally {
    await limit(pool.close({ timeout: 0 }));
  }
});

leavesNoSession();
