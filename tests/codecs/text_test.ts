import assert from "node:assert/strict";
import { test } from "node:test";
import { byteaCodec } from "../../src/codecs/bytea.ts";
import { jsonbCodec, jsonCodec } from "../../src/codecs/json.ts";
import { textCodec } from "../../src/codecs/text.ts";
import { uuidCodec } from "../../src/codecs/uuid.ts";
import { ValueError } from "../../src/errors.ts";
import {
  assertCases,
  assertProperty,
  assertRefuses,
  decodeBinary,
  decodeText,
  toHex,
} from "./codec_cases.ts";
import { encodeBinary, hex } from "./codec_cases.ts";

const encoder = new TextEncoder();

test("text is a string", () => {
  const cases = ["", "a", "é", "😀", "\ufeffmark", "a\nb", "x".repeat(100_000), "NULL"];
  assertCases(textCodec("text"), cases.map((text) => [text, text, toHex(encoder.encode(text))]));
});

test("uuid is a string with hyphens", () => {
  assertCases(uuidCodec, [
    [
      "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
      "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
      "a0eebc999c0b4ef8bb6d6bb9bd380a11",
    ],
    ["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000001", "0".repeat(31) + "1"],
  ]);
  for (const value of ["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]) {
    assert.equal(encodeBinary(uuidCodec, value), "a0eebc999c0b4ef8bb6d6bb9bd380a11");
  }
  for (const value of ["{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}", "a0eebc999c0b4ef8bb6d6bb9bd380a11", "", 1]) {
    assert.equal(encodeBinary(uuidCodec, value), false);
  }
  assertRefuses(uuidCodec, ValueError, { binary: ["00"] });
});

test("bytea is a Uint8Array", () => {
  assertCases(byteaCodec, [
    [hex("00ff5c27"), "\\x00ff5c27", "00ff5c27"],
    [hex(""), "\\x", ""],
    [hex(""), "", ""],
    [hex("ABCDEF"), "\\xABCDEF"],
    // bytea_output = escape
    [hex("00ff5c2761"), "\\000\\377\\\\'a"],
    [hex("5c78"), "\\\\x"],
  ]);
  assertRefuses(byteaCodec, ValueError, { text: ["\\xz0", "\\x0", "\\9", "\\12", "\\400", "a\\"] });
});

test("bytea from a Buffer is a plain copy", () => {
  class View extends Uint8Array {}
  const bytes = new View([9, 1, 2, 9]);
  const value = byteaCodec.decodeBinary!(bytes, 1, 3);
  assert.equal(Object.getPrototypeOf(value), Uint8Array.prototype);
  bytes.fill(0);
  assert.deepStrictEqual(value, new Uint8Array([1, 2]));
});

test("bytea encodes exactly the bytes of a view", () => {
  const buffer = new Uint8Array([9, 1, 2, 3, 9]).buffer;
  const cases: readonly (readonly [unknown, string])[] = [
    [new Uint8Array(buffer, 1, 3), "\\x010203"],
    [new DataView(buffer, 1, 3), "\\x010203"],
    [buffer, "\\x0901020309"],
    [new Uint16Array(new Uint8Array([1, 2, 3, 4]).buffer, 2), "\\x0304"],
    [new Uint8Array(new SharedArrayBuffer(2)), "\\x0000"],
    [new SharedArrayBuffer(1), "\\x00"],
  ];
  for (const [value, text] of cases) assert.equal(byteaCodec.encodeText(value), text);
  for (const value of [[1, 2], {}, null, undefined, 5]) {
    assert.throws(() => byteaCodec.encodeText(value), ValueError);
  }
});

test("bytea in hex, escape and binary format agree", () => {
  assertProperty("bytea", 2_000, (random) => {
    const value = Uint8Array.from({ length: Math.floor(random() * 50) }, () => random() * 256);
    const escaped = Array.from(
      value,
      (byte) =>
        byte === 0x5c
          ? "\\\\"
          : byte < 0x20 || byte > 0x7e
          ? "\\" + byte.toString(8).padStart(3, "0")
          : String.fromCharCode(byte),
    );
    assert.deepStrictEqual(decodeText(byteaCodec, "\\x" + toHex(value)), value);
    assert.deepStrictEqual(decodeText(byteaCodec, escaped.join("")), value);
    assert.deepStrictEqual(decodeBinary(byteaCodec, value), value);
  });
});

test("json and jsonb are parsed once", () => {
  assertCases(jsonCodec, [
    [{ a: 1 }, '{"a":1}', toHex(encoder.encode('{"a":1}'))],
    [{ a: 1 }, '{"a": 1}'],
    ["0.1", '"0.1"'],
    [null, "null"],
    [[1, "é"], '[1, "é"]'],
  ]);
  assertCases(jsonbCodec, [[{ a: 1 }, '{"a":1}', "01 7b2261223a317d"], [null, "null", "01 6e756c6c"]]);
  assertRefuses(jsonbCodec, ValueError, { binary: ["", "02 6e756c6c"] });
  const parsed = decodeText(jsonCodec, '{"__proto__": {"x": 1}}') as Record<string, unknown>;
  assert.ok(Object.hasOwn(parsed, "__proto__"));
  assert.equal((parsed as { x?: unknown }).x, undefined);
});
