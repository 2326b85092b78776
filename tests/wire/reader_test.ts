import { test } from "node:test";
import assert from "node:assert/strict";
import { ProtocolError } from "../../src/errors.ts";
import { Reader } from "../../src/wire/reader.ts";

function readerOf(...bytes: number[]): Reader {
  // Bytes around the body belong to other messages.
  return new Reader("Test", Uint8Array.of(0, 0xff, ...bytes, 0xff, 0, 0, 0, 0), 2, 2 + bytes.length);
}

test("Reader reads every field in network byte order", () => {
  const reader = readerOf(0xfe, 0x80, 1, 0x80, 1, 0x80, 0, 0, 1, 0x80, 0, 0, 1, 0x61, 0xc3, 0xa9, 0, 7, 8);
  assert.equal(reader.uint8(), 254);
  assert.equal(reader.uint16(), 0x8001);
  assert.equal(reader.int16(), -32_767);
  assert.equal(reader.int32(), -2_147_483_647);
  assert.equal(reader.uint32(), 2_147_483_649);
  assert.equal(reader.cstring(), "aé");
  assert.equal(reader.remaining, 2);
  assert.deepEqual(Array.from(reader.bytes(2)), [7, 8]);
  reader.done();
});

test("Reader never reads past its body, although the chunk goes on", () => {
  const reads: readonly [string, number, (reader: Reader) => unknown][] = [
    ["uint8", 1, (reader) => reader.uint8()],
    ["uint16", 2, (reader) => reader.uint16()],
    ["int16", 2, (reader) => reader.int16()],
    ["int32", 4, (reader) => reader.int32()],
    ["uint32", 4, (reader) => reader.uint32()],
    ["bytes", 3, (reader) => reader.bytes(3)],
  ];
  for (const [name, size, read] of reads) {
    for (let have = 0; have < size; have++) {
      assert.throws(
        () => read(readerOf(...new Array<number>(have).fill(1))),
        new ProtocolError("Cannot read Test: it ends too early"),
        `${name} of ${have} bytes`,
      );
    }
    read(readerOf(...new Array<number>(size).fill(1)));
  }
});

test("Reader.cstring() finds no terminator beyond its body", () => {
  const error = new ProtocolError("Cannot read Test: a string has no terminator");
  assert.throws(() => readerOf(0x61, 0x62).cstring(), error);
  assert.throws(() => readerOf().cstring(), error);
  assert.equal(readerOf(0).cstring(), "");
});

test("Reader.done() says how much is left over", () => {
  const reader = readerOf(1, 2, 3);
  reader.uint8();
  assert.throws(() => reader.done(), new ProtocolError("Cannot read Test: 2 bytes are left over"));
});

test("Reader.bytes() copies", () => {
  const chunk = Uint8Array.of(1, 2, 3);
  const copy = new Reader("Test", chunk, 0, 3).bytes(3);
  chunk.fill(9);
  assert.deepEqual(Array.from(copy), [1, 2, 3]);
  assert.equal(copy.constructor, Uint8Array);
});
