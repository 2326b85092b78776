/**
 * Looks types up in pg_type that the registry does not know: enums, domains, composites, ranges, extensions' types and
 * arrays of them. A look-up that fails breaks no query: the values stay text.
 */

import { UnknownTypeError } from "../codecs/unknown_type.ts";
import { EXTENDED, type Request, type StatementResult } from "../engine/request.ts";
import type { Statement as PreparedDescription } from "../engine/statement_cache.ts";
import { ValueError } from "../errors.ts";
import type { Field } from "../wire/backend.ts";
import { execute, executeBatch, type Executor } from "./executor.ts";
import type { Statement } from "./sql.ts";
import { SAVEPOINT, TypeQuery } from "./type_query.ts";
import { createDecoder, UndecodedRow, type UnknownColumns } from "./types.ts";

/** Learns types and what they are made of; resolves with the request that failed where the server could not be asked. */
export async function loadTypes(executor: Executor, oids: readonly number[]): Promise<Request | undefined> {
  const { types } = executor;
  const wanted = [...new Set(oids)].filter((oid) => types.isUnknown(oid));
  if (wanted.length === 0) return undefined;
  const failed = await once(executor, `oid ${wanted.join()}`, () => lookUp(executor, wanted));
  // Whoever asked first may have asked in a transaction block that had failed.
  return failed && await lookUp(executor, wanted);
}

/** Look-ups of the same at the same time are one. */
function once(
  executor: Executor,
  key: string,
  load: () => Promise<Request | undefined>,
): Promise<Request | undefined> {
  const { loading } = executor.types;
  let work = loading.get(key);
  if (work === undefined) {
    work = load().finally(() => loading.delete(key));
    loading.set(key, work);
  }
  return work;
}

/** Asks the server. In a transaction block behind a savepoint, since the block is the user's and must not break. */
async function askServer(asking: Executor, statement: Statement): Promise<Request> {
  const executor = asking.afterwards?.() ?? asking;
  const planner = executor.types.plain.arrays;
  if (!executor.inBlock?.()) return await execute(executor, EXTENDED, statement, planner);
  const control = (command: string): Statement => ({ text: `${command} ${SAVEPOINT}`, values: [] });
  const statements = [control("savepoint"), statement, control("release savepoint")];
  const [savepoint, request] = await executeBatch(executor, statements, planner);
  if (savepoint!.failure !== null) return savepoint!;
  if (request!.failure !== null) {
    await executeBatch(executor, [control("rollback to savepoint"), control("release savepoint")], planner);
  }
  return request!;
}

async function lookUp(executor: Executor, oids: readonly number[]): Promise<Request | undefined> {
  const query = new TypeQuery(executor.types, oids);
  for (let statement = query.next(); statement !== undefined; statement = query.next()) {
    const request = await askServer(executor, statement);
    if (request.failure !== null) return request;
    query.take(request.rows);
  }
  query.learn();
  return undefined;
}

/** Takes note of what a settled request may have changed; false when {@linkcode mend} may have something to do. */
export function isWell(executor: Executor, request: Request): boolean {
  noteTag(executor, request);
  return !needsMending(executor, request);
}

/** Types that this session has altered are looked up anew. */
export function noteTag({ types }: Executor, { tag }: { readonly tag: string }): void {
  if (tag.charCodeAt(0) === 0x41 /* 'A' */ && tag.startsWith("ALTER")) types.forgetAltered();
}

/** Whether {@linkcode mend} may have something to do. */
export function needsMending(executor: Executor, request: Request): boolean {
  if (request.failure === null) return executor.types.concerns(request);
  // What has to be mended takes more steps: nothing else may, or what settles behind it would overtake it.
  return !request.aborted && request.failure() instanceof UnknownTypeError;
}

/**
 * Mends a settled request where types were not known: a parameter that could not be encoded is looked up and the
 * request made again, rows that hold text are decoded.
 *
 * @param again runs the statement once more, with the values as they were at first
 */
export async function mend(
  executor: Executor,
  request: Request,
  again: (values: readonly unknown[]) => Promise<Request>,
): Promise<Request> {
  const { values } = request.parameters;
  const looked = new Set<number>();
  let settled = request;
  while (settled.failure !== null && !settled.aborted) {
    const error = settled.failure();
    // Nothing was executed: after the look-up it may be.
    if (!(error instanceof UnknownTypeError)) return settled;
    if (looked.has(error.type)) return settled;
    looked.add(error.type);
    // Somebody else may have learned it meanwhile.
    await loadTypes(executor, [error.type, ...settled.statement?.parameterTypes ?? []]);
    if (executor.types.isUnknown(error.type)) return settled;
    settled = await again(values);
  }
  if (settled.failure === null) await mendResults(executor, settled);
  return settled;
}

/** Decodes what a settled request's rows hold as text because types were not known. */
export async function mendResults(executor: Executor, request: Request): Promise<void> {
  const results: readonly StatementResult[] = request.results ?? [request];
  for (const { fields, rows } of results) await mendRows(executor, request, fields, rows);
}

/** Learns the types of a described statement's parameters and columns. */
export async function loadFieldTypes(
  executor: Executor,
  statement: Pick<PreparedDescription, "parameterTypes" | "fields">,
): Promise<void> {
  const oids = [...statement.parameterTypes ?? [], ...(statement.fields ?? []).map(({ typeOid }) => typeOid)];
  await loadTypes(executor, oids);
}

async function mendRows(
  executor: Executor,
  request: Request,
  fields: readonly Field[] | null,
  rows: readonly unknown[],
): Promise<void> {
  const unknown = executor.types.unknownColumns(fields);
  if (unknown === undefined || rows.length === 0) return;
  const failed = await loadTypes(executor, fields!.map(({ typeOid }) => typeOid));
  if (failed !== undefined && !isRefused(failed)) {
    return request.fail(() => failUndecoded(executor, fields!, failed));
  }
  try {
    if (unknown.altered) decodeRows(executor, fields!, unknown, rows as unknown[]);
    for (const column of unknown.columns) decodeColumn(executor, fields!, column, unknown, rows);
  } catch (error) {
    request.fail(() => error as Error);
  }
}

/** Whether the server does not tell types to this user, or not in time: values stay text then. */
function isRefused({ serverError }: Request): boolean {
  return serverError !== null && serverError["C"] !== IN_FAILED_BLOCK;
}

const IN_FAILED_BLOCK = "25P02";

/** The error for rows that were made, but cannot be given the values that others of their kind have. */
function failUndecoded(
  { types }: Executor,
  fields: readonly Field[],
  { serverError, failure }: Request,
): Error {
  const { name, typeOid } = fields.find((field) => types.isUnknown(field.typeOid)) ?? fields[0]!;
  const why = serverError === null ? "" : ", since the transaction block has failed";
  return new ValueError(
    `Cannot decode column "${name}": its type with OID ${typeOid} could not be looked up${why}`,
    { cause: failure!() },
  );
}

/** Rows that did not fit what was known of their types. */
function decodeRows(
  executor: Executor,
  fields: readonly Field[],
  { shape, order }: UnknownColumns,
  rows: unknown[],
): void {
  const { types } = executor;
  const decode = createDecoder(fields, types.dated(types.registry, order), shape);
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i];
    if (row instanceof UndecodedRow) rows[i] = decode(row.bytes, 0, row.bytes.length);
  }
}

const encoder: TextEncoder = new TextEncoder();

function decodeColumn(
  executor: Executor,
  fields: readonly Field[],
  column: number,
  { shape, order }: UnknownColumns,
  rows: readonly unknown[],
): void {
  const { name, typeOid } = fields[column]!;
  const { types } = executor;
  const codec = types.dated(types.registry, order).codecFor(typeOid);
  if (codec === undefined) return;
  const key = shape === "array" ? column : name;
  // Of columns with one name the last is in the row.
  if (shape === "object" && fields.findLastIndex((field) => field.name === name) !== column) return;
  for (const row of rows as Record<string | number, unknown>[]) {
    const text = row[key];
    if (typeof text !== "string") continue;
    const bytes = encoder.encode(text);
    let value: unknown;
    try {
      value = codec.decodeText(bytes, 0, bytes.length);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new ValueError(`Cannot decode column "${name}" of type ${codec.name}: ${reason}`, { cause });
    }
    // An assignment to `__proto__` would set the prototype.
    Object.defineProperty(row, key, { value, enumerable: true, configurable: true, writable: true });
  }
}
