import { test } from "node:test";
import assert from "node:assert/strict";
import process from "node:process";
import { selectTransport } from "../../src/transport/select.ts";
import { useUtf8Slice, utf8Slice } from "../../src/wire/utf8.ts";
import { seededRandom } from "../_support/proxy.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const standard = (bytes: Uint8Array, start: number, end: number): string =>
  decoder.decode(bytes.subarray(start, end));

/** Runs `check` with the runtime's own slice, where it has one, and with the standard one. */
async function withEachSlice(check: (name: string) => void): Promise<void> {
  const { name, utf8Slice: native, utf8LoopLimit } = await selectTransport();
  try {
    check("TextDecoder");
    if (native === undefined) return;
    useUtf8Slice(native, utf8LoopLimit);
    check(name);
    useUtf8Slice(native, 0);
    check(`${name}, without a loop`);
  } finally {
    useUtf8Slice(standard);
  }
}

/** The text of `bytes` amid other bytes. */
function sliceOf(bytes: Uint8Array): string {
  const around = new Uint8Array(bytes.length + 10).fill(0xbf);
  around.set(bytes, 5);
  return utf8Slice(around, 5, 5 + bytes.length);
}

test("utf8Slice() reads texts of one to four bytes a character, of every length around its short limit", () =>
  withEachSlice((name) => {
    for (const piece of ["a", "\x7f", "\u0080", "é", "\u07ff", "\u0800", "€", "\uffff", "😀", "\u{10ffff}"]) {
      for (let length = 0; length <= 30; length++) {
        for (const text of ["a".repeat(length) + piece, piece + "a".repeat(length), piece.repeat(length)]) {
          assert.equal(sliceOf(encoder.encode(text)), text, name);
        }
      }
    }
  }));

test("utf8Slice() keeps a byte order mark, NUL and control characters", () =>
  withEachSlice((name) => {
    for (
      const text of ["\ufeff", "\ufeffabc", "a\ufeff", "\ufeff" + "x".repeat(40), "\0\x01\x1f", "\r\n\t"]
    ) {
      assert.equal(sliceOf(encoder.encode(text)), text, name);
    }
  }));

test("utf8Slice() gives U+FFFD for a character that is cut, as many as the standard's decoder", () =>
  withEachSlice((name) => {
    for (const text of ["é", "€", "😀", "aé", "ab€cd", "x".repeat(20) + "😀", "😀".repeat(9)]) {
      const bytes = encoder.encode(text);
      for (let start = 0; start < bytes.length; start++) {
        for (let end = start; end <= bytes.length; end++) {
          const part = bytes.subarray(start, end);
          assert.equal(sliceOf(part), decoder.decode(part), `${name}: ${text} from ${start} to ${end}`);
        }
      }
    }
  }));

test("utf8Slice() gives U+FFFD for malformed sequences, as many as the standard's decoder", () =>
  withEachSlice((name) => {
    const malformed = [
      [0x80],
      [0xbf, 0xbf],
      [0xc0, 0x80],
      [0xc1, 0xbf],
      [0xe0, 0x80, 0x80],
      [0xe2, 0x82, 0x41],
      [0xed, 0xa0, 0x80], // a surrogate
      [0xf0, 0x80, 0x80, 0x80],
      [0xf4, 0x90, 0x80, 0x80], // past U+10FFFF
      [0xf8, 0x88, 0x80, 0x80, 0x80],
      [0xfe],
      [0xff, 0xff],
    ];
    for (const sequence of malformed) {
      for (const padding of [0, 1, 11, 12, 13, 40]) {
        const bytes = Uint8Array.of(...new Array<number>(padding).fill(0x61), ...sequence, 0x62);
        assert.equal(sliceOf(bytes), decoder.decode(bytes), `${name}: ${sequence} behind ${padding} letters`);
        assert.match(sliceOf(bytes), /\ufffd/);
      }
    }
  }));

test("utf8Slice() agrees with the standard's decoder on random bytes", () => {
  const seed = Number(process.env["PIPEGRES_SEED"] ?? Math.floor(Math.random() * 1e9));
  console.log(`seed ${seed} (PIPEGRES_SEED)`);
  return withEachSlice((name) => {
    const random = seededRandom(seed);
    for (let round = 0; round < 5_000; round++) {
      const bytes = Uint8Array.from({ length: Math.floor(random() * 40) }, () => {
        const kind = random();
        return kind < 0.5 ? random() * 128 : kind < 0.75 ? 128 + random() * 64 : random() * 256;
      });
      assert.equal(sliceOf(bytes), decoder.decode(bytes), `${name}: seed ${seed}, round ${round}`);
    }
  });
});
