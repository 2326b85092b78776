/** Ranges and multiranges over any subtype (PostgreSQL manual, 8.17): Range, and arrays of it. */

import { ValueError } from "../errors.ts";
import { utf8Slice } from "../wire/utf8.ts";
import type { Writer } from "../wire/writer.ts";
import type { Codec } from "./codec.ts";
import { elementBinary } from "./element.ts";
import { readInt32, readUint32 } from "./numbers.ts";
import { PartReader, partText } from "./quoted_list.ts";
import { describeValue, encodeSimple } from "./text_form.ts";

/** Which bounds belong to a range: `[` and `]` do, `(` and `)` do not. */
export type RangeBounds = "[]" | "[)" | "(]" | "()";

/** A range of values. */
export class Range<T = unknown> {
  /** The lower bound; `null` when there is none, or the range is empty. */
  readonly lower: T | null;
  /** The upper bound; `null` when there is none, or the range is empty. */
  readonly upper: T | null;
  /** Which bounds belong to the range; a bound that is `null` never does. */
  readonly bounds: RangeBounds;
  /** True for the range that holds nothing. */
  readonly isEmpty: boolean;

  /**
   * A range that is not empty.
   *
   * @param lower `null`: no lower bound
   * @param upper `null`: no upper bound
   * @param bounds default `"[)"`
   */
  constructor(lower: T | null, upper: T | null, bounds: RangeBounds = "[)") {
    this.lower = lower;
    this.upper = upper;
    const open = lower === null ? "(" : bounds.charAt(0);
    this.bounds = (open + (upper === null ? ")" : bounds.charAt(1))) as RangeBounds;
    this.isEmpty = false;
  }

  /** The empty range. */
  static empty<T = never>(): Range<T> {
    return Object.assign(Object.create(Range.prototype), {
      lower: null,
      upper: null,
      bounds: "()",
      isEmpty: true,
    });
  }
}

// Flags of the binary form (rangetypes.h).
const EMPTY = 0x01;
const LOWER_INCLUSIVE = 0x02;
const UPPER_INCLUSIVE = 0x04;
const LOWER_INFINITE = 0x08;
const UPPER_INFINITE = 0x10;

/** Derives the codec of a range type. */
export function createRangeCodec<T>(name: string, subtype: Codec<T>): Codec<Range<T>> {
  return {
    name,
    preferredFormat: subtype.decodeBinary === undefined ? 0 : subtype.preferredFormat,
    decodeText(bytes, start, end): Range<T> {
      const [range, rangeEnd] = readRange(subtype, bytes, start, end);
      return rangeEnd === end ? range : failText();
    },
    encodeText(value): string {
      return value instanceof Range ? rangeText(value, subtype) : encodeSimple(value, "a Range");
    },
    encodeBinary(value, writer): boolean {
      return value instanceof Range && writeRange(value, subtype, writer);
    },
    ...(subtype.decodeBinary === undefined ? {} : {
      decodeBinary(bytes: Uint8Array, start: number, end: number): Range<T> {
        return decodeRange(subtype, bytes, start, end);
      },
    }),
  };
}

/** Derives the codec of a multirange type from its range type's subtype. */
export function createMultirangeCodec<T>(name: string, subtype: Codec<T>): Codec<Range<T>[]> {
  return {
    name,
    preferredFormat: subtype.decodeBinary === undefined ? 0 : subtype.preferredFormat,
    takesArrays: true,
    decodeText(bytes, start, end): Range<T>[] {
      return decodeMultirangeText(subtype, bytes, start, end);
    },
    encodeText(value): string {
      if (!Array.isArray(value)) return encodeSimple(value, "an array of Range");
      return `{${value.map((range) => rangeText(checkRange(range), subtype)).join(",")}}`;
    },
    ...(subtype.decodeBinary === undefined ? {} : {
      decodeBinary(bytes: Uint8Array, start: number, end: number): Range<T>[] {
        return decodeMultirange(subtype, bytes, start, end);
      },
    }),
  };
}

// ---- text

/** `[1,5)`, `(,"a b"]`, `empty`, and where it ends. */
function readRange<T>(subtype: Codec<T>, bytes: Uint8Array, start: number, end: number): [Range<T>, number] {
  const open = bytes[start];
  if (open === 0x65) { // 'e'
    if (end - start < 5 || utf8Slice(bytes, start, start + 5) !== "empty") failText();
    return [Range.empty(), start + 5];
  }
  if (end - start < 3 || (open !== 0x5b && open !== 0x28)) failText();
  const parts = new PartReader(bytes, start + 1, end);
  const lower = parts.read(subtype, 0x5d);
  if (bytes[parts.at++] !== 0x2c) failText();
  const upper = parts.read(subtype, 0x5d);
  const close = bytes[parts.at++];
  if (close !== 0x5d && close !== 0x29) failText();
  const bounds = (open === 0x5b ? "[" : "(") + (close === 0x5d ? "]" : ")");
  return [new Range(lower, upper, bounds as RangeBounds), parts.at];
}

function decodeMultirangeText<T>(
  subtype: Codec<T>,
  bytes: Uint8Array,
  start: number,
  end: number,
): Range<T>[] {
  const ranges: Range<T>[] = [];
  if (end - start < 2 || bytes[start] !== 0x7b || bytes[end - 1] !== 0x7d) failText();
  for (let at = start + 1; at < end - 1;) {
    if (at > start + 1 && bytes[at++] !== 0x2c) failText();
    const [range, rangeEnd] = readRange(subtype, bytes, at, end - 1);
    ranges.push(range);
    at = rangeEnd;
  }
  return ranges;
}

function rangeText(range: Range, subtype: Codec): string {
  if (range.isEmpty) return "empty";
  const bounds = checkBounds(range);
  return bounds.charAt(0) + partText(range.lower, subtype) + "," + partText(range.upper, subtype) +
    bounds.charAt(1);
}

function checkRange(value: unknown): Range {
  if (value instanceof Range) return value;
  throw new ValueError(`Expected an array of Range, received one with ${describeValue(value)}`);
}

function checkBounds(range: Range): RangeBounds {
  if (!/^[[(][\])]$/.test(range.bounds)) throw new ValueError('Expected the bounds "[]", "[)", "(]" or "()"');
  if (range.lower === undefined || range.upper === undefined) {
    throw new ValueError("Expected a Range of values or null, received one with undefined");
  }
  return range.bounds;
}

function failText(): never {
  throw new ValueError("Expected a range in text format, received something else");
}

// ---- binary

function decodeRange<T>(subtype: Codec<T>, bytes: Uint8Array, start: number, end: number): Range<T> {
  if (end <= start) failBinary();
  const flags = bytes[start]!;
  let at = start + 1;
  const bound = (isInfinite: boolean): T | null => {
    if (isInfinite) return null;
    if (end - at < 4) failBinary();
    const length = readInt32(bytes, at);
    at += 4;
    if (length < 0 || length > end - at) failBinary();
    at += length;
    return subtype.decodeBinary!(bytes, at - length, at);
  };
  const isEmpty = (flags & EMPTY) !== 0;
  const lower = bound(isEmpty || (flags & LOWER_INFINITE) !== 0);
  const upper = bound(isEmpty || (flags & UPPER_INFINITE) !== 0);
  if (at !== end) failBinary();
  if (isEmpty) return Range.empty();
  const bounds = (flags & LOWER_INCLUSIVE ? "[" : "(") + (flags & UPPER_INCLUSIVE ? "]" : ")");
  return new Range(lower, upper, bounds as RangeBounds);
}

function decodeMultirange<T>(subtype: Codec<T>, bytes: Uint8Array, start: number, end: number): Range<T>[] {
  if (end - start < 4) failBinary();
  const count = readUint32(bytes, start);
  const ranges: Range<T>[] = [];
  let at = start + 4;
  for (let i = 0; i < count; i++) {
    if (end - at < 4) failBinary();
    const length = readInt32(bytes, at);
    at += 4;
    if (length < 0 || length > end - at) failBinary();
    ranges.push(decodeRange(subtype, bytes, at, at + length));
    at += length;
  }
  if (at !== end) failBinary();
  return ranges;
}

function writeRange(range: Range, subtype: Codec, writer: Writer): boolean {
  if (range.isEmpty) {
    writer.uint8(EMPTY);
    return true;
  }
  const bounds = checkBounds(range);
  const start = writer.mark();
  let flags = 0;
  if (range.lower === null) flags |= LOWER_INFINITE;
  else if (bounds.startsWith("[")) flags |= LOWER_INCLUSIVE;
  if (range.upper === null) flags |= UPPER_INFINITE;
  else if (bounds.endsWith("]")) flags |= UPPER_INCLUSIVE;
  writer.uint8(flags);
  for (const bound of [range.lower, range.upper]) {
    if (bound === null || elementBinary(bound, subtype, writer)) continue;
    writer.rewind(start);
    return false;
  }
  return true;
}

function failBinary(): never {
  throw new ValueError("Expected a range in binary format, received something else");
}
