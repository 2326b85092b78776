/** Rows for COPY FROM STDIN, in binary or text format (PostgreSQL manual, COPY, "File Formats"). */

import { ValueError } from "../errors.ts";
import { Writer } from "../wire/writer.ts";
import type { Codec } from "./codec.ts";
import { Json } from "./parameter.ts";
import { parameterText } from "./parameter_encoder.ts";
import { lowerFirst } from "./row_decoder.ts";
import { describeValue } from "./text_form.ts";

/** A column that rows are written to. */
export interface CopyColumn {
  readonly name: string;
  readonly codec: Codec;
}

const SIGNATURE: Uint8Array = Uint8Array.of(
  ...[0x50, 0x47, 0x43, 0x4f, 0x50, 0x59, 0x0a, 0xff, 0x0d, 0x0a, 0x00], // PGCOPY\n\377\r\n\0
  ...[0, 0, 0, 0], // no flags
  ...[0, 0, 0, 0], // no header extension
);

/** Writes the head of a binary COPY. */
export function writeCopyHeader(writer: Writer): void {
  writer.bytes(SIGNATURE);
}

/** Writes the end of a binary COPY. */
export function writeCopyTrailer(writer: Writer): void {
  writer.int16(-1);
}

/** Whether a type's binary form is its text. */
function isTextual({ decodeText, decodeBinary }: Codec): boolean {
  return decodeText === decodeBinary;
}

/**
 * Whether rows like these can go in binary format: strings are for the type's input function, unless the type is itself
 * text, and a column of NULLs may hold strings later.
 */
export function copiesInBinary(
  columns: readonly CopyColumn[],
  rows: readonly (readonly unknown[])[],
): boolean {
  const scratch = new Writer(1024);
  return columns.every(({ codec }, i) => {
    if (isTextual(codec)) return true;
    const values = rows.map((row) => row[i]).filter((value) => value !== null);
    return values.length > 0 && values.every((value) => fitsBinary(value, codec, scratch));
  });
}

function fitsBinary(value: unknown, codec: Codec, scratch: Writer): boolean {
  if (typeof value === "string" || value instanceof Json || codec.encodeBinary === undefined) return false;
  try {
    return codec.encodeBinary(value, scratch);
  } catch {
    return true; // It fits neither: the error comes where row and column are known.
  } finally {
    scratch.rewind(0);
  }
}

/**
 * Appends one row in binary format.
 *
 * @param row the number of the row from 1 on, for errors
 * @throws {ValueError} when a value does not fit its column
 */
export function writeBinaryRow(
  columns: readonly CopyColumn[],
  values: readonly unknown[],
  row: number,
  writer: Writer,
): void {
  writer.int16(columns.length);
  for (let i = 0; i < columns.length; i++) {
    const value = values[i];
    if (value === null) {
      writer.int32(-1);
      continue;
    }
    const start = writer.mark();
    writer.int32(0);
    const { codec } = columns[i]!;
    try {
      if (isTextual(codec)) writer.utf8(parameterText(value, codec));
      else if (!writeBinary(value, codec, writer)) failText(value, codec);
    } catch (cause) {
      failCell(columns[i]!, row, cause);
    }
    writer.patchInt32(start, writer.mark() - start - 4);
  }
}

/** Appends one row in text format. */
export function writeTextRow(
  columns: readonly CopyColumn[],
  values: readonly unknown[],
  row: number,
  writer: Writer,
): void {
  for (let i = 0; i < columns.length; i++) {
    if (i > 0) writer.uint8(0x09);
    const value = values[i];
    if (value === null) {
      writer.utf8("\\N");
      continue;
    }
    try {
      writer.utf8(escapeText(parameterText(value, columns[i]!.codec)));
    } catch (cause) {
      failCell(columns[i]!, row, cause);
    }
  }
  writer.uint8(0x0a);
}

const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escapeText(text: string): string {
  return /[\\\n\r\t]/.test(text) ? text.replace(/[\\\n\r\t]/g, (unit) => ESCAPES[unit]!) : text;
}

function writeBinary(value: unknown, codec: Codec, writer: Writer): boolean {
  if (typeof value === "string" || value instanceof Json || codec.encodeBinary === undefined) return false;
  return codec.encodeBinary(value, writer);
}

function failText(value: unknown, codec: Codec): never {
  // A value that does not fit at all is refused in the codec's own words.
  if (typeof value !== "string") parameterText(value, codec);
  throw new ValueError(
    `Expected a value with a binary form, received ${describeValue(value)} that can only be sent as text: ` +
      'use the option format: "text"',
  );
}

function failCell({ name, codec }: CopyColumn, row: number, cause: unknown): never {
  const reason = cause instanceof ValueError ? ": " + lowerFirst(cause.message) : "";
  throw new ValueError(`Cannot encode column "${name}" of type ${codec.name} in row ${row}${reason}`, {
    cause,
  });
}
