/**
 * What a type codec is: one value, to and from PostgreSQL's text and binary forms.
 *
 * A codec is pure and synchronous. The bytes that it decodes are borrowed: it copies what it keeps.
 */

import type { Writer } from "../wire/writer.ts";

/** An object identifier of `pg_type`. */
export type Oid = number;

/** Format code of a parameter or a result column: 0 text, 1 binary. */
export type FormatCode = 0 | 1;

/** Converts values of one PostgreSQL type. `decodeText` and `decodeBinary` give equal values. */
export interface Codec<T = unknown> {
  /** The type's name in `pg_type`, for messages. */
  readonly name: string;
  /** The format asked for once a column's type is known; 1 needs `decodeBinary`. */
  readonly preferredFormat: FormatCode;
  /** True when a JavaScript array is one value of the type (json, multiranges), not a dimension of an array of it. */
  readonly takesArrays?: boolean;
  /** Decodes `bytes[start, end)`, what the type's output function prints. */
  decodeText(bytes: Uint8Array, start: number, end: number): T;
  /** Decodes `bytes[start, end)`, what the type's send function writes. */
  decodeBinary?(bytes: Uint8Array, start: number, end: number): T;
  /**
   * The text for the type's input function. Strings, numbers, bigints and booleans never come here: they have one
   * text form whatever the type. Dates and Temporal objects do: a codec may refuse them, or give `textForm`'s text.
   *
   * @throws {ValueError} when the value does not fit the type
   */
  encodeText(value: unknown): string;
  /**
   * Appends what the type's receive function reads and returns true; or appends nothing and returns false, and
   * the text form is sent. Both mean the same to the server: which one is sent depends on whether the type is known.
   * A string comes here only as an array's, a range's or a composite's element.
   */
  encodeBinary?(value: unknown, writer: Writer): boolean;
}
