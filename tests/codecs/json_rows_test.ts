import assert from "node:assert/strict";
import { test } from "node:test";
import { ColumnBuilder } from "../../src/codecs/columns.ts";
import { createJsonRowDecoder } from "../../src/codecs/json_rows.ts";
import { createRegistry } from "../../src/codecs/registry.ts";
import { ProtocolError, ValueError } from "../../src/errors.ts";
import type { Field } from "../../src/wire/backend.ts";
import { hex } from "./codec_cases.ts";

const registry = createRegistry().withTypes([
  {
    oid: 50_001,
    name: "pair",
    kind: "composite",
    attributes: [{ name: "2", typeOid: 23 }, { name: "1", typeOid: 1009 }],
  },
  { oid: 50_002, name: "_pair", kind: "array", element: 50_001 },
  { oid: 50_003, name: "positive", kind: "domain", base: 23 },
  { oid: 50_004, name: "hstore", kind: "base" },
  { oid: 50_005, name: "mood", kind: "enum" },
]);
const encoder = new TextEncoder();

function field(name: string, typeOid: number, format: 0 | 1 = 0): Field {
  return { name, tableOid: 0, columnNumber: 0, typeOid, typeSize: -1, typeModifier: -1, format };
}

function dataRow(cells: readonly (string | Uint8Array | null)[]): Uint8Array {
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

function json(typeOid: number, text: string): string {
  const body = dataRow([text]);
  return createJsonRowDecoder([field("v", typeOid)], registry)(body, 0, body.length).slice(
    '{"v":'.length,
    -1,
  );
}

test("JSON of values is what the server makes of them", () => {
  const cases: readonly (readonly [number, string, string])[] = [
    [16, "t", "true"],
    [16, "f", "false"],
    [23, "-5", "-5"],
    [20, "9223372036854775807", "9223372036854775807"],
    [1700, "12345678901234567890.10", "12345678901234567890.10"],
    [1700, "NaN", '"NaN"'],
    [701, "-Infinity", '"-Infinity"'],
    [701, "1e+300", "1e+300"],
    [701, "-0", "-0"],
    [26, "5", '"5"'],
    [790, "$1.00", '"$1.00"'],
    [25, 'a"b\\\n\u0001é', '"a\\"b\\\\\\n\\u0001é"'],
    [114, '{"a": 1, "a": 2}', '{"a": 1, "a": 2}'],
    [3802, "12345678901234567890", "12345678901234567890"],
    [1082, "0044-03-15 BC", '"0044-03-15 BC"'],
    [1114, "2026-08-18 01:02:03.5", '"2026-08-18T01:02:03.5"'],
    [1184, "2026-08-18 01:02:03.5+00", '"2026-08-18T01:02:03.5+00:00"'],
    [1184, "0044-03-15 05:41:16-05:41:16 BC", '"0044-03-15T05:41:16-05:41:16 BC"'],
    [1184, "2026-08-18 06:47:03.5+05:45", '"2026-08-18T06:47:03.5+05:45"'],
    [1184, "infinity", '"infinity"'],
    [17, "\\x00ff", '"\\\\x00ff"'],
    [1007, "{1,NULL,3}", "[1,null,3]"],
    [1007, "[0:1][1:1]={{1},{2}}", "[[1],[2]]"],
    [1009, '{"a b",NULL,"NULL"}', '["a b",null,"NULL"]'],
    [3807, '{"null",NULL,"{\\"a\\": 1}"}', '[null,null,{"a": 1}]'],
    [50_001, '(1,"{a,""b c""}")', '{"2":1,"1":["a","b c"]}'],
    [50_002, '{"(1,{})",NULL,"(,)"}', '[{"2":1,"1":[]},null,{"2":null,"1":null}]'],
    [50_003, "7", "7"],
    [50_004, '"a"=>"1", "b"=>NULL', '{"a":"1","b":null}'],
    [50_005, "sad", '"sad"'],
    [2249, "(1,a,)", '{"f1":"1","f2":"a","f3":null}'],
    [3904, "[1,6)", '"[1,6)"'],
    [99_999, "x", '"x"'],
  ];
  for (const [oid, text, expected] of cases) assert.equal(json(oid, text), expected, text);
});

test("a row is an object with every column, in order", () => {
  const decode = createJsonRowDecoder([
    field("b", 23),
    field("__proto__", 25),
    field("b", 23),
    field("1", 25),
  ], registry);
  const body = dataRow(["1", "x", null, ""]);
  assert.equal(decode(body, 0, body.length), '{"b":1,"__proto__":"x","b":null,"1":""}');
  const empty = dataRow([]);
  assert.equal(createJsonRowDecoder([], registry)(empty, 0, empty.length), "{}");
});

test("malformed rows and values without JSON are refused", () => {
  const decode = createJsonRowDecoder([field("at", 1184)], registry);
  for (
    const body of [
      "",
      "0001",
      "0002 ffffffff ffffffff",
      "0001 00000002 61",
      "0001 fffffffe",
      "0001 ffffffff 00",
    ]
  ) {
    assert.throws(() => decode(hex(body), 0, hex(body).length), ProtocolError, body);
  }
  const german = dataRow(["18.08.2026 01:02:03 CEST"]);
  assert.throws(() => decode(german, 0, german.length), ValueError);
});

test("a composite that was altered gives no JSON that is none, nor another value's", () => {
  const altered = createRegistry().withTypes([
    {
      oid: 50_001,
      name: "pair",
      kind: "composite",
      attributes: [16, 23, 1700, 114, 3802, 1007, 199, 22].map((typeOid, i) => ({ name: `a${i}`, typeOid })),
    },
  ]);
  const decode = createJsonRowDecoder([field("v", 50_001)], altered);
  const toJson = (value: string): string => {
    const body = dataRow([value]);
    return decode(body, 0, body.length);
  };
  assert.equal(
    toJson('(t,1,1.50,[1],2,"{1,2}","{3,""[4]""}",5 6)'),
    '{"v":{"a0":true,"a1":1,"a2":1.50,"a3":[1],"a4":2,"a5":[1,2],"a6":[3,[4]],"a7":[5,6]}}',
  );
  for (const text of ["x", "1 x", "007", "1.2.3", '"1,""a8"":2"', "1e", "{1x}"]) {
    for (let at = 0; at < 8; at++) {
      const value = `(${Array.from({ length: 8 }, (_, i) => i === at ? text : "").join()})`;
      assert.throws(
        () => toJson(value),
        (error: unknown) =>
          error instanceof ValueError && error.message.startsWith('Cannot make JSON of column "v": '),
        `${value} ${at}`,
      );
    }
  }
});

test("columns are typed arrays where they are fixed-width numbers without NULL", () => {
  const fields = [
    field("i2", 21),
    field("i4", 23, 1),
    field("i8", 20),
    field("oid", 26),
    field("f4", 700),
    field("f8", 701),
    field("null", 23),
    field("t", 25),
    field("__proto__", 16),
  ];
  const builder = new ColumnBuilder(fields, registry);
  const rows = [
    ["-1", hex("00000001"), "9223372036854775807", "4294967295", "0.1", "0.1", "1", "a", "t"],
    ["2", hex("ffffffff"), "-1", "0", "NaN", "-0", null, "b", "f"],
  ];
  for (const row of rows) {
    const body = dataRow(row);
    builder.add(body, 0, body.length);
  }
  const columns = builder.finish();
  const bools = Object.getOwnPropertyDescriptor(columns, "__proto__")!.value;
  assert.deepStrictEqual(bools, [true, false]);
  delete (columns as Record<string, unknown>)["__proto__"];
  assert.deepStrictEqual(columns, {
    i2: Int16Array.of(-1, 2),
    i4: Int32Array.of(1, -1),
    i8: BigInt64Array.of(9223372036854775807n, -1n),
    oid: Uint32Array.of(4294967295, 0),
    f4: Float32Array.of(0.1, NaN),
    f8: Float64Array.of(0.1, -0),
    null: [1, null],
    t: ["a", "b"],
  });
  const numbers = new ColumnBuilder([field("i8", 20)], createRegistry({ int8: "number" }));
  const body = dataRow(["5"]);
  numbers.add(body, 0, body.length);
  assert.deepStrictEqual(numbers.finish(), { i8: [5] });
});
