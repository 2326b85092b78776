/** Transactions whose block ends otherwise than by their handle, and what they tell of it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { createPool, PipegresError, PostgresError, sql } from "../../mod.ts";
import { ask, leavesNoSession, limit, testUrl, withSchema } from "../_support/server.ts";
import { rejectionOf, withConnection } from "../_support/session.ts";

test("the handle of a transaction that outlives its session touches nobody", async () => {
  const pool = createPool(testUrl(), { max: 1 });
  try {
    for (const end of ["rollback", "commit"] as const) {
      const session = await limit(pool.acquire());
      const transaction = await limit(session.begin());
      await limit(transaction.query("select 1"));
      const running = session.close();
      const other = await limit(pool.acquire());
      await limit(running);
      await limit(other.exec("begin"));
      const pid = other.processId;
      assert.match((await rejectionOf(transaction[end]())).message, /given back to the pool/);
      assert.equal(await limit(other.sql`select pg_backend_pid()`.scalar()), pid);
      assert.equal(other.transactionStatus, "transaction");
      await limit(other.close());
    }
    const session = await limit(pool.acquire());
    let go = () => {};
    let begun = () => {};
    const inside = new Promise<void>((resolve) => begun = resolve);
    const paused = session.transaction(async (tx) => {
      await tx.query("select 1");
      begun();
      await new Promise<void>((resolve) => go = resolve);
    });
    await limit(inside);
    await limit(session.close());
    await limit(pool.transaction(async (tx) => {
      await tx.query("select 1");
      go();
      await rejectionOf(paused);
      await tx.query("select 1");
    }));
  } finally {
    await limit(pool.close({ timeout: 0 }));
  }
});

test("a query that commits or rolls back ends the handle, which says so", async () => {
  await withSchema(async (schema) => {
    await ask(`create table ${schema}.t (a int)`);
    const pool = createPool(testUrl(), { max: 1 });
    try {
      for (const word of ["rollback", "commit", "end", "abort"]) {
        for (const way of ["query", "exec"] as const) {
          await ask(`truncate ${schema}.t`);
          let later: unknown;
          const done = pool.transaction(async (tx) => {
            await tx.query(`insert into ${schema}.t values (1)`);
            await tx[way](word);
            later = await rejectionOf(tx.query(`insert into ${schema}.t values (2)`));
          });
          const error = await rejectionOf(done);
          for (const each of [error, later]) {
            assert.match(String(each), /a query of it was COMMIT or ROLLBACK/);
          }
          const rows = await limit(pool.query<{ a: number }>(`select a from ${schema}.t`));
          const stands = word === "commit" || word === "end";
          assert.deepEqual(rows.rows, stands ? [{ a: 1 }] : [], `${word} by ${way}`);
        }
      }
      const nested = pool.transaction((tx) =>
        tx.transaction(async (inner) => {
          await inner.query("select 1");
          await inner.exec("rollback");
        })
      );
      assert.match((await rejectionOf(nested)).message, /a query of it was COMMIT or ROLLBACK/);
      const mine = new Error("mine");
      const thrown = pool.transaction(async (tx) => {
        await tx.exec("rollback");
        throw mine;
      });
      assert.equal(await rejectionOf(thrown), mine);
      // A chain goes on with a block.
      await limit(pool.transaction(async (tx) => {
        await tx.exec("rollback and chain");
        await tx.query(`insert into ${schema}.t values (3)`);
      }));
      assert.equal(
        await limit(pool.sql`select count(*)::int from ${pool.sql.raw(`${schema}.t`)}`.scalar()),
        1,
      );
      const { total, busy } = pool.stats();
      assert.deepEqual([total, busy], [1, 0]);
    } finally {
      await limit(pool.close({ timeout: 0 }));
    }
  });
});

test("a nested transaction tells the failure it was rolled back for, and the end of the one around it", async () => {
  await withConnection(async (conn) => {
    await limit(conn.transaction(async (tx) => {
      const error = await rejectionOf(tx.transaction(async (inner) => {
        await inner.query("select 1/0").catch(() => {});
      }));
      assert.ok(error instanceof PipegresError, String(error));
      assert.match(error.message, /Nested transaction was rolled back/);
      assert.match(String(error.cause), /division by zero/);
      await tx.query("select 1");
    }));
    const error = await rejectionOf(conn.transaction((tx) =>
      tx.transaction(async (inner) => {
        await inner.query("select 1");
        await tx.rollback();
      })
    ));
    assert.match(error.message, /Transaction has ended/);
    assert.equal(await limit(conn.sql`select 1`.scalar()), 1);
  });
});

test("a batch with COPY behind an empty statement is refused, and hits nobody", async () => {
  await withSchema(async (schema) => {
    await ask(`create table ${schema}.t (a int)`);
    const pool = createPool(testUrl(), { max: 1 });
    try {
      for (
        const text of [";copy T from stdin", "/* a /* b */ c */ ;; copy T from stdin", "copy T to stdout"]
      ) {
        const batch = pool.batch([sql`select 1`, sql`${sql.raw(text.replace("T", `${schema}.t`))}`]);
        const neighbour = pool.query(`insert into ${schema}.t values (1)`);
        assert.match((await rejectionOf(batch)).message, /COPY/);
        await limit(neighbour);
      }
    } finally {
      await limit(pool.close({ timeout: 0 }));
    }
    const refused = await rejectionOf(pool.batch([sql`select 1`]));
    assert.doesNotMatch(refused.message, /query 1 of 1 failed/);
  });
  await withConnection(async (conn) => {
    const error = await rejectionOf(conn.batch([conn.sql`select 1`, conn.sql`select 1/0`]));
    assert.ok(error instanceof PostgresError && /query 2 of 2 failed/.test(error.message), String(error));
  });
});

leavesNoSession();
