import assert from "node:assert/strict";
import { test } from "node:test";
import type { Codec } from "../../src/codecs/codec.ts";
import { createRegistry } from "../../src/codecs/registry.ts";
import type { Registry } from "../../src/codecs/registry.ts";
import { ConfigurationError } from "../../src/errors.ts";
import { decodeBinary, decodeText, encodeBinary, hex } from "./codec_cases.ts";

const registry = createRegistry();

function codec(from: Registry, oid: number): Codec {
  const found = from.codecFor(oid);
  assert.ok(found, `no codec for ${oid}`);
  return found;
}

test("built-in types have codecs, others none", () => {
  assert.equal(codec(registry, 23).name, "int4");
  assert.equal(codec(registry, 1007).name, "int4[]");
  assert.equal(codec(registry, 23), codec(registry, 23));
  assert.equal(registry.codecFor(99_999), undefined);
  assert.equal(registry.codecFor(0), undefined);
});

test("names are those of SQL and of pg_type", () => {
  const names = {
    int4: 23,
    INTEGER: 23,
    "bigint[]": 1016,
    _text: 1009,
    "character varying": 1043,
    "numeric(10, 2)": 1700,
    Text: 25,
    "float(24)": 700,
    "float(25)": 701,
    FLOAT: 701,
    dec: 1700,
    bigserial: 20,
    "char": 1042,
    "char(3)[]": 1014,
    '"char"': 18,
    "pg_catalog.char": 18,
    '"char"[]': 1002,
    "pg_catalog.int4": 23,
    '"int4"': 23,
    "int4 array": 1007,
    "int4 ARRAY[4]": 1007,
    "int4[3][3]": 1007,
    "TIMESTAMP(3)  with time zone": 1184,
    "interval day to second(3)": 1186,
    "national character varying(20)": 1043,
  };
  for (const [name, oid] of Object.entries(names)) assert.equal(registry.oidOf(name), oid, name);
  assert.equal(registry.oidOf("timestamp with time zone[]"), 1185);
  for (const name of ["nosuch", '"int"', '"INT4"', "int 4", "public.int4", '"int4', "", "a.b.c"]) {
    assert.equal(registry.oidOf(name), undefined, name);
  }
  assert.equal(registry.arrayOf(25), 1009);
  assert.equal(registry.arrayOf(99_999), undefined);
});

test("int8 is a bigint, a number or a string, in arrays as well", () => {
  assert.deepStrictEqual(decodeText(codec(registry, 1016), "{1}"), [1n]);
  assert.deepStrictEqual(decodeText(codec(createRegistry({ int8: "number" }), 1016), "{1}"), [1]);
  assert.deepStrictEqual(decodeText(codec(createRegistry({ int8: "string" }), 1016), "{1}"), ["1"]);
  assert.equal(decodeText(codec(registry.extend({}, { int8: "number" }), 20), "1"), 1);
});

test("extend() makes another registry, whose overrides reach arrays", () => {
  const raw = {
    decodeText: (bytes: Uint8Array, start: number, end: number) => `raw ${bytes.subarray(start, end).length}`,
  };
  const other = registry.extend({ jsonb: raw });
  assert.equal(decodeText(codec(other, 3802), '{"a":1}'), "raw 7");
  assert.deepStrictEqual(decodeText(codec(other, 3807), '{"1",NULL}'), ["raw 1", null]);
  assert.deepStrictEqual(decodeText(codec(registry, 3802), "1"), 1);
  // The default binary decoder would give other values.
  assert.equal(codec(other, 3802).decodeBinary, undefined);
  assert.equal(codec(other, 3807).preferredFormat, 0);
  // Encoding is not touched.
  assert.equal(codec(other, 3802).encodeText([1]), "[1]");
  assert.deepStrictEqual(decodeText(codec(registry.extend({ 3802: raw }), 3807), '{"1"}'), ["raw 1"]);
  assert.equal(decodeText(codec(other.extend({ jsonb: {} }), 3802), "1"), 1);
});

test("an override reaches the types that its name means in SQL, and no others", () => {
  const types = registry.withTypes([
    { oid: 50_001, name: "_odd", schema: "app", kind: "enum" },
    { oid: 50_002, name: "__odd", schema: "app", kind: "array", element: 50_001 },
    { oid: 50_003, name: "Odd", schema: "app", kind: "enum" },
    { oid: 50_004, name: "_Odd", schema: "app", kind: "array", element: 50_003 },
    { oid: 50_005, name: 'a "b".c', schema: "My App", kind: "enum" },
    { oid: 50_006, name: "odd", schema: "app", kind: "enum" },
    { oid: 50_007, name: "___odd", schema: "app", kind: "array", element: 50_006 },
  ]);
  const oids = [16, 18, 21, 23, 1007, 700, 701, 1042, 1043, 1114, 1184, 1186, 1700];
  for (let oid = 50_001; oid <= 50_007; oid++) oids.push(oid);
  // Whatever is not overridden refuses an empty text, or reads it as one.
  const reached = (name: string): number[] => {
    const other = types.extend({ [name]: { decodeText: () => "mine", decodeBinary: () => "mine" } });
    return oids.filter((oid) => {
      try {
        return codec(other, oid).decodeText(new Uint8Array(1), 0, 0) === "mine";
      } catch {
        return false;
      }
    });
  };
  const cases: Readonly<Record<string, readonly number[]>> = {
    "app._odd": [50_001],
    '"app"."_odd"': [50_001],
    '"_odd"': [50_001],
    "app._odd[]": [50_002],
    "app.__odd": [50_002],
    'app."Odd"': [50_003],
    '"Odd"': [50_003],
    Odd: [50_003],
    '"Odd"[]': [50_004],
    '"My App"."a ""b"".c"': [50_005],
    "app.odd": [50_006],
    "odd[]": [50_007],
    "other.odd": [],
    "App.odd": [],
    "float(24)": [700],
    "float(53)": [701],
    "character varying(20)": [1043],
    "timestamp with time zone": [1184],
    "Timestamp (3) With Time Zone": [1184],
    timestamp: [1114],
    INT: [23],
    "int4[]": [1007],
    _int4: [1007],
    "integer ARRAY": [1007],
    "pg_catalog.int4": [23],
    smallserial: [21],
    char: [1042],
    '"char"': [18],
    "interval year to month": [1186],
    "dec(10, -2)": [1700],
    "16": [16],
    vector: [],
  };
  for (const [name, expected] of Object.entries(cases)) assert.deepStrictEqual(reached(name), expected, name);
});

test("an override by what is no type's name is refused by that name", () => {
  for (
    const name of [
      "",
      " ",
      "int 4",
      "setof int4",
      "a.b.c",
      '"int4',
      'int4"',
      "int4)",
      "My Mood",
      "[]",
      ".int4",
    ]
  ) {
    assert.throws(() => registry.extend({ [name]: { decodeText: () => "x" } }), (error: unknown) => {
      assert.ok(error instanceof ConfigurationError, `${name}: ${error}`);
      assert.ok(error.message.includes(`types[${JSON.stringify(name)}]`), error.message);
      return true;
    }, name);
  }
});

test("an override of encodeText alone keeps decoding and drops the binary form sent", () => {
  const other = registry.extend({ int4: { encodeText: () => "7" } });
  assert.equal(codec(other, 23).encodeText({}), "7");
  assert.equal(encodeBinary(codec(other, 23), 1), false);
  assert.equal(decodeBinary(codec(other, 23), hex("00000005")), 5);
});

test("an override by a class instance keeps its this", () => {
  class Counted {
    readonly calls: string[] = [];
    decodeText(): string {
      this.calls.push("text");
      return "t";
    }
    decodeBinary(): string {
      this.calls.push("binary");
      return "b";
    }
  }
  const counted = new Counted();
  const other = registry.extend({ "text[]": counted, 99_999: counted });
  assert.equal(decodeText(codec(other, 1009), "{}"), "t");
  assert.equal(decodeBinary(codec(other, 99_999), hex("")), "b");
  assert.equal(codec(other, 1009).preferredFormat, 1);
  assert.deepStrictEqual(counted.calls, ["text", "binary"]);
});

test("withTypes() adds enums, domains and arrays of them, and replaces what was known", () => {
  const types = registry.withTypes([
    { oid: 50_001, name: "mood", kind: "enum" },
    { oid: 50_002, name: "_mood", kind: "array", element: 50_001 },
    { oid: 50_003, name: "positive", kind: "domain", base: 23 },
    { oid: 50_004, name: "_positive", kind: "array", element: 50_003 },
    { oid: 50_005, name: "citext", kind: "base" },
    { oid: 50_006, name: "odd", kind: "base" },
    { oid: 50_007, name: "_odd", kind: "array", element: 50_006, delimiter: ";" },
  ]);
  assert.deepStrictEqual(decodeText(codec(types, 50_002), '{sad,"o k",NULL}'), ["sad", "o k", null]);
  assert.equal(decodeBinary(codec(types, 50_003), hex("00000005")), 5);
  assert.deepStrictEqual(decodeText(codec(types, 50_004), "{1}"), [1]);
  assert.equal(decodeText(codec(types, 50_005), "X"), "X");
  assert.deepStrictEqual(decodeText(codec(types, 50_007), "{a;b}"), ["a", "b"]);
  assert.equal(types.oidOf("mood[]"), 50_002);
  assert.equal(types.arrayOf(50_001), 50_002);
  assert.equal(registry.codecFor(50_001), undefined);
  assert.deepStrictEqual(
    decodeText(codec(types.extend({ int4: { decodeText: () => "x" } }), 50_004), "{1}"),
    ["x"],
  );
  assert.equal(
    decodeText(
      codec(types.withTypes([{ oid: 50_001, name: "mood", kind: "domain", base: 23 }]), 50_001),
      "1",
    ),
    1,
  );
});

test("a catalogue that goes in circles ends in strings", () => {
  const types = registry.withTypes([
    { oid: 50_001, name: "a", kind: "domain", base: 50_002 },
    { oid: 50_002, name: "b", kind: "array", element: 50_001 },
  ]);
  assert.deepStrictEqual(decodeText(codec(types, 50_001), "{{1}}"), [["1"]]);
});
