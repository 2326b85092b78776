/** int2, int4 and the unsigned four-byte identifiers oid, xid and cid (PostgreSQL manual, 8.1 and 8.19): number. */

import type { Codec } from "./codec.ts";
import { checkLength } from "./length.ts";
import { failText, parseInteger, readInt16, readInt32, readUint32 } from "./numbers.ts";
import { encodeSimple } from "./text_form.ts";

/** int2 as number. */
export const int2Codec: Codec<number> = {
  name: "int2",
  preferredFormat: 1,
  decodeText(bytes, start, end): number {
    const value = parseInteger(bytes, start, end);
    return value << 16 >> 16 === value ? value : failText("int2");
  },
  decodeBinary(bytes, start, end): number {
    checkLength(2, start, end);
    return readInt16(bytes, start);
  },
  encodeText: encodeInteger,
  encodeBinary(value, writer): boolean {
    if (typeof value !== "number" || (value << 16 >> 16) !== value) return false;
    writer.int16(value);
    return true;
  },
};

/** int4 as number. */
export const int4Codec: Codec<number> = {
  name: "int4",
  preferredFormat: 1,
  decodeText(bytes, start, end): number {
    const value = parseInteger(bytes, start, end);
    return (value | 0) === value ? value : failText("int4");
  },
  decodeBinary(bytes, start, end): number {
    checkLength(4, start, end);
    return readInt32(bytes, start);
  },
  encodeText: encodeInteger,
  encodeBinary(value, writer): boolean {
    if (typeof value !== "number" || (value | 0) !== value) return false;
    writer.int32(value);
    return true;
  },
};

function unsignedCodec(name: string): Codec<number> {
  return {
    name,
    preferredFormat: 1,
    decodeText(bytes, start, end): number {
      const value = parseInteger(bytes, start, end);
      return value >>> 0 === value ? value : failText(name);
    },
    decodeBinary(bytes, start, end): number {
      checkLength(4, start, end);
      return readUint32(bytes, start);
    },
    encodeText: encodeInteger,
    encodeBinary(value, writer): boolean {
      if (typeof value !== "number" || (value >>> 0) !== value) return false;
      writer.int32(value);
      return true;
    },
  };
}

/** oid as number, 0 to 2^32-1. */
export const oidCodec: Codec<number> = unsignedCodec("oid");

/** xid as number, 0 to 2^32-1. */
export const xidCodec: Codec<number> = unsignedCodec("xid");

/** cid as number, 0 to 2^32-1. */
export const cidCodec: Codec<number> = unsignedCodec("cid");

// Anything else, 1.5 or true, goes to the server as text: its answer is the same whenever the type becomes known.
function encodeInteger(value: unknown): string {
  return encodeSimple(value, "a number");
}
