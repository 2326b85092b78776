import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { ArrayValue, isAmbiguous, Json, snapshot, Typed } from "../../src/codecs/parameter.ts";
import { encodeParameters, parameterTypes } from "../../src/codecs/parameter_encoder.ts";
import { createRegistry } from "../../src/codecs/registry.ts";
import { ValueError } from "../../src/errors.ts";
import { Writer } from "../../src/wire/writer.ts";
import { seededRandom } from "../_support/proxy.ts";
import { hex, toHex } from "./codec_cases.ts";

const registry = createRegistry();
const BOOL = 16,
  BYTEA = 17,
  INT8 = 20,
  INT4 = 23,
  TEXT = 25,
  JSON_ = 114,
  FLOAT4 = 700,
  FLOAT8 = 701,
  INT4S = 1007;
const TEXTS = 1009, TIMESTAMPTZ = 1184, JSONB = 3802, JSONBS = 3807, BYTEAS = 1001, INT2S = 1005;

function encode(values: readonly unknown[], types: readonly number[] | null): string {
  const writer = new Writer();
  encodeParameters(values, types, registry, writer);
  return toHex(writer.take());
}

/** JSON text as a binary parameter of jsonb. */
function jsonb(text: string): string {
  return `binary:01${toHex(new TextEncoder().encode(text))}`;
}

/** The one parameter as `text:…` or `binary:…`, or `NULL`. */
function encodeOne(value: unknown, type: number | null): string {
  const bytes = hex(encode([value], type === null ? null : [type]));
  const view = new DataView(bytes.buffer);
  const codes = view.getInt16(0);
  const format = codes === 0 ? 0 : view.getInt16(2);
  const start = 2 + codes * 2 + 2;
  const length = view.getInt32(start);
  if (length === -1) return "NULL";
  const body = bytes.subarray(start + 4);
  assert.equal(body.length, length);
  return format === 0 ? `text:${new TextDecoder().decode(body)}` : `binary:${toHex(body)}`;
}

function fails(value: unknown, type: number | null, message: RegExp): void {
  assert.throws(() => encodeOne(value, type), (error: unknown) => {
    assert.ok(error instanceof ValueError, String(error));
    assert.match(error.message, message);
    return true;
  });
}

test("encodeParameters() writes no, one or all format codes", () => {
  assert.equal(encode([], null), "00000000");
  assert.equal(encode(["a"], null), "0000" + "0001" + "00000001" + "61");
  assert.equal(encode([null, null], null), "0000" + "0002" + "ffffffff" + "ffffffff");
  assert.equal(
    encode([1, 2], [INT4, INT4]),
    "0001" + "0001" + "0002" + "00000004" + "00000001" + "00000004" + "00000002",
  );
  assert.equal(
    encode([1, null], [INT4, INT4]),
    "0001" + "0001" + "0002" + "00000004" + "00000001" + "ffffffff",
  );
  assert.equal(
    encode([1, "2", null], [INT4, INT4, INT4]),
    "0003" + "0001" + "0000" + "0000" + "0003" + "00000004" + "00000001" + "00000001" + "32" + "ffffffff",
  );
  assert.equal(
    encode([1, 1.5], [INT4, INT4]),
    "0002" + "0001" + "0000" + "0002" + "00000004" + "00000001" + "00000003" + "312e35",
  );
});

test("simple values have one text form before and after the type is known", () => {
  const date = new Date("2026-08-18T01:02:03.500Z");
  const cases: readonly (readonly [unknown, string])[] = [
    ["", "text:"],
    ["a\0b", "text:a\0b"],
    ["é😀", "text:é😀"],
    ["\ud800", "text:\ufffd"],
    [5, "text:5"],
    [-0, "text:-0"],
    [2 ** 60, "text:1152921504606846976"],
    [-(2 ** 53) - 2, "text:-9007199254740994"],
    [1e21, "text:1e+21"],
    [NaN, "text:NaN"],
    [-Infinity, "text:-Infinity"],
    [2n ** 63n, "text:9223372036854775808"],
    [true, "text:true"],
    [false, "text:false"],
    [date, "text:2026-08-18T01:02:03.500Z"],
    [new Date(-63517824000000), "text:0044-03-15T00:00:00.000Z BC"],
    [null, "NULL"],
  ];
  for (const [value, expected] of cases) {
    assert.equal(encodeOne(value, null), expected);
    for (const type of [TEXT, 99_999, 0, 1700, 1266, 2950, 790]) {
      assert.equal(encodeOne(value, type), expected, String(type));
    }
    // json and jsonb in binary are the same text, jsonb's after a version number.
    if (value instanceof Date) continue;
    const json = encodeOne(value, JSONB);
    if (typeof value === "string" || value === null) assert.equal(json, expected);
    else {assert.equal(
        new TextDecoder().decode(hex(json.slice("binary:01".length))),
        expected.slice("text:".length),
      );}
  }
});

test("a known type may have a binary form that means the same", () => {
  assert.equal(encodeOne(5, INT4), "binary:00000005");
  assert.equal(encodeOne(5.5, INT4), "text:5.5");
  assert.equal(encodeOne(2 ** 31, INT4), "text:2147483648");
  assert.equal(encodeOne(true, INT4), "text:true");
  assert.equal(encodeOne(5n, INT8), "binary:0000000000000005");
  assert.equal(encodeOne(2n ** 63n, INT8), "text:9223372036854775808");
  assert.equal(encodeOne(true, BOOL), "binary:01");
  assert.equal(encodeOne(1, BOOL), "text:1");
  assert.equal(encodeOne(-0, FLOAT8), "binary:8000000000000000");
  assert.equal(encodeOne(0.1, FLOAT4), "binary:3dcccccd");
  assert.equal(encodeOne(1e39, FLOAT4), "text:1e+39");
  assert.equal(encodeOne(0.5, FLOAT4), "binary:3f000000");
  assert.equal(encodeOne(new Date("2026-08-18T01:02:03.500Z"), TIMESTAMPTZ), "binary:0002fc469a8159e0");
  assert.equal(encodeOne(new Date(-210866803200001), TIMESTAMPTZ), "text:4714-11-23T23:59:59.999Z BC");
});

test("strings are sent as they are whatever the type", () => {
  for (const type of [INT4, BOOL, BYTEA, JSONB, INT4S, FLOAT8, TEXTS, TIMESTAMPTZ]) {
    assert.equal(encodeOne('{"a":1}', type), 'text:{"a":1}');
  }
});

test("arrays are encoded for the type: an array or JSON", () => {
  assert.equal(encodeOne([1, 2], JSONB), jsonb("[1,2]"));
  assert.equal(encodeOne([1, 2], JSON_), jsonb("[1,2]").replace(":01", ":"));
  assert.equal(encodeOne(["a"], JSONB), jsonb('["a"]'));
  assert.equal(
    encodeOne([1], INT4S),
    "binary:00000001" + "00000000" + "00000017" + "00000001" + "00000001" + "00000004" + "00000001",
  );
  assert.equal(encodeOne(["a b", 1], TEXTS), 'text:{"a b",1}');
  assert.equal(encodeOne([1.5], INT4S), "text:{1.5}");
  assert.equal(encodeOne([new Json({ a: 1 }), null], JSONBS), 'text:{"{\\"a\\":1}",NULL}');
  assert.equal(encodeOne([], INT4S), "binary:000000000000000000000017");
  assert.equal(
    encodeOne(new Int16Array([1]), INT2S),
    "binary:00000001" + "00000000" + "00000015" + "00000001" + "00000001" + "00000002" + "0001",
  );
  fails([1], TEXT, /^Cannot encode parameter \$1 of type text: expected a string, received an array$/);
  fails([1], INT4, /^Cannot encode parameter \$1 of type int4: expected a number, received an array$/);
  fails([[1], [2, 3]], INT4S, /expected an inner array of 1 elements/);
  fails([1, undefined], INT4S, /array element 1, received undefined/);
});

test("objects are JSON for json types and refused elsewhere", () => {
  assert.equal(encodeOne({ a: [null, undefined, "x"], b: undefined }, JSONB), jsonb('{"a":[null,null,"x"]}'));
  for (const type of [TEXT, BOOL, INT4, FLOAT8, BYTEA, INT4S, 2950, TIMESTAMPTZ]) {
    fails({ a: 1 }, type, /^Cannot encode parameter \$1 of type \S+: expected .*, received an object$/);
  }
  class Point {}
  fails(new Point(), TEXT, /received a Point$/);
  fails({}, 99_999, /sql\.typed, sql\.array or sql\.json/);
  fails({}, null, /sql\.typed/);
});

test("what JSON cannot say is refused", () => {
  const cyclic: Record<string, unknown> = {};
  cyclic["self"] = cyclic;
  const throwing = {
    toJSON(): never {
      throw new Error("mine");
    },
  };
  for (const value of [cyclic, { n: 1n }, throwing]) {
    assert.throws(() => encodeOne(value, JSONB), (error: unknown) => {
      assert.ok(error instanceof ValueError);
      assert.match(error.message, /^Cannot encode parameter \$1 of type jsonb: expected a value for JSON/);
      assert.ok((error.cause as Error).cause instanceof Error);
      return true;
    });
  }
  fails({ toJSON: () => undefined }, JSONB, /expected a value for JSON/);
  fails(new Date(0), JSONB, /sql\.json/);
  fails(new Date(0), JSON_, /sql\.json/);
  fails(new Uint8Array(1), JSONB, /received a Uint8Array/);
});

test("bytes are exactly those of the view", () => {
  const buffer = new Uint8Array([9, 1, 2, 3, 9]).buffer;
  assert.equal(encodeOne(new Uint8Array(buffer, 1, 3), BYTEA), "binary:010203");
  assert.equal(encodeOne(new DataView(buffer, 1, 3), BYTEA), "binary:010203");
  assert.equal(encodeOne(buffer, BYTEA), "binary:0901020309");
  assert.equal(encodeOne(new Float32Array([1]), BYTEA), "binary:0000803f");
  assert.equal(encodeOne(new Uint8Array(new SharedArrayBuffer(1)), BYTEA), "binary:00");
  assert.equal(encodeOne(new Uint8Array(0), BYTEA), "binary:");
  const array = "00000001" + "00000001" + "00000011" + "00000003" + "00000001";
  const elements = "00000004" + "00ff5c27" + "ffffffff" + "00000000";
  assert.equal(encodeOne([hex("00ff5c27"), null, hex("")], BYTEAS), `binary:${array}${elements}`);
  fails([1, 2], BYTEA, /expected a Uint8Array.*, received an array$/);
  fails(new Uint8Array(1), TEXT, /expected a string, received a Uint8Array$/);
});

test("values no type takes are refused, with their position", () => {
  for (const value of [undefined, () => 1, Symbol("s"), new Date(NaN)]) {
    for (const type of [null, 0, TEXT, JSONB, INT4, BYTEA, INT4S, 99_999]) {
      fails(value, type, /^Cannot encode parameter \$1/);
    }
  }
  assert.throws(
    () => encode(["a", null, undefined], null),
    /^ValueError: Cannot encode parameter \$3: expected a value or null, received undefined$/,
  );
});

test("in a list of any length each value is sent as it is sent alone", () => {
  const kinds: readonly (readonly [unknown, number])[] = [
    [7, INT4],
    ["7", INT4],
    [null, INT4],
    [1.5, INT4], // has no binary form for the type
    [true, BOOL],
    [new Typed(null, INT4), INT4],
    [new Typed(8, INT4), 0],
    ["ä", TEXT],
    [Uint8Array.of(1, 2), BYTEA],
  ];
  const seed = Number(process.env["PIPEGRES_TEST_SEED"] ?? Date.now() % 1_000_000);
  console.log(`PIPEGRES_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  for (let round = 0; round < 2_000; round++) {
    // Around the number of values whose formats are noted in bits, and far past it.
    const count = [1, 2, 3, 27, 28, 29, 31, 32, 33, 200][Math.floor(random() * 10)]!;
    const few = 1 + Math.floor(random() * kinds.length);
    const list = Array.from({ length: count }, () => kinds[Math.floor(random() * few)]!);
    const bytes = hex(encode(list.map(([value]) => value), list.map(([, type]) => type)));
    const view = new DataView(bytes.buffer);
    const codes = view.getUint16(0);
    assert.ok(codes === 0 || codes === 1 || codes === count, `${codes} codes`);
    assert.equal(view.getUint16(2 + 2 * codes), count);
    let at = 4 + 2 * codes;
    for (const [i, [value, type]] of list.entries()) {
      const length = view.getInt32(at);
      at += 4;
      const body = bytes.subarray(at, at + Math.max(length, 0));
      at += body.length;
      const format = codes === 0 ? 0 : view.getUint16(codes === 1 ? 2 : 2 + 2 * i);
      const sent = length === -1
        ? "NULL"
        : format === 0
        ? `text:${new TextDecoder().decode(body)}`
        : `binary:${toHex(body)}`;
      assert.equal(sent, encodeOne(value, type), `value ${i} of ${count}`);
    }
    assert.equal(at, bytes.length);
  }
});

test("65,535 parameters are written, 65,536 refused before anything is", () => {
  assert.equal(encode(Array(65_535).fill(null), null).slice(0, 8), "0000ffff");
  const writer = new Writer();
  assert.throws(() => encodeParameters(Array(65_536).fill(1), null, registry, writer), ValueError);
  assert.equal(writer.length, 0);
  assert.throws(() => encode([1, 2], [INT4]), /Cannot encode 2 parameters: the statement wants 1$/);
});

test("an error leaves a writer that can be rewound", () => {
  const writer = new Writer();
  writer.uint8(1);
  const mark = writer.mark();
  assert.throws(() => encodeParameters([1, {}], [INT4, INT4], registry, writer), ValueError);
  writer.rewind(mark);
  assert.equal(toHex(writer.take()), "01");
});

test("sql.typed declares its type and encodes for it", () => {
  const typed = (value: unknown, type: string | number) => new Typed(value, type);
  assert.equal(encodeOne(typed([1], "int4[]"), null), encodeOne([1], INT4S));
  assert.equal(encodeOne(typed(5, "integer"), null), "binary:00000005");
  assert.equal(encodeOne(typed(5, INT8), null), "binary:0000000000000005");
  assert.equal(encodeOne(typed(null, "text"), null), "NULL");
  assert.equal(encodeOne(typed("x", "text"), TEXT), "text:x");
  assert.deepStrictEqual(
    parameterTypes([
      "a",
      typed(1, "int4"),
      typed(1, "Double Precision"),
      typed(1, "varchar(10)[]"),
      typed(1, 99_999),
    ], registry),
    [0, INT4, FLOAT8, 1015, 99_999],
  );
  assert.throws(
    () => parameterTypes([null, typed(1, "nosuch")], registry),
    /parameter \$2: type "nosuch" is not known/,
  );
});

test("sql.json is JSON text of anything", () => {
  const json = (value: unknown) => new Json(value);
  for (const type of [null, JSONB, JSON_, TEXT]) {
    assert.equal(encodeOne(json(null), type), "text:null");
    assert.equal(encodeOne(json("x"), type), 'text:"x"');
    assert.equal(encodeOne(json([1, { a: true }]), type), 'text:[1,{"a":true}]');
    assert.equal(encodeOne(json(new Date(0)), type), 'text:"1970-01-01T00:00:00.000Z"');
    assert.equal(encodeOne(json(12345678901234567890n), type), "text:12345678901234567890");
  }
  assert.deepStrictEqual(parameterTypes([json(1), "a", [1], null], registry), []);
  fails(json(undefined), null, /expected a value for JSON, received undefined/);
  fails(json(NaN), null, /finite number for JSON/);
});

test("sql.array is an array and never JSON", () => {
  assert.equal(encodeOne(new ArrayValue([1], "int4"), null), encodeOne([1], INT4S));
  assert.equal(encodeOne(new ArrayValue([1], "int4[]"), null), encodeOne([1], INT4S));
  assert.equal(encodeOne(new ArrayValue([1]), INT4S), encodeOne([1], INT4S));
  assert.deepStrictEqual(
    parameterTypes([
      new ArrayValue([1], "int4"),
      new ArrayValue([1], INT4),
      new ArrayValue([1], "text[]"),
      new ArrayValue([1]),
    ], registry),
    [INT4S, INT4S, TEXTS, 0],
  );
  fails(new ArrayValue([1]), JSONB, /array made for an array type/);
  fails(new ArrayValue([1]), TEXT, /expected a string, received an array/);
});

test("isAmbiguous() is true for what needs the server's type", () => {
  const ambiguous = [
    [],
    [1],
    {},
    new Uint8Array(1),
    new ArrayBuffer(1),
    new DataView(new ArrayBuffer(1)),
    new Map(),
    new ArrayValue([]),
  ];
  const plain = [
    null,
    "a",
    1,
    1n,
    true,
    new Date(0),
    new Typed({}, "jsonb"),
    new Json({}),
    new ArrayValue([], "int4"),
    undefined,
    () => 1,
  ];
  for (const value of ambiguous) assert.equal(isAmbiguous(value), true);
  for (const value of plain) assert.equal(isAmbiguous(value), false);
});

test("snapshot() copies what could be written over", () => {
  const bytes = new Uint8Array([1, 2, 3]);
  const date = new Date(0);
  const list = [1, [bytes]];
  const floats = new Float64Array([1]);
  const values = [
    "a",
    bytes,
    date,
    list,
    new DataView(bytes.buffer, 1, 1),
    new Typed(bytes, "bytea"),
    new ArrayValue([bytes]),
    floats,
    bytes.buffer,
  ];
  const copies = snapshot(values);
  bytes.fill(9);
  date.setTime(5);
  list.push(2);
  floats[0] = 2;
  assert.deepStrictEqual(copies.slice(0, 5), [
    "a",
    hex("010203"),
    new Date(0),
    [1, [hex("010203")]],
    new DataView(hex("02").buffer),
  ]);
  assert.deepStrictEqual((copies[5] as Typed).value, hex("010203"));
  assert.deepStrictEqual((copies[6] as ArrayValue).values, [hex("010203")]);
  assert.deepStrictEqual(copies[7], new Float64Array([1]));
  assert.deepStrictEqual(copies[8], hex("010203").buffer);
  const simple = ["a", 1, null];
  const kept = snapshot(simple);
  simple.fill("b");
  assert.deepStrictEqual(kept, ["a", 1, null]);
});

test("where a server leaves a type open, what the value says of its type counts", () => {
  const values = [new Typed(1, "int4"), 2, new ArrayValue([3], "int4"), new Typed([4], "int4[]"), "five"];
  const types = [INT4, INT4, INT4S, INT4S, TEXT];
  const wanted = encode(values, types);
  for (const open of [[0], [2], [3], [0, 2, 3], [0, 4]]) {
    assert.equal(encode(values, types.map((type, i) => open.includes(i) ? 0 : type)), wanted, `${open}`);
  }
  fails({}, 0, /received an object: say what it is/);
});
