import assert from "node:assert/strict";
import { test } from "node:test";
import { createArrayCodec } from "../../src/codecs/array.ts";
import { boolCodec } from "../../src/codecs/bool.ts";
import { byteaCodec } from "../../src/codecs/bytea.ts";
import type { Codec } from "../../src/codecs/codec.ts";
import { float4Codec, float8Codec } from "../../src/codecs/float.ts";
import { int2Codec, int4Codec } from "../../src/codecs/int.ts";
import { int8Codec } from "../../src/codecs/int8.ts";
import { jsonbCodec } from "../../src/codecs/json.ts";
import { numericCodec } from "../../src/codecs/numeric.ts";
import { Json } from "../../src/codecs/parameter.ts";
import { opaqueCodec, textCodec } from "../../src/codecs/text.ts";
import { timestamptzCodec } from "../../src/codecs/timestamp.ts";
import { ValueError } from "../../src/errors.ts";
import { assertCases, assertProperty, assertRefuses, decodeBinary, decodeText } from "./codec_cases.ts";
import { encodeBinary, hex } from "./codec_cases.ts";

const int4s = createArrayCodec(int4Codec, 23, ",") as Codec;
const texts = createArrayCodec(textCodec("text"), 25, ",") as Codec;
const jsonbs = createArrayCodec(jsonbCodec, 3802, ",") as Codec;

test("int4[] with NULL, dimensions and bounds", () => {
  assertCases(int4s, [
    [
      [1, null, 3],
      "{1,NULL,3}",
      "00000001 00000001 00000017 00000003 00000001 00000004 00000001 ffffffff 00000004 00000003",
    ],
    [
      [[1, 2], [3, null]],
      "{{1,2},{3,NULL}}",
      "00000002 00000001 00000017 00000002 00000001 00000002 00000001 " +
      "00000004 00000001 00000004 00000002 00000004 00000003 ffffffff",
    ],
    [[], "{}", "00000000 00000000 00000017"],
  ]);
  // Lower bounds are dropped, so these are read and not written.
  assert.deepStrictEqual(decodeText(int4s, "[0:2]={1,2,3}"), [1, 2, 3]);
  assert.deepStrictEqual(decodeText(int4s, "[-1:0][2:3]={{1,2},{3,4}}"), [[1, 2], [3, 4]]);
  assert.deepStrictEqual(
    decodeBinary(
      int4s,
      hex(
        "00000002 00000000 00000017 00000002 ffffffff 00000002 00000002 00000004 00000001 00000004 00000002 " +
          "00000004 00000003 00000004 00000004",
      ),
    ),
    [[1, 2], [3, 4]],
  );
});

test("text[] keeps quoted NULL, empty strings, escapes and blanks", () => {
  assertCases(texts, [
    [
      [null, "NULL", "null", "", " a ", "a b", "a", "a,b", "{x}"],
      '{NULL,"NULL","null",""," a ","a b",a,"a,b","{x}"}',
      "00000001 00000001 00000019 00000009 00000001 ffffffff 00000004 4e554c4c 00000004 6e756c6c 00000000 " +
      "00000003 206120 00000003 612062 00000001 61 00000003 612c62 00000003 7b787d",
    ],
    [
      ["a\\b", 'a"b'],
      '{"a\\\\b","a\\"b"}',
      "00000001 00000000 00000019 00000002 00000001 00000003 615c62 00000003 612262",
    ],
    [["a", "b", "c=d"], '[0:2]={a,b,"c=d"}'],
    [["é", "日本"], "{é,日本}"],
  ]);
});

test("arrays of other types have their scalar's values", () => {
  const arrays: readonly (readonly [Codec, string, unknown])[] = [
    [int2Codec, "{1}", [1]],
    [int8Codec, "{1,NULL}", [1n, null]],
    [float4Codec, "{0.1,-0,NaN}", [0.1, -0, NaN]],
    [float8Codec, "{Infinity,-Infinity}", [Infinity, -Infinity]],
    [numericCodec, "{235432654766387365825634725462354632415634256415,NaN}", [
      "235432654766387365825634725462354632415634256415",
      "NaN",
    ]],
    [boolCodec, "{t,f,NULL}", [true, false, null]],
    [byteaCodec, '{"\\\\x1a2b",NULL,"\\\\x"}', [hex("1a2b"), null, hex("")]],
    [timestamptzCodec, '{"2026-08-18 01:02:03.5+00",infinity}', [
      new Date("2026-08-18T01:02:03.500Z"),
      Infinity,
    ]],
    [jsonbCodec, '{"null",NULL,"{\\"a\\": 1}"}', [null, null, { a: 1 }]],
  ];
  for (const [element, text, value] of arrays) {
    assert.deepStrictEqual(decodeText(createArrayCodec(element, 0, ",") as Codec, text), value, element.name);
  }
  const bytes = "00000001 00000001 00000011 00000003 00000001 00000002 1a2b ffffffff 00000000";
  assertCases(createArrayCodec(byteaCodec, 17, ",") as Codec, [[[hex("1a2b"), null, hex("")], null, bytes]]);
});

test("the delimiter is the element type's", () => {
  const boxes = createArrayCodec(opaqueCodec("box"), 603, ";") as Codec;
  assertCases(boxes, [[["(3,4),(1,2)", "(7,8),(5,6)"], "{(3,4),(1,2);(7,8),(5,6)}"]]);
  assert.equal(boxes.encodeText(["(3,4),(1,2)", null, "a;b"]), '{(3,4),(1,2);NULL;"a;b"}');
  assert.equal(boxes.decodeBinary, undefined);
  assert.equal(boxes.preferredFormat, 0);
});

test("arrays have six dimensions at most", () => {
  assert.deepStrictEqual(decodeText(int4s, "{{{{{{1}}}}}}"), [[[[[[1]]]]]]);
  assertRefuses(int4s, ValueError, { text: ["{{{{{{{1}}}}}}}", "{".repeat(100_000)] });
});

test("malformed arrays are refused", () => {
  assertRefuses(int4s, ValueError, {
    text: [
      "",
      "1",
      "{",
      "{1",
      "{1,",
      "{1,2",
      "{1}}",
      "{1}x",
      '{"1',
      '{"1"x}',
      "{{1}",
      "[0:1]",
      "[0:1]={",
      "{1,}",
      "{,}",
      "{,1}",
    ],
    binary: [
      "",
      "00000000",
      "00000000 00000000 00000017 00",
      "00000007 00000000 00000017",
      "ffffffff 00000000 00000017",
      "00000001 00000000 00000017 00000001 00000001",
      "00000001 00000000 00000017 7fffffff 00000001 00000004 00000001",
      "00000001 00000000 00000017 00000001 00000001 00000004 0000",
      "00000001 00000000 00000017 00000001 00000001 fffffffe",
      "00000001 00000000 00000017 00000001 00000001 00000004 00000001 00",
      "00000002 00000000 00000017 0000ffff 00000001 0000ffff 00000001 00000004 00000001",
    ],
  });
});

test("array text quotes what the server would read otherwise", () => {
  const values = [
    "c:\\temp\\x",
    'a"b',
    "\n",
    "\tx",
    "x\n",
    "",
    "null",
    "NULL",
    "{",
    "}",
    ",",
    "é",
    "a b",
    "a",
  ];
  assert.equal(
    texts.encodeText([...values, null]),
    '{"c:\\\\temp\\\\x","a\\"b","\n","\tx","x\n","","null","NULL","{","}",",",é,"a b",a,NULL}',
  );
  assert.equal(texts.encodeText([1, 2n, true, -0]), "{1,2,true,-0}");
  assert.equal(texts.encodeText([new Date(-63517824000000)]), '{"0044-03-15T00:00:00.000Z BC"}');
});

test("array parameters of every shape", () => {
  assert.equal(int4s.encodeText([]), "{}");
  assert.equal(int4s.encodeText([[], []]), "{}");
  assert.equal(int4s.encodeText([[1, 2], [3, null]]), "{{1,2},{3,NULL}}");
  assert.equal(int4s.encodeText(new Int32Array([1, -2])), "{1,-2}");
  assert.equal(
    encodeBinary(int4s, new Int32Array([1])),
    "000000010000000000000017000000010000000100000004" + "00000001",
  );
  // Elements that only text can say make the whole array text.
  assert.equal(encodeBinary(int4s, [1, "2"]), false);
  assert.equal(encodeBinary(int4s, [1, 1.5]), false);
  assert.equal(encodeBinary(int4s, [[1], ["2"]]), false);
});

test("arrays that are not rectangular, or hold undefined, are refused", () => {
  const refused = [
    [[1], [2, 3]],
    [1, [2]],
    [[1], 2],
    [[1], null],
    [undefined],
    [1, undefined],
    [[undefined]],
    // deno-lint-ignore no-sparse-arrays
    [1, , 2],
    [[[[[[[1]]]]]]],
    { 0: 1 },
    5,
    new Date(0),
    new DataView(new ArrayBuffer(1)),
  ];
  for (const value of refused) {
    assert.throws(() => int4s.encodeText(value), ValueError, JSON.stringify(value));
  }
  assert.throws(() => texts.encodeText([new Date(NaN)]), ValueError);
  assert.throws(() => texts.encodeText([{}]), ValueError);
});

test("jsonb[] takes inner arrays as JSON, null as NULL and sql.json(null) as JSON null", () => {
  assert.equal(jsonbs.encodeText([{ a: 1 }, null, [1, [2]], 5]), '{"{\\"a\\":1}",NULL,"[1,[2]]",5}');
  assert.equal(jsonbs.encodeText([new Json(null), new Json("x")]), '{"null","\\"x\\""}');
  assert.equal(jsonbs.encodeText(['"x"']), '{"\\"x\\""}');
  assert.throws(() => jsonbs.encodeText([new Date(0)]), ValueError);
});

test("jsonb[] in binary", () => {
  const start = "00000001" + "00000000" + "00000eda" + "00000001" + "00000001";
  assert.equal(encodeBinary(jsonbs, [{ a: 1 }]), start + "00000008" + "017b2261223a317d");
  assert.equal(encodeBinary(jsonbs, ["null"]), start + "00000005" + "016e756c6c");
  assert.equal(encodeBinary(jsonbs, [new Json("x")]), false);
});

test("text[] survives its own text and binary form", () => {
  const alphabet = ["a", '"', "\\", ",", "{", "}", " ", "\n", "N", "U", "L", "é", "😀", ";"];
  assertProperty("text[]", 5_000, (random) => {
    const pick = () =>
      Array.from({ length: random() * 6 }, () => alphabet[Math.floor(random() * alphabet.length)]!).join("");
    const width = 1 + Math.floor(random() * 3);
    const list = () => Array.from({ length: width }, () => random() < 0.2 ? null : pick());
    const value = random() < 0.5 ? list() : [list(), list()];
    assert.deepStrictEqual(decodeText(texts, texts.encodeText(value)), value);
    assert.deepStrictEqual(decodeBinary(texts, hex(encodeBinary(texts, value) as string)), value);
  });
});

test("long array texts are read in linear time", () => {
  const text = `{${'"a\\"b",'.repeat(200_000)}x}`;
  const started = performance.now();
  assert.equal((decodeText(texts, text) as unknown[]).length, 200_001);
  assert.ok(performance.now() - started < 5_000);
});
