/** interval (PostgreSQL manual, 8.5.4): Interval, as the server stores it. */

import { ValueError } from "../errors.ts";
import { utf8Slice } from "../wire/utf8.ts";
import type { Codec } from "./codec.ts";
import { checkLength } from "./length.ts";
import { readInt32, readInt64AsNumber } from "./numbers.ts";
import { failType, textForm } from "./text_form.ts";

/** A span of time in the three units that do not convert to each other. */
export class Interval {
  /** Whole months; a year is 12. Infinity or -Infinity, as the other fields then are, for an infinite interval. */
  readonly months: number;
  /** Whole days. */
  readonly days: number;
  /** Whole microseconds, within 2^53 either way. */
  readonly microseconds: number;

  /**
   * An interval of these fields.
   *
   * @param months whole months
   * @param days whole days
   * @param microseconds whole microseconds
   */
  constructor(months: number, days: number, microseconds: number) {
    this.months = months;
    this.days = days;
    this.microseconds = microseconds;
  }

  /** ISO 8601 with a sign per unit (`"P10M3DT-14706.789S"`), which the server reads in any IntervalStyle. */
  toString(): string {
    if (this.months === Infinity) return "infinity";
    if (this.months === -Infinity) return "-infinity";
    const magnitude = Math.abs(this.microseconds);
    const fraction = magnitude % 1_000_000;
    const sign = this.microseconds < 0 ? "-" : "";
    const decimals = fraction === 0 ? "" : "." + String(fraction).padStart(6, "0").replace(/0+$/, "");
    return `P${this.months}M${this.days}DT${sign}${Math.floor(magnitude / 1_000_000)}${decimals}S`;
  }

  /** The same text. */
  toJSON(): string {
    return this.toString();
  }
}

/** interval as Interval; written from any object with its three fields. */
export const intervalCodec: Codec<Interval> = {
  name: "interval",
  // The text depends on IntervalStyle.
  preferredFormat: 1,
  decodeText(bytes, start, end): Interval {
    return parseInterval(utf8Slice(bytes, start, end));
  },
  decodeBinary(bytes, start, end): Interval {
    checkLength(16, start, end);
    const months = readInt32(bytes, start + 12);
    const days = readInt32(bytes, start + 8);
    const [high, low] = [readInt32(bytes, start), readInt32(bytes, start + 4)];
    if (months === 0x7fff_ffff && days === months && high === months && low === -1) return infinite(Infinity);
    if (months === -0x8000_0000 && days === months && high === months && low === 0) {
      return infinite(-Infinity);
    }
    return createInterval(months, days, readInt64AsNumber(bytes, start));
  },
  encodeText(value): string {
    // A Temporal.Duration has fields of the same names, and more.
    const text = textForm(value);
    if (text !== undefined) return text;
    return isInterval(value) ? checkFields(value).toString() : failType(value, "an Interval");
  },
  encodeBinary(value, writer): boolean {
    if (!(value instanceof Interval)) return false;
    const { months, days, microseconds } = checkFields(value);
    if ((months | 0) !== months || (days | 0) !== days) return false;
    writer.int32(Math.floor(microseconds / 0x1_0000_0000));
    writer.int32(microseconds >>> 0);
    writer.int32(days);
    writer.int32(months);
    return true;
  },
};

function infinite(value: number): Interval {
  return new Interval(value, value, value);
}

function createInterval(months: number, days: number, microseconds: number): Interval {
  if (!Number.isSafeInteger(microseconds)) {
    throw new ValueError("The value has more than 2^53-1 microseconds: read the column as text");
  }
  return new Interval(months, days, microseconds);
}

interface IntervalFields {
  readonly months: number;
  readonly days: number;
  readonly microseconds: number;
}

function isInterval(value: unknown): value is IntervalFields {
  return typeof value === "object" && value !== null && "months" in value && "days" in value &&
    "microseconds" in value;
}

function checkFields({ months, days, microseconds }: IntervalFields): Interval {
  const isInfinite = Math.abs(months) === Infinity && days === months && microseconds === months;
  if (!isInfinite && ![months, days, microseconds].every(Number.isSafeInteger)) {
    throw new ValueError("Expected an Interval of whole numbers, received one of others");
  }
  return new Interval(months, days, microseconds);
}

type Unit = "months" | "days" | "microseconds";

// By the first letters of the units that any style writes; ISO 8601 has M on both sides of its T.
const UNITS: Readonly<Record<string, readonly [Unit, number]>> = {
  year: ["months", 12],
  mon: ["months", 1],
  day: ["days", 1],
  hour: ["microseconds", 3_600_000_000],
  min: ["microseconds", 60_000_000],
  sec: ["microseconds", 1_000_000],
  Y: ["months", 12],
  M: ["months", 1],
  D: ["days", 1],
  TH: ["microseconds", 3_600_000_000],
  TM: ["microseconds", 60_000_000],
  TS: ["microseconds", 1_000_000],
};

/** Reads what interval_out prints in any IntervalStyle. */
function parseInterval(text: string): Interval {
  if (text === "infinity") return infinite(Infinity);
  if (text === "-infinity") return infinite(-Infinity);
  const fields = { months: 0, days: 0, microseconds: 0 };
  if (text.startsWith("P")) parseIso(text, fields);
  else if (/[a-z@]/.test(text)) parseWords(text, fields);
  else parseStandard(text, fields);
  return createInterval(fields.months, fields.days, fields.microseconds);
}

type Fields = Record<Unit, number>;

// Sticky, since a search would begin anew at every digit of a text without letters.
const ISO_TOKEN = /T|([^A-Z]*)([A-Z])/y;

/** `P1Y2M3DT4H5M6.789S` */
function parseIso(text: string, fields: Fields): void {
  let time = "";
  for (let at = 1; at < text.length; at = ISO_TOKEN.lastIndex) {
    ISO_TOKEN.lastIndex = at;
    const match = ISO_TOKEN.exec(text);
    if (match === null) return failStyle();
    const [token, number = "", unit = ""] = match;
    if (token === "T") time = "T";
    else add(fields, UNITS[time + unit], parseDecimal(number));
  }
}

/** `1 year -2 mons +3 days -04:05:06.789` and `@ 1 year 2 mons ago`. */
function parseWords(text: string, fields: Fields): void {
  const words = text.split(" ");
  if (words[0] === "@") words.shift();
  const sign = words.at(-1) === "ago" ? -1 : 1;
  if (sign < 0) words.pop();
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    if (word.includes(":")) fields.microseconds += parseClock(word);
    else if (word !== "0" || words.length > 1) {
      add(fields, UNITS[(words[++i] ?? "").replace(/s$/, "")], parseDecimal(word));
    }
  }
  if (sign < 0) { for (const unit of Object.keys(fields) as Unit[]) fields[unit] = -fields[unit] + 0; }
}

/** `1-2`, `3 4:05:06`, `+1-2 -3 +4:05:06`, and in style postgres `04:05:06`: a lone sign is for all. */
function parseStandard(text: string, fields: Fields): void {
  const tokens = text.split(" ");
  // A lone number has no unit, unless it is none.
  if (tokens.length === 1 && text !== "0" && !/:|\d-/.test(text)) failStyle();
  const isSignedOnce = text.startsWith("-") && !tokens.slice(1).some((token) => /^[+-]/.test(token));
  for (const token of isSignedOnce ? text.slice(1).split(" ") : tokens) {
    const years = /^([+-]?)(\d+)-(\d+)$/.exec(token);
    if (years !== null) {
      const months = Number(years[2]) * 12 + Number(years[3]);
      fields.months += years[1] === "-" ? -months : months;
    } else if (token.includes(":")) fields.microseconds += parseClock(token);
    else fields.days += parseDecimal(token) / 1_000_000;
  }
  if (isSignedOnce) { for (const unit of Object.keys(fields) as Unit[]) fields[unit] = -fields[unit] + 0; }
}

/** Adds a number of millionths of a unit. */
function add(fields: Fields, unit: readonly [Unit, number] | undefined, millionths: number): void {
  if (unit === undefined) return failStyle();
  const [field, factor] = unit;
  fields[field] += field === "microseconds"
    ? millionths * (factor / 1_000_000)
    : (millionths / 1_000_000) * factor;
}

/** `[+-]HH:MM[:SS[.ffffff]]` in microseconds. */
function parseClock(text: string): number {
  const match = /^([+-]?)(\d+):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?$/.exec(text);
  if (match === null) return failStyle();
  const [, sign, hours, minutes, seconds = "0", fraction = ""] = match;
  const whole = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
  const microseconds = whole * 1_000_000 + Number(fraction.padEnd(6, "0"));
  return sign === "-" ? -microseconds : microseconds;
}

/** A decimal in millionths. */
function parseDecimal(text: string): number {
  const match = /^([+-]?)(\d+)(?:\.(\d{1,6}))?$/.exec(text);
  if (match === null) return failStyle();
  const millionths = Number(match[2]) * 1_000_000 + Number((match[3] ?? "").padEnd(6, "0"));
  return match[1] === "-" ? -millionths : millionths;
}

function failStyle(): never {
  throw new ValueError("Expected an interval in one of the server's styles, received another");
}
