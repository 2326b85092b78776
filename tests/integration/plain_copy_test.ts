/** COPY through a plain query is refused, and the connection goes on. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { connect, type Connection, PipegresError } from "../../mod.ts";
import { leavesNoSession, limit, testUrl } from "../_support/server.ts";

const COPIES: Readonly<Record<string, (connection: Connection) => PromiseLike<unknown>>> = {
  "query(), FROM": (connection) => connection.query("copy c from stdin"),
  "exec(), FROM": (connection) => connection.exec("copy c from stdin"),
  "sql, FROM": ({ sql }) => sql`copy c from ${sql.raw("STDIN")}`,
  "exec() of a script, FROM": (connection) => connection.exec("select 1; copy c from stdin; select 2"),
  "query(), TO": (connection) => connection.query("copy c to stdout"),
  "exec(), TO": (connection) => connection.exec("copy c to stdout"),
  "exec() of a script, TO": (connection) => connection.exec("select 1; copy (select 5) to stdout; select 2"),
  "query(), TO with much data": (connection) =>
    connection.query("copy (select repeat('x', 1000) from generate_series(1, 5000)) to stdout"),
};

for (const [name, run] of Object.entries(COPIES)) {
  test(`COPY by ${name} is refused; queries before and behind it are answered`, async () => {
    await using connection = await limit(connect(testUrl()));
    await limit(connection.exec("create temp table c (a int)"));
    const queries = [
      connection.query("select 1 as n"),
      Promise.resolve(run(connection)).then(() => undefined, (error: unknown) => error),
      connection.query("select $1::int4[] as n", [[2]]),
      connection.exec("insert into c values (3); select a as n from c"),
    ] as const;
    const [before, error, behind, script] = await limit(Promise.all(queries));
    assert.ok(error instanceof PipegresError, String(error));
    assert.match(error.message, /^Cannot run COPY .* as a plain query: use copy(From|To)\(\)/);
    assert.deepEqual([before.rows, behind.rows, script[1]?.rows], [[{ n: 1 }], [{ n: [2] }], [{ n: 3 }]]);
    assert.equal(connection.transactionStatus, "idle");
  });
}

test("COPY that fails by itself is the server's error", async () => {
  await using connection = await limit(connect(testUrl()));
  for (const text of ["copy nowhere from stdin", "copy nowhere to stdout"]) {
    await assert.rejects(limit(connection.query(text)), { code: "42P01" });
  }
  await assert.rejects(
    limit(connection.query("copy (select 1/(i-3) from generate_series(1, 9) i) to stdout")),
    PipegresError,
  );
  assert.equal(await limit(connection.sql`select 1`.scalar()), 1);
});

test("COPY inside a transaction block fails the block, as the server says", async () => {
  await using connection = await limit(connect(testUrl()));
  await limit(connection.exec("begin; create temp table c (a int)"));
  await assert.rejects(limit(connection.query("copy c from stdin")), /copyFrom/);
  assert.equal(connection.transactionStatus, "failed");
  await limit(connection.exec("rollback"));
  assert.equal(connection.transactionStatus, "idle");
});

leavesNoSession();
