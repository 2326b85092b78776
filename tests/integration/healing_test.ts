/**
 * Queries whose prepared statement the server has lost or outdated: outside a transaction block they are prepared and
 * run again, behind what was written behind them and before what waits.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Connection, createPool } from "../../mod.ts";
import { leavesNoSession, limit, testUrl, uniqueName, withSchema } from "../_support/server.ts";
import { rejectionOf, sleep, withConnection } from "../_support/session.ts";

/** A script that loses the statements whose text is like this, by default all, and says nothing of it. */
function losing(like: string = "%"): string {
  return `do $$ declare lost text; begin
    for lost in select name from pg_prepared_statements where statement like '${like}'
    loop execute format('deallocate %I', lost); end loop;
  end $$`;
}

const LOSE = losing("insert into %");

/** A table of what was done, in order, and queries that note something in it. */
async function withLog(body: (conn: Connection, log: Log) => Promise<void>): Promise<void> {
  await withConnection(async (conn) => {
    const table = uniqueName("log");
    await conn.exec(`create temp table ${table} (i int generated always as identity, what text)`);
    const insert = `insert into ${table} (what) values ($1)`;
    const log: Log = {
      insert,
      note: (what, on = conn) => on.query(insert, [what]),
      read: async () => {
        const [result] = await conn.exec(`select what from ${table} order by i`);
        return result!.rows.map((row) => row["what"] as string);
      },
    };
    await log.note("first");
    await body(conn, log);
  });
}

interface Log {
  readonly insert: string;
  note(what: string, on?: Pick<Connection, "query">): Promise<unknown>;
  read(): Promise<string[]>;
}

test("a lost statement behind which a transaction begins in the same turn runs behind the transaction", async () => {
  await withLog(async (conn, { note, read }) => {
    for (const end of ["commit", "rollback"] as const) {
      await conn.exec(LOSE);
      const healed = note(`healed ${end}`);
      const tx = await conn.begin();
      const inside = [tx.query("select 1"), tx.query("select 2")];
      await Promise.all(inside);
      for (let i = 0; i < 3; i++) await tx.query(`select ${i}`);
      // It has not run yet: in the block it could be rolled back unseen.
      await note(`in ${end}`, tx);
      const later = note("later");
      await tx[end]();
      await Promise.all([healed, later]);
    }
    assert.deepEqual(await read(), [
      "first",
      "in commit",
      "healed commit",
      "later",
      "healed rollback",
      "later",
    ]);
  });
});

test("a lost statement behind which a query opens a block in the same turn runs behind the block", async () => {
  await withLog(async (conn, { note, read }) => {
    await conn.exec(LOSE);
    const healed = note("healed");
    await conn.exec("begin");
    await note("inside");
    await Promise.all([conn.exec("rollback"), conn.exec("begin")]);
    await note("inside the second");
    await conn.exec("commit");
    await healed;
    assert.deepEqual(await read(), ["first", "inside the second", "healed"]);
  });
});

test("lost statements run again in their order, before what was not written yet", async () => {
  await withLog(async (conn, { note, read }) => {
    await conn.exec(LOSE);
    const notes = ["a", "b", "c"].map((what) => note(what));
    const alone = conn.query(`${"/* another text */"} select 1`, [], { pipeline: false });
    const last = note("d");
    await Promise.all([...notes, alone, last]);
    assert.deepEqual(await read(), ["first", "a", "b", "c", "d"]);
  });
});

test("a block by query() whose every statement is lost runs as a block", async () => {
  await withLog(async (conn, { note, read }) => {
    const block = (end: string) =>
      Promise.allSettled([conn.query("begin"), note(end), conn.query("select 1"), conn.query(end)]);
    await block("commit");
    await conn.exec(losing());
    for (const { status } of await block("commit")) assert.equal(status, "fulfilled");
    await conn.exec(losing());
    // What was never prepared runs in front of what is prepared again: then there must be no block behind it.
    const [begin] = await Promise.all([rejectionOf(conn.query("begin")), conn.query("select 'new'")]);
    assert.equal(begin.code, "26000");
    assert.equal(conn.transactionStatus, "idle");
    assert.deepEqual(await read(), ["first", "commit", "commit"]);
  });
});

test("the transaction's own BEGIN that was lost is healed with the queries that share its Sync", async () => {
  await withLog(async (conn, { note, read }) => {
    const run = (round: number) =>
      conn.transaction(async (tx) => {
        await Promise.all([tx.query(`select ${round}`), note("inside", tx), tx.query("select 2")]);
        await note("again", tx);
      });
    await run(1);
    await conn.exec(losing("begin%"));
    await run(2);
    await conn.exec(losing());
    // Its first query is sent behind the answer to BEGIN.
    await conn.transaction((tx) => tx.exec("select 1"));
    assert.deepEqual(await read(), ["first", "inside", "again", "inside", "again"]);
  });
});

test("a batch that lost a statement is healed although a transaction begins behind it", async () => {
  await withLog(async (conn, { note, read, insert }) => {
    const table = uniqueName("altered");
    await conn.exec(`create temp table ${table} (a int)`);
    const { sql } = conn;
    const batch = (what: string) =>
      conn.batch([
        sql`insert into ${sql.raw(insert.split(" ")[2]!)} (what) values (${what})`,
        sql`select * from ${sql.id(table)}`,
      ]);
    await batch("batch");
    await conn.exec(`alter table ${table} add b int`);
    const healed = batch("healed");
    const behind = conn.transaction((tx) => note("inside", tx));
    await Promise.all([healed, behind]);
    assert.equal((await healed)[1]!.fields.length, 2);
    await conn.exec(`alter table ${table} drop b`);
    const again = batch("again");
    await conn.exec("begin");
    await note("in a block");
    await conn.exec("rollback");
    assert.equal((await again)[1]!.fields.length, 1);
    assert.deepEqual(await read(), ["first", "batch", "inside", "healed", "again"]);
  });
});

test("a batch all of whose statements are lost or outdated runs again once, and is healed", async () => {
  await withConnection(async (conn) => {
    const tables = ["one", "two", "three"].map((name) => uniqueName(name));
    const { sql } = conn;
    for (const table of tables) await conn.exec(`create temp table ${table} (a int)`);
    const read = () => conn.batch(tables.map((table) => sql`select * from ${sql.id(table)}`));
    await read();
    for (const table of tables) await conn.exec(`alter table ${table} add b int`);
    for (const { fields } of await read()) assert.equal(fields.length, 2);
    await conn.exec(losing());
    for (const { fields } of await read()) assert.equal(fields.length, 2);
  });
});

test("a prepared statement is healed although the cached one of its text is lost too", async () => {
  await withConnection(async (conn) => {
    const text = "select $1::int4 as n";
    const statement = await conn.prepare(text);
    for (const lose of [losing(), "discard all", "deallocate all"]) {
      await conn.query(text, [1]);
      await conn.exec(lose);
      const results = await Promise.all([statement.query([1]), conn.query(text, [2]), statement.query([3])]);
      assert.deepEqual(results.map(({ rows }) => rows[0]!["n"]), [1, 2, 3]);
      // From then on there is nothing to be healed, in a transaction neither.
      await conn.exec("begin");
      assert.deepEqual((await statement.query([4])).rows, [{ n: 4 }]);
      await conn.exec("commit");
    }
    await statement.close();
    assert.deepEqual((await conn.query(text, [5])).rows, [{ n: 5 }]);
  });
});

test("a transaction whose statements are lost is closed all the same", async () => {
  for (const end of ["commit", "rollback"] as const) {
    await withLog(async (conn, { note, read }) => {
      await conn.transaction((tx) => tx.query("select 1"));
      const tx = await conn.begin();
      await note("inside", tx);
      await tx.transaction((nested) => nested.query("select 2"));
      await tx.exec(losing());
      await tx[end]();
      assert.equal(conn.transactionStatus, "idle");
      assert.deepEqual(await read(), end === "commit" ? ["first", "inside"] : ["first"]);
      // Behind a failure too.
      await conn.transaction((tx) => note("healed", tx));
      const failed = conn.transaction(async (tx) => {
        await tx.exec(losing());
        await note("lost", tx);
      });
      assert.equal((await rejectionOf(failed)).code, "26000");
      assert.equal(conn.transactionStatus, "idle");
    });
  }
});

test("whoever awaits a lost statement inside the transaction behind it learns so in bounded time", async () => {
  await withLog(async (conn, { note, read }) => {
    await conn.exec(LOSE);
    const healed = note("healed");
    const failure = await rejectionOf(
      conn.transaction(async (tx) => {
        await tx.query("select 1");
        await healed;
      }),
      15_000,
    );
    assert.equal(failure.name, "TimeoutError");
    assert.equal(failure.cause?.code, "26000");
    assert.deepEqual(await read(), ["first"]);
    assert.equal(conn.transactionStatus, "idle");
  });
});

test("a lost statement with a time limit, behind which nothing is written, runs before the transaction", async () => {
  await withLog(async (conn, { note, read, insert }) => {
    await conn.exec(LOSE);
    const healed = conn.query(insert, ["limited"], { timeout: 10_000 });
    await Promise.all([healed, conn.transaction((tx) => note("inside", tx))]);
    assert.deepEqual(await read(), ["first", "limited", "inside"]);
  });
});

test("closing ends a lost statement that waits behind a block", async () => {
  await withLog(async (conn, { note }) => {
    await conn.exec(LOSE);
    const lost = rejectionOf(note("closed"));
    const tx = await conn.begin();
    await tx.query("select 1");
    await conn.close({ timeout: 0 });
    assert.equal((await lost).sent, false);
  });
});

test("on a pool, and on a session of it, nobody loses a query to a lost statement", async () => {
  await withSchema(async (schema) => {
    const db = createPool(testUrl(), { max: 2 });
    try {
      await db.exec(`create table ${schema}.t (a int)`);
      const read = () => db.query(`select * from ${schema}.t`);
      await Promise.all([read(), read(), read(), read()]);
      for (const change of ["add b int", "drop b", "add c text"]) {
        await db.exec(`alter table ${schema}.t ${change}`);
        const work = Array.from(
          { length: 20 },
          (_, i) => i % 3 === 0 ? db.transaction((tx) => tx.query("select 1")) : read(),
        );
        await limit(Promise.all(work));
      }
      await using session = await db.acquire();
      await session.query("select 1");
      await session.exec(losing());
      const healed = session.query("select 1");
      const behind = session.transaction((tx) => tx.query("select 2"));
      await limit(Promise.all([healed, behind]));
      // Given back with what has to run again still on its way.
      await session.exec(losing());
      const left = session.query("select 1").catch((error) => error.name);
      const open = session.exec("begin").catch((error) => error.name);
      await session.close();
      await limit(Promise.all([left, open]));
    } finally {
      await limit(db.close({ timeout: 0 }));
    }
  });
});

test("a stream that lost its statement is healed behind a transaction too", async () => {
  await withConnection(async (conn) => {
    const text = "select generate_series(1, $1::int) as n";
    const statement = await conn.prepare(text);
    const read = async () => {
      const seen = [];
      for await (const { n } of statement.stream<{ n: number }>([5], { batch: 2 })) seen.push(n);
      return seen;
    };
    assert.deepEqual(await read(), [1, 2, 3, 4, 5]);
    await conn.exec(losing());
    const seen = read();
    await conn.transaction(async (tx) => {
      await tx.query("select 1");
      await sleep(10);
    });
    assert.deepEqual(await seen, [1, 2, 3, 4, 5]);
  });
});

leavesNoSession();
