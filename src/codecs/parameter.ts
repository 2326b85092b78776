/** Parameters that say their type themselves, and what is asked about parameters before they are encoded. */

import { ValueError } from "../errors.ts";
import { byteView } from "./bytea.ts";
import { toJson } from "./json.ts";
import { hasTextForm } from "./text_form.ts";

/** A value with its PostgreSQL type: what `sql.typed` makes. */
export class Typed {
  /** Encoded as a value of `type`. */
  readonly value: unknown;
  /** A type's name (`"int4"`, `"int4[]"`, `"double precision"`) or OID. */
  readonly type: string | number;

  /** See {@linkcode Typed}. */
  constructor(value: unknown, type: string | number) {
    this.value = value;
    this.type = type;
  }
}

/** A value to be sent as JSON text whatever it is: what `sql.json` makes. Suits json and jsonb. */
export class Json {
  /** `null` is JSON's null, a string a JSON string. */
  readonly value: unknown;
  #text: string | undefined = undefined;

  /** See {@linkcode Json}. */
  constructor(value: unknown) {
    this.value = value;
  }

  /**
   * The JSON text.
   *
   * @throws {ValueError} when JSON cannot say the value
   */
  text(): string {
    return this.#text ?? toJson(this.value);
  }

  /** The same, whatever becomes of the value. */
  fixed(): Json {
    const json = new Json(this.value);
    try {
      json.#text = this.text();
    } catch {
      return this;
    }
    return json;
  }
}

/** An array, never JSON: what `sql.array` makes. */
export class ArrayValue {
  /** The elements, nested for more dimensions. */
  readonly values: readonly unknown[];
  /** The element type's name or OID, or the array type's name ending in `[]`; `undefined` asks the server. */
  readonly type: string | number | undefined;

  /** See {@linkcode ArrayValue}. */
  constructor(values: readonly unknown[], type?: string | number) {
    this.values = values;
    this.type = type;
  }
}

/**
 * Whether `value` can only be encoded for a type that the server tells: arrays, plain objects, bytes.
 *
 * False for null, strings, numbers, bigints, booleans, Dates and wrappers that carry their type. `undefined`,
 * functions and symbols are refused when they are encoded, whatever the type: false.
 */
export function isAmbiguous(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (value instanceof Typed || value instanceof Json) return false;
  if (value instanceof ArrayValue) return value.type === undefined;
  return !hasTextForm(value);
}

/** Copies of what a caller may write over, for values that cannot be encoded at once. */
export function snapshot(values: readonly unknown[]): readonly unknown[] {
  let copies: unknown[] | undefined;
  for (let i = 0; i < values.length; i++) {
    const copy = snapshotValue(values[i]);
    if (copy !== values[i]) (copies ??= values.slice())[i] = copy;
  }
  // The list may be the caller's own, to be filled for the next query.
  return copies ?? values.slice();
}

/** Deeper, or in a circle, nothing is copied: it is refused when it is encoded. */
const MOST_DEPTH = 100;

function snapshotValue(value: unknown, depth: number = 0): unknown {
  if (typeof value !== "object" || value === null || depth > MOST_DEPTH) return value;
  if (Array.isArray(value)) return value.map((element) => snapshotValue(element, depth + 1));
  if (value instanceof Date) return new Date(value);
  if (value instanceof Typed) return new Typed(snapshotValue(value.value, depth + 1), value.type);
  if (value instanceof ArrayValue) {
    return new ArrayValue(value.values.map((element) => snapshotValue(element, depth + 1)), value.type);
  }
  if (value instanceof Json) return value.fixed();
  if (ArrayBuffer.isView(value) && !(value instanceof DataView) && !(value instanceof Uint8Array)) {
    // Keeps its class: a Float64Array may be numbers for an array type.
    return (value as Float64Array).slice();
  }
  // Each stays of its kind: bytes are numbers for an array type, a buffer of them is not.
  if (value instanceof DataView) return new DataView(new Uint8Array(byteView(value)!).buffer);
  if (value instanceof Uint8Array) return new Uint8Array(value);
  const bytes = byteView(value);
  if (bytes !== undefined) return new Uint8Array(bytes).buffer;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null ? snapshotObject(value, depth) : value;
}

/** A plain object's copy, with `__proto__` kept as a name; the object itself if it cannot be read now. */
function snapshotObject(value: object, depth: number): object {
  try {
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, snapshotValue(each, depth + 1)]),
    );
  } catch {
    return value; // as is a value that JSON cannot say: the error comes where the parameter is known
  }
}

/** Throws for what no type takes. */
export function failUnsupported(kind: string): never {
  throw new ValueError(`Expected a value or null, received ${kind}`);
}
