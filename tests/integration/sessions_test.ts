/** Authentication by the real server, and statements that the server forgets or changes. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { connect, type Connection, ConnectionError, PostgresError } from "../../mod.ts";
import {
  hasTestRoles,
  leavesNoSession,
  limit,
  roleUrl,
  TEST_ROLES,
  type TestRole,
  testUrl,
  withSchema,
} from "../_support/server.ts";
import { assertNoSecret, SECRET } from "../connection/attempts.ts";

function using(name: string, body: (connection: Connection) => Promise<void>, options = {}): void {
  test(name, async () => {
    await using connection = await limit(connect(testUrl(), options));
    await limit(body(connection), 30_000, name);
  });
}

const METHODS = {
  app_trust: "none",
  app_password: "password",
  app_md5: "md5",
  app_scram: "scram-sha-256",
} as const;

for (const role of Object.keys(TEST_ROLES) as TestRole[]) {
  test(`${role} gets in, under require_auth too`, { skip: !hasTestRoles() }, async () => {
    for (const requireAuth of [undefined, METHODS[role]]) {
      await using connection = await limit(connect(roleUrl(role), { requireAuth }));
      assert.equal(await limit(connection.sql`select current_user::text`.scalar()), role);
    }
    const others = Object.values(METHODS).filter((method) => method !== METHODS[role]);
    await assert.rejects(limit(connect(roleUrl(role), { requireAuth: others })), (error) => {
      assert.ok(error instanceof ConnectionError, String(error));
      assert.equal(error.code, "AUTHENTICATION_FAILED");
      return true;
    });
  });

  test(`${role} with a wrong password is refused with 28P01`, {
    skip: !hasTestRoles() || role === "app_trust",
  }, async () => {
    const error = await limit(
      connect(roleUrl(role), { password: SECRET }).then(() => undefined, (reason) => reason),
    );
    assert.ok(error instanceof PostgresError, String(error));
    assert.equal(error.code, "28P01");
    assertNoSecret(error);
  });
}

test("a database that does not exist is refused with 3D000", async () => {
  const error = await limit(
    connect(testUrl({ database: "no such database" })).then(() => undefined, (reason) => reason),
  );
  assert.ok(error instanceof PostgresError, String(error));
  assert.equal(error.code, "3D000");
});

test("a run-time setting that the server refuses is the server's error", async () => {
  await assert.rejects(limit(connect(testUrl(), { parameters: { no_such_setting: "1" } })), {
    code: "42704",
  });
});

using("protocol 3.2 where the server has it, else 3.0", async ({ sql }) => {
  assert.equal(await sql`select 1`.scalar(), 1);
}, { maxProtocolVersion: "3.2" });

using("an error at commit belongs to its query, whatever is pipelined behind it", async (connection) => {
  const { sql } = connection;
  await connection.exec("create temp table d (a int unique deferrable initially deferred)");
  await sql`insert into d values (${1})`;
  for (let i = 0; i < 3; i++) {
    const insert = (a: number) => sql`insert into d values (${a}) returning a`.arrays();
    const [first, failed, last] = await Promise.allSettled([insert(10 + i), insert(1), insert(20 + i)]);
    assert.deepEqual(first, { status: "fulfilled", value: [[10 + i]] });
    assert.equal(failed.status === "rejected" && failed.reason.code, "23505");
    assert.deepEqual(last, { status: "fulfilled", value: [[20 + i]] });
  }
  assert.equal(await sql`select count(*) from d`.scalar(), 7n);
});

const FORGET = [
  "discard all",
  "deallocate all",
  "deallocate  all",
  "do $$ begin execute 'deallocate all'; end $$",
];

for (const command of FORGET) {
  for (const way of ["exec", "query"] as const) {
    // A statement that forgets itself meets each of the others twice, and a lost one is prepared again once.
    if (way === "query" && command.startsWith("do")) continue;
    using(`${command} by ${way}() costs no query, not even pipelined ones`, async (connection) => {
      const run = (n: number) =>
        connection.query("select $1::int4 as n, 'kept' as k", [n]).then(({ rows }) => rows[0]?.["n"]);
      for (let i = 0; i < 2; i++) assert.equal(await run(i), i);
      for (let round = 0; round < 3; round++) {
        const results = await Promise.all([
          run(1),
          run(2),
          connection[way](command),
          run(3),
          run(4),
          connection.exec("select 5"),
          run(6),
        ]);
        assert.deepEqual([0, 1, 3, 4, 6].map((i) => results[i]), [1, 2, 3, 4, 6]);
      }
    });
  }
}

test("a table that changes under a prepared statement costs no query", () =>
  withSchema(async (schema) => {
    await using connection = await limit(connect(testUrl()));
    await limit(connection.exec(`create table ${schema}.m (a int); insert into ${schema}.m values (1)`));
    const read = () => limit(connection.query(`select * from ${schema}.m`)).then(({ rows }) => rows);
    for (let i = 0; i < 3; i++) assert.deepEqual(await read(), [{ a: 1 }]);
    await limit(connection.exec(`alter table ${schema}.m add b text default 'x'`));
    for (let i = 0; i < 3; i++) assert.deepEqual(await read(), [{ a: 1, b: "x" }]);
    await limit(connection.exec(`alter table ${schema}.m alter a type text`));
    assert.deepEqual(await Promise.all([read(), read(), read()]), new Array(3).fill([{ a: "1", b: "x" }]));
    // Inside a block the server has the last word; afterwards all is well.
    await limit(connection.exec(`begin; alter table ${schema}.m drop b`));
    await assert.rejects(read(), { code: "0A000" });
    await limit(connection.exec("rollback"));
    assert.deepEqual(await read(), [{ a: "1", b: "x" }]);
  }));

using("sessions with a small cache prepare and close without end", async (connection) => {
  for (let i = 0; i < 100; i++) {
    const { rows } = await connection.query(`select $1::int4 as n -- ${i % 7}`, [i]);
    assert.deepEqual(rows, [{ n: i }]);
  }
  const [result] = await connection.exec("select count(*)::int4 as n from pg_prepared_statements");
  assert.ok(result!.rows[0]!["n"] as number <= 4);
}, { statementCache: 3 });

leavesNoSession();
