/** Strings from UTF-8 bytes: the hot path of every text value. Figures: bench/micro/utf8_bench.ts. */

type Utf8Slice = (bytes: Uint8Array, start: number, end: number) => string;

/** Up to so many ASCII bytes a loop beats any call into the runtime. */
let short: number = 12;

const decoder: TextDecoder = new TextDecoder("utf-8", { ignoreBOM: true });
const fromUnits = String.fromCharCode;

let longSlice: Utf8Slice = decodeSubarray;

function decodeSubarray(bytes: Uint8Array, start: number, end: number): string {
  return decoder.decode(bytes.subarray(start, end));
}

/**
 * Installs the runtime's quickest way to make a string, for the whole process.
 *
 * @param loopLimit the most bytes for which a loop is quicker still; default 12
 */
export function useUtf8Slice(slice: Utf8Slice, loopLimit: number = 12): void {
  longSlice = slice;
  short = loopLimit;
}

/** The text of `bytes[start, end)`; malformed sequences become U+FFFD, a byte order mark is kept. */
export function utf8Slice(bytes: Uint8Array, start: number, end: number): string {
  if (end - start > short) return longSlice(bytes, start, end);
  let text = "";
  let i = start;
  for (; i + 4 <= end; i += 4) {
    const a = bytes[i]!, b = bytes[i + 1]!, c = bytes[i + 2]!, d = bytes[i + 3]!;
    if ((a | b | c | d) > 0x7f) return longSlice(bytes, start, end);
    text += fromUnits(a, b, c, d);
  }
  for (; i < end; i++) {
    const a = bytes[i]!;
    if (a > 0x7f) return longSlice(bytes, start, end);
    text += fromUnits(a);
  }
  return text;
}
