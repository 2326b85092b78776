import assert from "node:assert/strict";
import { test } from "node:test";
import { createRegistry } from "../../src/codecs/registry.ts";
import {
  columnsOf,
  createRowDecoder,
  generateRowDecoder,
  loopRowDecoder,
} from "../../src/codecs/row_decoder.ts";
import { resultFormats } from "../../src/codecs/row_decoder.ts";
import type { RowShape } from "../../src/codecs/row_decoder.ts";
import { ProtocolError, ValueError } from "../../src/errors.ts";
import type { Field } from "../../src/wire/backend.ts";
import { assertProperty, hex } from "./codec_cases.ts";

const registry = createRegistry().withTypes([
  {
    oid: 50_001,
    name: "pair",
    kind: "composite",
    attributes: [{ name: "a", typeOid: 23 }, { name: "b", typeOid: 1009 }],
  },
  { oid: 50_002, name: "hstore", kind: "base" },
  { oid: 50_003, name: "vector", kind: "base" },
]);
const encoder = new TextEncoder();
const SHAPES: readonly RowShape[] = ["object", "array"];

type Cell = string | Uint8Array | null;

function field(name: string, typeOid: number, format: 0 | 1 = 0): Field {
  return { name, tableOid: 0, columnNumber: 0, typeOid, typeSize: -1, typeModifier: -1, format };
}

/** The body of a DataRow. */
function dataRow(cells: readonly Cell[]): Uint8Array {
  const bytes: number[] = [cells.length >> 8, cells.length & 0xff];
  for (const cell of cells) {
    const value = typeof cell === "string" ? encoder.encode(cell) : cell;
    const length = value === null ? -1 : value.length;
    bytes.push(
      (length >> 24) & 0xff,
      (length >> 16) & 0xff,
      (length >> 8) & 0xff,
      length & 0xff,
      ...(value ?? []),
    );
  }
  return new Uint8Array(bytes);
}

/** Decodes by the generated function and by the loop, among other bytes, and checks that both say the same. */
function decode(fields: readonly Field[], body: Uint8Array, shape: RowShape): unknown {
  const bytes = new Uint8Array(body.length + 20).fill(0xff);
  bytes.set(body, 7);
  const columns = columnsOf(fields, registry);
  const results = [generateRowDecoder, loopRowDecoder].map((make) => {
    try {
      return { row: make(columns, shape)(bytes, 7, 7 + body.length) };
    } catch (error) {
      return { error: error as Error };
    }
  });
  assert.deepStrictEqual(results[0], results[1]);
  if (shape === "object" && results[0]!.row !== undefined) {
    assert.equal(JSON.stringify(results[0]!.row), JSON.stringify(results[1]!.row), "order of properties");
  }
  if (results[0]!.error !== undefined) throw results[0]!.error;
  return results[0]!.row;
}

const PLAIN = [field("id", 23, 1), field("name", 25), field("ok", 16, 1), field("at", 1184)];
const PLAIN_ROW = dataRow([hex("0000012c"), "é", hex("01"), "2026-08-18 01:02:03.5+00"]);

test("rows are objects keyed by column name, or arrays", () => {
  const at = new Date("2026-08-18T01:02:03.500Z");
  assert.deepStrictEqual(decode(PLAIN, PLAIN_ROW, "object"), { id: 300, name: "é", ok: true, at });
  assert.deepStrictEqual(decode(PLAIN, PLAIN_ROW, "array"), [300, "é", true, at]);
  assert.deepStrictEqual(decode([], dataRow([]), "object"), {});
  assert.deepStrictEqual(decode([], dataRow([]), "array"), []);
  const nulls = { id: null, name: null, ok: null, at: null };
  assert.deepStrictEqual(decode(PLAIN, dataRow([null, null, null, null]), "object"), nulls);
});

test("of equal names the last wins, at the place of the first", () => {
  const fields = [field("a", 23), field("b", 23), field("a", 25)];
  const row = decode(fields, dataRow(["1", "2", "x"]), "object");
  assert.deepStrictEqual(row, { a: "x", b: 2 });
  assert.deepStrictEqual(Object.keys(row as object), ["a", "b"]);
  assert.deepStrictEqual(decode(fields, dataRow(["1", "2", "x"]), "array"), [1, 2, "x"]);
});

test("any name is an own property", () => {
  const names = [
    "__proto__",
    "",
    "constructor",
    "toString",
    'a"b',
    "a\\",
    "\n",
    "\u2028",
    "é",
    "1",
    "0",
    "${x}",
    "*/",
  ];
  const fields = names.map((name) => field(name, 25));
  const row = decode(fields, dataRow(names), "object") as Record<string, unknown>;
  assert.equal(Object.getPrototypeOf(row), Object.prototype);
  for (const name of names) {
    const property = Object.getOwnPropertyDescriptor(row, name);
    assert.deepStrictEqual(
      property,
      { value: name, enumerable: true, configurable: true, writable: true },
      name,
    );
  }
  assert.equal(Object.keys(row).length, names.length);
});

test("1,664 columns", () => {
  const fields = Array.from({ length: 1664 }, (_, i) => field(`c${i}`, 23, i % 2 === 0 ? 0 : 1));
  const cells = fields.map((_, i) =>
    i % 7 === 0 ? null : i % 2 === 0 ? String(i) : hex(i.toString(16).padStart(8, "0"))
  );
  const expected = fields.map((_, i) => i % 7 === 0 ? null : i);
  assert.deepStrictEqual(decode(fields, dataRow(cells), "array"), expected);
  const body = dataRow(cells);
  const row = createRowDecoder(fields, registry, "object")(body, 0, body.length) as Record<string, unknown>;
  assert.deepStrictEqual(Object.values(row), expected);
});

test("a malformed row is a ProtocolError", () => {
  const good = "0002 00000004 00000001 00000001 61";
  const fields = [field("id", 23, 1), field("name", 25)];
  assert.deepStrictEqual(decode(fields, hex(good), "array"), [1, "a"]);
  const bad = [
    "",
    "00",
    "0002",
    "0001 00000004 00000001",
    "0003 00000004 00000001 00000001 61",
    "0002 00000004 00000001",
    "0002 00000004 00000001 0000",
    "0002 00000004 00000001 00000002 61",
    "0002 00000004 00000001 7fffffff 61",
    "0002 00000004 00000001 fffffffe",
    "0002 80000000 00000001 00000001 61",
    "0002 00000004 00000001 00000001 61 00",
    "0002 ffffffff ffffffff 00",
    "0002 ffffffff",
    "ffff 00000004 00000001 00000001 61",
  ];
  for (const body of bad) {
    for (const shape of SHAPES) assert.throws(() => decode(fields, hex(body), shape), ProtocolError, body);
  }
});

test("a malformed row at the end of the buffer is a ProtocolError too", () => {
  const decodeRow = generateRowDecoder(columnsOf([field("a", 25), field("b", 25)], registry), "array");
  for (const body of ["0002", "0002 00000000", "0002 00000000 00", "0002 00000001 61 0000"]) {
    const bytes = hex(body);
    assert.throws(() => decodeRow(bytes, 0, bytes.length), ProtocolError, body);
  }
});

test("a codec that throws is a ValueError that names the column", () => {
  const fields = [field("first", 25), field("x", 23, 1), field("last", 20, 1)];
  for (const shape of SHAPES) {
    assert.throws(() => decode(fields, dataRow(["a", hex("00"), hex("0000000000000001")]), shape), {
      name: "ValueError",
      message: 'Cannot decode column "x" of type int4: expected 4 bytes, received 1',
    });
    assert.throws(() => decode(fields, dataRow(["a", null, hex("00")]), shape), {
      message: 'Cannot decode column "last" of type int8: expected 8 bytes, received 1',
    });
  }
  const failing = new Error("mine");
  const custom = registry.extend({
    text: {
      decodeText(): never {
        throw failing;
      },
    },
  });
  const body = dataRow(["a"]);
  assert.throws(
    () => createRowDecoder([field("t", 25)], custom, "object")(body, 0, body.length),
    (error: unknown) => {
      assert.ok(error instanceof ValueError);
      assert.equal(error.message, 'Cannot decode column "t" of type text');
      assert.equal(error.cause, failing);
      return true;
    },
  );
});

test("an unknown type is its text, and a ValueError in binary", () => {
  assert.deepStrictEqual(decode([field("u", 99_999)], dataRow(["(1,2)"]), "object"), { u: "(1,2)" });
  assert.throws(() => decode([field("u", 99_999, 1)], dataRow(["x"]), "object"), {
    name: "ValueError",
    message:
      'Cannot decode column "u" of type with OID 99999: the value came in binary format, which the codec does not read',
  });
  assert.throws(() => decode([field("m", 790, 1)], dataRow(["x"]), "object"), ValueError);
});

test("resultFormats() asks for each column's preferred format", () => {
  const fields = [
    field("a", 23),
    field("b", 25),
    field("c", 99_999),
    field("d", 17),
    field("e", 1007),
    field("f", 790),
  ];
  assert.deepStrictEqual(resultFormats(fields, registry), [1, 0, 0, 1, 1, 0]);
});

test("random bytes end in a row, a ProtocolError or a ValueError", () => {
  const types = [
    600,
    602,
    604,
    1020,
    1186,
    3904,
    3907,
    3910,
    4451,
    2249,
    5069,
    50_001,
    50_002,
    50_003,
    16,
    17,
    20,
    21,
    23,
    25,
    26,
    114,
    700,
    701,
    1007,
    1009,
    1082,
    1083,
    1114,
    1184,
    1266,
    1700,
    2950,
    3802,
  ];
  assertProperty("random rows", 4_000, (random) => {
    const fields = Array.from(
      { length: 3 },
      (_, i) => field(`c${i}`, types[Math.floor(random() * types.length)]!, random() < 0.5 ? 0 : 1),
    );
    const cells = fields.map(() =>
      Uint8Array.from({ length: random() * 20 }, () => random() < 0.6 ? random() * 8 : random() * 256)
    );
    const body = dataRow(cells).slice(0, random() < 0.9 ? undefined : 10);
    try {
      decode(fields, body, "array");
    } catch (error) {
      if (!(error instanceof ProtocolError) && !(error instanceof ValueError)) throw error;
    }
  });
});
