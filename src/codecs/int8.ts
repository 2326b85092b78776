/** int8 (PostgreSQL manual, 8.1) as bigint, number or string, and xid8 as bigint. */

import { ValueError } from "../errors.ts";
import type { Writer } from "../wire/writer.ts";
import { utf8Slice } from "../wire/utf8.ts";
import type { Codec } from "./codec.ts";
import { checkLength } from "./length.ts";
import { parseInteger, readInt64, readInt64AsNumber, readUint64 } from "./numbers.ts";
import { encodeSimple } from "./text_form.ts";

// As many digits and a sign that a number holds exactly.
const EXACT_LENGTH = 15;

/** int8 as bigint. */
export const int8Codec: Codec<bigint> = {
  name: "int8",
  preferredFormat: 1,
  decodeText: parseBigint,
  decodeBinary(bytes, start, end): bigint {
    checkLength(8, start, end);
    return readInt64(bytes, start);
  },
  encodeText: encodeInt8,
  encodeBinary: encodeInt8Binary,
};

/** int8 as number; past 2^53-1 either way a ValueError. */
export const int8NumberCodec: Codec<number> = {
  name: "int8",
  preferredFormat: 1,
  decodeText(bytes, start, end): number {
    const value = end - start <= EXACT_LENGTH
      ? parseInteger(bytes, start, end)
      : Number(utf8Slice(bytes, start, end));
    return checkSafe(value);
  },
  decodeBinary(bytes, start, end): number {
    checkLength(8, start, end);
    return checkSafe(readInt64AsNumber(bytes, start));
  },
  encodeText: encodeInt8,
  encodeBinary: encodeInt8Binary,
};

/** int8 as decimal string. */
export const int8StringCodec: Codec<string> = {
  name: "int8",
  preferredFormat: 0,
  decodeText: utf8Slice,
  decodeBinary(bytes, start, end): string {
    checkLength(8, start, end);
    return String(readInt64(bytes, start));
  },
  encodeText: encodeInt8,
  encodeBinary: encodeInt8Binary,
};

/** xid8 as bigint, 0 to 2^64-1. */
export const xid8Codec: Codec<bigint> = {
  name: "xid8",
  preferredFormat: 1,
  decodeText: parseBigint,
  decodeBinary(bytes, start, end): bigint {
    checkLength(8, start, end);
    return readUint64(bytes, start);
  },
  encodeText: encodeInt8,
};

function parseBigint(bytes: Uint8Array, start: number, end: number): bigint {
  if (end - start <= EXACT_LENGTH) return BigInt(parseInteger(bytes, start, end));
  return BigInt(utf8Slice(bytes, start, end));
}

function checkSafe(value: number): number {
  if (!Number.isSafeInteger(value)) {
    throw new ValueError('The value is past 2^53-1 and cannot be a number: choose int8 "bigint" or "string"');
  }
  return value;
}

function encodeInt8(value: unknown): string {
  return encodeSimple(value, "a bigint or a number");
}

function encodeInt8Binary(value: unknown, writer: Writer): boolean {
  if (typeof value === "bigint") {
    if (BigInt.asIntN(64, value) !== value) return false;
    writer.int64(value);
    return true;
  }
  // Past 2^53 the text of a number and its exact value differ.
  if (!Number.isSafeInteger(value)) return false;
  const number = value as number;
  writer.int32(Math.floor(number / 0x1_0000_0000));
  writer.int32(number >>> 0);
  return true;
}
