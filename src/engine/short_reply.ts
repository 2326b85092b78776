/**
 * The reply of a SELECT that finds one row, which most queries are: BindComplete, DataRow, CommandComplete, and
 * ReadyForQuery where it is a segment by itself.
 *
 * Found at hand it is worked off at once, to the same effect as message by message, in less time: see the prepared ones of
 * bench/micro/pipeline_bench.ts.
 */

import type { Framer } from "../wire/framer.ts";

/** The command tag of such a reply. */
export const ONE_ROW_TAG = "SELECT 1";

/** What follows the row where more is to come before the next ReadyForQuery. */
export const COMMAND_COMPLETE: Uint8Array = ascii(`C\0\0\0\r${ONE_ROW_TAG}\0`);
/** What follows the row of a segment by itself, up to the transaction status. */
export const COMMAND_COMPLETE_AND_READY: Uint8Array = Uint8Array.of(
  ...COMMAND_COMPLETE,
  ...ascii("Z\0\0\0\x05"),
);

function ascii(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/**
 * Where the row ends, in the framer's bytes, when such a reply begins with its BindComplete and is at hand with what is to
 * follow the row; else 0.
 */
export function endOfOnlyRow(framer: Framer, following: Uint8Array): number {
  const { bytes, start, end: at } = framer;
  if (at !== start || bytes[at] !== 0x44 /* 'D' DataRow */) return 0;
  const end = framer.endAt(at);
  if (end === 0) return 0;
  const length = following.length;
  // Past the end of the bytes there is nothing that is the same.
  for (let i = 0; i < length; i++) if (bytes[end + i] !== following[i]) return 0;
  return end;
}
