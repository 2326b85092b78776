/**
 * date (PostgreSQL manual, 8.5): string, as the server prints it in DateStyle ISO.
 *
 * `"2024-02-29"`, `"0044-03-15 BC"`, `"12345-01-01"`, `"infinity"`, `"-infinity"`.
 */

import { utf8Slice } from "../wire/utf8.ts";
import { daysFromDate, EPOCH_DAYS, formatDays } from "./calendar.ts";
import type { Codec } from "./codec.ts";
import { type DateOrder, isoDate } from "./date_style.ts";
import { checkLength } from "./length.ts";
import { readInt32 } from "./numbers.ts";
import { encodeSimple } from "./text_form.ts";

const INFINITY_DAYS = 0x7fff_ffff;
const NEGATIVE_INFINITY_DAYS = -0x8000_0000;

const ISO_DATE = /^(?:\d{4,}-\d\d-\d\d(?: BC)?|-?infinity)$/;
const PLAIN_DATE = /^(\d{4})-(0[1-9]|1[0-2])-(\d\d)$/;

/** Whether a text is `YYYY-MM-DD`, quicker than by an expression. */
function isPlainDate(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start !== 10 || bytes[start + 4] !== 0x2d || bytes[start + 7] !== 0x2d) return false;
  for (let at = start; at < end; at++) {
    if ((bytes[at]! - 0x30) >>> 0 > 9 && at !== start + 4 && at !== start + 7) return false;
  }
  return true;
}

/** date as ISO string. */
export const dateCodec: Codec<string> = createDateCodec();

/** The codec, for a session whose order of day and month is known. */
export function createDateCodec(order?: DateOrder): Codec<string> {
  return {
    name: "date",
    // The text depends on DateStyle, the binary form on nothing.
    preferredFormat: 1,
    decodeText(bytes, start, end): string {
      const text = utf8Slice(bytes, start, end);
      if (isPlainDate(bytes, start, end)) return text;
      // ISO years have four digits or more: the other styles begin with a day or a month of two.
      return ISO_DATE.test(text) ? text : isoDate(text, order);
    },
    decodeBinary(bytes, start, end): string {
      checkLength(4, start, end);
      const days = readInt32(bytes, start);
      if (days === INFINITY_DAYS) return "infinity";
      if (days === NEGATIVE_INFINITY_DAYS) return "-infinity";
      return formatDays(days + EPOCH_DAYS);
    },
    encodeText(value): string {
      return encodeSimple(value, "a string or a Date");
    },
    encodeBinary(value, writer): boolean {
      const match = typeof value === "string" ? PLAIN_DATE.exec(value) : null;
      if (match === null) return false;
      const days = daysFromDate(Number(match[1]), Number(match[2]), Number(match[3])) - EPOCH_DAYS;
      // The 30th of February would have become another day.
      if (formatDays(days + EPOCH_DAYS) !== value) return false;
      writer.int32(days);
      return true;
    },
  };
}
