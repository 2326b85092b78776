/** COPY data cut anywhere gives the same rows; what is malformed is a ProtocolError. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { BinaryCopyDecoder, type CopyDecoder, TextCopyDecoder } from "../../src/codecs/copy_decoder.ts";
import type { RowDecoder } from "../../src/codecs/row_decoder.ts";

/** Cells as text, NULL as null. */
const decode: RowDecoder = (bytes, start, end) => {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const cells: (string | null)[] = [];
  let at = start + 2;
  for (let i = view.getInt16(start); i > 0; i--) {
    const length = view.getInt32(at);
    at += 4;
    cells.push(length < 0 ? null : new TextDecoder().decode(bytes.subarray(at, at += length)));
  }
  assert.equal(at, end);
  return cells;
};

function run(decoder: CopyDecoder, bytes: Uint8Array, size: number): unknown[] {
  const rows: unknown[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    // Borrowed bytes: they change afterwards.
    const chunk = Uint8Array.of(1, ...bytes.subarray(at, at + size), 2);
    decoder.push(chunk, 1, chunk.length - 1, rows);
    chunk.fill(0xff);
  }
  decoder.end();
  return rows;
}

const hex = (text: string) =>
  Uint8Array.from(text.replaceAll(" ", "").match(/../g)!, (byte) => parseInt(byte, 16));
const HEADER = "5047434f50590aff0d0a00 00000000";

test("binary tuples, with a header extension, cut anywhere", () => {
  const bytes = hex(
    `${HEADER} 00000002 aabb 0002 00000001 61 ffffffff 0002 00000000 00000003 c3a462 0000 ffff`,
  );
  for (let size = 1; size <= bytes.length; size++) {
    assert.deepEqual(run(new BinaryCopyDecoder(decode), bytes, size), [["a", null], ["", "äb"], []]);
  }
});

test("lines of text, with every escape, cut anywhere", () => {
  const bytes = new TextEncoder().encode("a\\tb\\\\\\n\t\\N\n\t\\\\N\nä\\b\\f\\r\\v\\x\t\n");
  const expected = [["a\tb\\\n", null], ["", "\\N"], ["ä\b\f\r\vx", ""]];
  for (let size = 1; size <= bytes.length; size++) {
    assert.deepEqual(run(new TextCopyDecoder(decode, 2), bytes, size), expected);
  }
  assert.deepEqual(run(new TextCopyDecoder(decode, 0), new TextEncoder().encode("\n\n"), 1), [[], []]);
});

test("malformed data is refused in words", () => {
  const bad: [string, RegExp][] = [
    ["5047434f50590aff0d0a01 00000000 00000000", /begin with PGCOPY/],
    ["5047434f50590aff0d0a00 00010000 00000000", /flags/],
    [`${HEADER} ffffffff`, /negative length/],
    [`${HEADER} 00000000 0001 fffffffe`, /negative length/],
    [`${HEADER} 00000000 ffff 00`, /follow its trailer/],
    [`${HEADER} 00000000`, /before its trailer/],
    [`${HEADER} 00000000 0001 00000002 61`, /before its trailer/],
  ];
  for (const [bytes, message] of bad) {
    const fails = () => run(new BinaryCopyDecoder(decode), hex(bytes), 1_000);
    assert.throws(fails, { name: "ProtocolError", message });
  }
  for (const text of ["a\n", "a\tb\tc\n", "a\tb"]) {
    const fails = () => run(new TextCopyDecoder(decode, 2), new TextEncoder().encode(text), 1_000);
    assert.throws(fails, { name: "ProtocolError" });
  }
});
