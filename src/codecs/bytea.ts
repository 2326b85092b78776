/** bytea (PostgreSQL manual, 8.4): Uint8Array. */

import { ValueError } from "../errors.ts";
import { isGivenAway } from "../wire/framer.ts";
import type { Codec } from "./codec.ts";
import { HEX, HEX_VALUES } from "./hex.ts";
import { failType, isTime, textForm } from "./text_form.ts";

const BACKSLASH = 0x5c;

/** Up to here a loop is quicker than a view for the copy. */
const SHORT = 64;

/** bytea as Uint8Array, its own; written from a Uint8Array, an ArrayBuffer or any view of one. */
export const byteaCodec: Codec<Uint8Array> = {
  name: "bytea",
  preferredFormat: 1,
  decodeText(bytes, start, end): Uint8Array {
    if (end - start >= 2 && bytes[start] === BACKSLASH && bytes[start + 1] === 0x78) {
      return decodeHex(bytes, start + 2, end);
    }
    return decodeEscape(bytes, start, end);
  },
  decodeBinary(bytes, start, end): Uint8Array {
    const length = end - start;
    // A part of a buffer that nobody else has is as good as a copy, unless it would keep much more alive.
    if (length * 2 > bytes.length && isGivenAway(bytes)) return bytes.subarray(start, end);
    // slice() would make a Buffer of a Buffer, and Buffer's own slice() does not copy.
    if (length > SHORT) return new Uint8Array(bytes.subarray(start, end));
    const copy = new Uint8Array(length);
    for (let i = 0; i < length; i++) copy[i] = bytes[start + i]!;
    return copy;
  },
  encodeText(value): string {
    // A Date's text is sent before anyone knows the type, as a string's is.
    if (isTime(value)) return textForm(value)!;
    const bytes = byteView(value) ?? failBytes(value);
    const digits: string[] = ["\\x"];
    for (let i = 0; i < bytes.length; i++) digits.push(HEX[bytes[i]!]!);
    return digits.join("");
  },
  encodeBinary(value, writer): boolean {
    const bytes = byteView(value);
    if (bytes === undefined) return false;
    writer.bytes(bytes);
    return true;
  },
};

/** The bytes that an ArrayBuffer, a SharedArrayBuffer or a view stands for; `undefined` for anything else. */
export function byteView(value: unknown): Uint8Array | undefined {
  if (value instanceof Uint8Array) return value;
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (typeof SharedArrayBuffer !== "undefined" && value instanceof SharedArrayBuffer) {
    return new Uint8Array(value);
  }
  return undefined;
}

function failBytes(value: unknown): never {
  return failType(value, "a Uint8Array, an ArrayBuffer or a view");
}

function decodeHex(bytes: Uint8Array, start: number, end: number): Uint8Array {
  const value = new Uint8Array((end - start) >> 1);
  for (let i = 0, at = start; i < value.length; i++, at += 2) {
    const byte = (HEX_VALUES[bytes[at]!]! << 4) | HEX_VALUES[bytes[at + 1]!]!;
    if (byte > 0xff) failText();
    value[i] = byte;
  }
  if ((end - start) & 1) failText();
  return value;
}

/** The format of bytea_output = escape: a backslash is doubled, other bytes may be three octal digits. */
function decodeEscape(bytes: Uint8Array, start: number, end: number): Uint8Array {
  const value = new Uint8Array(end - start);
  let length = 0;
  for (let at = start; at < end;) {
    const byte = bytes[at]!;
    if (byte !== BACKSLASH) {
      value[length++] = byte;
      at++;
    } else if (at + 1 < end && bytes[at + 1] === BACKSLASH) {
      value[length++] = BACKSLASH;
      at += 2;
    } else {
      value[length++] = at + 3 < end ? octal(bytes, at + 1) : failText();
      at += 4;
    }
  }
  return value.slice(0, length);
}

function octal(bytes: Uint8Array, at: number): number {
  const high = bytes[at]! - 0x30, middle = bytes[at + 1]! - 0x30, low = bytes[at + 2]! - 0x30;
  if (high >>> 0 > 3 || middle >>> 0 > 7 || low >>> 0 > 7) failText();
  return (high << 6) | (middle << 3) | low;
}

function failText(): never {
  throw new ValueError("Expected bytea in hex or escape format, received something else");
}
