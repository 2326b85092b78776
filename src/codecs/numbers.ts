/** Fixed-width numbers in network byte order and decimal digits, read from borrowed bytes. */

import { ValueError } from "../errors.ts";

const scratch: DataView = new DataView(new ArrayBuffer(8));
const scratchBytes: Uint8Array = new Uint8Array(scratch.buffer);

/** Int16. */
export function readInt16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24 >> 16) | bytes[at + 1]!;
}

/** Int32. */
export function readInt32(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}

/** Unsigned Int32. */
export function readUint32(bytes: Uint8Array, at: number): number {
  return readInt32(bytes, at) >>> 0;
}

function loadEight(bytes: Uint8Array, at: number): void {
  scratchBytes[0] = bytes[at]!;
  scratchBytes[1] = bytes[at + 1]!;
  scratchBytes[2] = bytes[at + 2]!;
  scratchBytes[3] = bytes[at + 3]!;
  scratchBytes[4] = bytes[at + 4]!;
  scratchBytes[5] = bytes[at + 5]!;
  scratchBytes[6] = bytes[at + 6]!;
  scratchBytes[7] = bytes[at + 7]!;
}

/** IEEE 754 double precision. */
export function readFloat64(bytes: Uint8Array, at: number): number {
  loadEight(bytes, at);
  return scratch.getFloat64(0);
}

/** IEEE 754 single precision, widened. */
export function readFloat32(bytes: Uint8Array, at: number): number {
  scratchBytes[0] = bytes[at]!;
  scratchBytes[1] = bytes[at + 1]!;
  scratchBytes[2] = bytes[at + 2]!;
  scratchBytes[3] = bytes[at + 3]!;
  return scratch.getFloat32(0);
}

/** Int64 as a bigint. */
export function readInt64(bytes: Uint8Array, at: number): bigint {
  const high = readInt32(bytes, at);
  // Small values are the rule: two conversions cost less than a shift of bigints.
  if (high === 0) return BigInt(readUint32(bytes, at + 4));
  loadEight(bytes, at);
  return scratch.getBigInt64(0);
}

/** Int64, unsigned, as a bigint. */
export function readUint64(bytes: Uint8Array, at: number): bigint {
  loadEight(bytes, at);
  return scratch.getBigUint64(0);
}

/** Int64 as a number; right only between -2^53 and 2^53. */
export function readInt64AsNumber(bytes: Uint8Array, at: number): number {
  return readInt32(bytes, at) * 0x1_0000_0000 + readUint32(bytes, at + 4);
}

// As many digits and a sign that a number holds exactly.
const EXACT_LENGTH = 15;

/**
 * Decimal digits with an optional minus sign; {@linkcode NO_INTEGER} for anything else. An attribute of a composite
 * may have been altered: its text is not always that of the type it had.
 */
export function parseInteger(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  const negative = bytes[at] === 0x2d; // '-'
  if (negative) at++;
  if (at >= end || end - start > EXACT_LENGTH) return NO_INTEGER;
  let value = 0;
  for (; at < end; at++) {
    const digit = bytes[at]! - 0x30;
    if (digit >>> 0 > 9) return NO_INTEGER;
    value = value * 10 + digit;
  }
  return negative ? -value : value;
}

/** No whole number of up to fifteen digits; larger than all of them. */
export const NO_INTEGER = Infinity;

/** Whether `bytes[start, end)` are decimal digits with an optional minus sign, however many. */
export function isInteger(bytes: Uint8Array, start: number, end: number): boolean {
  let at = bytes[start] === 0x2d ? start + 1 : start;
  if (at >= end) return false;
  for (; at < end; at++) if ((bytes[at]! - 0x30) >>> 0 > 9) return false;
  return true;
}

/** Throws for a text that is not one of `type`. */
export function failText(type: string): never {
  throw new ValueError(`Expected the text of ${type}, received something else`);
}
