/** Composite types as objects, anonymous records as arrays of text (PostgreSQL manual, 8.16). */

import { ValueError } from "../errors.ts";
import type { Codec } from "./codec.ts";
import { readInt32 } from "./numbers.ts";
import { PartReader, partText } from "./quoted_list.ts";
import { textCodec } from "./text.ts";
import { encodeSimple, failType, textForm } from "./text_form.ts";

/** An attribute and the codec of its type. */
export interface CompositeAttribute {
  readonly name: string;
  readonly codec: Codec;
  /** The OID of its type. */
  readonly typeOid: number;
}

/** A value of a composite type, keyed by attribute name. */
export type CompositeValue = Record<string, unknown>;

/** Derives the codec of a composite type. Written from an object with its attributes, absent ones being NULL. */
export function createCompositeCodec(
  name: string,
  attributes: readonly CompositeAttribute[],
): Codec<CompositeValue> {
  const isBinary = attributes.every(({ codec }) => codec.decodeBinary !== undefined);
  return {
    name,
    preferredFormat: isBinary ? 1 : 0,
    decodeText(bytes, start, end): CompositeValue {
      return objectOf(attributes, decodeRecordText(attributes.map(({ codec }) => codec), bytes, start, end));
    },
    encodeText(value): string {
      const text = textForm(value);
      if (text !== undefined) return text;
      if (typeof value !== "object" || value === null || isOpaque(value)) return failType(value, "an object");
      return compositeText(attributes, value);
    },
    ...(isBinary
      ? {
        decodeBinary(bytes: Uint8Array, start: number, end: number): CompositeValue {
          return decodeComposite(attributes, bytes, start, end);
        },
      }
      : {}),
  };
}

/**
 * An anonymous record as an array of strings and nulls: its text does not say the types, and what is read as text must
 * not differ from what is read as binary.
 */
export const recordCodec: Codec<(string | null)[]> = {
  name: "record",
  preferredFormat: 0,
  takesArrays: true,
  decodeText(bytes, start, end): (string | null)[] {
    return decodeRecordText(undefined, bytes, start, end) as (string | null)[];
  },
  encodeText(value): string {
    if (!Array.isArray(value)) return encodeSimple(value, "an array");
    return `(${value.map((part, i) => partText(definite(part, String(i)), fieldCodec)).join(",")})`;
  },
};

const fieldCodec: Codec<string> = textCodec("field of a record");

/** `(1,"a b",)`: the parts by the codecs in order, or as strings. */
export function decodeRecordText(
  codecs: readonly Codec[] | undefined,
  bytes: Uint8Array,
  start: number,
  end: number,
): unknown[] {
  if (end - start < 2 || bytes[start] !== 0x28) failRecord(); // '('
  const values: unknown[] = [];
  if (end - start === 2 && codecs?.length !== 1) return bytes[start + 1] === 0x29 ? values : failRecord();
  const parts = new PartReader(bytes, start + 1, end);
  while (parts.at < end) {
    const codec = codecs === undefined ? fieldCodec : codecs[values.length];
    if (codec === undefined) failRecord();
    values.push(parts.read(codec, 0x29));
    if (bytes[parts.at++] === 0x29) return parts.at === end ? values : failRecord(); // ')'
  }
  return failRecord();
}

/** Attribute count; then type, length and bytes of each. */
function decodeComposite(
  attributes: readonly CompositeAttribute[],
  bytes: Uint8Array,
  start: number,
  end: number,
): CompositeValue {
  if (end - start < 4) failRecord();
  const count = readInt32(bytes, start);
  if (count !== attributes.length) failCount(attributes.length, count);
  const values: unknown[] = [];
  let at = start + 4;
  for (const { name, codec, typeOid } of attributes) {
    if (end - at < 8) failRecord();
    // The type may have been altered since it was looked up.
    if (readInt32(bytes, at) >>> 0 !== typeOid) {
      throw new ValueError(`Expected attribute "${name}" of another type: the composite type was altered`);
    }
    const length = readInt32(bytes, at + 4);
    at += 8;
    if (length === -1) {
      values.push(null);
      continue;
    }
    if (length < 0 || length > end - at) failRecord();
    values.push(codec.decodeBinary!(bytes, at, at + length));
    at += length;
  }
  return at === end ? objectOf(attributes, values) : failRecord();
}

function objectOf(attributes: readonly CompositeAttribute[], values: readonly unknown[]): CompositeValue {
  if (values.length !== attributes.length) failCount(attributes.length, values.length);
  const object: CompositeValue = {};
  attributes.forEach(({ name }, i) => {
    if (name === "__proto__") {
      Object.defineProperty(object, name, {
        value: values[i],
        enumerable: true,
        configurable: true,
        writable: true,
      });
    } else {
      object[name] = values[i];
    }
  });
  return object;
}

/** Whether an object keeps its content elsewhere, as a Map does: every attribute would be NULL. */
function isOpaque(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype !== Object.prototype && prototype !== null && Object.keys(value).length === 0 &&
    !Array.isArray(value);
}

function compositeText(attributes: readonly CompositeAttribute[], value: object): string {
  if (Array.isArray(value)) {
    if (value.length !== attributes.length) {
      throw new ValueError(
        `Expected an array of ${attributes.length} attributes, received one of ${value.length}`,
      );
    }
    return `(${attributes.map(({ codec, name }, i) => partText(definite(value[i], name), codec)).join(",")})`;
  }
  const unknown = Object.keys(value).find((key) => !attributes.some(({ name }) => name === key));
  if (unknown !== undefined) {
    throw new ValueError(
      `Expected the attributes of the type, received "${unknown}", which it does not have`,
    );
  }
  const parts = attributes.map(({ name, codec }) => {
    const attribute: unknown = Object.hasOwn(value, name) ? (value as CompositeValue)[name] : null;
    return partText(definite(attribute, name), codec);
  });
  return `(${parts.join(",")})`;
}

function definite(value: unknown, name: string): unknown {
  return value === undefined ? failType(value, `a value or null as attribute "${name}"`) : value;
}

function failCount(wanted: number, count: number): never {
  throw new ValueError(`Expected ${wanted} attributes, received ${count}: the type was changed`);
}

function failRecord(): never {
  throw new ValueError("Expected a composite value, received something else");
}
