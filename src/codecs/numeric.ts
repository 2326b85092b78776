/** numeric (PostgreSQL manual, 8.1.2): string, its scale kept. */

import { ValueError } from "../errors.ts";
import { utf8Slice } from "../wire/utf8.ts";
import type { Writer } from "../wire/writer.ts";
import type { Codec } from "./codec.ts";
import { failText, readInt16 } from "./numbers.ts";
import { encodeSimple } from "./text_form.ts";

// Sign words of the binary form (numeric.c: NUMERIC_POS, NUMERIC_NEG, NUMERIC_NAN, NUMERIC_PINF, NUMERIC_NINF).
const NEGATIVE = 0x4000;
const NAN = 0xc000;
const POSITIVE_INFINITY = 0xd000;
const NEGATIVE_INFINITY = 0xf000;

/** numeric as decimal string: `"1.50"`, `"NaN"`, `"-Infinity"`. */
export const numericCodec: Codec<string> = {
  name: "numeric",
  // The server's text is the value; the binary form would have to be turned into it.
  preferredFormat: 0,
  decodeText(bytes, start, end): string {
    return isNumeric(bytes, start, end) ? utf8Slice(bytes, start, end) : failText("numeric");
  },
  decodeBinary: decodeNumeric,
  encodeText(value): string {
    return encodeSimple(value, "a string, a number or a bigint");
  },
  encodeBinary: encodeNumeric,
};

/** Whether a text may be a numeric: its ends tell it from other texts at no cost. */
function isNumeric(bytes: Uint8Array, start: number, end: number): boolean {
  if (end <= start) return false;
  const first = bytes[start]!;
  const last = bytes[end - 1]!;
  if ((last - 0x30) >>> 0 <= 9) return (first - 0x30) >>> 0 <= 9 || first === 0x2d;
  return (last === 0x4e || last === 0x79) && /^(?:NaN|-?Infinity)$/.test(utf8Slice(bytes, start, end));
}

/** Header: digit count, weight of the first, sign, display scale; then digits in base 10000. */
function decodeNumeric(bytes: Uint8Array, start: number, end: number): string {
  if (end - start < 8) failDigits();
  const count = readInt16(bytes, start);
  const weight = readInt16(bytes, start + 2);
  const sign = readInt16(bytes, start + 4) & 0xffff;
  const scale = readInt16(bytes, start + 6) & 0x3fff;
  if (sign === NAN) return "NaN";
  if (sign === POSITIVE_INFINITY) return "Infinity";
  if (sign === NEGATIVE_INFINITY) return "-Infinity";
  if (count < 0 || end - start !== 8 + count * 2) failDigits();
  let whole = "";
  for (let i = 0; i <= weight; i++) {
    const group = i < count ? readInt16(bytes, start + 8 + i * 2) : 0;
    whole += i === 0 ? group : fourDigits(group);
  }
  let text = whole === "" ? "0" : whole;
  if (scale > 0) {
    let fraction = "";
    for (let i = weight + 1; fraction.length < scale; i++) {
      fraction += i >= 0 && i < count ? fourDigits(readInt16(bytes, start + 8 + i * 2)) : "0000";
    }
    text += "." + fraction.slice(0, scale);
  }
  return sign === NEGATIVE ? "-" + text : text;
}

function fourDigits(group: number): string {
  return group > 999 ? String(group) : String(group).padStart(4, "0");
}

const PLAIN = /^(-?)0*(\d*)(?:\.(\d*))?$/;
// NUMERIC_MAX_PRECISION and more: longer ones are left to the server's input function.
const LONGEST = 1000;

/** Only strings: a number on its own is shorter as text. */
function encodeNumeric(value: unknown, writer: Writer): boolean {
  if (typeof value !== "string" || value.length > LONGEST) return false;
  const match = PLAIN.exec(value);
  if (match === null || !/\d/.test(value)) return false;
  const [, sign, whole = "", fraction = ""] = match;
  // Groups of four digits on both sides of the point.
  const digits = whole.padStart(Math.ceil(whole.length / 4) * 4, "0") +
    fraction.padEnd(Math.ceil(fraction.length / 4) * 4, "0");
  let first = 0;
  let last = digits.length / 4;
  const group = (i: number): number => Number(digits.slice(i * 4, i * 4 + 4));
  while (first < last && group(first) === 0) first++;
  while (last > first && group(last - 1) === 0) last--;
  writer.int16(last - first);
  writer.int16(first === last ? 0 : Math.ceil(whole.length / 4) - 1 - first);
  writer.int16(sign === "-" && first < last ? NEGATIVE : 0);
  writer.int16(fraction.length);
  for (let i = first; i < last; i++) writer.int16(group(i));
  return true;
}

function failDigits(): never {
  throw new ValueError("Expected the binary form of a numeric, received something else");
}
