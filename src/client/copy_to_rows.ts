/** COPY TO STDOUT as typed rows, decoded from the socket's own bytes. */

import { BinaryCopyDecoder, type CopyDecoder, TextCopyDecoder } from "../codecs/copy_decoder.ts";
import { dateOrderOf } from "../codecs/date_style.ts";
import { columnsOf, createRowDecoder } from "../codecs/row_decoder.ts";
import { EXTENDED } from "../engine/request.ts";
import { PipegresError } from "../errors.ts";
import type { Field } from "../wire/backend.ts";
import { CopyOperation } from "./copy_operation.ts";
import { describeFields } from "./copy_rows.ts";
import { execute, type Executor, throwIfFailed } from "./executor.ts";
import type { BatchSource } from "./row_stream.ts";

/** `copy (query) to stdout`, or `copy table (columns) to stdout`; options behind it. */
const COPY_TO =
  /^(?:\s|--[^\n]*\n|\/\*[^]*?\*\/)*copy\s+(?:\(([^]*)\)|((?:"(?:[^"]|"")*"|[^()"])+?)\s*(\((?:"(?:[^"]|"")*"|[^()"])*\))?)\s+to\s+stdout\b([^]*)$/i;

/** `(format binary)`, or the same with `text`, in the words of today and of PostgreSQL 8. */
const FORMAT = /^\s*(?:with\s*)?(?:\(\s*format\s+'?(binary|text)'?\s*\)|(binary))?\s*;?\s*$/i;

/**
 * Prepares a COPY TO STDOUT for its rows; it starts with the first of them.
 *
 * @throws {PipegresError} when the statement's query cannot be found in its text, or has options that change the format
 */
export async function openCopyRows(executor: Executor, text: string): Promise<BatchSource> {
  const match = COPY_TO.exec(text);
  if (match === null) {
    throw new PipegresError("Cannot give the rows of this COPY: its query or table is not found");
  }
  const [, query, table, columns, options = ""] = match;
  const format = FORMAT.exec(options);
  if (format === null) {
    throw new PipegresError(
      "Cannot give the rows of this COPY: wanted no option but (format binary) or (format text)",
    );
  }
  const described = await describeFields(
    executor,
    query ?? `select ${columns?.slice(1, -1) ?? "*"} from ${table}`,
  );
  const fields = query ?? columns ? described : await withoutGenerated(executor, described);
  const wanted = (format[1] ?? format[2])?.toLowerCase();
  const readsBinary = columnsOf(fields, executor.types.registry).every(({ codec }) =>
    codec.decodeBinary !== undefined
  );
  const isBinary = wanted === undefined ? readsBinary : wanted === "binary";
  const statement = wanted === undefined && isBinary ? `${text.replace(/;?\s*$/, "")} (format binary)` : text;
  return new CopyRowSource(
    executor,
    statement,
    (dateStyle) => createDecoder(executor, fields, isBinary, dateStyle),
  );
}

/** COPY of a table leaves out its generated columns, unless they are named. */
async function withoutGenerated(executor: Executor, fields: readonly Field[]): Promise<readonly Field[]> {
  const table = fields[0]?.tableOid;
  if (!table) return fields;
  const statement = { text: GENERATED, values: [table] };
  const request = await execute(executor, EXTENDED, statement, executor.types.plain.arrays);
  throwIfFailed(request, undefined);
  const generated = new Set((request.rows as number[][]).map(([number]) => number));
  return fields.filter(({ columnNumber }) => !generated.has(columnNumber));
}

const GENERATED =
  "select attnum from pg_catalog.pg_attribute where attrelid = $1::pg_catalog.oid and attgenerated <> ''";

function createDecoder(
  { types }: Executor,
  fields: readonly Field[],
  isBinary: boolean,
  dateStyle: string | undefined,
): CopyDecoder {
  const format = isBinary ? 1 : 0;
  const order = dateStyle === undefined ? undefined : dateOrderOf(dateStyle);
  const decoder = createRowDecoder(
    fields.map((field) => ({ ...field, format })),
    types.dated(types.registry, order),
    "object",
  );
  return isBinary ? new BinaryCopyDecoder(decoder) : new TextCopyDecoder(decoder, fields.length);
}

/** Bytes whose rows may wait for their consumer before the socket is not read from any more. */
const MOST_AHEAD = 131_072;

/** Rows as they come: a batch is what has been decoded since the last one. */
class CopyRowSource implements BatchSource {
  readonly #operation: CopyOperation;
  readonly #createDecoder: (dateStyle: string | undefined) => CopyDecoder;
  /** Made with the first data, when it is known which session gives it. */
  #decoder: CopyDecoder | undefined = undefined;
  #rows: unknown[] = [];
  /** Bytes that they were made of. */
  #ahead: number = 0;
  #stopped: boolean = false;
  #settled: boolean = false;
  #started: Promise<void> | undefined = undefined;
  /** Whether nobody wants more rows. */
  #left: boolean = false;
  /** What a row could not be decoded for. */
  #failure: { readonly error: unknown } | undefined = undefined;
  #wake: (() => void) | undefined = undefined;

  constructor(
    executor: Executor,
    text: string,
    createDecoder: (dateStyle: string | undefined) => CopyDecoder,
  ) {
    this.#createDecoder = createDecoder;
    const onData = (bytes: Uint8Array, start: number, end: number) => this.#onData(bytes, start, end);
    this.#operation = new CopyOperation(executor, text, "out", onData);
  }

  async #start(): Promise<void> {
    await this.#operation.start();
    this.#operation.settled.then(() => {
      this.#settled = true;
      this.#wake?.();
    });
  }

  async next(): Promise<unknown[] | undefined> {
    try {
      await (this.#started ??= this.#start());
    } catch (error) {
      if (this.#left) return undefined;
      throw error;
    }
    while (this.#rows.length === 0 && !this.#settled && this.#failure === undefined && !this.#left) {
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    if (this.#left) return undefined;
    if (this.#rows.length > 0 && !this.#failedOnServer()) return this.#take();
    if (this.#failure !== undefined) {
      await this.#operation.giveUp(this.#failure.error);
      throw this.#failure.error;
    }
    await this.#operation.finish();
    this.#decoder?.end();
    return undefined;
  }

  async close(): Promise<void> {
    this.#take();
    await this.#operation.giveUp(new PipegresError("COPY was given up"));
  }

  leave(): void {
    this.#left = true;
    this.#wake?.();
    void this.close();
  }

  abort(): void {}

  /** An error of the server comes at once; one of a row behind those before it. */
  #failedOnServer(): boolean {
    return this.#settled && this.#failure === undefined && this.#operation.failed;
  }

  #take(): unknown[] {
    const rows = this.#rows;
    this.#rows = [];
    this.#ahead = 0;
    if (this.#stopped) this.#setStopped(false);
    return rows;
  }

  #onData(bytes: Uint8Array, start: number, end: number): void {
    if (this.#failure !== undefined) return;
    try {
      this.#decoder ??= this.#createDecoder(this.#operation.dateStyle);
      this.#decoder.push(bytes, start, end, this.#rows);
    } catch (error) {
      this.#failure = { error };
    }
    this.#ahead += end - start;
    if (this.#ahead > MOST_AHEAD && !this.#stopped) this.#setStopped(true);
    const wake = this.#wake;
    if (wake === undefined || (this.#rows.length === 0 && this.#failure === undefined)) return;
    this.#wake = undefined;
    // The rows that come in one go are one batch.
    wake();
  }

  #setStopped(stopped: boolean): void {
    this.#stopped = stopped;
    this.#operation.setReading(!stopped);
  }
}
