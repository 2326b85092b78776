/** The parts of a range or a composite in text format: separated by commas, in quotes where they need them. */

import { ValueError } from "../errors.ts";
import type { Codec } from "./codec.ts";
import { elementText } from "./element.ts";

/** Reads one part after another. */
export class PartReader {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  /** Where the next part, or what follows the last one, begins. */
  at: number;

  constructor(bytes: Uint8Array, start: number, end: number) {
    this.#bytes = bytes;
    this.#end = end;
    this.at = start;
  }

  /**
   * Decodes the part at `at`, up to a comma, a closing parenthesis or `close` outside quotes; `null` when it is empty
   * and has no quotes.
   */
  read<T>(codec: Codec<T>, close: number): T | null {
    const bytes = this.#bytes;
    const start = this.at;
    let at = start;
    let isPlain = true;
    for (let inQuotes = false; at < this.#end; at++) {
      const byte = bytes[at]!;
      if (byte === 0x22) { // '"'
        inQuotes = !inQuotes;
        isPlain = false;
      } else if (byte === 0x5c) { // '\'
        isPlain = false;
        at++;
      } else if (!inQuotes && (byte === 0x2c || byte === 0x29 || byte === close)) break; // ',' ')'
    }
    if (at >= this.#end) throw new ValueError("Expected a closing bracket, received the end");
    this.at = at;
    if (!isPlain) return decodeQuoted(codec, bytes, start, at);
    return at === start ? null : codec.decodeText(bytes, start, at);
  }
}

/** A quote inside quotes is doubled; a backslash takes the next byte as it is. */
function decodeQuoted<T>(codec: Codec<T>, bytes: Uint8Array, start: number, end: number): T {
  const plain = new Uint8Array(end - start);
  let length = 0;
  for (let from = start, inQuotes = false; from < end; from++) {
    const byte = bytes[from]!;
    if (byte === 0x5c) plain[length++] = bytes[++from]!;
    else if (byte !== 0x22) plain[length++] = byte;
    else if (inQuotes && bytes[from + 1] === 0x22) plain[length++] = bytes[++from]!;
    else inQuotes = !inQuotes;
  }
  return codec.decodeText(plain, 0, length);
}

/** The part for a value: nothing for null, and quotes where they are needed. */
export function partText(value: unknown, codec: Codec): string {
  if (value === null) return "";
  const text = elementText(value, codec);
  return /^[^\s"\\,()[\]{}]+$/.test(text) ? text : `"${text.replace(/["\\]/g, "$&$&")}"`;
}
