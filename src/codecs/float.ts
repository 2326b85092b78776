/** float4 and float8 (PostgreSQL manual, 8.1.3): number. */

import { utf8Slice } from "../wire/utf8.ts";
import type { Codec } from "./codec.ts";
import { checkLength } from "./length.ts";
import { parseInteger, readFloat32, readFloat64 } from "./numbers.ts";
import { encodeSimple } from "./text_form.ts";

/** float8 as number. */
export const float8Codec: Codec<number> = {
  name: "float8",
  preferredFormat: 1,
  decodeText: parseFloat64,
  decodeBinary(bytes, start, end): number {
    checkLength(8, start, end);
    return readFloat64(bytes, start);
  },
  encodeText: encodeFloat,
  encodeBinary(value, writer): boolean {
    if (typeof value !== "number") return false;
    writer.float64(value);
    return true;
  },
};

/** float4 as the number whose decimals the server prints: the shortest that single it out. */
export const float4Codec: Codec<number> = {
  name: "float4",
  preferredFormat: 1,
  decodeText: parseFloat64,
  decodeBinary(bytes, start, end): number {
    checkLength(4, start, end);
    return shortestFloat32(readFloat32(bytes, start));
  },
  encodeText: encodeFloat,
  encodeBinary(value, writer): boolean {
    // The server rounds decimals, and refuses what overflows: only a value that is a float4 already is the same.
    if (typeof value !== "number" || (Math.fround(value) !== value && value === value)) return false;
    writer.float32(value);
    return true;
  },
};

function encodeFloat(value: unknown): string {
  return encodeSimple(value, "a number");
}

/** Reads what float8out and float4out print, "NaN" and "-Infinity" included. */
export function parseFloat64(bytes: Uint8Array, start: number, end: number): number {
  // Whole numbers are common and quickly read; "-0" is not one of them.
  if (end - start <= 15 && bytes[start] !== 0x2d) {
    let at = start;
    while (at < end && (bytes[at]! - 0x30) >>> 0 < 10) at++;
    if (at === end) return parseInteger(bytes, start, end);
  }
  return Number(utf8Slice(bytes, start, end));
}

// Exact powers: a whole number below 2^53 multiplied or divided by one is rounded once.
const POWERS: readonly number[] = Array.from({ length: 23 }, (_, i) => Number(`1e${i}`));

/** The double of the fewest decimals that no other float4 is nearer to; `value` is a float4. */
export function shortestFloat32(value: number): number {
  const magnitude = value < 0 ? -value : value;
  // Few significant bits, zero, NaN: decimals of a double are those of the float4.
  if (magnitude < 16_777_216 && Math.floor(magnitude) === magnitude) return value;
  if (magnitude < 1e-9 || magnitude >= 1e15 || value !== value) return shortestByText(value);
  let exponent = Math.floor(Math.log10(magnitude));
  if (magnitude >= (exponent < 0 ? 1 / POWERS[-exponent - 1]! : POWERS[exponent + 1]!)) exponent++;
  // Six digits always survive a float4, and nine always suffice.
  for (let digits = 6; digits < 9; digits++) {
    const shift = digits - 1 - exponent;
    const decimal = shift >= 0
      ? Math.round(magnitude * POWERS[shift]!) / POWERS[shift]!
      : Math.round(magnitude / POWERS[-shift]!) * POWERS[-shift]!;
    if (isNearest(decimal, magnitude)) return value < 0 ? -decimal : decimal;
  }
  return Number(value.toPrecision(9));
}

function shortestByText(value: number): number {
  if (!Number.isFinite(value)) return value;
  const magnitude = Math.abs(value);
  for (let digits = 1; digits < 9; digits++) {
    const text = value.toPrecision(digits);
    if (isNearest(Math.abs(Number(text)), magnitude)) return Number(text);
  }
  return Number(value.toPrecision(9));
}

/** Whether `decimal` reads as `value` however ties are rounded: the server prints no decimal half-way between two. */
function isNearest(decimal: number, value: number): boolean {
  if (Math.fround(decimal) !== value) return false;
  // Exactly half-way, twice the distance is the neighbour.
  const neighbour = value + 2 * (decimal - value);
  return neighbour === value || Math.fround(neighbour) !== neighbour;
}
