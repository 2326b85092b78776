/** Prepared statements that the server loses, outdates or never had, and poolers that swap sessions. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Connection, Queryable } from "../../mod.ts";
import { hasPgBouncer, startPgBouncer } from "../_support/pgbouncer.ts";
import {
  hasTestRoles,
  leavesNoSession,
  roleUrl,
  testTarget,
  uniqueName,
  withSchema,
} from "../_support/server.ts";
import { rejectionOf, type SessionOptions, withConnection } from "../_support/session.ts";
import { startSwappingProxy } from "../_support/swapping_proxy.ts";

async function count(conn: Connection): Promise<number> {
  const [result] = await conn.exec("select count(*)::int as n from pg_prepared_statements");
  return result!.rows[0]!["n"] as number;
}

test("a table that changes is read anew: columns, types and none at all", async () => {
  await withConnection(async (conn) => {
    const table = uniqueName("plan");
    await conn.exec(`create temp table ${table} (a int); insert into ${table} values (1)`);
    const read = (on: Queryable = conn) => on.query(`select * from ${table} where a::int8 = $1`, [1]);
    const steps: [string, Record<string, unknown>][] = [
      ["select", { a: 1 }],
      [`alter table ${table} add b text`, { a: 1, b: null }],
      [`alter table ${table} alter a type bigint`, { a: 1n, b: null }],
      [`update ${table} set b = 'x'`, { a: 1n, b: "x" }],
      [`alter table ${table} drop b`, { a: 1n }],
      [`alter table ${table} rename to other; create temp table ${table} as select '1'::text as a`, {
        a: "1",
      }],
    ];
    for (const [script, row] of steps) {
      await conn.exec(script);
      for (let i = 0; i < 3; i++) {
        const { rows, fields } = await read();
        assert.deepEqual(rows, [row]);
        assert.deepEqual(fields.map(({ name }) => name), Object.keys(row));
      }
    }
    assert.equal(await read().then(({ rows }) => rows.length), 1);
    // In a transaction it is reported once; what has parameters is prepared anew behind the session's own changes.
    const plain = (on: Queryable = conn) => on.query(`select * from ${table} where a = '1'`);
    await plain();
    await conn.exec(`alter table ${table} add c int`);
    const failure = await rejectionOf(conn.transaction((tx) => plain(tx)));
    assert.equal(failure.code, "0A000");
    for (const run of [plain, read]) {
      await conn.transaction(async (tx) => assert.deepEqual((await run(tx)).rows, [{ a: "1", c: null }]));
    }
    // Changed inside, then used inside.
    await conn.transaction(async (tx) => {
      await plain(tx);
      await tx.exec(`alter table ${table} drop c`);
      await rejectionOf(tx.transaction((nested) => plain(nested)));
      for (const run of [plain, read]) assert.deepEqual((await run(tx)).rows, [{ a: "1" }]);
    });
  });
});

for (const forget of ["discard all", "deallocate all"]) {
  test(`${forget} is noticed, however it is sent`, async () => {
    await withConnection(async (conn) => {
      const cached = (on: Queryable = conn) => on.query("select $1::int4 as n", [7]);
      const statement = await conn.prepare("select $1::int4 as n");
      for (const send of [() => conn.exec(forget), () => conn.query(forget)]) {
        await cached();
        await send();
        assert.deepEqual((await cached()).rows, [{ n: 7 }]);
        assert.deepEqual((await statement.query([7])).rows, [{ n: 7 }]);
        // On its way in front of others.
        const [, ...results] = await Promise.all([
          send(),
          cached(),
          statement.query([7]),
          cached(),
          conn.query("select 7 as n"),
        ]);
        for (const { rows } of results) assert.deepEqual(rows, [{ n: 7 }]);
      }
      if (forget === "deallocate all") {
        await conn.transaction(async (tx) => {
          await cached(tx);
          await tx.query(forget);
          assert.deepEqual((await cached(tx)).rows, [{ n: 7 }]);
        });
      }
      await statement.close();
    });
  });
}

test("a batch whose statement is outdated or lost runs once more, as a whole and only where nothing stands", async () => {
  await withConnection(async (conn) => {
    const table = uniqueName("batch");
    await conn.exec(`create temp table ${table} (a int); create temp table ${table}_log (n int)`);
    const read = () => conn.sql`select * from ${conn.sql.id(table)}`;
    const note = () => conn.sql`insert into ${conn.sql.id(`${table}_log`)} values (1)`;
    const logged = () => conn.sql<number>`select count(*)::int from ${conn.sql.id(`${table}_log`)}`.scalar();
    await conn.batch([note(), read(), note()]);
    for (const change of ["add b int", "drop b", "alter a type text"]) {
      await conn.exec(`alter table ${table} ${change}`);
      const [, { fields }] = await conn.batch([note(), read(), note()]) as [unknown, { fields: unknown[] }];
      assert.equal(fields.length, change === "add b int" ? 2 : 1);
    }
    assert.equal(await logged(), 8);
    await conn.exec("deallocate prepare all");
    await conn.batch([note(), read(), note()]);
    assert.equal(await logged(), 10);
    // In a block it is reported; what came before belongs to the block.
    await conn.exec(`alter table ${table} add c int`);
    const failure = await rejectionOf(conn.transaction((tx) => tx.batch([note(), read()])));
    assert.equal(failure.code, "0A000");
    await conn.batch([read()]);
    // What has ended a transaction of its own is not done twice.
    await conn.exec(`alter table ${table} drop c`);
    const committed = await rejectionOf(conn.batch([note(), conn.sql`commit`, read()]));
    assert.equal(committed.code, "0A000");
    assert.equal(await logged(), 11);
  });
});

test("statements that are prepared behind DISCARD ALL are still closed in their time", async () => {
  await withConnection(async (conn) => {
    for (let i = 0; i < 20; i++) {
      await Promise.all([
        conn.exec("discard all"),
        ...[1, 2, 3].map((n) => conn.query(`select ${n} as n_${i}`)),
      ]);
    }
    await Promise.all(Array.from({ length: 10 }, (_, i) => conn.query(`select ${i} as filler`)));
    assert.ok(await count(conn) <= 5, String(await count(conn)));
  }, { statementCache: 4 });
});

test("an error of a user's own EXECUTE is not taken for a lost statement", async () => {
  await withConnection(async (conn) => {
    for (let i = 0; i < 3; i++) assert.equal((await rejectionOf(conn.query("execute nobody"))).code, "26000");
    const raising = "do $$ begin raise exception 'mine' using errcode = '26000'; end $$";
    for (let i = 0; i < 3; i++) assert.equal((await rejectionOf(conn.query(raising))).message, "mine");
  });
});

test("names are never used for another text", async () => {
  await withConnection(async (conn) => {
    const read = async (text: string) => Object.entries((await conn.query(text)).rows[0]!)[0];
    for (let round = 0; round < 4; round++) {
      for (const name of ["a", "b", "c", "a", "d"]) {
        assert.deepEqual(await read(`select '${name}${round % 2}' as ${name}`), [
          name,
          `${name}${round % 2}`,
        ]);
      }
    }
  }, { statementCache: 2 });
});

test("search_path decides anew", async () => {
  await withSchema((one) =>
    withSchema((two) =>
      withSchema((three) =>
        withConnection(async (conn) => {
          await conn.exec(`create table ${one}.t as select 1 as a; create table ${two}.t as select 2 as a;
            create table ${three}.t as select 'x'::text as a`);
          for (const [schema, a] of [[one, 1], [two, 2], [three, "x"], [one, 1], [three, "x"]]) {
            await conn.exec(`set search_path = ${schema}`);
            for (let i = 0; i < 2; i++) assert.deepEqual((await conn.query("select a from t")).rows, [{ a }]);
          }
        })
      )
    )
  );
});

test("statements leave the server when they leave the cache, and never while they are used", async () => {
  await withConnection(async (conn) => {
    for (let i = 0; i < 300; i += 10) {
      const kept = conn.query("select $1::int8 as kept", [i]);
      const results = await Promise.all(
        Array.from({ length: 10 }, (_, j) => conn.query(`select ${i + j} as n`)),
      );
      assert.deepEqual(results.map(({ rows }) => rows[0]!["n"]), Array.from({ length: 10 }, (_, j) => i + j));
      assert.deepEqual((await kept).rows, [{ kept: BigInt(i) }]);
    }
    assert.ok(await count(conn) <= 12, String(await count(conn)));
  }, { statementCache: 10 });
  await withConnection(async (conn) => {
    for (let i = 0; i < 20; i++) await conn.query(`select ${i % 5}, $1::int`, [i]);
    assert.equal(await count(conn), 0);
  }, { statementCache: 0 });
});

test("the same bad statement fails in the server's words each time", async () => {
  await withConnection(async (conn) => {
    for (let round = 0; round < 2; round++) {
      const bad = () => rejectionOf(conn.query("select * from no_such_table where a = $1", [1]));
      for (const failure of await Promise.all([bad(), bad(), bad()])) assert.equal(failure.code, "42P01");
    }
    const ambiguous = () => rejectionOf(conn.query("select * from no_such_table where a = $1", [[1]]));
    for (const failure of await Promise.all([ambiguous(), ambiguous()])) assert.equal(failure.code, "42P01");
    await conn.exec("create temp table no_such_table (a int)");
    assert.deepEqual((await conn.query("select * from no_such_table where a = $1", [1])).rows, []);
  });
});

test("explicit statements: pipelined, described, used after an error, closed", async () => {
  await withConnection(async (conn) => {
    const statement = await conn.prepare("select 100 / $1::int4 as q, $2::text as t");
    assert.deepEqual(statement.describe().parameters, [23, 25]);
    assert.deepEqual(statement.describe().fields.map(({ name }) => name), ["q", "t"]);
    const settled = await Promise.allSettled([1, 0, 2].map((n) => statement.query([n, `t${n}`])));
    assert.deepEqual(
      settled.map((each) => each.status === "fulfilled" ? each.value.rows : each.reason.code),
      [
        [{ q: 100, t: "t1" }],
        "22012",
        [{ q: 50, t: "t2" }],
      ],
    );
    assert.equal((await rejectionOf(statement.query([1]))).name, "ValueError");
    const rows = [];
    for await (const row of statement.stream([4, "x"])) rows.push(row);
    assert.deepEqual(rows, [{ q: 25, t: "x" }]);
    const last = statement.query([5, "y"]);
    await Promise.all([statement.close(), statement.close()]);
    assert.deepEqual((await last).rows, [{ q: 20, t: "y" }]);
    assert.match((await rejectionOf(statement.query([1, ""]))).message, /closed/);
    assert.equal(await count(conn), 0);
    assert.equal((await rejectionOf(conn.prepare("selekt"))).code, "42601");
  });
});

/** Deno's node:test counts a skipped test as passed: the reason is printed in any case. */
function skip(t: { skip(reason: string): void }, reason: string): void {
  console.log(`skipped: ${reason}`);
  t.skip(reason);
}

/** What must work although sessions are swapped between transactions. */
async function useSwapped(conn: Connection, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 10) {
    const results = await Promise.all([
      conn.query("select $1::int8 as n", [round]),
      conn.query("select $1::int8 as n", [round + 1]),
      conn.query("select $1::int4[] as a", [[round]]),
      conn.query(`select $1::text as t, ${round} as fresh`, [String(round)]),
      conn.exec(`select ${round} as n`).then(([result]) => result!),
      rejectionOf(conn.query("select $1::int", ["unfit"])).then(({ code }) => ({ rows: [{ code }] })),
    ]);
    assert.deepEqual(results.map(({ rows }) => rows[0]), [
      { n: BigInt(round) },
      { n: BigInt(round + 1) },
      { a: [round] },
      { t: String(round), fresh: round },
      { n: round },
      { code: "22P02" },
    ]);
    const beside = conn.query("select $1::int8 as n", [round]);
    const seen = [];
    for await (
      const { i } of conn.sql<{ i: number }>`select generate_series(1, ${5}::int) i`.stream({ batch: 2 })
    ) {
      seen.push(i);
    }
    assert.deepEqual(seen, [1, 2, 3, 4, 5]);
    assert.deepEqual((await beside).rows, [{ n: BigInt(round) }]);
  }
}

async function transactSwapped(conn: Connection): Promise<void> {
  for (let round = 0; round < 20; round++) {
    await conn.transaction(async (tx) => {
      const pid = () => tx.sql`select pg_backend_pid() as pid, ${round}::int8 as n`.one();
      const first = await pid();
      await tx.batch([tx.sql`select ${round}::int8`, tx.sql`select 2`]);
      assert.deepEqual(await Promise.all([pid(), pid()]), [first, first]);
    });
    const [row] = (await conn.batch([conn.sql`select ${round}::int4 as n`, conn.sql`select 1`]))[0]!.rows;
    assert.deepEqual(row, { n: round });
  }
}

for (const statementCache of [0, 100]) {
  test(`a proxy that swaps sessions at every idle ReadyForQuery, statementCache ${statementCache}`, async (t) => {
    if (!hasTestRoles()) return skip(t, "needs a role without a password");
    const proxy = await startSwappingProxy(testTarget());
    const url = new URL(roleUrl("app_trust"));
    url.port = String(proxy.port);
    url.searchParams.set("sslmode", "disable");
    try {
      await withConnection(async (conn) => {
        await useSwapped(conn, statementCache === 0 ? 1_000 : 300);
        // A transaction cannot be repeated behind its caller's back: with named statements it may fail.
        if (statementCache === 0) await transactSwapped(conn);
      }, { url: url.href, statementCache, within: 60_000 });
      assert.ok(proxy.swaps() > 100, String(proxy.swaps()));
    } finally {
      await proxy.close();
    }
  });
}

test("PgBouncer in transaction mode with statementCache 0", async (t) => {
  if (!hasPgBouncer()) return skip(t, "no PgBouncer on this machine");
  if (!hasTestRoles()) return skip(t, "needs a role without a password");
  const target = testTarget();
  const bouncer = await startPgBouncer(target, "app_trust");
  const url = new URL(roleUrl("app_trust"));
  url.port = String(bouncer.port);
  url.searchParams.set("sslmode", "disable");
  const options: SessionOptions = { url: url.href, statementCache: 0, within: 60_000 };
  try {
    await Promise.all([1, 2, 3].map(() =>
      withConnection(async (conn) => {
        await useSwapped(conn, 300);
        await transactSwapped(conn);
      }, options)
    ));
    await withConnection(async (conn) => {
      const query = rejectionOf(conn.sql`select pg_sleep(30)`.with({ timeout: 50 }));
      assert.equal((await query).name, "TimeoutError");
      assert.deepEqual((await conn.query("select 1 as a")).rows, [{ a: 1 }]);
    }, options);
  } finally {
    await bouncer.close();
  }
});

leavesNoSession();
