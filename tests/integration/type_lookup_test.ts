/** Types that a database has and the driver does not: looked up when they are met, again when they have changed. */

import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { connect, type Connection, createPool, PostgresError, Range, sql, ValueError } from "../../mod.ts";
import { withConnection } from "../_support/session.ts";
import {
  ask,
  createDatabase,
  leavesNoSession,
  limit,
  serverVersion,
  testUrl,
  withSchema,
} from "../_support/server.ts";

const TIME = 30_000;

function inSchema(name: string, body: (conn: Connection, schema: string) => Promise<void>): void {
  test(name, () =>
    withSchema((schema) =>
      withConnection(async (conn) => {
        await conn.exec(`set search_path = ${schema}, public`);
        await body(conn, schema);
      }, { within: TIME })
    ));
}

/** One value by the simple protocol and by three executions, all equal. */
async function read(conn: Pick<Connection, "query" | "exec">, text: string): Promise<unknown> {
  const [result] = await conn.exec<{ v: unknown }>(text);
  const first = result!.rows[0]!.v;
  for (let i = 0; i < 3; i++) {
    assert.deepStrictEqual((await conn.query<{ v: unknown }>(text)).rows[0]!.v, first, text);
  }
  return first;
}

async function lookUps(conn: Pick<Connection, "sql">): Promise<number> {
  return Number(
    await conn.sql`select count(*) from pg_prepared_statements
      where statement like '%pg_catalog.pg_type t%' and statement not like '%pg_prepared_statements%'`
      .scalar(),
  );
}

inSchema("types as deep as the server takes them are read to their ends", async (conn) => {
  const depth = 20;
  let composites = "create type c0 as (v int4);";
  let domains = "create domain d0 as int4;";
  let value: unknown = { v: 1 };
  let row = "row(1)";
  for (let i = 1; i <= depth; i++) {
    composites += `create type c${i} as (v c${i - 1});`;
    row = `row(${row}::c${i - 1})`;
    value = { v: value };
  }
  for (let i = 1; i <= 2 * depth; i++) domains += `create domain d${i} as d${i - 1};`;
  await conn.exec(composites + domains);
  assert.deepStrictEqual(await read(conn, `select ${row}::c${depth} as v`), value);
  assert.deepStrictEqual(await read(conn, `select array[1::d${2 * depth}] as v`), [1]);
  const json = await conn.sql`select ${sql.raw(row)}::${sql.raw(`c${depth}`)} as v`.json();
  assert.deepStrictEqual(JSON.parse(json), [{ v: value }]);
  for (let i = 0; i < 3; i++) {
    const back = await conn.query(`select $1::c${depth} = ${row}::c${depth} as v`, [value]);
    assert.deepStrictEqual(back.rows, [{ v: true }]);
  }
});

inSchema("a statement may have any number of parameters of types that are not known yet", async (conn) => {
  const count = 40;
  let text = "";
  for (let i = 0; i < 2 * count; i++) text += `create type e${i} as enum ('a');`;
  await conn.exec(text);
  const columns = (of: (i: number) => string): string =>
    Array.from({ length: count }, (_, i) => of(i)).join();
  const row = Array(count).fill(["a"]);
  const before = await lookUps(conn);
  const inferred = await conn.query(`select array[${columns((i) => `$${i + 1}::e${i}[]::text`)}] as v`, row);
  assert.deepStrictEqual(inferred.rows, [{ v: row.map(() => "{a}") }]);
  assert.ok(await lookUps(conn) - before <= 1);
  const typed = row.map((value, i) => sql.typed(value, `e${count + i}[]`));
  const named = await conn.query(`select array[${columns((i) => `$${i + 1}::text`)}] as v`, typed);
  assert.deepStrictEqual(named.rows, [{ v: row.map(() => "{a}") }]);
});

inSchema("a composite that another session alters is not read as what it was", async (conn, schema) => {
  // Strings are not here: any text is one, and the first rows are text.
  const types = ["int4", "int8", "bool", "float8", "numeric", "timestamptz", "date", "time", "interval"];
  types.push("uuid", "jsonb", "point", "bytea", "int4[]", "int4range");
  const values: readonly (readonly [type: string, value: string, wanted: unknown])[] = [
    ["text", "abc", "abc"],
    ["text[]", '{"a b",NULL}', ["a b", null]],
    ["xml", "<a/>", "<a/>"],
  ];
  await withConnection(async (other) => {
    let serial = 0;
    for (const before of types) {
      for (const [after, value, wanted] of values) {
        const type = `${schema}.changing${serial++}`;
        await other.exec(`create type ${type} as (a ${before}, b text)`);
        await read(conn, `select row(null, 'x')::${type} as v`);
        await other.exec(`alter type ${type} alter attribute a type ${after}`);
        const row = `row('${value}', 'x')::${type}`;
        const label = `${before} to ${after}`;
        const expected = { a: wanted, b: "x" };
        // Most types are strings in JSON, and any text is one.
        if (typeof wanted === "string") {
          const json = JSON.parse(await conn.sql`select ${sql.raw(row)} as v`.json());
          assert.deepStrictEqual(json, [{ v: expected }], label);
        }
        await other.exec(`alter type ${type} alter attribute a type ${before}`);
        await other.exec(`alter type ${type} add attribute c int4`);
        assert.deepStrictEqual(await read(conn, `select row(null, 'x', 7)::${type} as v`), {
          a: null,
          b: "x",
          c: 7,
        });
        await other.exec(`alter type ${type} alter attribute a type ${after}, drop attribute c`);
        assert.deepStrictEqual(await read(conn, `select ${row} as v`), expected, label);
        assert.deepStrictEqual(await read(conn, `select array[${row}] as v`), [expected], label);
      }
    }
  });
});

inSchema("types within types, to any depth", async (conn) => {
  await conn.exec(`create type mood as enum ('sad', 'ok'); create domain small as int2 check (value < 100);
    create type inner_pair as (m mood, n small); create type outer_pair as (p inner_pair, list inner_pair[], at timestamptz);
    create domain pairs as inner_pair[]; create domain checked as outer_pair check (value is not null);
    create type moodrange as range (subtype = mood); create table rows (id int, o outer_pair, note text);
    insert into rows values (1, row(row('ok', 5), array[row('sad', 1)::inner_pair, null], '2024-01-01Z'), 'x, "y"')`);
  const inner = { m: "ok", n: 5 };
  const outer = { p: inner, list: [{ m: "sad", n: 1 }, null], at: new Date("2024-01-01T00:00:00Z") };
  assert.deepStrictEqual(await read(conn, "select o as v from rows"), outer);
  assert.deepStrictEqual(await read(conn, "select array_agg(o) as v from rows"), [outer]);
  assert.deepStrictEqual(await read(conn, "select o::checked as v from rows"), outer);
  assert.deepStrictEqual(await read(conn, "select array[o::checked] as v from rows"), [outer]);
  assert.deepStrictEqual(await read(conn, "select rows as v from rows"), { id: 1, o: outer, note: 'x, "y"' });
  assert.deepStrictEqual(await read(conn, "select array[row('ok', 5)]::pairs as v"), [inner]);
  assert.deepStrictEqual(await read(conn, "select array[array[row('ok', 5)]::pairs] as v"), [[inner]]);
  assert.deepStrictEqual(
    await read(conn, "select moodrange('sad', 'ok', '[]') as v"),
    new Range("sad", "ok", "[]"),
  );
  assert.deepStrictEqual(await read(conn, "select array[moodrange('sad', null)] as v"), [
    new Range("sad", null),
  ]);
  if (await serverVersion() >= 14) {
    assert.deepStrictEqual(
      await read(conn, "select moodmultirange(moodrange('sad', 'sad', '[]')) as v"),
      [new Range("sad", "sad", "[]")],
    );
  }
  for (let i = 0; i < 3; i++) {
    const [row] = await conn.sql`select ${outer}::outer_pair as o, ${[outer]}::outer_pair[] as os,
      ${[inner]}::pairs as p, ${new Range("sad", null)}::moodrange as r`;
    assert.deepStrictEqual(row, { o: outer, os: [outer], p: [inner], r: new Range("sad", null) });
  }
  const streamed = [];
  for await (const row of conn.sql`select o from rows`) streamed.push(row);
  assert.deepStrictEqual(streamed, [{ o: outer }]);
});

inSchema(
  "names are looked up for sql.typed and sql.array, by the search path or with a schema",
  async (conn, schema) => {
    await conn.exec(`create type mood as enum ('sad', 'ok'); create type pair as (a int, m mood)`);
    for (let i = 0; i < 3; i++) {
      assert.deepStrictEqual(await conn.sql`select ${sql.typed(["ok", null], "mood[]")} as v`.scalar(), [
        "ok",
        null,
      ]);
      assert.deepStrictEqual(await conn.sql`select ${sql.array(["ok"], "mood")} as v`.scalar(), ["ok"]);
      assert.deepStrictEqual(await conn.sql`select ${sql.typed("ok", `${schema}.mood`)} as v`.scalar(), "ok");
      assert.deepStrictEqual(
        await conn.sql`select ${sql.typed({ a: 1, m: "sad" }, "pair")} as v`.scalar(),
        { a: 1, m: "sad" },
      );
    }
    const oid = Number(await conn.sql`select 'mood'::regtype::oid`.scalar());
    assert.deepStrictEqual(await conn.sql`select ${sql.array(["ok"], oid)} as v`.scalar(), ["ok"]);
    await conn.transaction(async (tx) => {
      const [batched] = await tx.batch([sql`select ${sql.typed(["sad"], "mood[]")} as v`]);
      assert.deepStrictEqual(batched!.rows[0], { v: ["sad"] });
      for await (const each of tx.sql`select ${sql.typed(["sad"], `"mood"[]`)} as v`) {
        assert.deepStrictEqual(each, { v: ["sad"] });
      }
    });
    assert.deepStrictEqual(
      await conn.sql`select ${sql.typed(["sad"], `${schema}.mood[]`)}`.describe().then(({ parameters }) =>
        parameters.length
      ),
      1,
    );
    for (
      const value of [
        sql.typed(1, "no_such_type"),
        sql.array([1], "no_such_type"),
        sql.array([1], 4_000_000_000),
      ]
    ) {
      await assert.rejects(conn.sql`select ${value}`.result(), ValueError);
    }
    await assert.rejects(
      conn.transaction((tx) => tx.query("select $1", [sql.typed(1, "x y z(")])),
      ValueError,
    );
    assert.equal(await conn.sql`select 1`.scalar(), 1);
    // The same name, another type.
    await conn.exec("drop type pair; drop type mood; create type mood as enum ('good')");
    assert.deepStrictEqual(await conn.sql`select ${sql.typed(["good"], "mood[]")} as v`.scalar(), ["good"]);
  },
);

test("a name means what the session's search path says", () =>
  withSchema((one) =>
    withSchema((two) =>
      withConnection(async (conn) => {
        await conn.exec(`create type ${one}.mood as enum ('one'); create type ${two}.mood as enum ('two');
          set search_path = ${two}`);
        // Met first, and not what the name stands for.
        assert.deepStrictEqual(await conn.sql`select array['one']::${sql.id(one, "mood")}[] as v`.scalar(), [
          "one",
        ]);
        assert.deepStrictEqual(await conn.sql`select ${sql.typed(["two"], "mood[]")} as v`.scalar(), ["two"]);
        await conn.exec(`set search_path = ${one}`);
        assert.deepStrictEqual(await conn.sql`select ${sql.typed(["one"], "mood[]")} as v`.scalar(), ["one"]);
      })
    )
  ));

inSchema("a type that is dropped and made again is looked up again", async (conn) => {
  const text = "select array['a']::mood[] as v, row('a')::holder as h";
  for (const [labels, fields] of [["'a'", "m mood"], ["'a', 'b'", "n mood"]] as const) {
    await conn.exec(`create type mood as enum (${labels}); create type holder as (${fields})`);
    const key = fields.split(" ")[0]!;
    for (let i = 0; i < 3; i++) {
      assert.deepStrictEqual((await conn.query(text)).rows, [{ v: ["a"], h: { [key]: "a" } }]);
    }
    await conn.exec("drop type holder; drop type mood");
  }
});

function jsonOf(value: unknown): string {
  return JSON.stringify(value, (_, each) => typeof each === "bigint" ? Number(each) : each);
}

test("a composite type that is altered is looked up again, whoever altered it", () =>
  withSchema(async (schema) => {
    for (const foreign of [false, true]) {
      await withConnection(async (conn) => {
        const alter = async (text: string): Promise<void> =>
          foreign ? void await ask(text) : void await conn.exec(text);
        const type = `${schema}.pair`;
        await alter(`create type ${type} as (a int4, b text)`);
        await alter(
          `create table ${schema}.t (v ${type}, n int); insert into ${schema}.t values (row(1, 'x'), 1)`,
        );
        const select = `select v, array[v] as l from ${schema}.t`;
        const expect = async (value: unknown): Promise<void> => {
          assert.deepStrictEqual((await conn.exec(select))[0]!.rows, [{ v: value, l: [value] }], "simple");
          for (let i = 0; i < 3; i++) {
            assert.deepStrictEqual(
              (await conn.query(select)).rows,
              [{ v: value, l: [value] }],
              `execution ${i}`,
            );
            assert.deepStrictEqual(await conn.sql`${sql.raw(select)}`.arrays(), [[value, [value]]]);
            assert.deepStrictEqual(await conn.sql`${sql.raw(select)}`.columns(), {
              v: [value],
              l: [[value]],
            });
          }
          const json = await conn.sql`${sql.raw(select)}`.json();
          assert.equal(json, jsonOf([{ v: value, l: [value] }]));
          const streamed = [];
          for await (const row of conn.sql`${sql.raw(select)}`) streamed.push(row);
          assert.deepStrictEqual(streamed, [{ v: value, l: [value] }]);
        };
        await expect({ a: 1, b: "x" });
        await alter(`alter type ${type} add attribute c int8[] cascade`);
        await expect({ a: 1, b: "x", c: null });
        await alter(`alter type ${type} drop attribute b cascade`);
        await expect({ a: 1, c: null });
        await conn.query(`insert into ${schema}.t values ($1, 2)`, [{ a: 2, c: [3n] }]);
        await alter(`delete from ${schema}.t where n = 1`);
        await expect({ a: 2, c: [3n] });
        await alter(`drop table ${schema}.t; drop type ${type} cascade`);
      }, { within: TIME });
    }
  }));

test("rows of a table that got a column are read on every path", () =>
  withSchema((schema) =>
    withConnection(async (conn) => {
      await ask(`create table ${schema}.t (a int, b text); insert into ${schema}.t values (1, 'x')`);
      const text = `select t from ${schema}.t`;
      for (let i = 0; i < 3; i++) {
        assert.deepStrictEqual((await conn.query(text)).rows, [{ t: { a: 1, b: "x" } }]);
      }
      await ask(`alter table ${schema}.t add c bool default true`);
      for (let i = 0; i < 3; i++) {
        assert.deepStrictEqual((await conn.query(text)).rows, [{ t: { a: 1, b: "x", c: true } }]);
      }
      await ask(`alter table ${schema}.t drop b`);
      await ask(`alter table ${schema}.t alter a type int8`);
      const pipelined = await Promise.all([1, 2, 3].map(() => conn.query(text)));
      for (const { rows } of pipelined) assert.deepStrictEqual(rows, [{ t: { a: 1n, c: true } }]);
    })
  ));

test("a pool looks each type up once, whoever asks at the same time", () =>
  withSchema(async (schema) => {
    await ask(`create type ${schema}.mood as enum ('sad', 'ok')`);
    await using pool = createPool(testUrl(), { max: 1 });
    const text = `select array['ok']::${schema}.mood[] as v`;
    const work = Promise.all(Array.from({ length: 50 }, () => pool.query<{ v: unknown }>(text)));
    for (const { rows: [row] } of await limit(work, TIME)) assert.deepStrictEqual(row!.v, ["ok"]);
    const [calls] = await pool.sql<
      { n: bigint }
    >`select generic_plans + custom_plans as n from pg_prepared_statements
      where statement like '%pg_catalog.pg_type t%' and statement not like '%pg_prepared%'`;
    // Array first, element in the second round.
    assert.ok(calls === undefined || Number(calls.n) <= 3, `looked up ${calls?.n} times`);
    assert.ok(await lookUps(pool) <= 1);
  }));

test("a look-up that fails breaks neither the query nor its transaction", async () => {
  const database = await createDatabase();
  try {
    await ask("create type mood as enum ('sad', 'ok'); create type pair as (a int, m mood)", database.name);
    const url = database.url;
    await withConnection(async (conn) => {
      const text = "select array['ok']::mood[] as v";
      await conn.exec(
        "drop role if exists type_reader; create role type_reader; grant usage on schema public to type_reader",
      );
      await conn.exec("revoke select on pg_catalog.pg_type from public");
      await conn.exec("set role type_reader");
      await assert.rejects(conn.query("select oid from pg_catalog.pg_type"), PostgresError);
      for (let i = 0; i < 3; i++) assert.deepStrictEqual((await conn.query(text)).rows, [{ v: "{ok}" }]);
      assert.deepStrictEqual((await conn.exec(text))[0]!.rows, [{ v: "{ok}" }]);
      const streamed = [];
      for await (const row of conn.sql`${sql.raw(text)}`) streamed.push(row);
      assert.deepStrictEqual(streamed, [{ v: "{ok}" }]);
      await assert.rejects(conn.query("select $1::pair", [{ a: 1 }]), ValueError);
      await conn.transaction(async (tx) => {
        assert.deepStrictEqual((await tx.query(text)).rows, [{ v: "{ok}" }]);
        assert.equal(await tx.sql`select 1`.scalar(), 1);
        await tx.transaction(async (sp) => {
          assert.deepStrictEqual((await sp.query(text)).rows, [{ v: "{ok}" }]);
          assert.equal(await sp.sql`select 2`.scalar(), 2);
        });
        await assert.rejects(tx.query("select $1::pair", [{ a: 1 }]), ValueError);
        assert.equal(await tx.sql`select 3`.scalar(), 3);
      });
      await conn.exec("begin");
      assert.deepStrictEqual((await conn.query(text)).rows, [{ v: "{ok}" }]);
      assert.equal(await conn.sql`select 1`.scalar(), 1);
      await conn.exec("commit; reset role; grant select on pg_catalog.pg_type to public");
      assert.deepStrictEqual((await conn.query(text)).rows, [{ v: ["ok"] }]);
      await conn.exec("drop owned by type_reader; drop role type_reader");
    }, { url, within: TIME });
  } finally {
    await database.drop();
  }
});

test("a type that only its own transaction sees is looked up in it", () =>
  withSchema(async (schema) => {
    await using pool = createPool(testUrl(), { max: 2 });
    const text = `select array['ok']::${schema}.fresh[] as v`;
    const undone = new Error("undone");
    const work = pool.transaction(async (tx) => {
      await tx.exec(`create type ${schema}.fresh as enum ('ok')`);
      assert.deepStrictEqual(await read(tx, text), ["ok"]);
      throw undone;
    });
    await assert.rejects(limit(work, TIME), undone);
    await assert.rejects(pool.query(text), PostgresError);
    await ask(`create type ${schema}.fresh as enum ('ok')`);
    assert.deepStrictEqual(await read(pool, text), ["ok"]);
  }));

test("a connection that is lost in a look-up settles all", () =>
  withSchema(async (schema) => {
    await ask(`create type ${schema}.mood as enum ('ok')`);
    const conn = await limit(connect(testUrl()));
    const work = conn.query(`select pg_terminate_backend(pg_backend_pid()), array['ok']::${schema}.mood[]`);
    const outcomes = await limit(Promise.allSettled([work, conn.query(`select 'ok'::${schema}.mood`)]));
    assert.deepStrictEqual(outcomes.map(({ status }) => status), ["rejected", "rejected"]);
    await conn.close();
  }));

test("types of extensions are known by name", () =>
  withSchema((schema) =>
    withConnection(async (conn) => {
      const available = await conn.sql<string>`select name from pg_available_extensions
        where name in ('hstore', 'citext', 'ltree')`.arrays<[string]>();
      for (const [name] of available) {
        await conn.exec(`create extension if not exists ${name} schema ${schema}`);
      }
      await conn.exec(`set search_path = ${schema}, pg_catalog`);
      const names = available.map(([name]) => name);
      const cases: readonly (readonly [string, string, unknown])[] = [
        ["hstore", `'a=>1, "b c"=>NULL, "\\"q"=>"\\\\"'::hstore`, { a: "1", "b c": null, '"q': "\\" }],
        ["hstore", "array['a=>1'::hstore, null]", [{ a: "1" }, null]],
        ["citext", "'AbC'::citext", "AbC"],
        ["citext", "array['AbC'::citext, null]", ["AbC", null]],
        ["ltree", "'Top.Science'::ltree", "Top.Science"],
        ["ltree", "array['Top.Science'::ltree]", ["Top.Science"]],
      ];
      for (const [extension, expression, value] of cases) {
        if (!names.includes(extension)) continue;
        assert.deepStrictEqual(await read(conn, `select ${expression} as v`), value, expression);
        const type = expression.startsWith("array") ? `${extension}[]` : extension;
        for (let i = 0; i < 3; i++) {
          const [row] = await conn.sql`select ${value}::${sql.raw(type)} = ${sql.raw(expression)} as same`;
          assert.deepStrictEqual(row, { same: true }, expression);
        }
      }
      assert.ok(names.length > 0 || !process.env["PIPEGRES_TEST_SOCKET_DIR"], "no extension is available");
    }, { within: TIME })
  ));

leavesNoSession();
