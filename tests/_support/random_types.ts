/** SQL that makes random values of every type, on the server, from a seed. */

import process from "node:process";

/** A type, and SQL of a random value of it; `g` counts the rows. */
export interface RandomType {
  readonly type: string;
  readonly value: string;
  /** The first major version that has the type. */
  readonly since?: number;
  /** False for types whose values do not come back as the text they were: json. */
  readonly keepsText?: boolean;
  /** Whether it has columns. */
  readonly composite?: boolean;
}

// Bun 1.4 shows characters outside ASCII as escapes in String.raw, hence the doubled backslashes.
const TEXT =
  `(select coalesce(string_agg(substr(E'ab"\\\\,{}() \\n\\tNULLé😀;[]''=>:\\u0301<&', 1 + floor(random() * 31)::int, 1), ''), '')
  from generate_series(1, (random() * 8)::int) s(i) where g is not null)`;
const WORD = "substr(md5(random()::text), 1, 1 + (random() * 8)::int)";
const MILLISECONDS = "round((random() - 0.4) * power(10, random() * 14)) * interval '1 millisecond'";
const INSTANT = `('2000-01-01'::timestamp + ${MILLISECONDS})`;
const MICROSECONDS = "'00:00'::time + (random() * 86399999999)::int8 * interval '1 microsecond'";
const NUMERIC =
  "round(((random() - 0.5) * power(10::float8, (random() - 0.5) * 60))::numeric, (random() * 40)::int)";
const INT4 = "((random() - 0.5) * power(2, random() * 31))::int4";
const POINT = "point((random() - 0.5) * 100, -random())";

/** Between two of `value`, in order, either bound perhaps missing. */
function range(type: string, value: string): string {
  return `(select case when random() < 0.1 then 'empty'::${type}
    else ${type}(nullif(least(a, b), case when random() < 0.1 then least(a, b) end), greatest(a, b),
      (array['[]', '[)', '(]', '()'])[1 + floor(random() * 4)::int]) end
    from (select ${value} as a, ${value} as b where g is not null) s)`;
}

const DATE = "('2000-01-01'::date + ((random() - 0.4) * power(10, random() * 6))::int)";

/** Families of built-in types. */
export const RANDOM_TYPES: readonly RandomType[] = [
  { type: "bool", value: "random() < 0.5" },
  { type: "int2", value: "((random() - 0.5) * power(2, random() * 16))::int2" },
  { type: "int4", value: INT4 },
  { type: "int8", value: "((random() - 0.5) * power(2, random() * 63.9))::int8" },
  { type: "oid", value: "(random() * 4294967295)::int8::oid" },
  { type: "xid", value: "(random() * 4294967295)::int8::text::xid" },
  { type: "cid", value: "(random() * 4294967295)::int8::text::cid" },
  { type: "xid8", value: "trunc((random() * 18446744073709551615.0)::numeric)::text::xid8" },
  {
    type: "float8",
    value:
      "(case when random() < 0.02 then (array['NaN', 'Infinity', '-Infinity', '-0'])[1 + floor(random() * 4)::int]" +
      "::float8 else (random() - 0.5) * power(10::float8, (random() - 0.5) * 600) end)",
  },
  { type: "float4", value: "((random() - 0.5) * power(10::float8, (random() - 0.5) * 74))::float4" },
  {
    type: "float4",
    value: "(floor(random() * 33554432) * power(2::float8, floor(random() * 240 - 140)))::float4",
  },
  { type: "numeric", value: NUMERIC },
  {
    type: "numeric",
    value:
      "(array['NaN', 'Infinity', '-Infinity', '0', '0.000', '1e300', '-1e-300', '0.00000001', '10000', '9999.9999'])" +
      "[1 + floor(random() * 10)::int]::numeric",
    since: 14,
  },
  { type: "money", value: "((random() - 0.5) * 1e10)::numeric::money" },
  { type: "text", value: TEXT },
  { type: "varchar", value: TEXT },
  { type: "bpchar", value: TEXT },
  { type: "name", value: `${TEXT}::text` },
  { type: '"char"', value: 'chr(1 + (random() * 126)::int)::"char"' },
  { type: "xml", value: `xmlelement(name a, ${WORD})` },
  { type: "uuid", value: "md5(g::text || random())::uuid" },
  { type: "bytea", value: "decode(repeat(md5(random()::text), (random() * 3)::int), 'hex')" },
  { type: "bit(13)", value: "(random() * 8191)::int::bit(13)" },
  {
    type: "varbit",
    value: "substr((random() * 2147483647)::int::bit(31)::text, 1, (random() * 31)::int)::varbit",
  },
  {
    type: "json",
    value: `json_build_object(${TEXT}, g, 'b', json_build_array(${TEXT}, null, random() < 0.5))`,
    keepsText: false,
  },
  {
    type: "jsonb",
    value: `jsonb_build_array(g, ${TEXT}, null, jsonb_build_object(${TEXT}, random() < 0.5))`,
  },
  {
    type: "jsonpath",
    value:
      `('$.' || (array['a', 'b.c', 'd[*]'])[1 + floor(random() * 3)::int] || ' ? (@ > ' || g || ')')::jsonpath`,
  },
  { type: "date", value: `(case when random() < 0.01 then 'infinity'::date else ${DATE} end)` },
  { type: "time", value: `(${MICROSECONDS})` },
  {
    type: "timetz",
    value:
      `((${MICROSECONDS})::text || (array['+', '-'])[1 + floor(random() * 2)::int] || lpad((random() * 15)::int::text, 2, '0')
      || (array['', ':30', ':45:15'])[1 + floor(random() * 3)::int])::timetz`,
  },
  { type: "timestamp", value: `(case when random() < 0.01 then '-infinity' else ${INSTANT} end)` },
  {
    type: "timestamptz",
    value: `(case when random() < 0.01 then 'infinity' else ${INSTANT} at time zone 'UTC' end)`,
  },
  {
    type: "interval",
    value: "make_interval(months => ((random() - 0.5) * 1000)::int * (random() < 0.7)::int, " +
      "days => ((random() - 0.5) * 100)::int * (random() < 0.7)::int, " +
      "secs => (random() - 0.5) * power(10, random() * 9) * (random() < 0.7)::int)",
  },
  {
    type: "inet",
    value: "set_masklen('0.0.0.0'::inet + (random() * 4294967295)::int8, (random() * 32)::int)",
  },
  { type: "inet", value: "set_masklen('fe80::'::inet + (random() * 1e15)::int8, (random() * 128)::int)" },
  {
    type: "cidr",
    value: "network(set_masklen('0.0.0.0'::inet + (random() * 4294967295)::int8, (random() * 32)::int))",
  },
  { type: "macaddr", value: "substr(md5(random()::text), 1, 12)::macaddr" },
  { type: "macaddr8", value: "substr(md5(random()::text), 1, 16)::macaddr8" },
  { type: "tsvector", value: `to_tsvector('simple', ${WORD} || ' it''s b\\c ' || ${WORD})` },
  { type: "tsquery", value: `to_tsquery('simple', ${WORD} || ' & !(' || ${WORD} || ':* | b:A)')` },
  { type: "pg_lsn", value: "('0/0'::pg_lsn + (random() * 1e17)::numeric(20, 0))", since: 14 },
  {
    type: "regclass",
    value: "(array['pg_class', 'pg_type', 'pg_proc'])[1 + floor(random() * 3)::int]::regclass",
  },
  {
    type: "regtype",
    value: "(array['int4', 'text[]', 'timestamptz'])[1 + floor(random() * 3)::int]::regtype",
  },
  { type: "tid", value: "format('(%s,%s)', (random() * 1e6)::int, (random() * 100)::int)::tid" },
  { type: "int2vector", value: "((random() * 9)::int || ' ' || (random() * 9)::int)::int2vector" },
  { type: "oidvector", value: "((random() * 9)::int || ' ' || (random() * 9)::int)::oidvector" },
  { type: "pg_snapshot", value: "(g || ':' || g + 5 || ':' || g + 1)::pg_snapshot" },
  { type: "point", value: POINT },
  { type: "line", value: "('{' || random() || ',' || random() - 2 || ',' || random() || '}')::line" },
  { type: "lseg", value: `lseg(${POINT}, ${POINT})` },
  { type: "box", value: `box(${POINT}, ${POINT})` },
  {
    type: "path",
    value:
      `(case when random() < 0.5 then popen(path(polygon(box(${POINT}, ${POINT})))) else path(polygon(box(${POINT}, ${POINT}))) end)`,
  },
  { type: "polygon", value: `polygon(box(${POINT}, ${POINT}))` },
  { type: "circle", value: `circle(${POINT}, random())` },
  { type: "int4range", value: range("int4range", INT4) },
  { type: "int8range", value: range("int8range", "(random() * 1e18)::int8") },
  { type: "numrange", value: range("numrange", NUMERIC) },
  { type: "daterange", value: range("daterange", DATE) },
  { type: "tsrange", value: range("tsrange", INSTANT) },
  { type: "tstzrange", value: range("tstzrange", `(${INSTANT} at time zone 'UTC')`) },
  {
    type: "int4multirange",
    value: `int4multirange(${range("int4range", INT4)}, ${range("int4range", INT4)})`,
    since: 14,
  },
  {
    type: "tsmultirange",
    value: `tsmultirange(${range("tsrange", INSTANT)}, ${range("tsrange", INSTANT)})`,
    since: 14,
  },
];

/** SQL that makes types of one's own in the current schema. */
export const OWN_TYPES = `create type mood as enum ('sad', 'o k', 'a"b', 'c,d');
  create domain amount as numeric; create domain moods as mood[];
  create type pair as (a int4, b text, "c D" mood, l int4[], r int4range, at timestamptz, n amount);
  create type pair_holder as (p pair, ps pair[]); create type textrange as range (subtype = text)`;

const MOOD = "(array['sad', 'o k', 'a\"b', 'c,d'])[1 + floor(random() * 4)::int]::mood";
const PAIR = `row(nullif(${INT4}, 0), ${TEXT}, ${MOOD}, array[${INT4}, null], ${
  range("int4range", INT4)
}, ${INSTANT}, ${NUMERIC})::pair`;

/** Types of {@linkcode OWN_TYPES}. */
export const OWN_RANDOM_TYPES: readonly RandomType[] = [
  { type: "mood", value: MOOD },
  { type: "amount", value: `${NUMERIC}::amount` },
  { type: "moods", value: `array[${MOOD}, null]::moods` },
  { type: "pair", value: PAIR, composite: true },
  { type: "pair_holder", value: `row(${PAIR}, array[${PAIR}, null])::pair_holder`, composite: true },
  { type: "textrange", value: range("textrange", TEXT) },
];

/** The run's seed: `PIPEGRES_SEED`, or a new one. To be printed where it is used. */
export function runSeed(): number {
  const given = Number(process.env["PIPEGRES_SEED"]);
  return Number.isInteger(given) && given > 0 ? given : 1 + Math.trunc(Math.random() * 2 ** 30);
}
