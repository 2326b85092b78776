/**
 * The one text form of JavaScript's simple values.
 *
 * It does not depend on the parameter's type: what is sent before the type is known must be what is sent later.
 */

import { ValueError } from "../errors.ts";

/** Whether {@linkcode textForm} has a text for `value`. */
export function hasTextForm(value: unknown): boolean {
  switch (typeof value) {
    case "string":
    case "number":
    case "bigint":
    case "boolean":
      return true;
    default:
      return value instanceof Date;
  }
}

/**
 * The text form of a string, number, bigint, boolean or Date; `undefined` for anything else.
 *
 * @throws {ValueError} for an invalid Date
 */
export function textForm(value: unknown): string | undefined {
  switch (typeof value) {
    case "string":
      return value;
    case "number":
      // The sign of zero matters to float8 and harms no other type.
      return value === 0 && 1 / value < 0 ? "-0" : String(value);
    case "bigint":
      return String(value);
    case "boolean":
      return value ? "true" : "false";
    default:
      return value instanceof Date ? formatDate(value) : undefined;
  }
}

/**
 * A Date as every date and time type reads it under any DateStyle: ISO 8601 in UTC, the year in four digits or more,
 * years before 1 marked with BC.
 *
 * @throws {ValueError} for an invalid Date
 */
export function formatDate(date: Date): string {
  const year = date.getUTCFullYear();
  if (year !== year) throw new ValueError("Expected a valid Date, received an invalid Date");
  const iso = date.toISOString();
  if (year >= 1 && year <= 9999) return iso;
  // Years outside 0 to 9999 have a sign and six digits in JavaScript; its year 0 is the server's 1 BC.
  const rest = iso.slice(year === 0 ? 4 : 7);
  return year > 0 ? year + rest : `${String(1 - year).padStart(4, "0")}${rest} BC`;
}

/** What a codec's `encodeText` does with values that are not its own: the text form, else a ValueError. */
export function encodeSimple(value: unknown, wanted: string): string {
  return textForm(value) ?? failType(value, wanted);
}

/** Throws the ValueError for a value of the wrong kind. */
export function failType(value: unknown, wanted: string): never {
  throw new ValueError(`Expected ${wanted}, received ${describeValue(value)}`);
}

/** What kind of value it is, never the value itself. */
export function describeValue(value: unknown): string {
  if (value === null) return "null";
  switch (typeof value) {
    case "undefined":
      return "undefined";
    case "object":
      break;
    default:
      return `a ${typeof value}`;
  }
  if (Array.isArray(value)) return "an array";
  const name: unknown = value?.constructor?.name;
  if (typeof name !== "string" || name === "" || name === "Object") return "an object";
  return /^(?:[AEIO]|U(?!int|RL))/.test(name) ? `an ${name}` : `a ${name}`;
}
