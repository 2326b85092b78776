/** COPY of JavaScript values: rows in, rows out. */

import {
  copiesInBinary,
  type CopyColumn,
  writeBinaryRow,
  writeCopyHeader,
  writeCopyTrailer,
  writeTextRow,
} from "../codecs/copy_encoder.ts";
import { createRowDecoder } from "../codecs/row_decoder.ts";
import { DESCRIBE, type RowDecoder } from "../engine/request.ts";
import { PipegresError, ProtocolError, ValueError } from "../errors.ts";
import type { Field } from "../wire/backend.ts";
import { Writer } from "../wire/writer.ts";
import { CopyOperation, type CopyToStream } from "./copy.ts";
import { execute, type Executor, throwIfFailed } from "./executor.ts";
import type { Row } from "./result.ts";
import { quoteIdentifier } from "./sql.ts";
import { loadFieldTypes } from "./type_loader.ts";

/** Rows as arrays in column order, or as objects keyed by column name. */
export type CopyRow = readonly unknown[] | Readonly<Record<string, unknown>>;

/** Bytes that are collected before they are sent. */
const CHUNK = 65_536;

/**
 * Stores rows by COPY; resolves with their number.
 *
 * @param table a name, or its parts (`["schema", "table"]`)
 */
export async function copyRows(
  executor: Executor,
  table: string | readonly string[],
  columnNames: readonly string[],
  rows: Iterable<CopyRow> | AsyncIterable<CopyRow>,
): Promise<number> {
  if (columnNames.length === 0) throw new ValueError("Cannot copy rows: no column is given");
  const target = typeof table === "string" ? quoteIdentifier(table) : quoteIdentifier(...table);
  const list = columnNames.map((name) => quoteIdentifier(name)).join(", ");
  const columns = await describeColumns(executor, `select ${list} from ${target}`);
  const iterator = Symbol.asyncIterator in rows ? rows[Symbol.asyncIterator]() : rows[Symbol.iterator]();
  let next = await iterator.next();
  if (next.done) return 0;
  const binary = copiesInBinary(columns, valuesOf(next.value, columnNames));
  const text = `copy ${target} (${list}) from stdin (format ${binary ? "binary" : "text"})`;
  const operation = new CopyOperation(executor, text, "in", () => {});
  const write = binary ? writeBinaryRow : writeTextRow;
  try {
    await operation.start();
    const writer = new Writer(CHUNK + 4096);
    if (binary) writeCopyHeader(writer);
    for (let row = 1; !next.done; row++) {
      write(columns, valuesOf(next.value, columnNames), row, writer);
      if (writer.length >= CHUNK) {
        const congested = operation.write(writer.take());
        if (congested !== undefined) await congested;
      }
      const following = iterator.next();
      next = following instanceof Promise ? await following : following;
    }
    if (binary) writeCopyTrailer(writer);
    operation.write(writer.take());
  } catch (error) {
    await operation.giveUp(error);
    await iterator.return?.();
    throw error;
  }
  return await operation.end();
}

function valuesOf(row: CopyRow, names: readonly string[]): readonly unknown[] {
  if (Array.isArray(row)) {
    if (row.length === names.length) return row;
    throw new ValueError(`Cannot copy a row of ${row.length} values to ${names.length} columns`);
  }
  const object = row as Readonly<Record<string, unknown>>;
  return names.map((name) => object[name]);
}

async function describeColumns(executor: Executor, text: string): Promise<CopyColumn[]> {
  const fields = await describeFields(executor, text);
  return fields.map(({ name, typeOid }) => {
    const codec = executor.types.registry.codecFor(typeOid);
    if (codec === undefined) throw new ValueError(`Cannot copy to column "${name}": its type is not known`);
    return { name, codec };
  });
}

async function describeFields(executor: Executor, text: string): Promise<readonly Field[]> {
  const request = await execute(executor, DESCRIBE, { text, values: [] }, executor.types.objects);
  throwIfFailed(request, undefined);
  await loadFieldTypes(executor, request.statement!);
  return request.statement!.fields ?? [];
}

/** `copy (query) to stdout …`, or `copy table (columns) to stdout …`. */
const COPY_TO = /^\s*copy\s+(?:\(([^]*)\)|([^()]+?)\s*(\([^()]*\))?)\s+to\s+stdout\b/i;

/**
 * The rows of a COPY TO STDOUT in binary format, as objects.
 *
 * @throws {PipegresError} when the statement's query cannot be found in its text, or its format is not binary
 */
export async function* decodeCopy<T = Row>(
  executor: Executor,
  text: string,
  open: () => CopyToStream,
): AsyncGenerator<T, undefined, undefined> {
  const match = COPY_TO.exec(text);
  if (match === null) {
    throw new PipegresError("Cannot give the rows of this COPY: its query or table is not found");
  }
  const [, query, table, columns] = match;
  const fields = await describeFields(
    executor,
    query ?? `select ${columns?.slice(1, -1) ?? "*"} from ${table}`,
  );
  const decoder = createRowDecoder(
    fields.map((field) => ({ ...field, format: 1 as const })),
    executor.types.registry,
    "object",
  );
  const tuples = new TupleReader(decoder);
  for await (const chunk of open()) {
    for (const row of tuples.push(chunk)) yield row as T;
  }
  tuples.end();
}

/** Cuts a binary COPY's bytes into tuples, which look as the bodies of DataRow messages do. */
class TupleReader {
  readonly #decoder: RowDecoder;
  #bytes: Uint8Array = new Uint8Array(0);
  #state: "header" | "tuples" | "ended" = "header";

  constructor(decoder: RowDecoder) {
    this.#decoder = decoder;
  }

  /** The rows that are whole now. */
  push(chunk: Uint8Array): unknown[] {
    const bytes = this.#bytes.length === 0 ? chunk : concat(this.#bytes, chunk);
    let at = 0;
    if (this.#state === "header") {
      if (bytes.length < 19) return this.#keep(bytes, 0);
      if (String.fromCharCode(...bytes.subarray(0, 6)) !== "PGCOPY") {
        throw new PipegresError("Cannot give the rows of this COPY: wanted the option (format binary)");
      }
      const extension = int32(bytes, 15);
      if (bytes.length < 19 + extension) return this.#keep(bytes, 0);
      at = 19 + extension;
      this.#state = "tuples";
    }
    const rows: unknown[] = [];
    while (this.#state === "tuples") {
      const end = tupleEnd(bytes, at);
      if (end < 0) break;
      if (end === at + 2 && bytes[at] === 0xff && bytes[at + 1] === 0xff) this.#state = "ended";
      else rows.push(this.#decoder(bytes, at, end));
      at = end;
    }
    this.#keep(bytes, at);
    return rows;
  }

  /** Checks that the data ended where it should. */
  end(): void {
    if (this.#state !== "ended") throw new ProtocolError("Cannot read the COPY data: it ends too early");
  }

  #keep(bytes: Uint8Array, from: number): unknown[] {
    this.#bytes = bytes.slice(from);
    return [];
  }
}

/** Where the tuple at `start` ends; -1 when it is not whole. */
function tupleEnd(bytes: Uint8Array, start: number): number {
  if (start + 2 > bytes.length) return -1;
  const count = (bytes[start]! << 8) | bytes[start + 1]!;
  let at = start + 2;
  if (count === 0xffff) return at;
  for (let i = 0; i < count; i++) {
    if (at + 4 > bytes.length) return -1;
    const length = int32(bytes, at);
    at += 4 + (length > 0 ? length : 0);
  }
  return at > bytes.length ? -1 : at;
}

function int32(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const joined = new Uint8Array(a.length + b.length);
  joined.set(a);
  joined.set(b, a.length);
  return joined;
}
