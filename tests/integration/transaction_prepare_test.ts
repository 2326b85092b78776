/** Statements prepared on a transaction: executed inside it, closed inside it or behind it, gone from a pool's session. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Connection, Transaction } from "../../mod.ts";
import { withPool } from "../_support/pools.ts";
import { leavesNoSession, limit } from "../_support/server.ts";
import { rejectionOf, withConnection } from "../_support/session.ts";

const XID = "select $1::int4 as n, pg_current_xact_id()::text as xid";

/** The user's own statements: those of the statement cache have not this text. */
async function countPrepared(on: Connection | Transaction): Promise<unknown> {
  const [result] = await on.exec(
    "select count(*)::int as n from pg_prepared_statements where statement like 'select $1::int4 as n%'",
  );
  return result!.rows[0]!["n"];
}

type Run = (body: (tx: Transaction) => Promise<void>) => Promise<unknown>;

const WAYS: readonly (readonly [string, (conn: Connection) => Run])[] = [
  ["transaction()", (conn) => (body) => conn.transaction(body)],
  ["begin()", (conn) => async (body) => {
    await using tx = await conn.begin();
    await body(tx);
    await tx.commit();
  }],
  ["a nested transaction", (conn) => (body) => conn.transaction((tx) => tx.transaction(body))],
];

for (const [name, runOn] of WAYS) {
  test(`${name}: a prepared statement is executed, pipelined, streamed and described inside`, () =>
    withConnection(async (conn) => {
      await runOn(conn)(async (tx) => {
        const statement = await tx.prepare(XID);
        assert.deepEqual(statement.describe().parameters, [23]);
        const xid = await tx.sql`select pg_current_xact_id()::text`.scalar();
        const results = await Promise.all([1, 2, 3].map((n) => statement.query([n])));
        assert.deepEqual(results.map(({ rows }) => rows), [1, 2, 3].map((n) => [{ n, xid }]));
        const rows = [];
        for await (const row of statement.stream([4], { batch: 1 })) rows.push(row);
        assert.deepEqual(rows, [{ n: 4, xid }]);
        assert.equal(await countPrepared(tx), 1);
        await statement.close();
        assert.equal(await countPrepared(tx), 0);
        assert.match((await rejectionOf(statement.query([1]))).message, /closed/);
      });
      assert.equal(await conn.sql`select 1`.scalar(), 1);
    }));

  test(`${name}: a statement is closed behind the end, which ends its executions`, () =>
    withConnection(async (conn) => {
      for (const failing of [false, true]) {
        let kept: Awaited<ReturnType<Transaction["prepare"]>> | undefined;
        const end = runOn(conn)(async (tx) => {
          kept = await tx.prepare(XID);
          if (failing) await tx.query("select 1 / 0");
        });
        if (failing) assert.equal((await rejectionOf(end)).code, "22012");
        else await end;
        assert.equal(await countPrepared(conn), 1);
        assert.match((await rejectionOf(kept!.query([1]))).message, /Transaction has ended/);
        await limit(kept!.close(), 5_000, "close");
        assert.equal(await countPrepared(conn), 0);
      }
    }));
}

test("a statement is closed in a transaction that has failed", () =>
  withConnection(async (conn) => {
    await rejectionOf(conn.transaction(async (tx) => {
      await using statement = await tx.prepare(XID);
      await rejectionOf(tx.query("select 1 / 0"));
      assert.equal((await rejectionOf(statement.query([1]))).code, "25P02");
    }));
    assert.equal(await countPrepared(conn), 0);
    assert.equal((await rejectionOf(conn.transaction((tx) => tx.prepare("selekt")))).code, "42601");
  }));

test("on a pool a transaction's statements are gone with it; closing them behind it hits nobody", () =>
  withPool(async (pool) => {
    const statement = await pool.transaction(async (tx) => {
      const statement = await tx.prepare(XID);
      assert.equal((await statement.query<{ n: number }>([7])).rows[0]!.n, 7);
      return statement;
    });
    await using other = await pool.acquire();
    assert.equal(await countPrepared(other), 0);
    await using own = await other.prepare(XID);
    await limit(statement.close(), 5_000, "close");
    assert.equal((await own.query<{ n: number }>([8])).rows[0]!.n, 8);
    // The same in a session of one's own.
    const behind = await other.transaction((tx) => tx.prepare(XID));
    assert.equal(await countPrepared(other), 2);
    await limit(behind.close(), 5_000, "close");
    assert.equal(await countPrepared(other), 1);
  }, { max: 1 }));

test("a transaction whose connection is lost prepares nothing, and its statements close", () =>
  withConnection(async (conn) => {
    const tx = await conn.begin();
    const statement = await tx.prepare(XID);
    await limit(conn.close({ timeout: 0 }), 5_000, "close");
    assert.equal((await rejectionOf(statement.query([1]))).name, "ConnectionError");
    assert.equal((await rejectionOf(tx.prepare(XID))).name, "ConnectionError");
    await limit(statement.close(), 5_000, "close");
  }));

leavesNoSession();
