/** float4 and float8 (PostgreSQL manual, 8.1.3): number. */

import { utf8Slice } from "../wire/utf8.ts";
import type { Codec } from "./codec.ts";
import { checkLength } from "./length.ts";
import { failText, NO_INTEGER, parseInteger, readFloat32, readFloat64 } from "./numbers.ts";
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
    if (typeof value !== "number" || !fitsFloat4(value)) return false;
    writer.float32(value);
    return true;
  },
};

/** Whether the server takes the number for a float4: as its cast from float8 it refuses what is too large or too small. */
function fitsFloat4(value: number): boolean {
  const rounded = Math.fround(value);
  return rounded === value || value !== value || rounded !== 0 && Number.isFinite(rounded);
}

function encodeFloat(value: unknown): string {
  return encodeSimple(value, "a number");
}

/** Reads what float8out and float4out print, "NaN" and "-Infinity" included. */
export function parseFloat64(bytes: Uint8Array, start: number, end: number): number {
  // Whole numbers are common and quickly read; "-0" is not one of them.
  if (bytes[start] !== 0x2d) {
    const whole = parseInteger(bytes, start, end);
    if (whole !== NO_INTEGER) return whole;
  }
  return isDecimal(bytes, start, end)
    ? checkDecimal(Number(utf8Slice(bytes, start, end)))
    : parseSpecial(bytes, start, end);
}

/**
 * Whether Number() takes the text for no more than a decimal: it begins and ends as one, which spaces do not, and has
 * no `0x`. What is wrong in between makes NaN.
 */
function isDecimal(bytes: Uint8Array, start: number, end: number): boolean {
  if (end <= start) return false;
  const first = bytes[start]!;
  const last = bytes[end - 1]!;
  // A digit, a sign or a point; a digit or a point.
  return first >= 0x2b && first <= 0x39 && last >= 0x2e && last <= 0x39 &&
    (first !== 0x30 || end - start === 1 || bytes[start + 1]! < 0x41 || bytes[start + 1] === 0x65);
}

function checkDecimal(value: number): number {
  return Number.isFinite(value) ? value : failText("a floating-point number");
}

function parseSpecial(bytes: Uint8Array, start: number, end: number): number {
  switch (end - start > 9 ? "" : utf8Slice(bytes, start, end)) {
    case "NaN":
      return NaN;
    case "Infinity":
      return Infinity;
    case "-Infinity":
      return -Infinity;
    default:
      return failText("a floating-point number");
  }
}

// Exact powers: a whole number below 2^53 multiplied or divided by one is rounded once.
const POWERS: readonly number[] = Array.from({ length: 23 }, (_, i) => Number(`1e${i}`));

const scratch: Float32Array = new Float32Array(1);
const scratchBits: Int32Array = new Int32Array(scratch.buffer);

/**
 * The double of the fewest decimals that no other float4 is nearer to, as float4out prints it: of equally short ones
 * the nearest, half-way the even one. `value` is a float4.
 */
export function shortestFloat32(value: number): number {
  const magnitude = value < 0 ? -value : value;
  // A whole number below 2^24 is short enough as it is.
  if (magnitude < 16_777_216 && Math.floor(magnitude) === magnitude) return value;
  if (magnitude < 1e-14 || magnitude >= 1e27 || value !== value) return shortestExactly(value);
  let exponent = Math.floor(Math.log10(magnitude));
  if (magnitude >= (exponent < 0 ? 1 / POWERS[-exponent - 1]! : POWERS[exponent + 1]!)) exponent++;
  scratch[0] = magnitude;
  const isPowerOfTwo = (scratchBits[0]! & 0x7f_ffff) === 0;
  // Six digits always survive a float4, and nine always suffice.
  for (let digits = 6; digits <= 9; digits++) {
    const shift = digits - 1 - exponent;
    const scaled = shift >= 0 ? magnitude * POWERS[shift]! : magnitude / POWERS[-shift]!;
    const below = Math.floor(scaled);
    const rest = scaled - below;
    // Rounding may have made a tie, or hidden one, where the power has more bits than are left.
    if ((shift > 12 || shift < -9) && Math.abs(rest - 0.5) < 1e-6) return shortestExactly(value);
    const nearer = rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
    let decimal = shift >= 0 ? nearer / POWERS[shift]! : nearer * POWERS[-shift]!;
    if (isNearest(decimal, magnitude)) return value < 0 ? -decimal : decimal;
    // A power of two has its lower neighbour nearer than its upper one: the farther decimal may do when the nearer
    // does not.
    if (!isPowerOfTwo) continue;
    const farther = below + below + 1 - nearer;
    decimal = shift >= 0 ? farther / POWERS[shift]! : farther * POWERS[-shift]!;
    if (isNearest(decimal, magnitude)) return value < 0 ? -decimal : decimal;
  }
  return Number(value.toPrecision(9));
}

/** The same by whole numbers of any size, for very large and very small values. */
function shortestExactly(value: number): number {
  if (!Number.isFinite(value)) return value;
  const magnitude = Math.abs(value);
  // All float4 are whole multiples of 2^-149.
  const numerator = BigInt(magnitude * 2 ** 100 * 2 ** 49);
  const exponent = Number(magnitude.toExponential().split("e")[1]);
  // Subnormal numbers have fewer digits than six.
  for (let digits = magnitude < 2 ** -126 ? 1 : 6; digits <= 9; digits++) {
    const power = exponent - digits + 1;
    const above = power < 0 ? numerator * 10n ** BigInt(-power) : numerator;
    const under = (1n << 149n) * (power < 0 ? 1n : 10n ** BigInt(power));
    const below = above / under;
    const rest = (above % under) * 2n;
    const nearer = rest > under || (rest === under && below % 2n === 1n) ? below + 1n : below;
    for (const whole of [nearer, below + below + 1n - nearer]) {
      const decimal = Number(`${whole}e${power}`);
      if (isNearest(decimal, magnitude)) return value < 0 ? -decimal : decimal;
    }
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
