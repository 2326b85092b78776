/** Values that DESIGN refuses: a ValueError before anything is sent, alone, in a batch and in a transaction. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ConfigurationError,
  connect,
  type Connection,
  createPool,
  PostgresError,
  type Query,
  sql,
  ValueError,
} from "../../mod.ts";
import { rejectionOf, withConnection } from "../_support/session.ts";
import { leavesNoSession, limit, testUrl, withSchema } from "../_support/server.ts";

const cycle: unknown[] = [];
cycle.push(cycle);

const REFUSED: readonly (readonly [type: string, value: unknown])[] = [
  ["text", undefined],
  ["text", () => 1],
  ["text", Symbol("s")],
  ["timestamptz", new Date(NaN)],
  ["timestamptz[]", [new Date(NaN)]],
  ["int4[]", [[1], [2, 3]]],
  ["int4[]", [1, undefined]],
  ["int4[]", [1, [2]]],
  ["bytea", [1, 2]],
  ["bool", {}],
  ["jsonb", { n: 1n }],
  ["jsonb", sql.json(undefined)],
  ["jsonb", sql.json(NaN)],
  ["jsonb", cycle],
  ["int4range", { lower: 1 }],
  ["interval", { months: 1.5, days: 0, microseconds: 0 }],
  ["point", { x: 1 }],
];

test("what is refused is refused on every path, and stores nothing", () =>
  withConnection(async (conn) => {
    await conn.exec("create temp table kept (n int)");
    for (const [type, value] of REFUSED) {
      const text = `select $1::${type}`;
      const fragment = () => sql`select ${value}::${sql.raw(type)}`;
      const ways: (() => PromiseLike<unknown>)[] = [
        () => conn.query(text, [value]),
        () => conn.query(text, [value]),
        () => conn.sql`select ${value}::${sql.raw(type)}`.json(),
        () => conn.batch([sql`insert into kept values (1)`, fragment(), sql`insert into kept values (2)`]),
        () => conn.batch([fragment(), sql`insert into kept values (3)`]),
        () =>
          conn.transaction(async (tx) => {
            await tx.sql`insert into kept values (4)`;
            await tx.query(text, [value]);
          }),
        async () => {
          for await (const _ of conn.sql`select ${value}::${sql.raw(type)}`);
        },
      ];
      for (const [i, way] of ways.entries()) {
        await assert.rejects(Promise.resolve().then(way), ValueError, `${type}, way ${i}`);
      }
      // Nothing was sent: the block is as good as before.
      await conn.transaction(async (tx) => {
        await assert.rejects(tx.query(text, [value]), ValueError);
        assert.equal(await tx.sql`select 1`.scalar(), 1);
      });
      const settled = await conn.batch([fragment(), sql`select 1 as n`], { sync: "each" });
      assert.deepStrictEqual(settled.map(({ status }) => status), ["rejected", "fulfilled"], type);
    }
    assert.equal(await conn.sql`select count(*) from kept`.scalar(), 0n);
  }, { within: 60_000 }));

test("what one query of a settled batch is refused for is told in its place, with what became of the others", () =>
  withConnection(async (conn) => {
    // More than the protocol has room for: refused before anything is sent.
    const many = sql`select ${sql.list(Array(65_536).fill(1))}`;
    const settled = await limit(conn.batch([sql`select 1 / 0`, many, sql`select 2 as n`], { sync: "each" }));
    assert.deepEqual(settled.map(({ status }) => status), ["rejected", "rejected", "fulfilled"]);
    const [failed, refused] = settled.map((each) => each.status === "rejected" ? each.reason : undefined);
    assert.ok(failed instanceof PostgresError);
    assert.ok(refused instanceof ValueError);
  }));

test("a query of a batch with options of its own is refused, whatever the batch's kind: none has run", () =>
  withSchema((schema) =>
    withConnection(async (conn) => {
      await conn.exec(`create table ${schema}.t (a int)`);
      const insert = () => sql`insert into ${sql.id(schema, "t")} values (1)`;
      const { signal } = new AbortController();
      const cases = [[{ signal }, /signal/], [{ timeout: 5 }, /timeout/], [{ types: {} }, /types/], [
        { pipeline: false },
        /pipeline/,
      ]] as const;
      const inside: Pick<Connection, "batch"> = {
        // deno-lint-ignore no-explicit-any -- one signature for both
        batch: (...args: any) => conn.transaction((tx) => tx.batch(...args as [[], undefined])) as any,
      };
      for (const on of [conn, inside]) {
        for (const [options, name] of cases) {
          for (const sync of ["one", "each"] as const) {
            const query = conn.sql`select 2`.with({ ...options, label: "mine" });
            const failure = await rejectionOf(on.batch([insert(), query], { sync } as { sync: "one" }));
            assert.equal(failure.name, "ConfigurationError");
            assert.match(failure.message, name);
            assert.match(failure.message, /query 2 of a batch/);
          }
        }
      }
      assert.equal(await conn.sql`select count(*)::int from ${sql.id(schema, "t")}`.scalar(), 0);
      // What says nothing else, and what the batch has.
      const none = { signal: undefined, timeout: 0, pipeline: true, label: "mine", types: undefined };
      await conn.batch([insert(), conn.sql`select 2`.with(none)], { signal, timeout: 5_000 });
    })
  ));

test("a query that becomes part of another one with options of its own is refused, however it got there", () =>
  withConnection(async (conn) => {
    const { signal } = new AbortController();
    const cases = [[{ signal }, /with signal of/], [{ timeout: 5 }, /with timeout of/], [
      { types: {} },
      /with types of/,
    ], [{ pipeline: false }, /with pipeline: false of/]] as const;
    const wholes: ((part: Query) => Query)[] = [
      (part) => conn.sql`select (${part})`,
      (part) => conn.sql`select * from ${sql`(select 1 where (${part}) is not null) as t`}`,
      (part) => conn.sql`${sql.join([sql`select 1`, part], " union all ")}`,
      (part) => conn.sql`select 1 where ${sql.and(part)}`,
      (part) => conn.sql`select 1 where 1 in (${sql.list([part])})`,
      (part) => conn.sql`${sql.values([[part]])}`,
    ];
    const ways: ((whole: Query) => PromiseLike<unknown>)[] = [
      (whole) => whole,
      (whole) => whole.scalar(),
      (whole) => whole.json(),
      (whole) => whole.describe(),
      (whole) => whole.stream().next(),
      (whole) => conn.batch([sql`select 1`, whole]),
      (whole) => conn.batch([sql`select 1`, whole], { sync: "each" }),
      (whole) => conn.transaction((tx) => tx.sql`select 1 where exists (${whole})`),
    ];
    for (const [options, name] of cases) {
      for (const whole of wholes) {
        for (const way of ways) {
          const part = conn.sql`select 2`.with({ ...options, label: "mine" });
          const failure = await rejectionOf(
            Promise.resolve().then(() => way(whole(part).with({ timeout: 0 }))),
          );
          assert.equal(failure.name, "ConfigurationError");
          assert.match(failure.message, name);
          assert.match(failure.message, /give (\S+|pipeline: false) to the query that it becomes part of$/);
        }
      }
    }
    // What says nothing else, and what is said of the whole.
    const none = { signal: undefined, timeout: 0, pipeline: true, label: "mine", types: undefined };
    const part = conn.sql`select ${2}::int4`.with(none);
    assert.equal(await conn.sql`select (${part}) + 1`.with({ signal, timeout: 5_000 }).scalar(), 3);
  }));

test("NUL is refused in SQL text and identifiers, and told by the server in a value", () =>
  withConnection(async (conn) => {
    await assert.rejects(conn.query("select 1\0"), ValueError);
    await assert.rejects(conn.exec("select 1\0"), ValueError);
    assert.throws(() => sql.id("a\0b"), ValueError);
    await assert.rejects(conn.query("select $1::text", ["a\0b"]), { code: "22021" });
    assert.equal(await conn.sql`select 1`.scalar(), 1);
  }));

test("int8 as number and as string; what a number cannot hold is refused", async () => {
  const text =
    "select 1::int8 as a, '{9007199254740991,NULL}'::int8[] as b, int8range(1, 5) as c, -5::int8 as d";
  for (const int8 of ["number", "string"] as const) {
    const to = int8 === "number" ? Number : String;
    await withConnection(async (conn) => {
      for (let i = 0; i < 3; i++) {
        const { rows: [row] } = await conn.query<Record<string, unknown>>(text);
        const { a, b, c, d } = row!;
        assert.deepStrictEqual([a, b, d], [to(1), [to("9007199254740991"), null], to(-5)]);
        assert.deepStrictEqual((c as { lower: unknown }).lower, to(1));
        assert.deepStrictEqual((await conn.exec(text))[0]!.rows, [row]);
        const big = conn.query<{ v: unknown }>(`select 9007199254740993::int8 as v`);
        if (int8 === "number") await assert.rejects(big, ValueError);
        else assert.equal((await big).rows[0]!.v, "9007199254740993");
      }
    }, { int8 });
  }
});

test("temporal: true gives Temporal objects, or says that the runtime has none", async () => {
  const { Temporal } = globalThis as { Temporal?: unknown };
  if (Temporal === undefined) {
    await assert.rejects(limit(connect(testUrl(), { temporal: true })), ConfigurationError);
    assert.throws(() => createPool(testUrl(), { temporal: true }), ConfigurationError);
    return;
  }
  const text =
    `select date '2024-02-29' as d, time '01:02:03.000004' as t, timestamp '2024-02-29 01:02:03.000004' as s,
    timestamptz '2024-02-29 01:02:03.000004+00' as z, interval '1 year 2 days 00:00:01.5' as i, array[timestamptz '1883-11-18 12:03:58.5+00'] as a`;
  await withConnection(async (conn) => {
    for (let n = 0; n < 3; n++) {
      const { rows: [row] } = await conn.query<Record<string, unknown>>(text);
      assert.deepEqual(Object.values(row!).map(String), [
        "2024-02-29",
        "01:02:03.000004",
        "2024-02-29T01:02:03.000004",
        "2024-02-29T01:02:03.000004Z",
        "P1Y2DT1.5S",
        "1883-11-18T12:03:58.5Z",
      ]);
      const sent = await conn.query<{ same: boolean }>(
        `select ($1::date, $2::time, $3::timestamp, $4::timestamptz, $5::interval, $6::timestamptz[])
          is not distinct from (d, t, s, z, i, a) as same from (${text}) q`,
        Object.values(row!),
      );
      assert.equal(sent.rows[0]!.same, true);
    }
  }, { temporal: true });
});

test("columns of odd names are own properties on every path", () =>
  withConnection(async (conn) => {
    const text = `select 1 as "__proto__", 2 as a, 3 as a, 4 as " ", 5 as "constructor"`;
    const names = ["__proto__", "a", " ", "constructor"];
    const check = (row: unknown) => {
      assert.deepEqual(Object.keys(row as object), names);
      assert.deepEqual(names.map((name) => Object.getOwnPropertyDescriptor(row, name)?.value), [1, 3, 4, 5]);
    };
    for (let i = 0; i < 3; i++) check((await conn.query(text)).rows[0]);
    check((await conn.exec(text))[0]!.rows[0]);
    for await (const row of conn.sql`${sql.raw(text)}`) check(row);
    const columns = await conn.sql`${sql.raw(text)}`.columns();
    assert.deepEqual(Object.keys(columns), names);
    assert.deepEqual(await conn.sql`${sql.raw(text)}`.arrays(), [[1, 2, 3, 4, 5]]);
    assert.equal(
      await conn.sql`${sql.raw(text)}`.json(),
      '[{"__proto__":1,"a":2,"a":3," ":4,"constructor":5}]',
    );
    const copied = [];
    const copy = `copy (${text}) to stdout (format binary)`;
    for await (const row of conn.copyTo(copy).rows()) copied.push(row);
    check(copied[0]);
  }));

leavesNoSession();
