/**
 * Texts of another type than the one expected, as a composite altered meanwhile has them: refused with a ValueError,
 * never read as some other value.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { createRegistry } from "../../src/codecs/registry.ts";
import { generateRowDecoder, loopRowDecoder } from "../../src/codecs/row_decoder.ts";
import { ValueError } from "../../src/errors.ts";
import { decodeText } from "./codec_cases.ts";

const TEXTS = [
  ...[
    "",
    " ",
    "-",
    "+",
    ".",
    "e",
    "abc",
    "NULL",
    "null",
    "t",
    "f",
    "true",
    "tt",
    "0",
    "7",
    "-7",
    "+7",
    " 7",
    "7 ",
  ],
  ...[
    "-0",
    "007",
    "7a",
    "a7",
    "7-",
    "--7",
    "1_0",
    "0x1f",
    "1.5",
    "-1.5",
    ".5",
    "5.",
    "1.5.2",
    "1e5",
    "1e+05",
    "1e",
  ],
  ...["32768", "-32769", "65536", "2147483648", "-2147483649", "4294967295", "4294967296", "999999999999999"],
  ...["9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"],
  ...["18446744073709551615", "18446744073709551616", "1e999", "9".repeat(400), "NaN", "nan", "-NaN"],
  ...["Infinity", "-Infinity", "infinity", "-infinity", "Infinity1"],
  ...[
    "2026-08-05",
    "2026-08-0a",
    "20a6-08-05",
    "2026-08",
    "2026/08/05",
    "2026-08-05 01:02:03",
    "2026-08-05 01:02:03+00",
  ],
  ...[
    "2026-08-05 01:0a:03",
    "2026-xx-05 01:02:03",
    "2026-08-05T01:02:03",
    "2026-08-05 01:02:03+0a",
    "2026x08x05 01:02:03",
  ],
  ...[
    "2026-08-05 01:02:03 CEST",
    "01:02:03",
    "01:02:03+02",
    "1 day",
    "P1D",
    "@ 1 day",
    "1 dog",
    "-1 day +02:03",
  ],
  ...[
    "(1,2)",
    "(1,2",
    "(1,a)",
    "(1,,2)",
    "(1)",
    "(1,2,3)",
    "[(1,2),(3,4)]",
    "(1,2),(3,4)",
    "((1,2),(3,4))",
    "<(1,2),3>",
  ],
  ...[
    "{1,2,3}",
    "((1,2),(3))",
    "[1,2)",
    "[1,2]",
    "{}",
    "[]",
    "[a,1]",
    "\\x00",
    "\\xzz",
    '{"a": 1}',
    '"a"=>"b"',
  ],
  "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
];

/** By type: the texts above that are of it. */
const OWN: Readonly<Record<string, readonly string[]>> = {
  bool: ["t", "f"],
  int2: ["0", "7", "-7", "-0", "007"],
  int4: ["0", "7", "-7", "-0", "007", "32768", "-32769", "65536"],
  int8: [
    ...["0", "7", "-7", "-0", "007", "32768", "-32769", "65536", "2147483648", "-2147483649", "4294967295"],
    ...["4294967296", "999999999999999", "9223372036854775807", "-9223372036854775808"],
  ],
  oid: ["0", "7", "-0", "007", "32768", "65536", "2147483648", "4294967295"],
  xid8: [
    ...["0", "7", "-0", "007", "32768", "65536", "2147483648", "4294967295", "4294967296", "999999999999999"],
    ...["9223372036854775807", "9223372036854775808", "18446744073709551615"],
  ],
  date: ["2026-08-05", "infinity", "-infinity"],
  time: ["01:02:03", "01:02:03+02"],
  timetz: ["01:02:03", "01:02:03+02"],
  timestamp: ["2026-08-05 01:02:03", "2026-08-05 01:02:03+00", "infinity", "-infinity"],
  timestamptz: ["2026-08-05 01:02:03", "2026-08-05 01:02:03+00", "infinity", "-infinity"],
  interval: ["2026-08", "01:02:03", "1 day", "P1D", "@ 1 day", "-1 day +02:03", "0", "infinity", "-infinity"],
  uuid: ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
  point: ["(1,2)"],
  line: ["{1,2,3}"],
  lseg: ["[(1,2),(3,4)]"],
  box: ["(1,2),(3,4)"],
  path: ["[(1,2),(3,4)]", "((1,2),(3,4))"],
  polygon: ["((1,2),(3,4))"],
  circle: ["<(1,2),3>"],
  int4range: ["[1,2)", "[1,2]", "(1,2)"],
  _int4: ["{1,2,3}", "{}"],
  int4multirange: ["{}"],
};

/** Numbers are told by all their characters; numerics, which stay text, by their ends. */
const FLOATS = /^(?:[-+]?\d+|-?\d*\.?\d+|\d\.|1e5|1e\+05|NaN|-?Infinity)$/;

const registry = createRegistry();
const column = (oid: number) => [{ name: "total", codec: registry.codecFor(oid)!, format: 0 as const }];
const encoder = new TextEncoder();

function isRefused(oid: number, text: string): boolean {
  const body = encoder.encode(`\0\x01\0\0\0\0${text}`);
  body[4] = text.length >> 8;
  body[5] = text.length;
  let refused = 0;
  for (const make of [generateRowDecoder, loopRowDecoder]) {
    try {
      make(column(oid), "object")(body, 0, body.length);
    } catch (error) {
      assert.ok(error instanceof ValueError, String(error));
      assert.match(error.message, /^Cannot decode column "total" of type \S+: /);
      refused++;
    }
  }
  assert.ok(refused !== 1, "both decoders agree");
  return refused > 0;
}

for (const [type, own] of Object.entries(OWN)) {
  test(`${type} refuses the text of other types, naming the column`, () => {
    const oid = registry.oidOf(type)!;
    for (const text of TEXTS) assert.equal(isRefused(oid, text), !own.includes(text), `${type} "${text}"`);
  });
}

for (const type of ["float4", "float8"]) {
  test(`${type} refuses the text of other types, naming the column`, () => {
    const oid = registry.oidOf(type)!;
    for (const text of TEXTS) {
      const own = FLOATS.test(text) && text !== "9".repeat(400);
      assert.equal(isRefused(oid, text), !own, `${type} "${text}"`);
      if (own) assert.ok(Object.is(decodeText(registry.codecFor(oid)!, text), Number(text)), text);
    }
  });
}

test("a numeric is a number's text", () => {
  const oid = registry.oidOf("numeric")!;
  for (
    const text of [
      "",
      "-",
      "abc",
      "t",
      "a7",
      "7a",
      "(1,2)",
      "{1,2}",
      "Infinity1",
      "nan",
      "-NaN",
      "1 day",
      '"a"=>"b"',
    ]
  ) {
    assert.ok(isRefused(oid, text), text);
  }
  for (const text of ["0", "-7", "1.50", "NaN", "Infinity", "-Infinity", "9".repeat(400)]) {
    assert.equal(decodeText(registry.codecFor(oid)!, text), text);
  }
});

test('int8 refuses the text of other types as "number" and "string" too', () => {
  for (const int8 of ["number", "string"] as const) {
    const codec = createRegistry({ int8 }).codecFor(20)!;
    for (const text of ["", "-", "abc", "7a", "1.5", "0x1f", " 7", "1e5", "t"]) {
      assert.throws(() => decodeText(codec, text), ValueError, `${int8} "${text}"`);
    }
    assert.deepStrictEqual(String(decodeText(codec, "-9007199254740991")), "-9007199254740991");
  }
});
