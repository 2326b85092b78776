/** Results turned on their side: one array for each column. */

import type { Field } from "../wire/backend.ts";

/** A column's values in row order: a typed array where the type has a fixed width and no value is NULL. */
export type Column =
  | unknown[]
  | Int16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | Float32Array
  | Float64Array;

/** Type OIDs of fixed-width numbers, and the arrays that hold their values as they are. */
const TYPED: Readonly<Record<number, (length: number) => Column>> = {
  20: (length) => new BigInt64Array(length),
  21: (length) => new Int16Array(length),
  23: (length) => new Int32Array(length),
  26: (length) => new Uint32Array(length),
  700: (length) => new Float32Array(length),
  701: (length) => new Float64Array(length),
};

/** Columns by name, of those with one name the last, from rows as arrays. */
export function columnsOf(
  fields: readonly Field[],
  rows: readonly (readonly unknown[])[],
): Record<string, Column> {
  const columns: Record<string, Column> = {};
  fields.forEach(({ name, typeOid }, i) => {
    const value = typedColumn(rows, i, typeOid) ?? rows.map((row) => row[i]);
    // An assignment to `__proto__` would set the prototype.
    Object.defineProperty(columns, name, { value, enumerable: true, configurable: true, writable: true });
  });
  return columns;
}

function typedColumn(rows: readonly (readonly unknown[])[], i: number, typeOid: number): Column | undefined {
  const column = TYPED[typeOid]?.(rows.length);
  if (column === undefined) return undefined;
  // Options may have made other values of the type.
  const wanted = column instanceof BigInt64Array ? "bigint" : "number";
  for (let row = 0; row < rows.length; row++) {
    const value = rows[row]![i];
    if (typeof value !== wanted) return undefined;
    column[row] = value as never;
  }
  return column;
}
