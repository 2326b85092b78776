/** Queries of the pipeline fuzz that need no model: each is issued and checked by itself. */

import assert from "node:assert/strict";
import type { Queryable } from "../../mod.ts";
import type { Failure } from "./session.ts";

/** A text that was not used before. */
export async function firstUse(on: Queryable, n: number): Promise<void> {
  const { rows } = await on.query(`select $1::text as t, ${n} as n`, [`f${n}`]);
  assert.deepEqual(rows, [{ t: `f${n}`, n }]);
}

/** A type that nobody has looked up: it is there only between the script before the query and the one behind. */
export async function unknownType(on: Queryable, n: number): Promise<void> {
  const type = `pg_temp.u${n}`;
  const settled = await Promise.allSettled([
    on.exec(`create type ${type} as enum ('y${n}')`),
    on.query(`select $1::${type}[] as v, ${n} as n`, [[`y${n}`]]),
    on.exec(`drop type ${type}`),
  ]);
  for (const each of settled) if (each.status === "rejected") throw each.reason;
  const { value } = settled[1] as PromiseFulfilledResult<{ rows: unknown[] }>;
  assert.deepEqual(value.rows, [{ v: [`y${n}`], n }]);
}

/** A script of two statements. */
export async function simple(on: Queryable, n: number): Promise<void> {
  const results = await on.exec(`select ${n} as n; select '${n}' as t, 1 as one`);
  assert.deepEqual(results.map(({ rows }) => rows), [[{ n }], [{ t: `${n}`, one: 1 }]]);
}

/** Fails when rows have come already. */
export function midRows(on: Queryable, n: number): Promise<void> {
  const text = "select case when i < 40 then i else ('m' || $1)::int end from generate_series(1, 99) i";
  return fails(on.query(text, [`${n}`]), "22P02", `m${n}`);
}

/** Asks for types, executes nothing. */
export async function describe(on: Queryable, n: number): Promise<void> {
  const { fields, parameters } = await on.sql`select ${n}::int8 as ${on.sql.id(`n${n}`)}`.describe();
  assert.deepEqual([fields.map(({ name }) => name), parameters], [[`n${n}`], [20]]);
}

/** A notice belongs to the query that raised it. */
export async function notice(on: Queryable, n: number): Promise<void> {
  const result = await on.query(`do $$ begin raise notice 'n${n}'; end $$`);
  assert.deepEqual(result.notices.map(({ message }) => message), [`n${n}`]);
}

/** Whether the server lost or outdated a statement, or an error comes of that. */
export function isLost(error: unknown): boolean {
  const { code, cause } = (error ?? {}) as Failure;
  return code === "26000" || code === "0A000" || (cause !== undefined && isLost(cause));
}

/** Waits for a failure of this name or SQLSTATE whose message holds `part`. */
export async function fails(promise: PromiseLike<unknown>, wanted: string, part: string): Promise<void> {
  const error = await promise.then(() => undefined, (reason: Failure) => reason);
  if (isLost(error)) throw error;
  assert.ok(error !== undefined, `should fail with ${wanted}`);
  assert.ok([error.code, error.name].includes(wanted) && error.message.includes(part), `${wanted}: ${error}`);
}

/** Whether an error only says that the block has failed before. */
export function isInFailedBlock(error: unknown): boolean {
  const { code, cause } = error as Failure;
  return code === "25P02" || (cause !== undefined && isInFailedBlock(cause));
}

/** Like Promise.all, but waits for all. A failed block must have a lost statement as its reason. */
export async function settleAll(promises: readonly Promise<unknown>[]): Promise<void> {
  const settled = await Promise.allSettled(promises);
  const reasons = settled.flatMap((each) => each.status === "rejected" ? [each.reason] : []);
  if (reasons.length === 0) return;
  const reason = reasons.find(isLost) ?? reasons[0];
  throw isInFailedBlock(reason) ? new Error(`The block failed without a reason: ${reason}`) : reason;
}
