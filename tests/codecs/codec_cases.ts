/** One line per case: a value, the text the server prints for it, and the bytes its send function writes. */

import assert from "node:assert/strict";
import type { Codec } from "../../src/codecs/codec.ts";
import { Writer } from "../../src/wire/writer.ts";

/** Value, text form, binary form in hex with spaces as one likes; `null` where there is none. */
export type Case = readonly [value: unknown, text: string | null, binary?: string | null];

const encoder = new TextEncoder();

/** Bytes of hex digits. */
export function hex(digits: string): Uint8Array {
  const plain = digits.replaceAll(/\s/g, "");
  return Uint8Array.from({ length: plain.length / 2 }, (_, i) => parseInt(plain.slice(i * 2, i * 2 + 2), 16));
}

/** Hex digits of bytes. */
export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Decodes a value that lies between other bytes, as values do. */
export function decodeText(codec: Codec, text: string): unknown {
  return decodeInside(encoder.encode(text), (bytes, start, end) => codec.decodeText(bytes, start, end));
}

/** Like {@linkcode decodeText}, from binary format. */
export function decodeBinary(codec: Codec, binary: Uint8Array): unknown {
  assert.ok(codec.decodeBinary, `${codec.name} has no binary decoder`);
  return decodeInside(binary, (bytes, start, end) => codec.decodeBinary!(bytes, start, end));
}

function decodeInside(
  value: Uint8Array,
  decode: (bytes: Uint8Array, start: number, end: number) => unknown,
): unknown {
  const bytes = new Uint8Array(value.length + 40).fill(0x39);
  bytes.set(value, 20);
  const decoded = decode(bytes, 20, 20 + value.length);
  // What was decoded must not be a view: the bytes are only borrowed.
  bytes.fill(0x2a);
  return decoded;
}

/** The binary form a codec writes, in hex; `false` when it writes none. */
export function encodeBinary(codec: Codec, value: unknown): string | false {
  const writer = new Writer();
  writer.uint8(1);
  const done = codec.encodeBinary?.(value, writer) ?? false;
  const bytes = writer.take().subarray(1);
  if (!done) assert.equal(bytes.length, 0, `${codec.name} wrote something and took it back`);
  return done && toHex(bytes);
}

/** Both formats decode to the value, and where the codec writes a binary form it is that one. */
export function assertCases(codec: Codec, cases: readonly Case[]): void {
  for (const [value, text, binary] of cases) {
    const label = `${codec.name} ${text ?? binary}`;
    if (text !== null) assert.deepStrictEqual(decodeText(codec, text), value, `${label} from text`);
    if (binary === undefined || binary === null) continue;
    assert.deepStrictEqual(decodeBinary(codec, hex(binary)), value, `${label} from binary`);
    const encoded = encodeBinary(codec, value);
    if (encoded !== false) assert.equal(encoded, binary.replaceAll(" ", ""), `${label} to binary`);
  }
}

/** The codec refuses each text, or each binary form in hex, with an error of the class. */
export function assertRefuses(
  codec: Codec,
  error: new (...arguments_: never[]) => Error,
  forms: { readonly text?: readonly string[]; readonly binary?: readonly string[] },
): void {
  for (const text of forms.text ?? []) {
    assert.throws(() => decodeText(codec, text), error, `${codec.name} "${text}"`);
  }
  for (const binary of forms.binary ?? []) {
    assert.throws(() => decodeBinary(codec, hex(binary)), error, `${codec.name} ${binary}`);
  }
}

/** A generator of numbers in [0, 1) from a seed (mulberry32), and the seed for the failure's message. */
export function seededRandom(): { readonly seed: number; readonly next: () => number } {
  const seed = Math.floor(Math.random() * 0x1_0000_0000);
  let state = seed;
  return {
    seed,
    next(): number {
      state = (state + 0x6d2b_79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), state | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000;
    },
  };
}

/** Runs a property many times; a failure names the seed and the value. */
export function assertProperty(
  name: string,
  runs: number,
  property: (random: () => number) => void,
): void {
  const { seed, next } = seededRandom();
  for (let run = 0; run < runs; run++) {
    try {
      property(next);
    } catch (cause) {
      throw new Error(`${name} fails in run ${run} of seed ${seed}`, { cause });
    }
  }
}
