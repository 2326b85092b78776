/** What a user sees of an error: the server's fields, the place in the text, the caller's line. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { inspect } from "node:util";
import { connect, type Connection, PostgresError, ValueError } from "../../mod.ts";
import { leavesNoSession, limit, testUrl, withSchema } from "../_support/server.ts";

function using(name: string, body: (connection: Connection) => Promise<void>): void {
  test(name, async () => {
    await using connection = await limit(connect(testUrl()));
    await limit(body(connection), 30_000, name);
  });
}

async function errorOf(work: PromiseLike<unknown>): Promise<PostgresError> {
  const error = await work.then(() => undefined, (reason) => reason);
  assert.ok(error instanceof PostgresError, inspect(error));
  return error;
}

test("all fields of a constraint violation", () =>
  withSchema(async (schema) => {
    await using connection = await limit(connect(testUrl()));
    await limit(
      connection.exec(
        `create table ${schema}.people (id int primary key, age int constraint adult check (age >= 18))`,
      ),
    );
    const error = await errorOf(
      limit(connection.query(`insert into ${schema}.people values ($1, $2)`, [1, 7])),
    );
    assert.deepEqual(
      [error.name, error.code, error.condition, error.severity, error.schema, error.table, error.constraint],
      ["PostgresError", "23514", "check_violation", "ERROR", schema, "people", "adult"],
    );
    assert.match(error.message, /^new row for relation "people" violates check constraint "adult"/);
    assert.match(error.detail!, /^Failing row contains/);
    assert.equal(error.position, undefined);
    assert.equal(typeof error.file, "string");
    assert.equal(typeof error.line, "number");
    assert.equal(typeof error.routine, "string");
    const missing = await errorOf(limit(connection.query(`insert into ${schema}.people values (null, 20)`)));
    assert.deepEqual([missing.code, missing.column], ["23502", "id"]);
  }));

using("fields that a function raises", async (connection) => {
  const error = await errorOf(connection.query(`do $$ begin
    raise exception 'äöü €😀' using errcode = 'XY123', detail = 'd', hint = 'h', schema = 's', table = 't',
      column = 'c', datatype = 'y', constraint = 'k'; end $$`));
  assert.equal(error.message, "äöü €😀");
  assert.deepEqual(
    [
      error.code,
      error.condition,
      error.detail,
      error.hint,
      error.schema,
      error.table,
      error.column,
      error.dataType,
      error.constraint,
    ],
    ["XY123", undefined, "d", "h", "s", "t", "c", "y", "k"],
  );
  assert.match(error.where!, /PL\/pgSQL function/);
});

using("an error inside a function tells the internal query and place", async (connection) => {
  const error = await errorOf(connection.query("do $$ begin execute 'selec 1'; end $$"));
  assert.deepEqual([error.code, error.internalQuery, error.internalPosition], ["42601", "selec 1", 1]);
});

using(
  "the caret stands under the place, in one line or many, behind tabs and astral characters",
  async (connection) => {
    const cases: readonly (readonly [string, string])[] = [
      ["selec 1", "LINE 1: selec 1\n        ^"],
      ["select 1,\n  nonsense,\n  2", "LINE 2:   nonsense,\n          ^"],
      ["select '😀😀', nonsense", "LINE 1: select '😀😀', nonsense\n                     ^"],
      ["select\n\tnonsense", "LINE 2:  nonsense\n         ^"],
      ["select 'é', nonsense", "LINE 1: select 'é', nonsense\n                    ^"],
    ];
    for (const [text, shown] of cases) {
      for (const run of [() => connection.query(text), () => connection.exec(text)]) {
        const error = await errorOf(run());
        assert.ok(error.message.endsWith(`\n\n${shown}`), `${JSON.stringify(error.message)}\n${shown}`);
        assert.equal(error.query, text);
        assert.ok(error.position! > 0);
      }
    }
  },
);

using("a long line is shown around the place only", async (connection) => {
  const error = await errorOf(
    connection.query(`select ${"1, ".repeat(5_000)}nonsense, ${"2, ".repeat(5_000)} 3`),
  );
  const [, , line, caret] = error.message.split("\n");
  assert.ok(line!.length < 200, `${line!.length} characters`);
  assert.equal(line!.slice(caret!.length - 1, caret!.length + 7), "nonsense");
  assert.ok(error.message.length < 500);
});

using("an error shows neither parameters nor the whole text when it is printed", async (connection) => {
  const { sql } = connection;
  const secret = "value-nobody-may-see";
  const work = [
    () => sql`select ${secret}::text || nonsense`,
    () => sql`select 1 / length(${secret}::text) / 0`,
    () => connection.query("select 1 / length($1::text) / 0 -- behind the place", [secret]),
  ];
  for (const run of work) {
    const error = await errorOf(run());
    assert.ok(!inspect(error, { depth: 9, showHidden: false }).includes(secret));
    assert.ok(!JSON.stringify(error).includes("behind the place"));
  }
});

// Every function below has a name that must be found in the stack of its error.

const CALLERS: Readonly<Record<string, (connection: Connection) => Promise<unknown>>> = {
  awaitsTemplate: async function awaitsTemplate({ sql }) {
    await sql`selec 1`;
  },
  awaitsTemplateBehindSuccess: async function awaitsTemplateBehindSuccess({ sql }) {
    await sql`select 1`;
    await sql`selec 1`;
  },
  awaitsOne: async function awaitsOne({ sql }) {
    await sql`select 1 where false`.one();
  },
  awaitsScalar: async function awaitsScalar({ sql }) {
    return await sql`selec 1`.scalar();
  },
  awaitsQuery: async function awaitsQuery(connection) {
    await connection.query("selec 1");
  },
  awaitsQueryWithUnfitValue: async function awaitsQueryWithUnfitValue(connection) {
    await connection.query("select $1", [undefined]);
  },
  awaitsExec: async function awaitsExec(connection) {
    await connection.exec("selec 1");
  },
  awaitsDescribe: async function awaitsDescribe({ sql }) {
    await sql`selec 1`.describe();
  },
  awaitsRowsOfAnUnknownType: async function awaitsRowsOfAnUnknownType(connection) {
    await connection.exec("create type pg_temp.mood as enum ('calm')");
    const types = {
      mood: {
        decodeText(): never {
          throw new ValueError("Expected another mood");
        },
      },
    };
    await connection.query("select 'calm'::pg_temp.mood as mood", [], { types });
  },
  awaitsAll: async function awaitsAll({ sql }) {
    await Promise.all([sql`select 1`, sql`selec 1`.one()]);
  },
  awaitsAllOfQueries: async function awaitsAllOfQueries(connection) {
    await Promise.all([connection.query("select 1"), connection.query("selec 1")]);
  },
};

for (const [name, call] of Object.entries(CALLERS)) {
  using(`the stack shows the caller: ${name}`, async (connection) => {
    const error: unknown = await call(connection).then(() => undefined, (reason) => reason);
    assert.ok(error instanceof PostgresError || error instanceof ValueError, inspect(error));
    assert.match(error.stack!, new RegExp(`\\b${name}\\b`));
    assert.match(error.stack!, /errors_test\.ts/);
    assert.ok(error.stack!.includes(error.message.split("\n")[0]!), "the message leads the stack");
  });
}

using("errors are errors of their own: a shared cause is not a shared object", async (connection) => {
  const errors = await Promise.all([1, 2].map(() => connection.query("selec 1").catch((error) => error)));
  assert.notEqual(errors[0], errors[1]);
});

leavesNoSession();
