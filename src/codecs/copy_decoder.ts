/**
 * Rows of COPY TO STDOUT, in binary or text format (PostgreSQL manual, COPY, "File Formats").
 *
 * Each tuple is given to a decoder of DataRows: a binary tuple has the same layout, a line of text is brought into it.
 */

import { ProtocolError } from "../errors.ts";
import type { RowDecoder } from "./row_decoder.ts";
import { readInt32 } from "./numbers.ts";

/** Makes rows of COPY data that comes in pieces of any size. */
export interface CopyDecoder {
  /** Takes `bytes[start, end)`, which is borrowed, and adds the rows that are whole now to `rows`. */
  push(bytes: Uint8Array, start: number, end: number, rows: unknown[]): void;
  /**
   * There are no more bytes.
   *
   * @throws {ProtocolError} when something is missing
   */
  end(): void;
}

/** What is kept until the rest of a tuple comes. */
class Remainder {
  #bytes: Uint8Array = new Uint8Array(0);
  #length: number = 0;

  get length(): number {
    return this.#length;
  }

  /** What is kept, borrowed until the next call. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  append(bytes: Uint8Array, start: number, end: number): void {
    const length = this.#length + end - start;
    if (length > this.#bytes.length) {
      // Doubling makes a tuple of n bytes cost O(n) in however many pieces it comes.
      const grown = new Uint8Array(Math.max(length, this.#bytes.length * 2));
      grown.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = grown;
    }
    this.#bytes.set(bytes.subarray(start, end), this.#length);
    this.#length = length;
  }

  /** Forgets all bytes before `position`. */
  dropTo(position: number): void {
    this.#bytes.copyWithin(0, position, this.#length);
    this.#length -= position;
  }
}

const SIGNATURE: readonly number[] = [0x50, 0x47, 0x43, 0x4f, 0x50, 0x59, 0x0a, 0xff, 0x0d, 0x0a, 0x00];
const HEADER_SIZE = 19;
/** Bit 16 on are critical flags; the one that was ever used (OIDs) is of PostgreSQL 11 and before. */
const CRITICAL_FLAGS = 0xffff0000;

/** Of binary format: header, tuples as DataRows have them, and a tuple with the count -1 at the end. */
export class BinaryCopyDecoder implements CopyDecoder {
  readonly #decoder: RowDecoder;
  readonly #remainder: Remainder = new Remainder();
  #state: "header" | "tuples" | "ended" = "header";

  /** @param decoder takes all columns in binary format */
  constructor(decoder: RowDecoder) {
    this.#decoder = decoder;
  }

  push(bytes: Uint8Array, start: number, end: number, rows: unknown[]): void {
    const remainder = this.#remainder;
    if (remainder.length === 0) {
      const at = this.#take(bytes, start, end, rows);
      if (at < end) remainder.append(bytes, at, end);
      return;
    }
    remainder.append(bytes, start, end);
    remainder.dropTo(this.#take(remainder.bytes, 0, remainder.length, rows));
  }

  end(): void {
    if (this.#state !== "ended") fail("it ends before its trailer");
  }

  /** Takes all that is whole; returns where the rest begins. */
  #take(bytes: Uint8Array, start: number, end: number, rows: unknown[]): number {
    let at = start;
    if (this.#state === "header") {
      at = headerEnd(bytes, start, end);
      if (at < 0) return start;
      this.#state = "tuples";
    }
    while (this.#state === "tuples") {
      const next = tupleEnd(bytes, at, end);
      if (next < 0) return at;
      if (next === at + 2 && bytes[at] === 0xff) this.#state = "ended";
      else rows.push(this.#decoder(bytes, at, next));
      at = next;
    }
    if (at < end) fail("bytes follow its trailer");
    return at;
  }
}

/** Where the header ends; -1 when it is not whole. */
function headerEnd(bytes: Uint8Array, start: number, end: number): number {
  if (end - start < HEADER_SIZE) return -1;
  if (!SIGNATURE.every((byte, i) => bytes[start + i] === byte)) fail("it does not begin with PGCOPY");
  if ((readInt32(bytes, start + 11) & CRITICAL_FLAGS) !== 0) fail("its header has flags that are not known");
  const extension = readInt32(bytes, start + 15);
  if (extension < 0) fail("its header extension has a negative length");
  const at = start + HEADER_SIZE + extension;
  return at > end ? -1 : at;
}

/** Where the tuple at `start` ends; -1 when it is not whole. */
function tupleEnd(bytes: Uint8Array, start: number, end: number): number {
  if (start + 2 > end) return -1;
  const count = (bytes[start]! << 8) | bytes[start + 1]!;
  let at = start + 2;
  if (count === 0xffff) return at;
  for (let i = 0; i < count; i++) {
    if (at + 4 > end) return -1;
    const length = readInt32(bytes, at);
    if (length < -1) fail("a field has a negative length");
    at += length > 0 ? 4 + length : 4;
  }
  return at > end ? -1 : at;
}

/** Of text format with its default options: a line for each row, tabs between columns, `\N` for NULL. */
export class TextCopyDecoder implements CopyDecoder {
  readonly #decoder: RowDecoder;
  readonly #columns: number;
  readonly #remainder: Remainder = new Remainder();
  #tuple: Uint8Array = new Uint8Array(1024);

  /**
   * @param decoder takes all columns in text format
   * @param columns how many there are: a line of none and one of an empty text look alike
   */
  constructor(decoder: RowDecoder, columns: number) {
    this.#decoder = decoder;
    this.#columns = columns;
  }

  push(bytes: Uint8Array, start: number, end: number, rows: unknown[]): void {
    const remainder = this.#remainder;
    if (remainder.length === 0) {
      const at = this.#take(bytes, start, end, start, rows);
      if (at < end) remainder.append(bytes, at, end);
      return;
    }
    const seen = remainder.length;
    remainder.append(bytes, start, end);
    remainder.dropTo(this.#take(remainder.bytes, 0, remainder.length, seen, rows));
  }

  end(): void {
    if (this.#remainder.length > 0) fail("it ends inside a line");
  }

  /** Takes all whole lines; up to `seen` there is no line's end. */
  #take(bytes: Uint8Array, start: number, end: number, seen: number, rows: unknown[]): number {
    let at = start;
    for (;;) {
      const lineEnd = bytes.indexOf(0x0a, Math.max(at, seen));
      if (lineEnd < 0 || lineEnd >= end) return at;
      rows.push(this.#decodeLine(bytes, at, lineEnd));
      at = lineEnd + 1;
    }
  }

  #decodeLine(bytes: Uint8Array, start: number, end: number): unknown {
    const columns = this.#columns;
    const most = 2 + columns * 4 + end - start;
    if (most > this.#tuple.length) this.#tuple = new Uint8Array(most * 2);
    const tuple = this.#tuple;
    tuple[0] = columns >> 8;
    tuple[1] = columns;
    let at = 2;
    let from = start;
    for (let i = 0; i < columns; i++) {
      if (from > end) fail(`a line has ${i} columns, wanted ${columns}`);
      let to = from;
      while (to < end && bytes[to] !== 0x09) to++;
      const isNull = to - from === 2 && bytes[from] === 0x5c && bytes[from + 1] === 0x4e; // \N
      const length = isNull ? -1 : unescapeInto(tuple, at + 4, bytes, from, to);
      tuple[at] = length >> 24;
      tuple[at + 1] = length >> 16;
      tuple[at + 2] = length >> 8;
      tuple[at + 3] = length;
      at += isNull ? 4 : 4 + length;
      from = to + 1;
    }
    if (columns > 0 && from <= end) fail(`a line has more than ${columns} columns`);
    return this.#decoder(tuple, 0, at);
  }
}

/** Letters behind a backslash; what is not here stands for itself. */
const ESCAPED: ReadonlyMap<number, number> = new Map([
  [0x62, 0x08], // b
  [0x66, 0x0c], // f
  [0x6e, 0x0a], // n
  [0x72, 0x0d], // r
  [0x74, 0x09], // t
  [0x76, 0x0b], // v
]);

/** Returns the number of bytes written to `target`. */
function unescapeInto(
  target: Uint8Array,
  start: number,
  bytes: Uint8Array,
  from: number,
  to: number,
): number {
  let at = start;
  for (let i = from; i < to; i++) {
    let byte = bytes[i]!;
    if (byte === 0x5c) {
      byte = bytes[++i]!;
      byte = ESCAPED.get(byte) ?? byte;
    }
    target[at++] = byte;
  }
  return at - start;
}

function fail(why: string): never {
  throw new ProtocolError(`Cannot read the COPY data: ${why}`);
}
