import assert from "node:assert/strict";
import { test } from "node:test";
import type { Codec } from "../../src/codecs/codec.ts";
import { recordCodec } from "../../src/codecs/composite.ts";
import * as geometric from "../../src/codecs/geometric.ts";
import { hstoreCodec } from "../../src/codecs/hstore.ts";
import { Range } from "../../src/codecs/range.ts";
import { createRegistry } from "../../src/codecs/registry.ts";
import { halfvecCodec, sparsevecCodec, vectorCodec } from "../../src/codecs/vector.ts";
import { ValueError } from "../../src/errors.ts";
import {
  assertCases,
  assertProperty,
  assertRefuses,
  decodeBinary,
  decodeText,
  encodeBinary,
  hex,
} from "./codec_cases.ts";

const registry = createRegistry().withTypes([
  {
    oid: 16518,
    name: "pair",
    kind: "composite",
    attributes: [{ name: "a", typeOid: 23 }, { name: "b", typeOid: 25 }, { name: "c", typeOid: 1700 }],
  },
  { oid: 16517, name: "_pair", kind: "array", element: 16518 },
  { oid: 50_001, name: "textrange", kind: "range", subtype: 25 },
  { oid: 50_002, name: "one", kind: "composite", attributes: [{ name: "__proto__", typeOid: 1009 }] },
  {
    oid: 50_003,
    name: "nested",
    kind: "composite",
    attributes: [{ name: "p", typeOid: 16518 }, { name: "list", typeOid: 1007 }],
  },
  { oid: 50_004, name: "none", kind: "composite", attributes: [] },
]);

function codec(oid: number): Codec {
  const found = registry.codecFor(oid);
  assert.ok(found);
  return found;
}

const INT4RANGE = 3904,
  NUMRANGE = 3906,
  TSRANGES = 3909,
  TSTZRANGE = 3910,
  INT4MULTIRANGE = 4451,
  INT4RANGES = 3905;

test("ranges are Range", () => {
  assertCases(codec(INT4RANGE), [
    [new Range(1, 6), "[1,6)", "02 00000004 00000001 00000004 00000006"],
    [Range.empty(), "empty", "01"],
    [new Range(null, null, "()"), "(,)", "18"],
    [new Range(null, 5), "(,5)", "08 00000004 00000005"],
  ]);
  assertCases(codec(NUMRANGE), [
    [
      new Range("1.5", "2.50", "(]"),
      "(1.5,2.50]",
      "04 0000000c 000200000000000100011388 0000000c 000200000000000200021388",
    ],
  ]);
  assertCases(codec(TSTZRANGE), [[
    new Range<Date | number>(new Date("2021-12-31T10:19:24.036Z"), Infinity),
    '["2021-12-31 10:19:24.036+00",infinity)',
    "02 00000008 0002776d46104fa0 00000008 7fffffffffffffff",
  ]]);
  assertCases(codec(TSRANGES), [[
    [new Range(new Date("2024-01-01T00:00:00Z"), null)],
    '{"[\\"2024-01-01 00:00:00\\",)"}',
    "00000001 00000000 00000f44 00000001 00000001 0000000d 12 00000008 0002b0d5d4e94000",
  ]]);
  assertCases(codec(50_001), [[new Range('a"b\\', "", "[]"), '["a""b\\\\",""]'], [
    new Range("a]", "{b}"),
    '["a]",{b})',
  ]]);
});

test("multiranges are arrays of Range", () => {
  assertCases(codec(INT4MULTIRANGE), [
    [
      [new Range(1, 3), new Range(5, 8)],
      "{[1,3),[5,8)}",
      "00000002 00000011 02 00000004 00000001 00000004 00000003 00000011 02 00000004 00000005 00000004 00000008",
    ],
    [[], "{}", "00000000"],
  ]);
  assert.equal(codec(INT4MULTIRANGE).encodeText([new Range(1, 3), new Range(5, null)]), "{[1,3),[5,)}");
  assert.equal(codec(6150).encodeText([[new Range(1, 3)], [], null]), '{"{[1,3)}","{}",NULL}');
});

test("malformed ranges are refused", () => {
  assertRefuses(codec(INT4RANGE), ValueError, {
    text: ["", "[", "[1", "[1,2", "[1,2)x", "1,2", "[1)", "[1,2,3)", "emptyx", "e"],
    binary: ["", "02", "02 00000004 00000001", "02 ffffffff 00000004 00000001", "01 00", "18 00"],
  });
  assertRefuses(codec(INT4MULTIRANGE), ValueError, {
    text: ["", "{", "{[1,2)", "{[1,2),}", "{[1,2)[3,4)}", "{x}"],
    binary: ["", "00000001", "00000001 00000002 01", "00000000 00", "7fffffff 00000001 01"],
  });
});

test("a Range is sent as text with quotes where they are needed", () => {
  assert.equal(codec(INT4RANGE).encodeText(new Range(1, 5, "[]")), "[1,5]");
  assert.equal(codec(INT4RANGE).encodeText(Range.empty()), "empty");
  assert.equal(
    codec(TSTZRANGE).encodeText(new Range<Date | number>(new Date(0), Infinity)),
    "[1970-01-01T00:00:00.000Z,Infinity)",
  );
  assert.equal(codec(50_001).encodeText(new Range('a"b\\ ,', "")), '["a""b\\\\ ,","")');
  assert.equal(codec(INT4RANGES).encodeText([new Range(1, 2), null]), '{"[1,2)",NULL}');
  assert.equal(encodeBinary(codec(INT4RANGE), new Range<unknown>("1", 2)), false);
  for (const value of [{}, [1, 2], new Range(undefined as unknown, 1), new Range(1, 2, "<>" as "[]")]) {
    assert.throws(() => codec(INT4RANGE).encodeText(value), ValueError);
  }
});

test("composites are objects", () => {
  assertCases(codec(16518), [
    [
      { a: 1, b: 'a "b" \\,', c: null },
      '(1,"a ""b"" \\\\,",)',
      "00000003 00000017 00000004 00000001 00000019 00000008 6120226222205c2c 000006a4 ffffffff",
    ],
    [{ a: null, b: null, c: null }, "(,,)", "00000003 00000017 ffffffff 00000019 ffffffff 000006a4 ffffffff"],
    [{ a: null, b: "", c: null }, '(,"",)', "00000003 00000017 ffffffff 00000019 00000000 000006a4 ffffffff"],
    [{ a: 1, b: "a]b", c: "1" }, "(1,a]b,1)"],
  ]);
  assertCases(codec(16517), [[
    [{ a: 1, b: "a b", c: "2.50" }, null],
    '{"(1,\\"a b\\",2.50)",NULL}',
    "00000001 00000001 00004086 00000002 00000001 0000002f 00000003 00000017 00000004 00000001 00000019 00000003 612062 " +
    "000006a4 0000000c 000200000000000200021388 ffffffff",
  ]]);
  assertCases(codec(50_003), [[
    { p: { a: 1, b: "(", c: null }, list: [1, null] },
    '("(1,""("",)","{1,NULL}")',
  ]]);
  assertCases(codec(50_004), [[{}, "()", "00000000"]]);
  const odd = decodeText(codec(50_002), '("{x,""y z""}")') as object;
  assert.deepStrictEqual(Object.getOwnPropertyDescriptor(odd, "__proto__")?.value, ["x", "y z"]);
  assert.equal(Object.getOwnPropertyDescriptor(decodeText(codec(50_002), "()"), "__proto__")?.value, null);
});

test("malformed composites, and those of another shape, are refused", () => {
  assertRefuses(codec(16518), ValueError, {
    text: ["", "(", "()", "(1", "(1,2", "(1,2)", "(1,2,3,4)", "(1,2,3)x", '(1,"2,3)', "1,2,3"],
    binary: ["", "00000002 00000017 ffffffff 00000019 ffffffff", "00000003 00000017 ffffffff", "00000003"],
  });
});

test("composites are sent from objects and arrays", () => {
  assert.equal(codec(16518).encodeText({ a: 1, b: 'a "b" \\,', c: null }), '(1,"a ""b"" \\\\,",)');
  assert.equal(codec(16518).encodeText({ b: "" }), '(,"",)');
  assert.equal(codec(16518).encodeText([1, "x", "2.5"]), "(1,x,2.5)");
  assert.equal(
    codec(50_003).encodeText({ p: { a: 1, b: "(" }, list: [1, null] }),
    '("(1,""("",)","{1,NULL}")',
  );
  for (const value of [{ a: undefined }, { d: 1 }, [1], [1, 2, undefined], { a: {} }]) {
    assert.throws(() => codec(16518).encodeText(value), ValueError);
  }
  assert.equal(codec(16517).encodeText([{ a: 1, b: "x y" }]), '{"(1,\\"x y\\",)"}');
});

test("an anonymous record is an array of text", () => {
  assertCases(recordCodec as Codec, [[["1", 'a "b"', null, ""], '(1,"a ""b""",,"")'], [[], "()"], [
    ["(2,3)"],
    '("(2,3)")',
  ]]);
  assertCases(codec(2287), [[[["1", "a"], ["2", null]], '{"(1,a)","(2,)"}']]);
});

test("composites survive their own text", () => {
  const alphabet = ["a", '"', "\\", ",", "(", ")", "]", " ", "\n", "é", "😀"];
  assertProperty("composite", 5_000, (random) => {
    const pick = () =>
      Array.from({ length: random() * 5 }, () => alphabet[Math.floor(random() * alphabet.length)]!).join("");
    const value = { p: { a: 1, b: pick(), c: random() < 0.5 ? null : String(random()) }, list: [1, null] };
    assert.deepStrictEqual(decodeText(codec(50_003), codec(50_003).encodeText(value)), value);
    const range = new Range(pick(), random() < 0.3 ? null : pick());
    assert.deepStrictEqual(decodeText(codec(50_001), codec(50_001).encodeText(range)), range);
  });
});

test("geometric types are plain objects", () => {
  const one = "3ff0000000000000",
    two = "4000000000000000",
    three = "4008000000000000",
    four = "4010000000000000";
  const points = [{ x: 1, y: 2 }, { x: 3, y: 4 }];
  assertCases(geometric.pointCodec, [
    [{ x: 1, y: 2.5 }, "(1,2.5)", one + "4004000000000000"],
    [{ x: NaN, y: -Infinity }, "(NaN,-Infinity)", "7ff8000000000000 fff0000000000000"],
  ]);
  assertCases(geometric.lineCodec, [[{ a: 1, b: 2, c: 3 }, "{1,2,3}", one + two + three]]);
  assertCases(geometric.lsegCodec, [[
    { x1: 1, y1: 2, x2: 3, y2: 4 },
    "[(1,2),(3,4)]",
    one + two + three + four,
  ]]);
  assertCases(geometric.boxCodec, [[
    { x1: 3, y1: 4, x2: 1, y2: 2 },
    "(3,4),(1,2)",
    three + four + one + two,
  ]]);
  assertCases(geometric.pathCodec, [
    [{ closed: false, points }, "[(1,2),(3,4)]", "00 00000002" + one + two + three + four],
    [{ closed: true, points }, "((1,2),(3,4))", "01 00000002" + one + two + three + four],
  ]);
  assertCases(geometric.polygonCodec, [[{ points }, "((1,2),(3,4))", "00000002" + one + two + three + four]]);
  assertCases(geometric.circleCodec, [[{ x: 1, y: 2, radius: 3 }, "<(1,2),3>", one + two + three]]);
  assertCases(codec(1020), [[[{ x1: 3, y1: 4, x2: 1, y2: 2 }, null], "{(3,4),(1,2);NULL}"]]);
  for (
    const [codec_, value, text] of [
      [geometric.pointCodec, { x: 1, y: -0 }, "(1,-0)"],
      [geometric.lineCodec, { a: 1, b: 2, c: 3 }, "{1,2,3}"],
      [geometric.lsegCodec, { x1: 1, y1: 2, x2: 3, y2: 4 }, "[(1,2),(3,4)]"],
      [geometric.boxCodec, { x1: 1, y1: 2, x2: 3, y2: 4 }, "(1,2),(3,4)"],
      [geometric.pathCodec, { closed: true, points }, "((1,2),(3,4))"],
      [geometric.pathCodec, { closed: false, points }, "[(1,2),(3,4)]"],
      [geometric.polygonCodec, { points }, "((1,2),(3,4))"],
      [geometric.circleCodec, { x: 1, y: 2, radius: 3 }, "<(1,2),3>"],
    ] as const
  ) {
    assert.equal(codec_.encodeText(value), text);
    assert.throws(() => codec_.encodeText({}), ValueError);
    assert.throws(() => codec_.encodeText({ points: [1], x: 1, a: 1, x1: "1" }), ValueError);
  }
  assertRefuses(geometric.pointCodec, ValueError, { text: ["(1)", ""], binary: ["", one] });
  assertRefuses(geometric.pathCodec, ValueError, { binary: ["", "00", "00 00000002" + one + two] });
});

test("hstore is a record", () => {
  assertCases(hstoreCodec as Codec, [
    [
      { "": "", a: "1", "b c": null, 'q"\\': "x,=>" },
      '""=>"", "a"=>"1", "b c"=>NULL, "q\\"\\\\"=>"x,=>"',
      "00000004 00000000 00000000 00000001 61 00000001 31 00000003 622063 ffffffff 00000003 71225c 00000004 782c3d3e",
    ],
    [{}, "", "00000000"],
  ]);
  assertRefuses(hstoreCodec, ValueError, {
    text: ["x", '"a"', '"a"=>', '"a"=>1', '"a"=>"1" "b"=>"2"'],
    binary: ["", "00000001", "00000001 ffffffff ffffffff", "00000000 00", "00000001 00000001 61 fffffffe"],
  });
  const odd = decodeText(hstoreCodec, '"__proto__"=>"x"') as object;
  assert.equal(Object.getOwnPropertyDescriptor(odd, "__proto__")?.value, "x");
  assert.equal(hstoreCodec.encodeText({ 'q"\\': "x", b: null }), '"q\\"\\\\"=>"x", "b"=>NULL');
  assert.equal(hstoreCodec.encodeText(new Map([["a", "1"]])), '"a"=>"1"');
  for (const value of [{ a: 1 }, { a: undefined }, [1], new Date(0).getTime]) {
    assert.throws(() => hstoreCodec.encodeText(value), ValueError);
  }
});

test("vectors are Float32Array", () => {
  assertCases(vectorCodec as Codec, [
    [Float32Array.of(1, 0.1, -2), "[1,0.1,-2]", "0003 0000 3f800000 3dcccccd c0000000"],
  ]);
  assertCases(halfvecCodec as Codec, [
    [
      Float32Array.of(1, -0.5, 65504, 5.9604644775390625e-8),
      "[1,-0.5,65504,5.9604645e-08]",
      "0004 0000 3c00 b800 7bff 0001",
    ],
  ]);
  assertCases(sparsevecCodec as Codec, [
    [
      { dimensions: 5, indices: Int32Array.of(0, 2), values: Float32Array.of(1.5, 2) },
      "{1:1.5,3:2}/5",
      "00000005 00000002 00000000 00000000 00000002 3fc00000 40000000",
    ],
    [
      { dimensions: 3, indices: new Int32Array(0), values: new Float32Array(0) },
      "{}/3",
      "00000003 00000000 00000000",
    ],
  ]);
  assert.equal(vectorCodec.encodeText([1, 0.1, -0]), "[1,0.1,-0]");
  assert.equal(vectorCodec.encodeText(Float32Array.of(1, 2)), "[1,2]");
  const sparse = { dimensions: 5, indices: [0, 2], values: [1.5, 2] };
  assert.equal(sparsevecCodec.encodeText(sparse), "{1:1.5,3:2}/5");
  for (const value of [["1"], {}, [null], new Uint8Array(2)]) {
    assert.throws(() => vectorCodec.encodeText(value), ValueError);
    assert.throws(() => sparsevecCodec.encodeText(value), ValueError);
  }
  assertRefuses(vectorCodec, ValueError, { text: ["1,2", ""], binary: ["", "0002 0000 3f800000"] });
  assert.deepStrictEqual(
    decodeBinary(halfvecCodec, hex("0003 0000 7c00 fc00 0000")),
    Float32Array.of(Infinity, -Infinity, 0),
  );
});
