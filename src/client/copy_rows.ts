/** COPY of JavaScript values into a table. */

import {
  copiesInBinary,
  type CopyColumn,
  writeBinaryRow,
  writeCopyHeader,
  writeCopyTrailer,
  writeTextRow,
} from "../codecs/copy_encoder.ts";
import { describeValue } from "../codecs/text_form.ts";
import { DESCRIBE } from "../engine/request.ts";
import { ValueError } from "../errors.ts";
import type { Field } from "../wire/backend.ts";
import { Writer } from "../wire/writer.ts";
import { CopyOperation } from "./copy_operation.ts";
import { execute, type Executor, throwIfFailed } from "./executor.ts";
import { quoteIdentifier } from "./sql.ts";
import { loadFieldTypes } from "./type_loader.ts";

/** Rows as arrays in column order, or as objects keyed by column name. */
export type CopyRow = readonly unknown[] | Readonly<Record<string, unknown>>;

/** How rows are stored by COPY. */
export interface CopyRowsOptions {
  /** Gives the COPY up when it aborts: it rejects with the signal's reason, and nothing is stored. */
  readonly signal?: AbortSignal | undefined;
  /**
   * `"binary"` takes no string but for types that are text themselves; `"text"` takes whatever their input functions
   * do. Default: as the first row with a value in each column suggests.
   */
  readonly format?: "binary" | "text" | undefined;
}

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
  { signal, format }: CopyRowsOptions = {},
): Promise<number> {
  signal?.throwIfAborted();
  if (columnNames.length === 0) throw new ValueError("Cannot copy rows: no column is given");
  if (format !== undefined && format !== "binary" && format !== "text") {
    throw new ValueError(`Cannot copy rows in format ${JSON.stringify(format)}: wanted "binary" or "text"`);
  }
  const target = typeof table === "string" ? quoteIdentifier(table) : quoteIdentifier(...table);
  const list = columnNames.map((name) => quoteIdentifier(name)).join(", ");
  const interruption = new Interruption();
  const source = new RowSource(rows, columnNames, interruption);
  let operation: CopyOperation | undefined = undefined as CopyOperation | undefined;
  const onAbort = () => {
    void operation?.giveUp(signal!.reason);
    if (!operation?.ended) interruption.interrupt(signal!.reason);
  };
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    const columns = await interruption.wait(
      describeColumns(executor, `select ${list} from ${target}`, signal),
    );
    const first = await source.lookAhead(columns);
    if (first.length === 0) return 0;
    const binary = format === undefined ? copiesInBinary(columns, first) : format === "binary";
    const text = `copy ${target} (${list}) from stdin (format ${binary ? "binary" : "text"})`;
    operation = new CopyOperation(executor, text, "in", () => {});
    return await sendRows(operation, columns, source, binary, interruption);
  } catch (error) {
    await source.leave();
    throw error;
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}

async function sendRows(
  operation: CopyOperation,
  columns: readonly CopyColumn[],
  source: RowSource,
  binary: boolean,
  interruption: Interruption,
): Promise<number> {
  const write = binary ? writeBinaryRow : writeTextRow;
  try {
    await interruption.wait(operation.start());
    // The server may refuse a row, or be gone, while the source takes its time.
    operation.settled.then(() => {
      try {
        operation.throwIfFailed();
      } catch (error) {
        interruption.interrupt(error);
      }
    });
    const writer = new Writer(CHUNK + 4096);
    if (binary) writeCopyHeader(writer);
    for (let row = 1;; row++) {
      let values = source.next();
      if (values instanceof Promise) values = await values;
      if (values === undefined) break;
      write(columns, values, row, writer);
      if (writer.length < CHUNK) continue;
      const congested = operation.write(writer.take());
      if (congested !== undefined) await interruption.wait(congested);
    }
    if (binary) writeCopyTrailer(writer);
    const congested = operation.write(writer.take());
    if (congested !== undefined) await interruption.wait(congested);
  } catch (error) {
    await operation.giveUp(error);
    throw error;
  }
  return await operation.end();
}

/** Ends a wait for something that may never come. */
class Interruption {
  #reason: { readonly error: unknown } | undefined = undefined;
  #reject: ((error: unknown) => void) | undefined = undefined;

  /** The wait that is under way, and every later one, rejects with `error`; the first one counts. */
  interrupt(error: unknown): void {
    this.#reason ??= { error };
    this.#reject?.(this.#reason.error);
  }

  get interrupted(): boolean {
    return this.#reason !== undefined;
  }

  /** What `promise` settles with; one wait at a time. */
  wait<T>(promise: PromiseLike<T>): Promise<T> {
    // Not Promise.race: something that lasts would keep a reaction for each row.
    return new Promise((resolve, reject) => {
      promise.then(resolve, reject);
      if (this.#reason !== undefined) reject(this.#reason.error);
      else this.#reject = reject;
    });
  }
}

/** The values of one row in column order, or `undefined` at the end; a promise only where the rows come in time. */
type NextValues = readonly unknown[] | undefined;

/** Gives rows one by one, without a promise for each where the source is not asynchronous. */
class RowSource {
  readonly #iterator: Iterator<CopyRow> | AsyncIterator<CopyRow>;
  readonly #names: readonly string[];
  readonly #interruption: Interruption;
  #ahead: (readonly unknown[])[] = [];
  #aheadAt: number = 0;
  /** Whether the source has no more to give, or failed: then it is not told of an early end. */
  #ended: boolean = false;
  /** Whether the source was asked for a row and has not answered. */
  #stuck: boolean = false;

  constructor(
    rows: Iterable<CopyRow> | AsyncIterable<CopyRow>,
    names: readonly string[],
    interruption: Interruption,
  ) {
    if (typeof rows !== "object" || rows === null) failRows(rows);
    if (Symbol.asyncIterator in rows) this.#iterator = rows[Symbol.asyncIterator]();
    else if (Symbol.iterator in rows) this.#iterator = rows[Symbol.iterator]();
    else failRows(rows);
    this.#names = names;
    this.#interruption = interruption;
  }

  /** Reads rows, to be given again, until each column has a value that is not NULL; a hundred at most. */
  async lookAhead(columns: readonly CopyColumn[]): Promise<readonly (readonly unknown[])[]> {
    const rows: (readonly unknown[])[] = [];
    const seen = columns.map(() => false);
    while (rows.length < MOST_AHEAD && seen.includes(false)) {
      const values = await this.next();
      if (values === undefined) break;
      rows.push(values);
      values.forEach((value, i) => seen[i] ||= value !== null);
    }
    this.#ahead = rows;
    return rows;
  }

  next(): NextValues | Promise<NextValues> {
    if (this.#aheadAt < this.#ahead.length) return this.#ahead[this.#aheadAt++];
    if (this.#ended) return undefined;
    let result: IteratorResult<CopyRow> | Promise<IteratorResult<CopyRow>>;
    try {
      result = this.#iterator.next();
    } catch (error) {
      this.#ended = true;
      throw error;
    }
    return "then" in result ? this.#later(result) : this.#valuesOf(result);
  }

  /** Tells the source that no more of it is wanted. */
  async leave(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    try {
      const left = this.#iterator.return?.();
      // A generator that is in the midst of something hears of it only behind that.
      if (this.#stuck) Promise.resolve(left).catch(() => {});
      else await left;
    } catch {
      // The error that ended the COPY wins.
    }
  }

  async #later(result: Promise<IteratorResult<CopyRow>>): Promise<NextValues> {
    let settled: IteratorResult<CopyRow>;
    try {
      settled = await this.#interruption.wait(result);
    } catch (error) {
      if (this.#interruption.interrupted) this.#stuck = true;
      else this.#ended = true;
      throw error;
    }
    return this.#valuesOf(settled);
  }

  #valuesOf({ done, value: row }: IteratorResult<CopyRow>): NextValues {
    if (done) {
      this.#ended = true;
      return undefined;
    }
    if (typeof row !== "object" || row === null) {
      throw new ValueError(`Expected an array or an object as a row, received ${describeValue(row)}`);
    }
    const names = this.#names;
    if (!Array.isArray(row)) return names.map((name) => (row as Readonly<Record<string, unknown>>)[name]);
    if (row.length === names.length) return row;
    throw new ValueError(`Cannot copy a row of ${row.length} values to ${names.length} columns`);
  }
}

function failRows(rows: unknown): never {
  throw new ValueError(`Expected rows as an iterable, received ${describeValue(rows)}`);
}

/** Rows that are kept to see what the columns hold. */
const MOST_AHEAD = 100;

async function describeColumns(
  executor: Executor,
  text: string,
  signal: AbortSignal | undefined,
): Promise<CopyColumn[]> {
  const fields = await describeFields(executor, text, signal);
  return fields.map(({ name, typeOid }) => {
    const codec = executor.types.registry.codecFor(typeOid);
    if (codec === undefined) throw new ValueError(`Cannot copy to column "${name}": its type is not known`);
    return { name, codec };
  });
}

/** The columns of a query, their types looked up. */
export async function describeFields(
  executor: Executor,
  text: string,
  signal?: AbortSignal,
): Promise<readonly Field[]> {
  const statement = { text, values: [] };
  const request = await execute(executor, DESCRIBE, statement, executor.types.objects, signal && { signal });
  throwIfFailed(request, undefined);
  await loadFieldTypes(executor, request.statement!);
  return request.statement!.fields ?? [];
}
