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

const PLAIN_DATE = /^(\d{4})-(0[1-9]|1[0-2])-(\d\d)$/;

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
      const separator = bytes[start + 2];
      // ISO years have four digits or more: the other styles begin with a day or a month of two.
      const isOther = separator === 0x2e || separator === 0x2f || separator === 0x2d;
      return isOther ? isoDate(text, order) : text;
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
