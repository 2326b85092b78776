/**
 * Values against a real server: the same on every path and in both formats, and as parameters what the server prints.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, type Connection, PostgresError, sql, ValueError } from "../../mod.ts";
import { Interval } from "../../src/codecs/interval.ts";
import { Range } from "../../src/codecs/range.ts";
import { leavesNoSession, limit, serverVersion, testUrl, withSchema } from "../_support/server.ts";

const TIME = 60_000;

function using(name: string, body: (connection: Connection) => Promise<void>): void {
  test(name, async () => {
    await using connection = await limit(connect(testUrl()));
    await limit(body(connection), TIME, name);
  });
}

/** The first column of a query's rows by the simple protocol and by its first, second and third execution. */
async function onEveryPath(connection: Connection, text: string): Promise<unknown[]> {
  const [simple] = await connection.exec(text);
  const paths = [Object.values(simple!.rows).map((row) => Object.values(row as object)[0])];
  for (let i = 0; i < 3; i++) {
    paths.push((await connection.query(text)).rows.map((row) => Object.values(row as object)[0]));
  }
  for (const values of paths) assert.deepStrictEqual(values, paths[0], text);
  return paths[0]!;
}

const bytes = (...values: number[]): Uint8Array => new Uint8Array(values);

// SQL and the value it must become.
const VALUES: readonly (readonly [string, unknown])[] = [
  ["'infinity'::date", "infinity"],
  ["'-infinity'::timestamptz", -Infinity],
  ["array['infinity'::timestamp]", [Infinity]],
  ["'0001-01-01 00:00Z BC'::timestamptz", new Date(-62167219200000)],
  ["'0044-03-15 BC'::timestamp", new Date(-63517824000000)],
  ["'4714-11-24 BC'::date", "4714-11-24 BC"],
  ["'4714-11-24 BC'::timestamp", new Date(-210866803200000)],
  ["'0050-01-01Z'::timestamptz", new Date(-60589296000000)],
  ["'2026-08-24'::date", "2026-08-24"],
  ["'2024-06-15 12:00'::timestamp", new Date("2024-06-15T12:00:00Z")],
  ["array['2026-08-24'::date, null]", ["2026-08-24", null]],
  ["'NaN'::float8", NaN],
  ["array['Infinity','-Infinity','NaN','-0','5e-324']::float8[]", [Infinity, -Infinity, NaN, -0, 5e-324]],
  ["array['-0','0.1','3.4028235e38','16777217','0.3']::float4[]", [-0, 0.1, 3.4028235e38, 16777216, 0.3]],
  ["1e-9::numeric", "0.000000001"],
  ["1e-20::numeric(30,25)", "0.0000000000000000000100000"],
  ["0.00012300", "0.00012300"],
  ["array[1.5,'NaN','Infinity','-Infinity']::numeric[]", ["1.5", "NaN", "Infinity", "-Infinity"]],
  [
    "array[235432654766387365825634725462354632415634256415]::numeric[]",
    ["235432654766387365825634725462354632415634256415"],
  ],
  ["'-9223372036854775808'::int8", -9223372036854775808n],
  ["array[9223372036854775807]", [9223372036854775807n]],
  ["4294967295::oid", 4294967295],
  ["'18446744073709551615'::xid8", 18446744073709551615n],
  ["'[0:2]={1,2,3}'::int4[]", [1, 2, 3]],
  ["'[0:2]={a,b,\"c=d\"}'::text[]", ["a", "b", "c=d"]],
  ["'[-1:0][2:3]={{1,2},{3,4}}'::int4[]", [[1, 2], [3, 4]]],
  ["(select indkey::int2[] from pg_index where indexrelid = 'pg_class_oid_index'::regclass)", [1]],
  ["array[1,null,3]", [1, null, 3]],
  ["'{{1,2},{3,NULL}}'::int4[]", [[1, 2], [3, null]]],
  ["'{}'::int4[]", []],
  ["null::int4[]", null],
  ['\'{NULL,"NULL","null",""," a ","a b",a,"a,b","{x}"}\'::text[]', [
    null,
    "NULL",
    "null",
    "",
    " a ",
    "a b",
    "a",
    "a,b",
    "{x}",
  ]],
  [String.raw`'{"a\\b","a\"b"}'::text[]`, ["a\\b", 'a"b']],
  [String.raw`array['\x1a2b'::bytea, null, '\x'::bytea]`, [bytes(0x1a, 0x2b), null, bytes()]],
  ["array['n'::name]", ["n"]],
  ["'1 year -2 mons +3 days -04:05:06.789'::interval", new Interval(10, 3, -14706789000)],
  ["'-00:00:00.5'::interval", new Interval(0, 0, -500000)],
  ["int4range(1, 5, '[]')", new Range(1, 6)],
  ["'empty'::int4range", Range.empty()],
  ["'(,)'::int4range", new Range(null, null, "()")],
  [
    "'[\"2021-12-31 10:19:24.036+00\",infinity)'::tstzrange",
    new Range<unknown>(new Date("2021-12-31T10:19:24.036Z"), Infinity),
  ],
  ["array['[\"2024-01-01\",)'::tsrange]", [new Range(new Date("2024-01-01T00:00:00Z"), null)]],
  ["'{[1,3),[5,8)}'::int4multirange", [new Range(1, 3), new Range(5, 8)]],
  ["array['null'::jsonb, null]", [null, null]],
  ["jsonb '\"0.1\"'", "0.1"],
  ["array[128, 200, -1, 127]", [128, 200, -1, 127]],
  [String.raw`'\xff00fe'::bytea`, bytes(0xff, 0, 0xfe)],
  ["row(1, 'a \"b\"', null)", ["1", 'a "b"', null]],
  ["array['(1,2),(3,4)'::box, '(5,6),(7,8)']", [{ x1: 3, y1: 4, x2: 1, y2: 2 }, {
    x1: 7,
    y1: 8,
    x2: 5,
    y2: 6,
  }]],
];

using("a value is the same by every protocol and in both formats", async (connection) => {
  for (const [expression, value] of VALUES) {
    const [received] = await onEveryPath(connection, `select ${expression} as v`);
    assert.deepStrictEqual(received, value, expression);
  }
});

using("an infinite interval is one of infinite fields", async (connection) => {
  if (await serverVersion() < 17) return;
  const received = await onEveryPath(
    connection,
    "select unnest(array['infinity', '-infinity']::interval[]) as v",
  );
  assert.deepStrictEqual(received, [
    new Interval(Infinity, Infinity, Infinity),
    new Interval(-Infinity, -Infinity, -Infinity),
  ]);
});

// Type, and SQL of a random value. `g` counts the rows.
// Bun 1.4 shows characters outside ASCII as escapes in String.raw, hence the doubled backslashes.
const TEXT =
  `(select coalesce(string_agg(substr(E'ab"\\\\,{}() \\n\\tNULLé😀;[]''=>:', 1 + floor(random() * 28)::int, 1), ''), '')
  from generate_series(1, (random() * 8)::int) s(i) where g is not null)`;
const INSTANT =
  "('2000-01-01'::timestamp + round((random() - 0.4) * power(10, random() * 14)) * interval '1 millisecond')";
const RANDOM: readonly (readonly [string, string])[] = [
  ["bool", "random() < 0.5"],
  ["int2", "((random() - 0.5) * power(2, random() * 16))::int2"],
  ["int4", "((random() - 0.5) * power(2, random() * 32))::int4"],
  ["int8", "((random() - 0.5) * power(2, random() * 63.9))::int8"],
  ["oid", "(random() * 4294967295)::int8::oid"],
  ["float8", "(random() - 0.5) * power(10::float8, (random() - 0.5) * 600)"],
  ["float4", "((random() - 0.5) * power(10::float8, (random() - 0.5) * 74))::float4"],
  ["float4", "power(2::float8, floor(random() * 250 - 125))::float4"],
  [
    "numeric",
    "round(((random() - 0.5) * power(10::float8, (random() - 0.5) * 60))::numeric, (random() * 40)::int)",
  ],
  ["money", "((random() - 0.5) * 1e10)::numeric::money"],
  ["text", TEXT],
  ["varchar", TEXT],
  ["name", `${TEXT}::text`],
  ["uuid", "md5(g::text || random())::uuid"],
  ["bytea", "decode(md5(random()::text), 'hex')"],
  ["jsonb", `jsonb_build_array(g, ${TEXT}, null, random())`],
  ["date", "'2000-01-01'::date + ((random() - 0.4) * power(10, random() * 6))::int"],
  ["time", "'00:00'::time + random() * interval '24 hours'"],
  [
    "timetz",
    "(('00:00'::time + random() * interval '24 hours')::text || '-0' || (random() * 9)::int || ':30')::timetz",
  ],
  ["timestamp", INSTANT],
  ["timestamptz", `${INSTANT}::timestamptz`],
  [
    "interval",
    "make_interval(months => ((random() - 0.5) * 100)::int, days => ((random() - 0.5) * 100)::int, " +
    "secs => (random() - 0.5) * power(10, random() * 9))",
  ],
  ["varbit", "(random() * 31)::int::bit(5)::varbit"],
  ["inet", "'10.0.0.0'::inet + (random() * 1000)::int"],
  ["macaddr", "'08:00:2b:01:02:03'::macaddr"],
  ["tsvector", "to_tsvector('simple', 'a b c ' || g)"],
  ["pg_lsn", "'16/B374D848'::pg_lsn + g"],
  ["jsonpath", "'$.a[*] ? (@ > 1)'::jsonpath"],
  ["point", "point(random() * 100, -random())"],
  ["line", "('{1,' || random() || ',3}')::line"],
  ["lseg", "lseg(point(random(), 2), point(3, 4))"],
  ["box", "box(point(random(), 2), point(3, 4))"],
  ["path", "path(polygon(box(point(random(), 2), point(3, 4))))"],
  ["polygon", "polygon(box(point(random(), 2), point(3, 4)))"],
  ["circle", "circle(point(random(), 2), random())"],
  ["int4range", "int4range((random() * 10)::int, 10 + (random() * 10)::int)"],
  ["numrange", "numrange(random()::numeric, null)"],
  ["tstzrange", "tstzrange(date_trunc('second', now()), 'infinity')"],
  ["int4multirange", "int4multirange(int4range(1, (2 + random() * 10)::int), int4range(20, 30))"],
];

const ROWS = 150;

// In parts, since a runner may give a test five seconds.
const PARTS = 6;

for (const part of Array(PARTS * 2).keys()) {
  const zone = part < PARTS ? "UTC" : "America/New_York";
  const samples = RANDOM.filter((_, i) => i % PARTS === part % PARTS);
  using(
    `random values survive, server in ${zone}: ${samples.map(([type]) => type).join(", ")}`,
    async (connection) => {
      await connection.exec(`set timezone = '${zone}'`);
      for (const [element, expression] of samples) {
        for (const type of [element, `${element}[]`]) {
          const value = type === element ? expression : `array[${expression}, null, ${expression}]::${type}`;
          await connection.exec(
            `drop table if exists t; create temp table t as select g as id, (${value})::${type} as v from generate_series(1, ${ROWS}) g`,
          );
          const values = await onEveryPath(connection, `select v from t order by id /* ${type} */`);
          assert.equal(values.length, ROWS);
          // The first of these goes before the type of $1 is known, where the value does not need it.
          const text = `select ($1::${type})::text as sent, v::text as kept from t where id = $2`;
          const rows = await Promise.all(values.map((each, i) => connection.query(text, [each, i + 1])));
          for (const { rows: [row] } of rows) {
            const { sent, kept } = row as { sent: string; kept: string };
            assert.equal(sent, kept, `${type} as a parameter`);
          }
        }
      }
    },
  );
}

using("parameters that must not be guessed", async (connection) => {
  const one = async (text: string, ...values: unknown[]): Promise<unknown> =>
    (await connection.query<{ v: unknown }>(text, values)).rows[0]!.v;
  for (let i = 0; i < 3; i++) {
    assert.equal(await one("select jsonb_typeof($1::jsonb) as v", [1, 2]), "array");
    assert.equal(await one("select jsonb_typeof($1::jsonb) as v", true), "boolean");
    assert.equal(await one("select jsonb_typeof($1::jsonb) as v", 5), "number");
    assert.equal(await one("select jsonb_typeof($1::jsonb) as v", { a: 1 }), "object");
    assert.equal(await one("select jsonb_typeof($1::jsonb) as v", '{"a":1}'), "object");
    assert.equal(await one("select jsonb_typeof($1::jsonb) as v", sql.json("x")), "string");
    assert.equal(await one("select jsonb_typeof($1::jsonb) as v", sql.json(null)), "null");
    assert.equal(await one("select $1::jsonb is null as v", null), true);
    assert.equal(await one("select '[\"a\"]'::jsonb ?| $1 as v", ["a", "b"]), true);
    assert.deepStrictEqual(await one("select $1::int4[] as v", []), []);
    assert.deepStrictEqual(await one("select $1::int4[] as v", [[1, 2], [3, 4]]), [[1, 2], [3, 4]]);
    assert.deepStrictEqual(await one("select $1::int8[] as v", [1n, 2]), [1n, 2n]);
    assert.deepStrictEqual(await one("select $1::float4[] as v", [1.5, 0.1]), [1.5, 0.1]);
    assert.equal(await one("select 3 = any($1::int4[]) as v", [1, 2, 3]), true);
    assert.equal(
      await one("select encode($1::bytea, 'hex') as v", new Uint8Array([9, 1, 2, 9]).subarray(1, 3)),
      "0102",
    );
    assert.equal(await one("select $1::timestamptz::text as v", Infinity), "infinity");
    assert.ok(Object.is(await one("select $1::float8 as v", -0), -0));
  }
});

using("refused values send nothing and harm nobody", async (connection) => {
  const refused: readonly (readonly [string, unknown])[] = [
    ["select $1::text", undefined],
    ["select $1::timestamptz", new Date(NaN)],
    ["select $1::int4[]", [[1], [2, 3]]],
    ["select $1::int4[]", [1, undefined]],
    ["select $1::bytea", [1, 2]],
    ["select $1::bool", {}],
    ["select $1::jsonb", { n: 1n }],
    ["select $1::text", () => 1],
  ];
  const work = refused.flatMap(([text, value]) => [
    assert.rejects(Promise.resolve(connection.query(text, [value])), ValueError, text),
    connection.query<{ v: number }>("select 1 as v").then(({ rows }) => assert.equal(rows[0]!.v, 1)),
  ]);
  await Promise.all(work);
  await assert.rejects(Promise.resolve(connection.query("select $1::text", ["a\0b"])), PostgresError);
});

using("65,535 parameters are sent, 65,536 refused", async (connection) => {
  const { rows: [row] } = await connection.query<{ n: bigint }>(
    `select count(*) as n from (values ${
      Array.from({ length: 65_535 }, (_, i) => `($${i + 1}::int4)`).join(",")
    }) t`,
    Array(65_535).fill(1),
  );
  assert.equal(row!.n, 65_535n);
  await assert.rejects(Promise.resolve(connection.query("select 1", Array(65_536).fill(1))), ValueError);
  assert.equal((await connection.query<{ v: number }>("select 1 as v")).rows[0]!.v, 1);
});

test("types of one's own are read without registration, also those made after connecting", () =>
  withSchema(async (schema) => {
    await using connection = await limit(connect(testUrl()));
    const work = async (): Promise<void> => {
      await connection.exec(`set search_path = ${schema}; create type mood as enum ('sad', 'o k');
        create domain positive as int4 check (value > 0); create domain moods as mood[];
        create type pair as (a int4, b text, m mood, list int4[]); create type textrange as range (subtype = text)`);
      const values: readonly (readonly [string, unknown])[] = [
        ["'o k'::mood", "o k"],
        ["array['sad', 'o k', null]::mood[]", ["sad", "o k", null]],
        ["'{}'::mood[]", []],
        ["5::positive", 5],
        ["array[5, null]::positive[]", [5, null]],
        ["array['sad']::moods", ["sad"]],
        [`row(1, 'a "b"', 'o k', '{1,NULL}')::pair`, { a: 1, b: 'a "b"', m: "o k", list: [1, null] }],
        ["array[row(null, '', null, null), null]::pair[]", [{ a: null, b: "", m: null, list: null }, null]],
        ["textrange('a', 'b c')", new Range("a", "b c")],
      ];
      for (const [expression, value] of values) {
        const [received] = await onEveryPath(connection, `select ${expression} as v`);
        assert.deepStrictEqual(received, value, expression);
      }
      const pair = { a: 1, b: "x, y", m: "sad", list: [2] };
      for (let i = 0; i < 3; i++) {
        const { rows } = await connection.query<{ v: unknown; w: unknown }>(
          "select $1::pair as v, $2::mood[] as w",
          [
            pair,
            ["o k", null],
          ],
        );
        assert.deepStrictEqual(rows[0], { v: pair, w: ["o k", null] });
      }
    };
    await limit(work(), TIME);
  }));

leavesNoSession();
