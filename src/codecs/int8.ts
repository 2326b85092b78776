/** int8 (PostgreSQL manual, 8.1) as bigint, number or string, and xid8 as bigint. */

import { ValueError } from "../errors.ts";
import type { Writer } from "../wire/writer.ts";
import { utf8Slice } from "../wire/utf8.ts";
import type { Codec } from "./codec.ts";
import { checkLength } from "./length.ts";
import {
  failText,
  isInteger,
  NO_INTEGER,
  parseInteger,
  readInt64,
  readInt64AsNumber,
  readUint64,
} from "./numbers.ts";
import { encodeSimple } from "./text_form.ts";

const LIMIT = 2 ** 63;
const LONGEST = "-9223372036854775808".length;

/** int8 as bigint. */
export const int8Codec: Codec<bigint> = {
  name: "int8",
  preferredFormat: 1,
  decodeText(bytes, start, end): bigint {
    const value = parseInteger(bytes, start, end);
    return value === NO_INTEGER ? parseInt8(bytes, start, end) : BigInt(value);
  },
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
    const value = parseInteger(bytes, start, end);
    return value === NO_INTEGER ? checkSafe(Number(parseInt8(bytes, start, end))) : value;
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
  decodeText(bytes, start, end): string {
    return isInteger(bytes, start, end) ? utf8Slice(bytes, start, end) : failText("int8");
  },
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
  decodeText(bytes, start, end): bigint {
    if (!isInteger(bytes, start, end)) failText("xid8");
    const value = BigInt(utf8Slice(bytes, start, end));
    return BigInt.asUintN(64, value) === value ? value : failText("xid8");
  },
  decodeBinary(bytes, start, end): bigint {
    checkLength(8, start, end);
    return readUint64(bytes, start);
  },
  encodeText: encodeInt8,
};

/** An int8 of more digits than a number holds, which all go into the first twenty characters. */
function parseInt8(bytes: Uint8Array, start: number, end: number): bigint {
  if (end - start > LONGEST || !isInteger(bytes, start, end)) failText("int8");
  const value = BigInt(utf8Slice(bytes, start, end));
  return BigInt.asIntN(64, value) === value ? value : failText("int8");
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
  if (!Number.isInteger(value)) return false;
  const number = value as number;
  if (number < -LIMIT || number >= LIMIT) return false;
  writer.int32(Math.floor(number / 0x1_0000_0000));
  writer.int32(number >>> 0);
  return true;
}
