/** Ends of COPY that come from elsewhere: a consumer that stops, a signal, a lost connection, the owner's own end. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, ConnectionError, createPool, PipegresError, ValueError } from "../../mod.ts";
import { ask, leavesNoSession, limit, testUrl, withSchema } from "../_support/server.ts";
import { rejectionOf, sleep, withConnection } from "../_support/session.ts";

const mine = () => new Error("mine");

test("a consumer that stops leaves no connection unread, whatever the amount that is on its way", async () => {
  const fits = new Set<string>();
  for (let kilobytes = 100; kilobytes <= 500; kilobytes += 20) {
    for (const mode of ["rows", "bytes"]) {
      const pool = createPool(testUrl(), { max: 1 });
      try {
        const copy = pool.copyTo(
          `copy (select repeat('x', 1000) from generate_series(1, ${kilobytes})) to stdout`,
        );
        if (mode === "rows") await limit(copy.rows().next());
        else await limit(copy.getReader().read());
        // The rest comes, or the socket is stopped.
        await sleep(20);
        if (pool.stats().idle === 0) continue;
        fits.add(mode);
        assert.equal(await limit(pool.sql`select 1`.scalar()), 1, `${kilobytes} kB of ${mode}`);
      } finally {
        await limit(pool.close({ timeout: 0 }));
      }
    }
  }
  assert.deepEqual([...fits], ["rows", "bytes"], "some amounts fit into what may wait");
});

test("copyRows heeds its signal, and the loss of its connection, whatever it waits for", async () => {
  await withSchema(async (schema) => {
    await ask(`create table ${schema}.t (a int)`);
    const table = [schema, "t"];
    let left = 0;
    /** Rows that stop coming after `count`. */
    const stalled = (count: number) => ({
      async *[Symbol.asyncIterator](): AsyncGenerator<number[]> {
        try {
          for (let i = 0; i < count; i++) yield [i];
          await new Promise(() => {});
        } finally {
          left++; // not reached: a generator that waits cannot be ended
        }
      },
    });
    const plain = {
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise<IteratorResult<number[]>>(() => {}),
        return: () => Promise.resolve({ done: true as const, value: void left++ }),
      }),
    };
    const pool = createPool(testUrl(), { max: 1 });
    const other = await connect(testUrl());
    try {
      for (const rows of [stalled(0), stalled(1), stalled(500), plain]) {
        const abort = new AbortController();
        const copied = pool.copyRows(table, ["a"], rows, { signal: abort.signal });
        setTimeout(() => abort.abort(mine()), 50);
        assert.equal((await rejectionOf(copied)).message, "mine");
        assert.equal(
          await limit(pool.sql`select count(*)::int from ${pool.sql.raw(`${schema}.t`)}`.scalar()),
          0,
        );
      }
      assert.equal(left, 1, "the iterator that can be told of its end was told once");

      // The only connection is taken; the table is locked.
      const session = await pool.acquire();
      const waiting = new AbortController();
      const copied = pool.copyRows(table, ["a"], [[1]], { signal: waiting.signal });
      setTimeout(() => waiting.abort(mine()), 50);
      assert.equal((await rejectionOf(copied)).message, "mine");
      await limit(session.close());
      await other.exec(`begin; lock table ${schema}.t`);
      const locked = new AbortController();
      const blocked = pool.copyRows(table, ["a"], [[1]], { signal: locked.signal });
      setTimeout(() => locked.abort(mine()), 50);
      assert.equal((await rejectionOf(blocked)).message, "mine");
      await other.exec("rollback");

      const pid = await limit(pool.sql<number>`select pg_backend_pid()`.scalar());
      const lost = pool.copyRows(table, ["a"], stalled(1));
      setTimeout(() => void other.query("select pg_terminate_backend($1)", [pid]), 50);
      const error = await rejectionOf(lost);
      assert.ok(error instanceof ConnectionError, String(error));
      assert.equal(await limit(pool.sql`select 1`.scalar()), 1);
    } finally {
      await limit(other.close());
      await limit(pool.close({ timeout: 0 }));
    }
  });
});

test("an abort at any moment around the end of the data says what became of it", async () => {
  await withConnection(async (conn) => {
    await conn.exec("create temp table t (a int)");
    const stored = async () => await limit(conn.sql<number>`select count(*)::int from t`.scalar());
    for (let turns = 0; turns < 40; turns++) {
      await conn.exec("truncate t");
      const abort = new AbortController();
      const rows = function* (): Generator<number[]> {
        yield [1];
        (async () => {
          for (let i = 0; i < turns; i++) await null;
          abort.abort(mine());
        })();
      };
      const outcome = await limit(
        conn.copyRows("t", ["a"], rows(), { signal: abort.signal }).catch((error: Error) => error.message),
      );
      assert.deepEqual([outcome, await stored()], outcome === 1 ? [1, 1] : ["mine", 0], `${turns} turns`);
    }
    for (let turns = 0; turns < 10; turns++) {
      await conn.exec("truncate t");
      const writer = conn.copyFrom("copy t from stdin").getWriter();
      writer.closed.catch(() => {});
      await limit(writer.write("1\n"));
      const closed = writer.close().then(() => 1, (error: Error) => error.message);
      for (let i = 0; i < turns; i++) await null;
      await limit(writer.abort(mine()).catch(() => {}));
      const outcome = await limit(closed);
      assert.deepEqual([outcome, await stored()], outcome === 1 ? [1, 1] : ["mine", 0], `${turns} turns`);
    }
  });
});

test("an owner that ends gives up its open COPY: a transaction, a savepoint, an acquired session", async () => {
  await withSchema(async (schema) => {
    await ask(`create table ${schema}.t (a int)`);
    const pool = createPool(testUrl(), { max: 1 });
    const copyIn = `copy ${schema}.t from stdin`;
    const copyOut = "copy (select repeat('x', 1000), generate_series(1, 100000)) to stdout";
    try {
      for (const end of ["throws", "returns"]) {
        for (const direction of ["in", "out"]) {
          const done = pool.transaction(async (tx) => {
            await tx.query(`insert into ${schema}.t values (1)`);
            if (direction === "in") {
              const writer = tx.copyFrom(copyIn).getWriter();
              writer.closed.catch(() => {});
              await writer.write("2\n");
            } else await tx.copyTo(copyOut).getReader().read();
            if (end === "throws") throw mine();
          });
          const error = await rejectionOf(done, 3_000);
          if (end === "throws") assert.equal(error.message, "mine");
          else assert.match(String(error.cause), /COPY was given up: its transaction has ended/);
          assert.equal(
            await limit(pool.sql`select count(*)::int from ${pool.sql.raw(`${schema}.t`)}`.scalar()),
            0,
          );
        }
      }
      await limit(pool.transaction(async (tx) => {
        const nested = tx.transaction(async (inner) => {
          await inner.copyTo(copyOut).rows().next();
          throw mine();
        });
        assert.equal((await rejectionOf(nested)).message, "mine");
        assert.equal(await tx.sql`select 1`.scalar(), 1);
      }));
      for (const open of [(text: string) => text, () => copyOut]) {
        const session = await limit(pool.acquire());
        const text = open(copyIn);
        if (text === copyIn) {
          const writer = session.copyFrom(text).getWriter();
          writer.closed.catch(() => {});
          await limit(writer.write("1\n"));
        } else await limit(session.copyTo(text).getReader().read());
        await limit(session.close());
        assert.equal(await limit(pool.sql`select 1`.scalar(), 3_000), 1);
      }
    } finally {
      await limit(pool.close({ timeout: 0 }));
    }
  });
});

test("a script around COPY that opens a block is rolled back by the pool, and says so", async () => {
  await withSchema(async (schema) => {
    await ask(`create table ${schema}.t (a int)`);
    const pool = createPool(testUrl(), { max: 1 });
    try {
      for (const script of ["copy T from stdin; begin", "copy T from stdin; begin; select 1"]) {
        const writer = pool.copyFrom(script.replace("T", `${schema}.t`)).getWriter();
        writer.closed.catch(() => {});
        await limit(writer.write("1\n"));
        assert.match((await rejectionOf(writer.close())).message, /left a transaction block open/);
        assert.equal(
          await limit(pool.sql`select count(*)::int from ${pool.sql.raw(`${schema}.t`)}`.scalar()),
          0,
        );
      }
    } finally {
      await limit(pool.close({ timeout: 0 }));
    }
  });
});

test("copyRows stores float4 and float4[] in any order of rows", async () => {
  await withConnection(async (conn) => {
    await conn.exec("create temp table f (v float4, vs float4[])");
    const values = [1, 0.1, -0.1, 16777217, 1.1754944e-38, 1e-45, 3.4028234e38, NaN, Infinity];
    await conn.copyRows("f", ["v", "vs"], values.map((value) => [value, [value]]));
    const rows = await conn.sql<{ v: number; vs: number[] }>`select v, vs from f`;
    const asked = await conn.sql<{ v: number }>`select v::float4 as v from unnest(${
      values.map(String)
    }::text[]) v`;
    assert.deepEqual(rows.map(({ v }) => v), asked.map(({ v }) => v));
    assert.deepEqual(rows.map(({ vs }) => vs[0]), asked.map(({ v }) => v));
    for (const value of [1e39, 1e-50]) {
      const error = await rejectionOf(conn.copyRows("f", ["v"], [[1], [value]]));
      assert.ok(error instanceof ValueError, String(error));
    }
    for (const rows of [null, 7, {}]) {
      const error = await rejectionOf(conn.copyRows("f", ["v"], rows as unknown as number[][]));
      assert.match(error.message, /Expected rows as an iterable/);
    }
    const format = "csv" as "text";
    assert.match(
      (await rejectionOf(conn.copyRows("f", ["v"], [[1]], { format }))).message,
      /in format "csv"/,
    );
  });
});

test("leaving the rows of a COPY while the server takes its time cancels it at once", async () => {
  await withConnection(async (conn) => {
    const rows = conn.copyTo("copy (select 1 as a union all select 2 from pg_sleep(20)) to stdout").rows();
    const first = rows.next();
    const second = rows.next();
    await sleep(50);
    await limit(rows.return(), 3_000);
    for (const { done } of await limit(Promise.all([first, second]))) assert.equal(done, true);
    assert.equal(await limit(conn.sql`select 1`.scalar()), 1);
  });
});

test("copyTo().rows() reads dates in whatever style and format", async () => {
  await withConnection(async (conn) => {
    const text = "select date '2024-02-01' as d, timestamp '2024-02-01 10:00' as t, '::1'::inet as i";
    const [wanted] = await conn.query(text).then(({ rows }) => rows);
    for (const style of ["iso, dmy", "sql, dmy", "sql, mdy", "german", "postgres, dmy", "postgres, mdy"]) {
      await conn.exec(`set datestyle = '${style}'`);
      for (const format of ["", " (format text)"]) {
        const rows = conn.copyTo(`copy (${text}) to stdout${format}`).rows();
        assert.deepEqual((await limit(rows.next())).value, wanted, `${style}${format}`);
        await limit(rows.return());
      }
    }
  });
});

test("copyTo().rows() reads tables with generated columns, comments, and names with brackets", async () => {
  await withConnection(async (conn) => {
    await conn.exec(
      'create temp table g (a int, b int generated always as (a * 2) stored, c text); create temp table "o (d) to stdout" as select 1 as "x)(y"',
    );
    await conn.exec("insert into g (a, c) values (1, 'x')");
    const rowsOf = async (text: string) => {
      const rows: unknown[] = [];
      for await (const row of conn.copyTo(text).rows()) rows.push(row);
      return rows;
    };
    assert.deepEqual(await limit(rowsOf("-- all\n/* of it */ copy g to stdout")), [{ a: 1, c: "x" }]);
    assert.deepEqual(await limit(rowsOf("copy g to stdout (format text)")), [{ a: 1, c: "x" }]);
    const error = await rejectionOf(rowsOf("copy g (a, b) to stdout"));
    assert.ok(error instanceof PipegresError && /generated column/.test(error.message), String(error));
    assert.deepEqual(await limit(rowsOf('copy "o (d) to stdout" to stdout')), [{ "x)(y": 1 }]);
    assert.deepEqual(await limit(rowsOf('copy "o (d) to stdout" ("x)(y") to stdout')), [{ "x)(y": 1 }]);
  });
});

leavesNoSession();
