/**
 * Random values of every type, whose oracle is the server: what its output and send functions make of the value that
 * came back as a parameter, and its own JSON.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Connection, sql } from "../../mod.ts";
import { withConnection } from "../_support/session.ts";
import {
  OWN_RANDOM_TYPES,
  OWN_TYPES,
  RANDOM_TYPES,
  type RandomType,
  runSeed,
} from "../_support/random_types.ts";
import { leavesNoSession, serverVersion, withSchema } from "../_support/server.ts";

const seed = runSeed();
console.log(`seed ${seed} (PIPEGRES_SEED)`);

/** Values of one run, all types together: of a row one, and two in its array. */
const VALUES = 100_000;
const ROWS = Math.ceil(VALUES / 3 / (RANDOM_TYPES.length + OWN_RANDOM_TYPES.length));
/** Of each type so many go as a parameter of their own. */
const SINGLE = 40;

async function fill(conn: Connection, { type, value }: RandomType, index: number): Promise<void> {
  await conn.exec(`select setseed(${(seed % 1000) / 1000 - index / 1000});
    drop table if exists t; create temp table t (id int, v ${type}, l ${type}[]);
    insert into t select g, (${value})::${type}, array[(${value})::${type}, null, (${value})::${type}]::${type}[]
      from generate_series(1, ${ROWS}) g`);
}

async function readEveryWay(conn: Connection, column: string): Promise<unknown[]> {
  const text = `select ${column} as v from t order by id /* ${Math.random()} */`;
  const [simple] = await conn.exec<{ v: unknown }>(text);
  const wanted = simple!.rows.map(({ v }) => v);
  for (let i = 0; i < 3; i++) {
    const { rows } = await conn.query<{ v: unknown }>(text);
    assert.deepStrictEqual(rows.map(({ v }) => v), wanted, `execution ${i + 1}`);
  }
  const columns = await conn.sql`${sql.raw(text)}`.columns();
  // float4 columns hold what the four bytes say, rows the shortest decimal of the same number.
  const isFloat4 = columns["v"] instanceof Float32Array;
  assert.deepStrictEqual(
    Array.from(columns["v"]!),
    isFloat4 ? wanted.map((each) => Math.fround(each as number)) : wanted,
    "columns()",
  );
  return wanted;
}

/** The send function of a type as SQL, `undefined` for a type that has none. */
async function sendFunction(conn: Connection, type: string): Promise<string | undefined> {
  const name = await conn.sql<string>`select case when typsend = 0 then '' else typsend::regproc::text end
    from pg_type where oid = ${type}::regtype`.scalar();
  return name === "" ? undefined : name;
}

async function sendBack(
  conn: Connection,
  { type, keepsText = true, composite = false }: RandomType,
  values: unknown[],
): Promise<void> {
  const textOf = (expression: string) => keepsText ? `(${expression})::text` : `(${expression})::jsonb::text`;
  const send = keepsText ? await sendFunction(conn, type) : undefined;
  const differs = (sent: string, kept: string) =>
    `(${textOf(sent)} is distinct from ${textOf(kept)}` +
    (send === undefined ? ")" : ` or ${send}(${sent}) is distinct from ${send}(${kept}))`);
  // unnest would make columns of composites.
  const elements = composite
    ? `(select id, ($1::${type}[])[id] as s from t) x`
    : `unnest($1::${type}[]) with ordinality x(s, id)`;
  const whole = `select t.id, ${textOf("s")} as sent, ${textOf("v")} as kept
    from ${elements} join t using (id) where ${differs("s", "v")} limit 3`;
  // Arrays of arrays would be arrays of more dimensions.
  const isArray = type === "moods" || type.endsWith("vector");
  if (!isArray) {
    for (let i = 0; i < 2; i++) {
      assert.deepStrictEqual((await conn.query(whole, [sql.array(values)])).rows, [], "as elements");
    }
  }
  const one = `select ${textOf(`$1::${type}`)} as sent, ${textOf("v")} as kept from t
    where id = $2 and ${differs(`$1::${type}`, "v")}`;
  const singles = values.slice(0, SINGLE).map((value, i) => conn.query(one, [value, i + 1]));
  for (const { rows } of await Promise.all(singles)) assert.deepStrictEqual(rows, [], "as a parameter");
}

async function sendArraysBack(conn: Connection, { type }: RandomType, values: unknown[]): Promise<void> {
  const one = `select ($1::${type}[])::text as sent, l::text as kept from t
    where id = $2 and ($1::${type}[])::text is distinct from l::text`;
  const singles = values.slice(0, SINGLE).map((value, i) =>
    conn.query(one, [sql.array(value as unknown[]), i + 1])
  );
  for (const { rows } of await Promise.all(singles)) assert.deepStrictEqual(rows, [], "arrays as parameters");
}

async function compareJson(conn: Connection): Promise<void> {
  const json = await conn.sql`select * from t order by id`.json();
  const agg = await conn.sql<string>`select json_agg(t order by id)::text from t`.scalar();
  // The server puts a line's end between rows, which no string of JSON holds.
  assert.ok(json === agg.replaceAll(", \n ", ","), firstDifference(json, agg.replaceAll(", \n ", ",")));
}

function firstDifference(ours: string, server: string): string {
  let at = 0;
  while (ours[at] === server[at] && at < ours.length) at++;
  return `json() says ${ours.slice(at - 40, at + 60)}, json_agg ${server.slice(at - 40, at + 60)}`;
}

async function check(conn: Connection, random: RandomType, index: number): Promise<void> {
  await fill(conn, random, index);
  const values = await readEveryWay(conn, "v");
  assert.equal(values.length, ROWS);
  const lists = await readEveryWay(conn, "l");
  await sendBack(conn, random, values);
  if (random.keepsText !== false && random.type !== "moods" && !random.type.endsWith("vector")) {
    await sendArraysBack(conn, random, lists);
  }
  await compareJson(conn);
}

const types = RANDOM_TYPES.map((each, i) => [each, i] as const);

for (const [random, index] of types) {
  test(`random values of ${random.type} (${index})`, async () => {
    if ((random.since ?? 0) > await serverVersion()) return;
    await withConnection((conn) => check(conn, random, index), { within: 60_000 });
  });
}

test("random values of one's own types", () =>
  withSchema((schema) =>
    withConnection(async (conn) => {
      await conn.exec(`set search_path = ${schema}; ${OWN_TYPES}`);
      for (const [i, random] of OWN_RANDOM_TYPES.entries()) await check(conn, random, i);
    }, { within: 120_000 })
  ));

leavesNoSession();
