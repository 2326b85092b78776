/** The ways to take a result, column names, command tags, notices. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { connect, type Connection, type Notice, ValueError } from "../../mod.ts";
import { leavesNoSession, limit, testUrl } from "../_support/server.ts";

function using(name: string, body: (connection: Connection) => Promise<void>, options = {}): void {
  test(name, async () => {
    await using connection = await limit(connect(testUrl(), options));
    await limit(body(connection), 60_000, name);
  });
}

const valueError = (message: RegExp | string) => (error: unknown) => {
  assert.ok(error instanceof ValueError, String(error));
  if (typeof message === "string") assert.equal(error.message, message);
  else assert.match(error.message, message);
  return true;
};

using("one() and maybeOne() and scalar() take exactly what they say", async ({ sql }) => {
  const rows = (count: number) => sql<{ n: number }>`select i as n from generate_series(1, ${count}::int4) i`;
  assert.deepEqual(await rows(1).one(), { n: 1 });
  await assert.rejects(rows(0).one(), valueError("Expected exactly one row, received 0"));
  await assert.rejects(rows(2).one(), valueError("Expected exactly one row, received 2"));
  assert.deepEqual(await rows(1).maybeOne(), { n: 1 });
  assert.equal(await rows(0).maybeOne(), undefined);
  await assert.rejects(rows(3).maybeOne(), valueError("Expected at most one row, received 3"));
  assert.equal(await sql<number>`select 7, 8`.scalar(), 7);
  assert.equal(await sql<null>`select null`.scalar(), null);
  await assert.rejects(
    sql`select 1 where false`.scalar(),
    valueError("Expected exactly one row, received 0"),
  );
  await assert.rejects(sql`select`.scalar(), valueError("Expected a column, received none"));
});

using("columns of one name: arrays keep all, objects the last", async ({ sql }) => {
  const query = () => sql`select 1 as a, 2 as a, 3 as b`;
  assert.deepEqual(await query().arrays(), [[1, 2, 3]]);
  const { rows, fields } = await query().result();
  assert.deepEqual(rows, [{ a: 2, b: 3 }]);
  assert.deepEqual(fields.map(({ name }) => name), ["a", "a", "b"]);
});

using("a column called __proto__, constructor or with quotes is a column", async (connection) => {
  const text =
    `select 1 as "__proto__", 2 as "constructor", 3 as "a""b\\c", 4 as "?column?", 5 as "", 6 as "${
      "x".repeat(63)
    }"`
      .replace(`, 5 as ""`, "");
  for (let i = 0; i < 3; i++) {
    const [row] = (await connection.query(text)).rows;
    assert.deepEqual(Object.keys(row!), ["__proto__", "constructor", 'a"b\\c', "?column?", "x".repeat(63)]);
    assert.equal(Object.getOwnPropertyDescriptor(row, "__proto__")?.value, 1);
    assert.deepEqual(Object.values(row!), [1, 2, 3, 4, 6]);
  }
  assert.equal((({}) as Record<string, unknown>)["constructor"], Object);
});

using("rows without columns and columns without rows", async ({ sql }) => {
  assert.deepEqual(await sql`select from generate_series(1, 3)`, [{}, {}, {}]);
  assert.deepEqual(await sql`select from generate_series(1, 2)`.arrays(), [[], []]);
  const { rows, fields, rowCount } = await sql`select 1 as a where false`.result();
  assert.deepEqual([rows, rowCount, fields[0]?.name], [[], 0, "a"]);
});

using("1,664 columns, as text and as binary", async (connection) => {
  const text = `select ${Array.from({ length: 1664 }, (_, i) => `${i} as c${i}`).join(", ")}`;
  for (let i = 0; i < 3; i++) {
    const { rows, fields } = await connection.query(text);
    assert.equal(fields.length, 1664);
    assert.deepEqual(Object.values(rows[0]!), Array.from({ length: 1664 }, (_, i) => i));
    assert.equal(rows[0]?.["c1663"], 1663);
  }
  const [simple] = await connection.exec(text);
  assert.equal(simple?.rows[0]?.["c1663"], 1663);
});

const TAGS: readonly (readonly [string, string | null, number | null, number])[] = [
  ["", null, null, 0],
  [";", null, null, 0],
  ["-- comment", null, null, 0],
  ["begin", "BEGIN", null, 0],
  ["create temp table tags (a int) on commit preserve rows", "CREATE TABLE", null, 0],
  ["lock table tags", "LOCK TABLE", null, 0],
  ["insert into tags values (1), (2), (3)", "INSERT", 3, 0],
  ["insert into tags values (4) returning a", "INSERT", 1, 1],
  ["select * from tags", "SELECT", 4, 4],
  ["select 1 where false", "SELECT", 0, 0],
  ["update tags set a = a + 1 where a > 2 returning a", "UPDATE", 2, 2],
  ["update tags set a = 0 where false", "UPDATE", 0, 0],
  ["delete from tags where a = 1", "DELETE", 1, 0],
  [
    "merge into tags t using (values (2)) s(a) on t.a = s.a when matched then update set a = 9",
    "MERGE",
    1,
    0,
  ],
  ["create temp table tags2 as select * from tags", "SELECT", 3, 0],
  ["truncate tags2", "TRUNCATE TABLE", null, 0],
  ["values (1), (2)", "VALUES", 2, 2],
  ["show server_version", "SHOW", null, 1],
  ["explain (costs off) select 1", "EXPLAIN", null, 1],
  ["set local work_mem = '4MB'", "SET", null, 0],
  ["declare c cursor for select * from tags", "DECLARE CURSOR", null, 0],
  ["fetch 2 from c", "FETCH", 2, 2],
  ["move 1 from c", "MOVE", 1, 0],
  ["close c", "CLOSE CURSOR", null, 0],
  ["do $$ begin end $$", "DO", null, 0],
  ["rollback", "ROLLBACK", null, 0],
];

for (const protocol of ["extended", "simple"] as const) {
  using(`command and row count of every kind of command, ${protocol}`, async (connection) => {
    const knowsMerge = Number.parseInt(connection.parameters.get("server_version")!) >= 15;
    for (const [text, command, rowCount, rows] of TAGS) {
      if (command === "MERGE" && !knowsMerge) continue;
      // VALUES is reported as SELECT.
      const wanted = command === "VALUES" ? "SELECT" : command;
      const result = protocol === "extended"
        ? await connection.query(text)
        : (await connection.exec(text))[0];
      if (result === undefined) {
        assert.equal(command, null, text);
        continue;
      }
      assert.deepEqual([result.command, result.rowCount, result.rows.length], [wanted, rowCount, rows], text);
    }
  });
}

using("exec() gives one result for each statement, and none for an empty script", async (connection) => {
  const results = await connection.exec(
    "select 1 as a; create temp table e (x int); insert into e values (1), (2); select x as b from e",
  );
  assert.deepEqual(results.map(({ command, rowCount }) => [command, rowCount]), [
    ["SELECT", 1],
    ["CREATE TABLE", null],
    ["INSERT", 2],
    ["SELECT", 2],
  ]);
  assert.deepEqual(results[3]?.rows, [{ b: 1 }, { b: 2 }]);
  assert.deepEqual(results[1]?.fields, []);
  assert.deepEqual(await connection.exec("").then((list) => list.map(({ command }) => command)), [null]);
});

using(
  "describe() tells parameters and columns and executes nothing, before and behind executions",
  async (connection) => {
    const { sql } = connection;
    await connection.exec("create temp table d (a int, b text)");
    const insert = () => sql`insert into d values (${1}, ${"x"}) returning a, b`;
    for (let i = 0; i < 3; i++) {
      const { parameters, fields } = await insert().describe();
      assert.deepEqual(parameters, [23, 25]);
      assert.deepEqual(fields.map(({ name, typeOid }) => [name, typeOid]), [["a", 23], ["b", 25]]);
      assert.equal(await sql`select count(*) from d`.scalar(), BigInt(i));
      await insert();
    }
    assert.deepEqual(await sql`delete from d`.describe(), { parameters: [], fields: [] });
    await assert.rejects(sql`select * from nowhere`.describe(), { code: "42P01" });
    const query = insert();
    await query.describe();
    await query;
    assert.equal(await sql`select count(*) from d`.scalar(), 4n);
  },
);

test("notices reach the result and onNotice, with all their fields", async () => {
  const seen: Notice[] = [];
  await using connection = await limit(connect(testUrl(), { onNotice: (notice) => void seen.push(notice) }));
  const raise =
    "do $$ begin raise warning 'look %', 1 using detail = 'd', hint = 'h', errcode = '01001'; end $$";
  const [result, other] = await limit(Promise.all([connection.query(raise), connection.query("select 1")]));
  const [notice] = result.notices;
  assert.deepEqual(other.notices, []);
  assert.deepEqual(
    [notice?.severity, notice?.code, notice?.message, notice?.detail, notice?.hint],
    ["WARNING", "01001", "look 1", "d", "h"],
  );
  assert.deepEqual(seen, [...result.notices]);
});

test("what onNotice throws is ignored", async () => {
  await using connection = await limit(connect(testUrl(), {
    onNotice() {
      throw new Error("the user's own");
    },
  }));
  await limit(connection.query("do $$ begin raise notice 'x'; end $$"));
  assert.equal(await limit(connection.sql`select 1`.scalar()), 1);
});

using("onParameterStatus and parameters follow SET", async (connection) => {
  await connection.exec("set timezone to 'Asia/Tokyo'");
  assert.equal(connection.parameters.get("TimeZone"), "Asia/Tokyo");
});

const DATES = `select '2026-08-18 01:02:03.5+00'::timestamptz as a, '2026-08-18 01:02:03.5'::timestamp as b,
  '2026-08-18'::date as c, array['1999-12-31 23:59:59.999+00'::timestamptz] as d`;
const DATE_ROWS = [{
  a: new Date("2026-08-18T01:02:03.500Z"),
  b: new Date("2026-08-18T01:02:03.500Z"),
  c: "2026-08-18",
  d: [new Date("1999-12-31T23:59:59.999Z")],
}];

for (const style of ["ISO, MDY", "German", "SQL, DMY", "Postgres, YMD"]) {
  for (const zone of ["UTC", "Asia/Kolkata", "America/St_Johns"]) {
    using(
      `dates are equal on first and later executions under DateStyle ${style} in ${zone}`,
      async (connection) => {
        await connection.exec(`set datestyle to '${style}'; set timezone to '${zone}'`);
        // Text of another style is refused, never misread; binary has no style.
        const results = [connection.query(DATES), connection.exec(DATES).then(([result]) => result!)];
        for (const result of results) {
          const outcome = await result.then(({ rows }) => rows, (error) => error);
          if (!style.startsWith("ISO") && outcome instanceof ValueError) {
            assert.match(outcome.message, /DateStyle/);
          } else assert.deepEqual(outcome, DATE_ROWS);
        }
        for (let i = 0; i < 2; i++) {
          assert.deepEqual((await connection.query(DATES)).rows, DATE_ROWS);
        }
      },
    );
  }
}

using("dates are read right when options set another DateStyle from the start", async (connection) => {
  assert.deepEqual((await connection.query(DATES)).rows, DATE_ROWS);
}, { options: "-c datestyle=German -c intervalstyle=postgres_verbose" });

leavesNoSession();
