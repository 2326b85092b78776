/** vector, halfvec and sparsevec of the extension pgvector: Float32Array, and a plain object for sparsevec. */

import { ValueError } from "../errors.ts";
import { utf8Slice } from "../wire/utf8.ts";
import type { Codec } from "./codec.ts";
import { readFloat32, readInt16, readInt32 } from "./numbers.ts";
import { describeValue, encodeSimple, textForm } from "./text_form.ts";

/** A vector of which only the elements that are not zero are given. */
export interface SparseVector {
  /** Number of dimensions. */
  readonly dimensions: number;
  /** Places of the elements, from 0, ascending. */
  readonly indices: Int32Array;
  /** The elements. */
  readonly values: Float32Array;
}

/** vector as Float32Array; written from a Float32Array or an array of numbers. */
export const vectorCodec: Codec<Float32Array> = denseCodec("vector", 4, readFloat32);

/** halfvec as Float32Array, which holds every half-precision number. */
export const halfvecCodec: Codec<Float32Array> = denseCodec("halfvec", 2, readFloat16);

function denseCodec(
  name: string,
  width: number,
  read: (bytes: Uint8Array, at: number) => number,
): Codec<Float32Array> {
  return {
    name,
    preferredFormat: 1,
    takesArrays: true,
    decodeText(bytes, start, end): Float32Array {
      if (bytes[start] !== 0x5b || bytes[end - 1] !== 0x5d) failVector(name);
      return Float32Array.from(
        utf8Slice(bytes, start + 1, end - 1).split(","),
        (text) => parseNumber(name, text),
      );
    },
    /** Dimensions, a word not used, the elements. */
    decodeBinary(bytes, start, end): Float32Array {
      const count = end - start < 4 ? failVector(name) : readInt16(bytes, start) & 0xffff;
      if (end - start !== 4 + count * width) failVector(name);
      const vector = new Float32Array(count);
      for (let i = 0; i < count; i++) vector[i] = read(bytes, start + 4 + i * width);
      return vector;
    },
    encodeText(value): string {
      if (!isNumbers(value)) return encodeSimple(value, "a Float32Array or an array of numbers");
      return `[${Array.from(value, checkNumber).join(",")}]`;
    },
  };
}

/** sparsevec as `{ dimensions, indices, values }`, its indices counted from 0. */
export const sparsevecCodec: Codec<SparseVector> = {
  name: "sparsevec",
  preferredFormat: 1,
  /** `{1:1.5,3:2}/5`, counted from 1. */
  decodeText(bytes, start, end): SparseVector {
    const match = /^\{(.*)\}\/(\d+)$/s.exec(utf8Slice(bytes, start, end));
    if (match === null) return failVector("sparsevec");
    const pairs = match[1] === "" ? [] : match[1]!.split(",").map((pair) => pair.split(":"));
    return {
      dimensions: Number(match[2]),
      indices: Int32Array.from(pairs, ([index]) => parseNumber("sparsevec", index) - 1),
      values: Float32Array.from(pairs, ([, value]) => parseNumber("sparsevec", value)),
    };
  },
  /** Dimensions, elements, a word not used, indices from 0, elements. */
  decodeBinary(bytes, start, end): SparseVector {
    const count = end - start < 12 ? failVector("sparsevec") : readInt32(bytes, start + 4);
    if (count < 0 || end - start !== 12 + count * 8) failVector("sparsevec");
    const indices = new Int32Array(count);
    const values = new Float32Array(count);
    for (let i = 0; i < count; i++) {
      indices[i] = readInt32(bytes, start + 12 + i * 4);
      values[i] = readFloat32(bytes, start + 12 + (count + i) * 4);
    }
    return { dimensions: readInt32(bytes, start), indices, values };
  },
  encodeText(value): string {
    const { dimensions, indices, values } = (value ?? {}) as Partial<SparseVector>;
    if (typeof dimensions !== "number" || !isNumbers(indices) || !isNumbers(values)) {
      return encodeSimple(value, "an object with dimensions, indices and values");
    }
    if (indices.length !== values.length) {
      throw new ValueError(
        `Expected as many indices as values, received ${indices.length} and ${values.length}`,
      );
    }
    const pairs = Array.from(indices, (index, i) => `${index + 1}:${checkNumber(values[i])}`);
    return `{${pairs.join(",")}}/${dimensions}`;
  },
};

function isNumbers(value: unknown): value is ArrayLike<number> {
  return Array.isArray(value) || value instanceof Float32Array || value instanceof Float64Array ||
    value instanceof Int32Array;
}

function checkNumber(value: unknown): string {
  if (typeof value === "number") return textForm(value)!;
  throw new ValueError(`Expected an array of numbers, received one with ${describeValue(value)}`);
}

/** A finite number, which all elements are. */
function parseNumber(name: string, text: string | undefined): number {
  return text !== undefined && /^[-+.e\d]+$/.test(text) && Number.isFinite(Number(text))
    ? Number(text)
    : failVector(name);
}

/** IEEE 754 half precision. */
function readFloat16(bytes: Uint8Array, at: number): number {
  const bits = readInt16(bytes, at) & 0xffff;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function failVector(name: string): never {
  throw new ValueError(`Expected a ${name}, received something else`);
}
