/** A result by columns instead of rows. */

import type { Field } from "../wire/backend.ts";
import type { Codec } from "./codec.ts";
import { float4Codec, float8Codec } from "./float.ts";
import { int2Codec, int4Codec, oidCodec, xidCodec } from "./int.ts";
import { int8Codec, xid8Codec } from "./int8.ts";
import type { Registry } from "./registry.ts";
import { columnsOf, createRowDecoder, type RowDecoder } from "./row_decoder.ts";

/** The values of a column: a typed array for a fixed-width number type without NULL, else an array. */
export type ColumnValues =
  | unknown[]
  | Int16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array;

/** Columns keyed by name; the last of equal names wins. */
export type Columns = Record<string, ColumnValues>;

// By identity: a codec that the user put in a default's place may give anything.
const TYPED: ReadonlyMap<unknown, (values: never) => ColumnValues> = new Map<
  unknown,
  (values: never) => ColumnValues
>([
  [int2Codec, (values: number[]) => Int16Array.from(values)],
  [int4Codec, (values: number[]) => Int32Array.from(values)],
  [oidCodec, (values: number[]) => Uint32Array.from(values)],
  [xidCodec, (values: number[]) => Uint32Array.from(values)],
  [int8Codec, (values: bigint[]) => BigInt64Array.from(values)],
  [xid8Codec, (values: bigint[]) => BigUint64Array.from(values)],
  [float4Codec, (values: number[]) => Float32Array.from(values)],
  [float8Codec, (values: number[]) => Float64Array.from(values)],
]);

/** Collects the rows of a result. */
export class ColumnBuilder {
  readonly #columns: readonly { readonly name: string; readonly codec: Codec; readonly values: unknown[] }[];
  readonly #decode: RowDecoder;

  /** A builder without rows; `fields` say the format of each column. */
  constructor(fields: readonly Field[], registry: Registry) {
    this.#columns = columnsOf(fields, registry).map(({ name, codec }) => ({ name, codec, values: [] }));
    this.#decode = createRowDecoder(fields, registry, "array");
  }

  /**
   * Adds a row: the body of a DataRow, `bytes[start, end)`.
   *
   * @throws {ProtocolError} for a malformed row
   * @throws {ValueError} for a value that cannot be decoded
   */
  add(bytes: Uint8Array, start: number, end: number): void {
    this.addRow(this.#decode(bytes, start, end) as readonly unknown[]);
  }

  /** Adds a row that has been decoded as an array. */
  addRow(row: readonly unknown[]): void {
    for (let i = 0; i < row.length; i++) this.#columns[i]!.values.push(row[i]);
  }

  /** The columns, once all rows are added. */
  finish(): Columns {
    const columns: Columns = {};
    for (const { name, codec, values } of this.#columns) {
      const create = TYPED.get(codec);
      const value = create === undefined || values.includes(null) ? values : create(values as never);
      Object.defineProperty(columns, name, { value, enumerable: true, configurable: true, writable: true });
    }
    return columns;
  }
}
