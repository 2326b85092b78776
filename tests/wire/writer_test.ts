import { test } from "node:test";
import assert from "node:assert/strict";
import { assertLinear } from "../_support/linear.ts";
import { Writer } from "../../src/wire/writer.ts";

const hex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(" ");

test("Writer writes every field in network byte order", () => {
  const writer = new Writer();
  writer.uint8(0xab);
  writer.int16(0x1234);
  writer.int16(-2);
  writer.int16(65_535);
  writer.int32(0x0102_0304);
  writer.int32(-1);
  writer.int32(0xffff_fffe);
  writer.int64(-2n);
  writer.int64(0x0102_0304_0506_0708n);
  writer.float32(1.5);
  writer.float64(-0);
  writer.bytes(Uint8Array.of(9, 8, 7));
  writer.cstring("é");
  assert.equal(
    hex(writer.take()),
    "ab 12 34 ff fe ff ff 01 02 03 04 ff ff ff ff ff ff ff fe ff ff ff ff ff ff ff fe " +
      "01 02 03 04 05 06 07 08 3f c0 00 00 80 00 00 00 00 00 00 00 09 08 07 c3 a9 00",
  );
});

test("Writer.int16() and int32() refuse what does not fit, with nothing written", () => {
  const writer = new Writer();
  for (const value of [-32_769, 65_536, Infinity]) {
    assert.throws(() => writer.int16(value), { name: "RangeError", message: /as Int16$/ });
  }
  for (const value of [-(2 ** 31) - 1, 2 ** 32, Infinity]) {
    assert.throws(() => writer.int32(value), { name: "RangeError", message: /as Int32$/ });
  }
  assert.equal(writer.length, 0);
  writer.int16(-32_768);
  writer.int32(-(2 ** 31));
  writer.int32(2 ** 32 - 1);
  assert.equal(hex(writer.take()), "80 00 80 00 00 00 ff ff ff ff");
});

test("Writer.endMessage() counts the length field but not the type", () => {
  const writer = new Writer();
  writer.uint8(1);
  const mark = writer.beginMessage(0x51);
  writer.cstring("ab");
  writer.endMessage(mark);
  assert.equal(hex(writer.take()), "01 51 00 00 00 07 61 62 00");
});

test("Writer.rewind() forgets what came after the mark, and only that", () => {
  const writer = new Writer();
  writer.uint8(1);
  assert.equal(writer.take().length, 1);
  writer.uint8(2);
  const mark = writer.mark();
  writer.bytes(new Uint8Array(200_000).fill(3));
  writer.rewind(mark);
  assert.equal(writer.length, 1);
  writer.uint8(4);
  assert.equal(hex(writer.take()), "02 04");
});

test("Writer.patchInt32() and patchInt16() find their marks after the slab was replaced", () => {
  const writer = new Writer();
  writer.bytes(new Uint8Array(65_000));
  writer.take();
  const long = writer.mark();
  writer.int32(0);
  const short = writer.mark();
  writer.int16(0);
  writer.bytes(new Uint8Array(300_000));
  writer.patchInt32(long, -2);
  writer.patchInt16(short, 0x1234);
  const taken = writer.take();
  assert.equal(taken.length, 300_006);
  assert.equal(hex(taken.subarray(0, 8)), "ff ff ff fe 12 34 00 00");
});

test("a message written from a kept head and a kept end counts what belongs to it", () => {
  const writer = new Writer(16);
  writer.uint8(0xaa);
  const mark = writer.beginWith(Uint8Array.of(0x42, 9, 9, 9, 9, 7));
  writer.bytes(new Uint8Array(40).fill(1));
  writer.endWith(mark, Uint8Array.of(2, 3, 0x53, 0, 0, 0, 4), 2);
  const taken = writer.take();
  assert.equal(hex(taken.subarray(0, 8)), "aa 42 00 00 00 2f 07 01");
  assert.equal(hex(taken.subarray(46)), "01 02 03 53 00 00 00 04");
});

test("a size is filled in over what was written there and rewound, also when the slab is replaced meanwhile", () => {
  for (const length of [0, 3, 100, 70_000]) {
    const writer = new Writer(16);
    writer.bytes(Uint8Array.of(1, 2, 3, 4, 5));
    writer.rewind(1);
    const mark = writer.beginSized();
    writer.bytes(new Uint8Array(length));
    writer.endSized(mark);
    const taken = writer.take();
    assert.equal(taken.length, 5 + length);
    assert.equal(new DataView(taken.buffer, taken.byteOffset).getInt32(1), length);
  }
});

test("Writer.formatCodes() writes a code for each value, text past 31, and the number of values", () => {
  for (const count of [0, 1, 2, 31, 32, 33, 300, 65_535]) {
    for (const binary of [0, 1, 0b101, 0x7fff_ffff, -1]) {
      const writer = new Writer(16);
      writer.uint8(0xaa);
      assert.equal(writer.formatCodes(count, binary), 3);
      const taken = writer.take();
      const view = new DataView(taken.buffer, taken.byteOffset);
      assert.equal(taken.length, 5 + 2 * count);
      assert.deepEqual([view.getUint16(1), view.getUint16(3 + 2 * count)], [count, count]);
      const codes = Array.from({ length: count }, (_, i) => view.getUint16(3 + 2 * i));
      assert.deepEqual(codes, codes.map((_, i) => i > 31 ? 0 : binary >>> i & 1));
    }
  }
});

test("Writer never writes over what was taken", () => {
  const writer = new Writer();
  const taken: { bytes: Uint8Array; copy: string }[] = [];
  let value = 0;
  for (let i = 0; i < 3000; i++) {
    const mark = writer.beginMessage(value++ & 0xff);
    writer.utf8(i % 3 === 0 ? "x".repeat(i % 97) : "ü".repeat(i % 61));
    writer.endMessage(mark);
    const before = writer.mark();
    writer.bytes(new Uint8Array(i % 500).fill(value++ & 0xff));
    if (i % 7 === 0) writer.rewind(before);
    if (i % 5 === 0) {
      const bytes = writer.take();
      taken.push({ bytes, copy: hex(bytes) });
    }
  }
  writer.bytes(new Uint8Array(1 << 20));
  assert.ok(taken.length === 600);
  for (const [i, { bytes, copy }] of taken.entries()) assert.equal(hex(bytes), copy, `take ${i}`);
});

test("Writer.take() gives nothing twice", () => {
  const writer = new Writer();
  writer.int32(1);
  assert.equal(writer.take().length, 4);
  assert.equal(writer.take().length, 0);
  assert.equal(writer.length, 0);
});

test("Writer.utf8() agrees with TextEncoder around its inner limits", () => {
  const encoder = new TextEncoder();
  const pieces = ["a", "é", "€", "😀", "\ud800", "\udc00", "\u0080", "\u07ff", "\uffff", "\ufeff"];
  for (const length of [0, 1, 2, 15, 16, 47, 48, 49, 16_383, 16_384, 16_385]) {
    for (const piece of pieces) {
      for (const text of [piece.repeat(length), "a".repeat(length) + piece, piece + "a".repeat(length)]) {
        const writer = new Writer(16);
        writer.uint8(0x2a);
        writer.utf8(text);
        const taken = writer.take();
        const expected = encoder.encode(text);
        assert.equal(taken.length, expected.length + 1);
        assert.equal(taken[0], 0x2a);
        assert.ok(
          expected.every((byte, i) => byte === taken[i + 1]),
          `${length} units with ${JSON.stringify(piece)}`,
        );
      }
    }
  }
});

test("Writer appends 64 MB in pieces in time that grows linearly", () =>
  assertLinear((megabytes) => {
    const writer = new Writer();
    const piece = new Uint8Array(65_536).fill(7);
    const began = performance.now();
    const mark = writer.beginMessage(0x64);
    for (let i = 0; i < megabytes * 16; i++) writer.bytes(piece);
    writer.endMessage(mark);
    const taken = writer.take();
    const spent = performance.now() - began;
    assert.equal(taken.length, megabytes * 1_048_576 + 5);
    return spent;
  }, 16));
