/**
 * Rows from DataRow messages: one decoder is made per result description and runs for each of its rows.
 *
 * The decoder is generated as a straight line that ends in an object literal, about seven times faster than any loop
 * (bench/micro/row_decoder_bench.ts); where code generation is forbidden a loop makes the same rows. Neither looks
 * for the cause of a failure: `explain` does, by going over the row again.
 */

import { ProtocolError, ValueError } from "../errors.ts";
import type { Field } from "../wire/backend.ts";
import { utf8Slice } from "../wire/utf8.ts";
import { boolCodec } from "./bool.ts";
import type { Codec, FormatCode } from "./codec.ts";
import { float8Codec } from "./float.ts";
import { int2Codec, int4Codec, oidCodec } from "./int.ts";
import { jsonbCodec, jsonCodec } from "./json.ts";
import { type Assign, JsonBatch } from "./json_batch.ts";
import { readFloat64, readInt16, readInt32 } from "./numbers.ts";
import type { Registry } from "./registry.ts";

/** Makes a row of the body of a DataRow, `bytes[start, end)`. */
export interface RowDecoder {
  (bytes: Uint8Array, start: number, end: number): unknown;
  /** Values that are still missing in the rows made last; absent where none ever are. */
  readonly deferred?: JsonBatch | undefined;
}

/** `"object"`: keyed by column name, the last of equal names wins. `"array"`: all columns in order. */
export type RowShape = "object" | "array";

// Longer functions are compiled slowly and optimised rarely.
const MOST_GENERATED_COLUMNS = 200;

/** What decodes one column: a codec and the format its values come in. */
export interface Column {
  readonly name: string;
  readonly codec: Codec;
  readonly format: FormatCode;
}

/**
 * Makes the decoder of a result's rows.
 *
 * The decoder throws a ProtocolError for a malformed message, and a ValueError that names the column when a codec
 * fails, the codec's error being its cause.
 *
 * @param defers whether JSON may be parsed for many rows together: the caller then calls `deferred.flush` or
 * `deferred.discard` behind the last of them, before anybody else uses the decoder
 */
export function createRowDecoder(
  fields: readonly Field[],
  registry: Registry,
  shape: RowShape,
  defers: boolean = false,
): RowDecoder {
  let decoders = decodersOf.get(registry);
  if (decoders === undefined) decodersOf.set(registry, decoders = new Map());
  // A simple query describes its rows each time: making its decoder anew would cost far more than its rows.
  let key = defers ? `deferred ${shape}` : shape;
  for (const { name, typeOid, format } of fields) key += `\0${typeOid}\0${format}${name}`;
  let decoder = decoders.get(key);
  if (decoder === undefined) {
    const columns = columnsOf(fields, registry);
    decoder = columns.length <= MOST_GENERATED_COLUMNS && canGenerate()
      ? generateRowDecoder(columns, shape, defers)
      : loopRowDecoder(columns, shape);
    if (decoders.size >= MOST_DECODERS) decoders.clear();
    decoders.set(key, decoder);
  }
  return decoder;
}

/** Decoders made so far; a registry never changes, so they stay right as long as it is there. */
const decodersOf: WeakMap<Registry, Map<string, RowDecoder>> = new WeakMap();
const MOST_DECODERS = 512;

/** The format codes to ask for when these columns are read again. */
export function resultFormats(fields: readonly Field[], registry: Registry): FormatCode[] {
  return fields.map((field) => registry.codecFor(field.typeOid)?.preferredFormat ?? 0);
}

/** The codec and format of each column; an unknown type is its text. */
export function columnsOf(fields: readonly Field[], registry: Registry): Column[] {
  return fields.map(({ name, typeOid, format }) => ({
    name,
    codec: registry.codecFor(typeOid) ?? unknownCodec(typeOid),
    format,
  }));
}

function unknownCodec(oid: number): Codec<string> {
  return {
    name: `with OID ${oid}`,
    preferredFormat: 0,
    decodeText: utf8Slice,
    encodeText: failEncode,
  };
}

function failEncode(): never {
  throw new ValueError("Expected a known type");
}

function decodeCell(column: Column, bytes: Uint8Array, start: number, end: number): unknown {
  if (column.format === 0) return column.codec.decodeText(bytes, start, end);
  if (column.codec.decodeBinary === undefined) return failFormat();
  return column.codec.decodeBinary(bytes, start, end);
}

function failFormat(): never {
  throw new ValueError("The value came in binary format, which the codec does not read");
}

/** Goes over a row that failed and throws what is wrong with it. */
function explain(
  columns: readonly Column[],
  bytes: Uint8Array,
  start: number,
  end: number,
  error: unknown,
): never {
  checkRow(columns.length, bytes, start, end);
  let at = start + 2;
  for (const column of columns) {
    const length = readInt32(bytes, at);
    at += 4;
    if (length === -1) continue;
    try {
      decodeCell(column, bytes, at, at + length);
    } catch (cause) {
      const reason = cause instanceof ValueError ? ": " + lowerFirst(cause.message) : "";
      throw new ValueError(`Cannot decode column "${column.name}" of type ${column.codec.name}${reason}`, {
        cause,
      });
    }
    at += length;
  }
  throw error;
}

/** Lower case at the start, for a message that follows a colon. */
export function lowerFirst(message: string): string {
  return message.charAt(0).toLowerCase() + message.slice(1);
}

/** @throws {ProtocolError} unless the body is a count and as many cells */
function checkRow(count: number, bytes: Uint8Array, start: number, end: number): void {
  if (end - start < 2) failRow("it has no column count");
  const received = readInt16(bytes, start) & 0xffff;
  if (received !== count) failRow(`it has ${received} columns, wanted ${count}`);
  let at = start + 2;
  for (let i = 0; i < count; i++) {
    if (end - at < 4) failRow(`it ends before column ${i + 1} of ${count}`);
    const length = readInt32(bytes, at);
    at += 4;
    if (length < -1 || length > end - at) failRow(`column ${i + 1} has a length of ${length} bytes`);
    if (length > 0) at += length;
  }
  if (at !== end) failRow(`${end - at} bytes follow its last column`);
}

function failRow(reason: string): never {
  throw new ProtocolError(`Cannot read DataRow: ${reason}`);
}

// ---- generated

let generationAllowed: boolean | undefined;

/** Whether the runtime allows code to be made of text; asked once. */
function canGenerate(): boolean {
  if (generationAllowed === undefined) {
    try {
      generationAllowed = new Function("return true")() === true;
    } catch {
      generationAllowed = false;
    }
  }
  return generationAllowed;
}

/** A decoder without a loop. Exported for tests and the bench. */
export function generateRowDecoder(
  columns: readonly Column[],
  shape: RowShape,
  defers: boolean = false,
): RowDecoder {
  const count = columns.length;
  const deferred = defers ? deferredColumns(columns, shape) : [];
  const lines: string[] = [];
  columns.forEach((column, i) => {
    const [cell, onNull] = deferred.includes(i)
      ? ["batch.add(b, p, p + n);", "else batch.addNull();"]
      : [cellCode(column, i), ""];
    // A length read past the end is caught by the next check of a length, or by the last line.
    lines.push(`let v${i} = null;
n = b[p] << 24 | b[p + 1] << 16 | b[p + 2] << 8 | b[p + 3]; p += 4;
if (n >= 0) { if (n > e - p) failRow(); ${cell} p += n; } else if (n !== -1) failRow(); ${onNull}`);
  });
  const body = `"use strict";
${columns.map((_, i) => `const c${i} = columns[${i}].codec;`).join("\n")}
return function decodeRow(b, s, e) {
  ${deferred.length > 0 ? "const mark = batch.mark();" : ""}
  try {
    let p = s + 2, n = 0;
    if (e - s < 2 || (b[s] << 8 | b[s + 1]) !== ${count}) failRow();
    ${lines.join("\n")}
    if (p !== e) failRow();
    const row = ${rowCode(columns, shape)};
    ${deferred.length > 0 ? "batch.push(row);" : ""}
    return row;
  } catch (error) {
    ${deferred.length > 0 ? "batch.rewind(mark);" : ""}
    return explain(columns, b, s, e, error);
  }
};`;
  // Column names enter the text as JSON strings, which are JavaScript strings too; nothing else of the server's does.
  const make = new Function("columns", "batch", "readFloat64", "failFormat", "failRow", "explain", body);
  const batch = deferred.length > 0
    ? new JsonBatch(deferred.map((i) => columns[i]!), generateAssign(columns, deferred, shape))
    : undefined;
  const decoder = make(columns, batch, readFloat64, failFormat, failRow, explain) as RowDecoder;
  return batch === undefined ? decoder : Object.assign(decoder, { deferred: batch });
}

/** Columns of JSON text whose value is in the row. */
function deferredColumns(columns: readonly Column[], shape: RowShape): number[] {
  const shown = shape === "array" ? columns.map((_, i) => i) : lastByName(columns).map(([, i]) => i);
  return shown.filter((i) => {
    const { codec, format } = columns[i]!;
    return format === 0 && (codec === jsonCodec || codec === jsonbCodec);
  });
}

/** Puts values into the properties that {@linkcode rowCode} has made: `__proto__` is one of its own by then. */
function generateAssign(columns: readonly Column[], deferred: readonly number[], shape: RowShape): Assign {
  const lines = deferred.map((column, i) => {
    const key = shape === "array" ? column : JSON.stringify(columns[column]!.name);
    return `row[${key}] = values[at + ${i}];`;
  });
  return new Function("row", "values", "at", lines.join("\n")) as Assign;
}

/** Statements that set `v<i>` from the cell at `b[p, p + n)`. */
function cellCode(column: Column, i: number): string {
  const { codec, format } = column;
  if (format === 0) return `v${i} = c${i}.decodeText(b, p, p + n);`;
  if (codec.decodeBinary === undefined) return "failFormat();";
  // A wrong length goes to the codec, which throws.
  const inline = inlineCode(codec);
  const call = `v${i} = c${i}.decodeBinary(b, p, p + n);`;
  return inline === undefined ? call : `if (n === ${inline[0]}) v${i} = ${inline[1]}; else ${call}`;
}

/** The width of a type and the expression that reads it, where that is quicker than a call. */
function inlineCode(codec: Codec): readonly [width: number, expression: string] | undefined {
  switch (codec as unknown) {
    case int4Codec:
      return [4, "b[p] << 24 | b[p + 1] << 16 | b[p + 2] << 8 | b[p + 3]"];
    case int2Codec:
      return [2, "b[p] << 24 >> 16 | b[p + 1]"];
    case oidCodec:
      return [4, "(b[p] << 24 | b[p + 1] << 16 | b[p + 2] << 8 | b[p + 3]) >>> 0"];
    case boolCodec:
      return [1, "b[p] !== 0"];
    case float8Codec:
      return [8, "readFloat64(b, p)"];
    default:
      return undefined;
  }
}

function rowCode(columns: readonly Column[], shape: RowShape): string {
  if (shape === "array") return `[${columns.map((_, i) => `v${i}`).join(", ")}]`;
  const properties = lastByName(columns).map(([name, i]) =>
    // A literal's `__proto__` would be the prototype, a computed one is a property.
    `${name === "__proto__" ? '["__proto__"]' : JSON.stringify(name)}: v${i}`
  );
  return `{${properties.join(", ")}}`;
}

/** Names in the order they first occur, each with the last column of that name. */
function lastByName(columns: readonly Column[]): [name: string, index: number][] {
  const last = new Map<string, number>();
  columns.forEach(({ name }, i) => last.set(name, i));
  return [...last];
}

// ---- loop

/** A decoder that needs no code generation. Exported for tests and the bench. */
export function loopRowDecoder(columns: readonly Column[], shape: RowShape): RowDecoder {
  const names = shape === "array" ? undefined : lastByName(columns);
  return function decodeRow(bytes, start, end): unknown {
    checkRow(columns.length, bytes, start, end);
    const values: unknown[] = [];
    let at = start + 2;
    try {
      for (let i = 0; i < columns.length; i++) {
        const length = readInt32(bytes, at);
        at += 4;
        if (length === -1) {
          values.push(null);
        } else {
          values.push(decodeCell(columns[i]!, bytes, at, at + length));
          at += length;
        }
      }
    } catch (error) {
      explain(columns, bytes, start, end, error);
    }
    return names === undefined ? values : rowObject(names, values);
  };
}

function rowObject(names: readonly [name: string, index: number][], values: readonly unknown[]): unknown {
  const row: Record<string, unknown> = {};
  for (const [name, i] of names) {
    if (name === "__proto__") {
      Object.defineProperty(row, name, {
        value: values[i],
        enumerable: true,
        configurable: true,
        writable: true,
      });
    } else {
      row[name] = values[i];
    }
  }
  return row;
}
