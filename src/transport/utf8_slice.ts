/** The native string maker that all three runtimes have on `Buffer.prototype`, and that takes any Uint8Array. */

import type { Utf8Slice } from "./transport.ts";

/**
 * What a loop may take at most where the engine is JavaScriptCore: `String.fromCharCode` with more than one argument
 * is a call there, and joining its strings costs more than the native maker (five to ten times at 8 bytes).
 */
export const JAVASCRIPTCORE_LOOP_LIMIT = 4;

/**
 * @param prototype `Buffer.prototype`
 * @returns the quickest way to a string of more than about 12 bytes, or `undefined` where the runtime lacks it
 */
export function nativeUtf8Slice(prototype: object): Utf8Slice | undefined {
  const slice = (prototype as { readonly utf8Slice?: unknown }).utf8Slice;
  if (typeof slice !== "function") return undefined;
  const call = slice as (this: Uint8Array, start: number, end: number) => string;
  return (bytes, start, end) => call.call(bytes, start, end);
}
