/**
 * JSON values of many rows, parsed at once.
 *
 * A call of JSON.parse, and the string made for it, cost as much as a small value itself: values are gathered as one
 * JSON array, parsed together, and put into their rows (bench/micro/row_decoder_bench.ts).
 */

import { ValueError } from "../errors.ts";
import { utf8Slice } from "../wire/utf8.ts";
import type { Codec } from "./codec.ts";

/** Puts values into a row: the first one is `values[at]`. */
export type Assign = (row: object, values: readonly unknown[], at: number) => void;

const FIRST_SIZE = 1_024;
/** A buffer that large values needed is not kept. */
const KEPT_SIZE = 1 << 20;
/** Up to here a loop is quicker than a view for the copy. */
const SHORT = 64;

const OPENING = 0x5b;
const COMMA = 0x2c;
const CLOSING = 0x5d;
const NULL: Uint8Array = Uint8Array.of(0x6e, 0x75, 0x6c, 0x6c);

/** Values of the rows since the last {@linkcode flush}; each row has one for each of the columns, in their order. */
export class JsonBatch {
  readonly #columns: readonly { readonly name: string; readonly codec: Codec }[];
  readonly #assign: Assign;
  /** `[value,value,` */
  #bytes: Uint8Array = new Uint8Array(FIRST_SIZE);
  #at: number = 1;
  /** Where each value ends. */
  #ends: number[] = [];
  #rows: object[] = [];

  constructor(columns: readonly { readonly name: string; readonly codec: Codec }[], assign: Assign) {
    this.#columns = columns;
    this.#assign = assign;
    this.#bytes[0] = OPENING;
  }

  /** Values so far, to come back to with {@linkcode rewind}. */
  mark(): number {
    return this.#ends.length;
  }

  /** Forgets the values since `mark`: their row came to nothing. */
  rewind(mark: number): void {
    this.#ends.length = mark;
    this.#at = mark === 0 ? 1 : this.#ends[mark - 1]! + 1;
  }

  /** The text of a value, `bytes[start, end)`. */
  add(bytes: Uint8Array, start: number, end: number): void {
    const length = end - start;
    let at = this.#at;
    if (at + length + 1 > this.#bytes.length) this.#grow(length);
    const own = this.#bytes;
    if (length > SHORT) {
      own.set(bytes.subarray(start, end), at);
      at += length;
    } else {
      for (let i = start; i < end; i++) own[at++] = bytes[i]!;
    }
    this.#ends.push(at);
    own[at] = COMMA;
    this.#at = at + 1;
  }

  /** A value that is NULL. */
  addNull(): void {
    this.add(NULL, 0, NULL.length);
  }

  /** The row of the last values. */
  push(row: object): void {
    this.#rows.push(row);
  }

  /**
   * Parses the values and puts them into their rows.
   *
   * @throws {ValueError} that names the column of a value which is no JSON
   */
  flush(): void {
    const rows = this.#rows;
    if (rows.length === 0) return;
    try {
      const values = this.#parse();
      const width = this.#columns.length;
      for (let i = 0; i < rows.length; i++) this.#assign(rows[i]!, values, i * width);
    } finally {
      this.discard();
    }
  }

  /** Forgets everything. */
  discard(): void {
    this.#rows = [];
    this.#ends.length = 0;
    this.#at = 1;
    if (this.#bytes.length > KEPT_SIZE) {
      this.#bytes = new Uint8Array(FIRST_SIZE);
      this.#bytes[0] = OPENING;
    }
  }

  #parse(): readonly unknown[] {
    this.#bytes[this.#at - 1] = CLOSING;
    let values: unknown[] | undefined;
    try {
      values = JSON.parse(utf8Slice(this.#bytes, 0, this.#at)) as unknown[];
    } catch {
      // One of them is at fault: which one shows when each is parsed alone.
    }
    if (values?.length === this.#ends.length) return values;
    return this.#ends.map((end, i) => this.#parseOne(i, end));
  }

  #parseOne(i: number, end: number): unknown {
    const start = i === 0 ? 1 : this.#ends[i - 1]! + 1;
    try {
      return JSON.parse(utf8Slice(this.#bytes, start, end));
    } catch (cause) {
      const { name, codec } = this.#columns[i % this.#columns.length]!;
      throw new ValueError(`Cannot decode column "${name}" of type ${codec.name}`, { cause });
    }
  }

  #grow(length: number): void {
    const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.#at + length + 1));
    grown.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = grown;
  }
}
