/**
 * timestamp and timestamptz (PostgreSQL manual, 8.5): Date.
 *
 * A timestamp's wall clock is read as UTC, so that no time zone of the client has a part in it. Microseconds are cut
 * to the millisecond at or before. `infinity` is the number Infinity; what a Date cannot hold is a ValueError.
 */

import { ValueError } from "../errors.ts";
import { utf8Slice } from "../wire/utf8.ts";
import type { Writer } from "../wire/writer.ts";
import { daysFromDate, EPOCH_MILLISECONDS } from "./calendar.ts";
import type { Codec } from "./codec.ts";
import { type DateOrder, failDateStyle, isoTimestamp } from "./date_style.ts";
import { checkLength } from "./length.ts";
import { readInt32, readUint32 } from "./numbers.ts";
import { encodeSimple } from "./text_form.ts";

// Milliseconds from 1970 either way (ECMA-262, time values).
const LAST_MILLISECOND = 8.64e15;
const MILLISECONDS_PER_DAY = 86_400_000;

/** timestamp as Date. */
export const timestampCodec: Codec<Date | number> = createTimestampCodec("timestamp");

/** timestamptz as Date. */
export const timestamptzCodec: Codec<Date | number> = createTimestampCodec("timestamptz");

/** The codec of either type, for a session whose order of day and month is known. */
export function createTimestampCodec(name: string, order?: DateOrder): Codec<Date | number> {
  return {
    name,
    preferredFormat: 1,
    decodeText(bytes, start, end): Date | number {
      return decodeTimestampText(name, order, bytes, start, end);
    },
    decodeBinary: decodeTimestamp,
    encodeText(value): string {
      return encodeSimple(value, "a Date or a string");
    },
    encodeBinary: encodeTimestamp,
  };
}

// 4714-11-24 BC, the first day the server knows.
const FIRST_MILLISECOND = -210_866_803_200_000;

function encodeTimestamp(value: unknown, writer: Writer): boolean {
  if (value === Infinity || value === -Infinity) {
    writer.int32(value > 0 ? 0x7fff_ffff : -0x8000_0000);
    writer.int32(value > 0 ? 0xffff_ffff : 0);
    return true;
  }
  const milliseconds = value instanceof Date ? value.getTime() : NaN;
  // Whatever the server has to refuse is refused in its own words, as text.
  if (!(milliseconds >= FIRST_MILLISECOND)) return false;
  // By halves, since microseconds leave the whole numbers that a double holds.
  const seconds = Math.floor((milliseconds - EPOCH_MILLISECONDS) / 1000);
  const rest = (milliseconds - EPOCH_MILLISECONDS - seconds * 1000) * 1000;
  const lowProduct = (seconds >>> 0) * 1_000_000 + rest;
  const high = Math.floor(seconds / 0x1_0000_0000) * 1_000_000 + Math.floor(lowProduct / 0x1_0000_0000);
  writer.int32(high);
  writer.int32(lowProduct % 0x1_0000_0000);
  return true;
}

/** Microseconds from 2000-01-01 00:00:00. */
function decodeTimestamp(bytes: Uint8Array, start: number, end: number): Date | number {
  checkLength(8, start, end);
  const high = readInt32(bytes, start);
  const low = readUint32(bytes, start + 4);
  if (high === 0x7fff_ffff && low === 0xffff_ffff) return Infinity;
  if (high === -0x8000_0000 && low === 0) return -Infinity;
  // 2^32 = 4294967 * 1000 + 296: no step leaves the whole numbers that a double holds.
  return createDate(high * 4_294_967 + Math.floor((high * 296 + low) / 1000) + EPOCH_MILLISECONDS);
}

function createDate(milliseconds: number): Date {
  if (milliseconds > LAST_MILLISECOND || milliseconds < -LAST_MILLISECOND) failRange();
  return new Date(milliseconds);
}

function failRange(): never {
  throw new ValueError("The value is outside the range of a Date: read the column as text");
}

/** Reads `YYYY-MM-DD HH:MM:SS[.ffffff][+HH[:MM[:SS]]][ BC]`, the server's ISO style. */
function decodeTimestampText(
  name: string,
  order: DateOrder | undefined,
  bytes: Uint8Array,
  start: number,
  end: number,
): Date | number {
  let at = start;
  let year = 0;
  for (let digit; (digit = bytes[at]! - 0x30) >>> 0 < 10 && at < end; at++) year = year * 10 + digit;
  if (at - start < 4 || bytes[at] !== 0x2d || end - at < 15) {
    return decodeOtherStyle(name, utf8Slice(bytes, start, end), order);
  }
  if (
    bytes[at + 3] !== 0x2d || bytes[at + 6] !== 0x20 || bytes[at + 9] !== 0x3a || bytes[at + 12] !== 0x3a
  ) failDateStyle(name);
  const month = twoDigitsAt(bytes, at + 1);
  const day = twoDigitsAt(bytes, at + 4);
  const seconds = twoDigitsAt(bytes, at + 7) * 3600 + twoDigitsAt(bytes, at + 10) * 60 +
    twoDigitsAt(bytes, at + 13);
  // NaN is none of these either.
  if (!(month > 0 && month < 13 && day > 0 && day < 32 && seconds <= 86_400)) failDateStyle(name);
  at += 15;
  let milliseconds = 0;
  if (bytes[at] === 0x2e && at < end) {
    let unit = 100;
    for (at++; at < end && (bytes[at]! - 0x30) >>> 0 < 10; at++) {
      milliseconds += (bytes[at]! - 0x30) * unit;
      // The fourth digit and later ones are cut.
      unit = unit === 100 ? 10 : unit === 10 ? 1 : 0;
    }
  }
  let offset = 0;
  const sign = bytes[at];
  if (at < end && (sign === 0x2b || sign === 0x2d)) {
    offset = twoDigitsAt(bytes, at + 1) * 3600;
    at += 3;
    for (let unit = 60; at < end && bytes[at] === 0x3a; unit = 1, at += 3) {
      offset += twoDigitsAt(bytes, at + 1) * unit;
    }
    if (offset !== offset) failDateStyle(name);
    if (sign === 0x2d) offset = -offset;
  }
  if (at < end) {
    if (end - at !== 3 || bytes[at + 1] !== 0x42 || bytes[at + 2] !== 0x43) failDateStyle(name); // ' BC'
    year = 1 - year;
  }
  return createDate(
    daysFromDate(year, month, day) * MILLISECONDS_PER_DAY + (seconds - offset) * 1000 + milliseconds,
  );
}

/** NaN where there are no two digits. */
function twoDigitsAt(bytes: Uint8Array, at: number): number {
  const tens = bytes[at]! - 0x30;
  const ones = bytes[at + 1]! - 0x30;
  return tens >>> 0 > 9 || ones >>> 0 > 9 ? NaN : tens * 10 + ones;
}

const encoder: TextEncoder = new TextEncoder();

/** Infinity, and the other styles. */
function decodeOtherStyle(name: string, text: string, order: DateOrder | undefined): Date | number {
  if (text === "infinity") return Infinity;
  if (text === "-infinity") return -Infinity;
  const iso = encoder.encode(isoTimestamp(name, text, order));
  return decodeTimestampText(name, order, iso, 0, iso.length);
}
