/**
 * The reply of a SELECT that finds one row, which most queries are: BindComplete, DataRow, CommandComplete,
 * ReadyForQuery.
 *
 * Found whole it is worked off at once, to the same effect as message by message, in less time: see the prepared ones of
 * bench/micro/pipeline_bench.ts.
 */

import type { Framer } from "../wire/framer.ts";

/** The command tag of such a reply. */
export const ONE_ROW_TAG = "SELECT 1";

/** What follows the row, up to the transaction status. */
const AFTER_ROW: Uint8Array = new TextEncoder().encode(`C\0\0\0\r${ONE_ROW_TAG}\0Z\0\0\0\x05`);
const AFTER_ROW_LENGTH = AFTER_ROW.length;

/** Bytes that follow the row. */
export const REPLY_END = AFTER_ROW_LENGTH + 1;

/**
 * Where the row ends, in the framer's bytes, when such a reply begins with its BindComplete and is whole at hand; else 0.
 *
 * @param status the transaction status to be told
 */
export function endOfOnlyRow(framer: Framer, status: number): number {
  const { bytes, start, end: at } = framer;
  if (at !== start || bytes[at] !== 0x44 /* 'D' DataRow */) return 0;
  const end = framer.endAt(at);
  if (end === 0 || bytes.length - end < REPLY_END) return 0;
  for (let i = 0; i < AFTER_ROW_LENGTH; i++) if (bytes[end + i] !== AFTER_ROW[i]) return 0;
  return bytes[end + AFTER_ROW_LENGTH] === status ? end : 0;
}
