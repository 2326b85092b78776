/** A value means the same whether its type is known yet or not: what is stored the first time is stored ever after. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Connection, Interval, PostgresError, Range, sql, ValueError } from "../../mod.ts";
import { withConnection } from "../_support/session.ts";
import { leavesNoSession, withSchema } from "../_support/server.ts";

const TYPES = [
  ...[
    "bool",
    "int2",
    "int4",
    "int8",
    "oid",
    "xid8",
    "float4",
    "float8",
    "numeric",
    "money",
    "text",
    "bpchar",
    '"char"',
  ],
  ...[
    "bytea",
    "uuid",
    "date",
    "time",
    "timetz",
    "timestamp",
    "timestamptz",
    "interval",
    "json",
    "jsonb",
    "point",
  ],
  ...[
    "int4range",
    "tstzrange",
    "int4multirange",
    "mood",
    "comp",
    "positive",
    "inet",
    "xml",
    "int4[]",
    "text[]",
    "jsonb[]",
  ],
];

const VALUES: Readonly<Record<string, unknown>> = {
  "-0": -0,
  "1": 1,
  "1.5": 1.5,
  "-1": -1,
  NaN: NaN,
  Infinity: Infinity,
  "-Infinity": -Infinity,
  "1e21": 1e21,
  "1e-7": 1e-7,
  "2 ** 31": 2 ** 31,
  "2 ** 60": 2 ** 60,
  "1e40": 1e40,
  "1n": 1n,
  "2n ** 63n": 2n ** 63n,
  true: true,
  '"t"': "t",
  '""': "",
  '" 1 "': " 1 ",
  '"abc"': "abc",
  "a Date": new Date("2026-08-05T01:02:03.5Z"),
  "a Date BC": new Date(-63517824000000),
  "the last Date": new Date(8.64e15),
  "{}": {},
  "{ i, t }": { i: 1, t: "x" },
  "a Point": { x: 1, y: 2 },
  "[]": [],
  "[1, 2]": [1, 2],
  "[[1], [2]]": [[1], [2]],
  "[null]": [null],
  '["a"]': ["a"],
  "a Uint8Array": new Uint8Array([1, 2]),
  "a Float64Array": new Float64Array([1, 2]),
  "an ArrayBuffer": new Uint8Array([1, 2]).buffer,
  "a DataView": new DataView(new Uint8Array([0, 1, 2]).buffer, 1, 2),
  "a Map": new Map([["i", 1]]),
  "a Set": new Set([1]),
  "a Range": new Range(1, 5),
  "a Range of Dates": new Range(new Date(0), null),
  "[Range]": [new Range(1, 5)],
  "an Interval": new Interval(1, 2, 3),
  "sql.json(null)": sql.json(null),
  'sql.json("x")': sql.json("x"),
};

/** The text that was stored, or who refused it. */
async function outcomeOf(result: PromiseLike<{ readonly rows: readonly unknown[] }>): Promise<string> {
  try {
    return `stored ${(await result).rows[0]}`;
  } catch (error) {
    // Before the type is known it is the server that refuses.
    assert.ok(error instanceof ValueError || error instanceof PostgresError, String(error));
    return "refused";
  }
}

async function outcomesOf(conn: Connection, type: string, name: string): Promise<Record<string, string>> {
  const value = VALUES[name];
  const text = (path: string) => `select $1::${type}::text as v /* ${path} of ${name} */`;
  const ask = (text: string, parameter: unknown) =>
    outcomeOf(conn.query<{ v: string }>(text, [parameter]).then(({ rows }) => ({ rows: [rows[0]!.v] })));
  const outcomes: Record<string, string> = {};
  outcomes["first"] = await ask(text("first"), value);
  outcomes["second"] = await ask(text("first"), value);
  const pipelined = await Promise.all([1, 2, 3].map(() => ask(text("pipelined"), value)));
  pipelined.forEach((outcome, i) => outcomes[`pipelined ${i}`] = outcome);
  outcomes["typed"] = await ask("select $1::text as v", sql.typed(value, type));
  outcomes["third"] = await ask(text("first"), value);
  if (type.endsWith("]") || Array.isArray(value)) return outcomes;
  const element = `select ($1::${type}[])[1]::text as v /* of ${name} */`;
  for (const path of ["first in a list", "second in a list"]) outcomes[path] = await ask(element, [value]);
  return outcomes;
}

for (const type of TYPES) {
  test(`${type}: a parameter means the same by every way of sending it`, () =>
    withSchema((schema) =>
      withConnection(async (conn) => {
        await conn.exec(`set search_path = ${schema}; create type mood as enum ('abc');
          create type comp as (i int4, t text); create domain positive as int4 check (value > 0)`);
        for (const name of Object.keys(VALUES)) {
          const outcomes = await outcomesOf(conn, type, name);
          for (const [path, outcome] of Object.entries(outcomes)) {
            assert.equal(outcome, outcomes["second"], `${name} ${path}: ${JSON.stringify(outcomes)}`);
          }
        }
      }, { within: 60_000 })
    ));
}

leavesNoSession();
