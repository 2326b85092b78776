/**
 * The one text form of JavaScript's simple values.
 *
 * It does not depend on the parameter's type: what is sent before the type is known must be what is sent later.
 */

import { ValueError } from "../errors.ts";
import { eraText, isTemporal, temporalText } from "./temporal_text.ts";

/** Whether {@linkcode textForm} has a text for `value`. */
export function hasTextForm(value: unknown): boolean {
  switch (typeof value) {
    case "string":
    case "number":
    case "bigint":
    case "boolean":
      return true;
    default:
      return isTime(value);
  }
}

/** Whether `value` is a Date, or a Temporal object that a PostgreSQL type is like. */
export function isTime(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return value instanceof Date || isTemporal(value);
}

/**
 * The text form of a string, number, bigint, boolean, Date or Temporal object; `undefined` for anything
 * else.
 *
 * @throws {ValueError} for an invalid Date
 */
export function textForm(value: unknown): string | undefined {
  switch (typeof value) {
    case "string":
      return value;
    case "number":
      return numberText(value);
    case "bigint":
      return String(value);
    case "boolean":
      return value ? "true" : "false";
    default:
      if (value instanceof Date) return formatDate(value);
      return typeof value === "object" && value !== null ? temporalText(value) : undefined;
  }
}

/**
 * The text of a number. A whole one past 2^53 has all of its digits: those of String() end in zeros where they are
 * not needed to tell it from other numbers, which makes them another int8.
 */
function numberText(value: number): string {
  // The sign of zero matters to float8 and harms no other type.
  if (value === 0) return 1 / value < 0 ? "-0" : "0";
  const magnitude = value < 0 ? -value : value;
  return magnitude > Number.MAX_SAFE_INTEGER && magnitude < EXPONENT_FROM
    ? String(BigInt(value))
    : String(value);
}

/** From here on String() writes an exponent, which no type of whole numbers takes. */
const EXPONENT_FROM = 1e21;

/**
 * A Date in ISO 8601 and UTC, as every date and time type reads it under any DateStyle.
 *
 * @throws {ValueError} for an invalid Date
 */
export function formatDate(date: Date): string {
  if (Number.isNaN(date.getTime())) throw new ValueError("Expected a valid Date, received an invalid Date");
  return eraText(date.toISOString());
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
