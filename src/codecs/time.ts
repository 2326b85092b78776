/** time and timetz (PostgreSQL manual, 8.5): string, as the server prints them: `"04:05:06.789"`, `"04:05:06+02"`. */

import { ValueError } from "../errors.ts";
import { utf8Slice } from "../wire/utf8.ts";
import { formatMicroseconds, twoDigits } from "./calendar.ts";
import type { Codec } from "./codec.ts";
import { checkLength } from "./length.ts";
import { failText, readInt32, readInt64AsNumber } from "./numbers.ts";
import { encodeSimple } from "./text_form.ts";

const MICROSECONDS_PER_DAY = 86_400_000_000;

/** time as string. */
export const timeCodec: Codec<string> = {
  name: "time",
  preferredFormat: 0,
  decodeText(bytes, start, end): string {
    if (!isClock(bytes, start, end)) failText("time");
    return utf8Slice(bytes, start, end);
  },
  decodeBinary(bytes, start, end): string {
    checkLength(8, start, end);
    return formatTime(bytes, start);
  },
  encodeText(value): string {
    return encodeSimple(value, "a string");
  },
};

/** timetz as string, the offset east of UTC behind it. */
export const timetzCodec: Codec<string> = {
  name: "timetz",
  preferredFormat: 0,
  decodeText(bytes, start, end): string {
    if (!isClock(bytes, start, end)) failText("timetz");
    return utf8Slice(bytes, start, end);
  },
  decodeBinary(bytes, start, end): string {
    checkLength(12, start, end);
    // The server counts the zone in seconds west of UTC.
    return formatTime(bytes, start) + formatOffset(-readInt32(bytes, start + 8));
  },
  encodeText(value): string {
    return encodeSimple(value, "a string");
  },
};

/** Whether a text may be a time: with colons where they belong. */
function isClock(bytes: Uint8Array, start: number, end: number): boolean {
  return end - start >= 8 && bytes[start + 2] === 0x3a && bytes[start + 5] === 0x3a;
}

function formatTime(bytes: Uint8Array, start: number): string {
  const microseconds = readInt64AsNumber(bytes, start);
  if (microseconds < 0 || microseconds > MICROSECONDS_PER_DAY) {
    throw new ValueError("Expected a time from 00:00:00 to 24:00:00, received another");
  }
  return formatMicroseconds(microseconds);
}

function formatOffset(seconds: number): string {
  const magnitude = Math.abs(seconds);
  let text = (seconds < 0 ? "-" : "+") + twoDigits(magnitude / 3600 | 0);
  const minutes = (magnitude / 60 | 0) % 60;
  if (magnitude % 3600 !== 0) text += ":" + twoDigits(minutes);
  if (magnitude % 60 !== 0) text += ":" + twoDigits(magnitude % 60);
  return text;
}
