/**
 * SASLprep (RFC 4013), as PostgreSQL's server and libpq apply it to passwords.
 *
 * They differ from the RFC in three ways that decide whether a password matches the stored one: a pure ASCII text
 * is taken as it is, the checks look at the text before its normalization, and a text that fails a check is used
 * raw instead of refused.
 */

import {
  L_CAT,
  MAPPED_TO_NOTHING,
  NON_ASCII_SPACE,
  PROHIBITED,
  RAND_AL_CAT,
  UNASSIGNED,
} from "./stringprep_tables.gen.ts";

/**
 * Prepares a password for SCRAM.
 *
 * @returns the prepared text, or `password` itself where SASLprep prohibits it
 */
export function saslprep(password: string): string {
  if (!hasNonAscii(password)) return password;
  const mapped: number[] = [];
  for (const character of password) {
    const code = character.codePointAt(0)!;
    if (inTable(code, NON_ASCII_SPACE)) mapped.push(0x20);
    else if (!inTable(code, MAPPED_TO_NOTHING)) mapped.push(code);
  }
  if (mapped.length === 0 || isProhibited(mapped)) return password;
  let text = "";
  for (const code of mapped) text += String.fromCodePoint(code);
  return text.normalize("NFKC");
}

function hasNonAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return true;
  return false;
}

function isProhibited(codes: readonly number[]): boolean {
  if (codes.some((code) => inTable(code, PROHIBITED) || inTable(code, UNASSIGNED))) return true;
  if (!codes.some((code) => inTable(code, RAND_AL_CAT))) return false;
  // RFC 3454, section 6: no left-to-right character beside a right-to-left one, which must be first and last.
  return codes.some((code) => inTable(code, L_CAT)) ||
    !inTable(codes[0]!, RAND_AL_CAT) || !inTable(codes[codes.length - 1]!, RAND_AL_CAT);
}

/** Decoded tables: first and last character of each range, ascending. Made when first needed. */
const decoded: Map<string, Int32Array> = new Map();

function inTable(code: number, table: string): boolean {
  let bounds = decoded.get(table);
  if (bounds === undefined) decoded.set(table, bounds = decodeTable(table));
  let low = 0;
  let high = bounds.length >> 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (code > bounds[middle * 2 + 1]!) low = middle + 1;
    else high = middle;
  }
  return low * 2 < bounds.length && code >= bounds[low * 2]!;
}

function decodeTable(table: string): Int32Array {
  const numbers = table.split(" ");
  const bounds = new Int32Array(numbers.length);
  let last = 0;
  for (let i = 0; i < numbers.length; i++) bounds[i] = last += parseInt(numbers[i]!, 36);
  return bounds;
}
