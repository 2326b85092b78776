/**
 * Arrays of any element type (PostgreSQL manual, 8.15): nested JavaScript arrays.
 *
 * Lower bounds are dropped, NULL is null, and an element is what its type gives on its own.
 */

import { ValueError } from "../errors.ts";
import type { Writer } from "../wire/writer.ts";
import type { Codec, Oid } from "./codec.ts";
import { float8Codec } from "./float.ts";
import { int4Codec } from "./int.ts";
import { readInt32, readUint32 } from "./numbers.ts";
import { elementBinary, elementText } from "./element.ts";
import { describeValue, failType } from "./text_form.ts";

/** A value of an array type. */
export type ArrayOf<T> = (T | null | ArrayOf<T>)[];

// MAXDIM in src/include/utils/array.h.
const MAX_DIMENSIONS = 6;

/**
 * Derives the codec of an array type.
 *
 * @param element the element type's codec
 * @param elementOid the element type's OID, which the binary form names
 * @param delimiter `pg_type.typdelim` of the element type: a comma for all but box
 */
export function createArrayCodec<T>(
  element: Codec<T>,
  elementOid: Oid,
  delimiter: string,
): Codec<ArrayOf<T>> {
  const separator = delimiter.charCodeAt(0);
  const codec: Codec<ArrayOf<T>> = {
    name: `${element.name}[]`,
    preferredFormat: element.decodeBinary === undefined ? 0 : 1,
    decodeText(bytes, start, end): ArrayOf<T> {
      return decodeArrayText(element, separator, bytes, start, end);
    },
    encodeText(value): string {
      const list = listOf(value) ?? failType(value, "an array");
      const dimensions = dimensionsOf(list, element);
      return dimensions.includes(0) ? "{}" : arrayText(list, dimensions.length, element, delimiter);
    },
    encodeBinary(value, writer): boolean {
      const list = listOf(value);
      return list !== undefined && element.encodeBinary !== undefined &&
        encodeArrayBinary(list, element, elementOid, writer);
    },
  };
  if (element.decodeBinary === undefined) return codec;
  return {
    ...codec,
    decodeBinary(bytes, start, end): ArrayOf<T> {
      return decodeArrayBinary(element, bytes, start, end);
    },
  };
}

// ---- text

/** Reads `{1,NULL,"a b"}`, nested, with bounds (`[0:1]={…}`) or without; each byte is looked at once. */
function decodeArrayText<T>(
  element: Codec<T>,
  delimiter: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): ArrayOf<T> {
  let at = start;
  if (bytes[at] === 0x5b) { // '[': bounds up to '='
    while (at < end && bytes[at] !== 0x3d) at++;
    at++;
  }
  if (at >= end || bytes[at] !== 0x7b) failMalformed();
  const root: ArrayOf<T> = [];
  const outer: ArrayOf<T>[] = [];
  let list = root;
  at++;
  for (;;) {
    if (at >= end) failMalformed();
    const byte = bytes[at]!;
    if (byte === 0x7b) { // '{'
      if (outer.length + 1 >= MAX_DIMENSIONS) failMalformed();
      const inner: ArrayOf<T> = [];
      list.push(inner);
      outer.push(list);
      list = inner;
      at++;
      continue;
    }
    if (byte === 0x22) at = readQuoted(element, bytes, at + 1, end, list);
    else if (byte !== 0x7d || list.length > 0) at = readBare(element, delimiter, bytes, at, end, list);
    // Behind an element or an empty list: closing braces, then a delimiter or the end.
    while (at < end && bytes[at] === 0x7d) {
      at++;
      const above = outer.pop();
      if (above === undefined) return at === end ? root : failMalformed();
      list = above;
    }
    if (at >= end || bytes[at] !== delimiter) failMalformed();
    at++;
  }
}

/** An element without quotes; returns where it ends. */
function readBare<T>(
  element: Codec<T>,
  delimiter: number,
  bytes: Uint8Array,
  start: number,
  end: number,
  list: ArrayOf<T>,
): number {
  let at = start;
  while (at < end && bytes[at] !== delimiter && bytes[at] !== 0x7d) at++;
  if (at === start) failMalformed(); // The server puts an empty element in quotes.
  const isNull = at - start === 4 && bytes[start] === 0x4e && bytes[start + 1] === 0x55 &&
    bytes[start + 2] === 0x4c && bytes[start + 3] === 0x4c;
  list.push(isNull ? null : element.decodeText(bytes, start, at));
  return at;
}

/** An element in quotes; `start` is behind the opening one. Returns the place behind the closing one. */
function readQuoted<T>(
  element: Codec<T>,
  bytes: Uint8Array,
  start: number,
  end: number,
  list: ArrayOf<T>,
): number {
  let at = start;
  let escapes = 0;
  for (; at < end && bytes[at] !== 0x22; at++) {
    if (bytes[at] === 0x5c) {
      escapes++;
      at++;
    }
  }
  if (at >= end) failMalformed();
  if (escapes === 0) {
    list.push(element.decodeText(bytes, start, at));
  } else {
    const plain = new Uint8Array(at - start - escapes);
    for (let from = start, to = 0; from < at; from++) {
      if (bytes[from] === 0x5c) from++;
      plain[to++] = bytes[from]!;
    }
    list.push(element.decodeText(plain, 0, plain.length));
  }
  return at + 1;
}

function failMalformed(): never {
  throw new ValueError("Expected an array in text format, received something else");
}

/** `list` has `depth` levels of lists, all of them checked. */
function arrayText(list: ArrayLike<unknown>, depth: number, element: Codec, delimiter: string): string {
  const parts: string[] = [];
  for (let i = 0; i < list.length; i++) {
    const value = list[i];
    if (depth > 1) parts.push(arrayText(value as ArrayLike<unknown>, depth - 1, element, delimiter));
    else if (value === null) parts.push("NULL");
    else if (typeof value === "number" || typeof value === "bigint") parts.push(elementText(value, element));
    else parts.push(quoteElement(elementText(value, element), delimiter));
  }
  return `{${parts.join(delimiter)}}`;
}

function quoteElement(text: string, delimiter: string): string {
  const isPlain = !/[\s{}"\\]/.test(text) && !text.includes(delimiter) && text !== "" &&
    !/^null$/i.test(text);
  return isPlain ? text : `"${text.replace(/["\\]/g, "\\$&")}"`;
}

// ---- binary

/** Header: dimensions, flags, element type; size and lower bound of each dimension; then length and bytes of each. */
function decodeArrayBinary<T>(element: Codec<T>, bytes: Uint8Array, start: number, end: number): ArrayOf<T> {
  if (end - start < 12) failBinary();
  const depth = readInt32(bytes, start);
  if (depth === 0 && end - start === 12) return [];
  if (depth < 1 || depth > MAX_DIMENSIONS || end - start < 12 + depth * 8) failBinary();
  const sizes: number[] = [];
  let count = 1;
  for (let i = 0; i < depth; i++) {
    const size = readUint32(bytes, start + 12 + i * 8);
    sizes.push(size);
    count *= size;
  }
  const first = start + 12 + depth * 8;
  // Every element has a length at least: nothing is allocated for elements that are not there.
  if (count * 4 > end - first || count === 0) failBinary();
  const reader = new ElementReader(element, bytes, first, end);
  const list = reader.readLists(sizes, 0);
  return reader.at === end ? list : failBinary();
}

/** Reads the elements of an array, one after another. */
class ElementReader<T> {
  readonly #element: Codec<T>;
  readonly #bytes: Uint8Array;
  readonly #end: number;
  /** Where the next element begins. */
  at: number;

  constructor(element: Codec<T>, bytes: Uint8Array, start: number, end: number) {
    this.#element = element;
    this.#bytes = bytes;
    this.#end = end;
    this.at = start;
  }

  /** The list of a dimension, with the lists of the inner ones. */
  readLists(sizes: readonly number[], depth: number): ArrayOf<T> {
    const size = sizes[depth]!;
    if (depth === sizes.length - 1) return this.#readElements(size);
    const list: ArrayOf<T> = [];
    for (let i = 0; i < size; i++) list.push(this.readLists(sizes, depth + 1));
    return list;
  }

  #readElements(size: number): ArrayOf<T> {
    // Large arrays of the commonest numbers go without a call per element: see bench/micro/array_bench.ts.
    if (size >= LARGE) {
      const kind: unknown = this.#element;
      if (kind === int4Codec) return this.#readNumbers(size, 4) as unknown as ArrayOf<T>;
      if (kind === float8Codec) return this.#readNumbers(size, 8) as unknown as ArrayOf<T>;
    }
    const bytes = this.#bytes;
    const end = this.#end;
    const list: ArrayOf<T> = new Array(size);
    let at = this.at;
    for (let i = 0; i < size; i++) {
      if (end - at < 4) failBinary();
      const length = readInt32(bytes, at);
      at += 4;
      if (length === -1) {
        list[i] = null;
        continue;
      }
      if (length < 0 || length > end - at) failBinary();
      list[i] = this.#element.decodeBinary!(bytes, at, at + length);
      at += length;
    }
    this.at = at;
    return list;
  }

  /** int4 for a width of 4, float8 for one of 8. */
  #readNumbers(size: number, width: 4 | 8): (number | null)[] {
    const view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#end);
    const list: (number | null)[] = new Array(size);
    let at = this.at;
    for (let i = 0; i < size; i++) {
      if (this.#end - at < 4) failBinary();
      const length = view.getInt32(at);
      at += 4;
      if (length === -1) {
        list[i] = null;
        continue;
      }
      if (length !== width || length > this.#end - at) failBinary();
      list[i] = width === 4 ? view.getInt32(at) : view.getFloat64(at);
      at += width;
    }
    this.at = at;
    return list;
  }
}

// From here on a view is worth making.
const LARGE = 16;

function failBinary(): never {
  throw new ValueError("Expected an array in binary format, received something else");
}

function encodeArrayBinary(
  list: ArrayLike<unknown>,
  element: Codec,
  elementOid: Oid,
  writer: Writer,
): boolean {
  const dimensions = dimensionsOf(list, element);
  const start = writer.mark();
  if (dimensions.includes(0)) {
    writer.int32(0);
    writer.int32(0);
    writer.int32(elementOid);
    return true;
  }
  writer.int32(dimensions.length);
  const flags = writer.mark();
  writer.int32(0);
  writer.int32(elementOid);
  for (const size of dimensions) {
    writer.int32(size);
    writer.int32(1);
  }
  const nulls = writeElements(list, dimensions.length, element, writer);
  if (nulls < 0) {
    writer.rewind(start);
    return false;
  }
  if (nulls > 0) writer.patchInt32(flags, 1);
  return true;
}

/** Returns the number of NULLs, or -1 when an element has no binary form. */
function writeElements(list: ArrayLike<unknown>, depth: number, element: Codec, writer: Writer): number {
  let nulls = 0;
  for (let i = 0; i < list.length; i++) {
    const value = list[i];
    if (depth > 1) {
      const inner = writeElements(value as ArrayLike<unknown>, depth - 1, element, writer);
      if (inner < 0) return -1;
      nulls += inner;
    } else if (value === null) {
      writer.int32(-1);
      nulls++;
    } else if (!elementBinary(value, element, writer)) return -1;
  }
  return nulls;
}

// ---- shape

/** An array, or a typed array taken as a list of numbers; `undefined` for anything else. */
export function listOf(value: unknown): ArrayLike<unknown> | undefined {
  if (Array.isArray(value)) return value;
  return ArrayBuffer.isView(value) && !(value instanceof DataView)
    ? value as unknown as ArrayLike<unknown>
    : undefined;
}

/** Sizes by dimension, outermost first; one of them is 0 when there is no element. */
function dimensionsOf(list: ArrayLike<unknown>, element: Codec): number[] {
  const sizes: number[] = [];
  let level: ArrayLike<unknown> = list;
  for (;;) {
    sizes.push(level.length);
    const first = level[0];
    if (!isList(first, element)) break;
    level = first;
    if (sizes.length >= MAX_DIMENSIONS) {
      throw new ValueError(`Expected an array of ${MAX_DIMENSIONS} dimensions at most, received more`);
    }
  }
  checkShape(list, sizes, 0, element);
  return sizes;
}

function isList(value: unknown, element: Codec): value is unknown[] {
  return element.takesArrays !== true && Array.isArray(value);
}

function checkShape(list: ArrayLike<unknown>, sizes: readonly number[], depth: number, element: Codec): void {
  if (list.length !== sizes[depth]) failRagged(sizes[depth]!, list.length);
  const isLeaf = depth === sizes.length - 1;
  for (let i = 0; i < list.length; i++) {
    const value = list[i];
    if (isLeaf && value !== undefined && !isList(value, element)) continue;
    if (value === undefined) {
      throw new ValueError(`Expected a value or null as array element ${i}, received undefined`);
    }
    if (isLeaf || !isList(value, element)) {
      throw new ValueError(
        `Expected ${isLeaf ? "no array" : "an array"} as array element ${i}, received ${
          describeValue(value)
        }: ` +
          "all elements of a dimension must be alike",
      );
    }
    checkShape(value, sizes, depth + 1, element);
  }
}

function failRagged(wanted: number, size: number): never {
  throw new ValueError(
    `Expected an inner array of ${wanted} elements as its siblings have, received one of ${size}`,
  );
}
