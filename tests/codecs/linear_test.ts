/** Every text parser takes time in proportion to its text, whether that is well-formed or not. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { createRegistry, type TypeDescription } from "../../src/codecs/registry.ts";
import { ValueError } from "../../src/errors.ts";
import { assertLinear } from "../_support/linear.ts";

const OWN: readonly TypeDescription[] = [
  { oid: 50_001, name: "hstore", kind: "base" },
  { oid: 50_002, name: "vector", kind: "base" },
  { oid: 50_003, name: "sparsevec", kind: "base" },
  { oid: 50_004, name: "halfvec", kind: "base" },
  {
    oid: 50_005,
    name: "pair",
    kind: "composite",
    attributes: [{ name: "a", typeOid: 25 }, { name: "b", typeOid: 1009 }],
  },
  { oid: 50_006, name: "textrange", kind: "range", subtype: 25 },
  { oid: 50_007, name: "textmultirange", kind: "multirange", range: 50_006 },
];
const registry = createRegistry().withTypes(OWN);
const encoder = new TextEncoder();

/** Type, and texts of about `size` characters; those marked refused are no value of the type. JSON is for the runtime to parse. */
const TEXTS: readonly (readonly [string, (size: number) => string, "refused"?])[] = [
  ["text", (size) => "é".repeat(size)],
  ["numeric", (size) => "1".repeat(size)],
  ["bytea", (size) => "\\x" + "ab".repeat(size / 2)],
  ["bytea", (size) => "a\\\\\\001".repeat(size / 7)],
  ["int4[]", (size) => `{${"12345,".repeat(size / 6)}1}`],
  ["int4[]", (size) => `{${"{1,2},".repeat(size / 6)}{3,4}}`],
  ["text[]", (size) => `{${'"a\\"b\\\\",'.repeat(size / 10)}x}`],
  ["text[]", (size) => `{"${"\\\\".repeat(size / 2)}"}`],
  ["text[]", (size) => `{${"{".repeat(size)}`, "refused"],
  ["text[]", (size) => `{"${"x".repeat(size)}`, "refused"],
  ["record", (size) => `(${'"a""b",'.repeat(size / 7)}x)`],
  ["record", (size) => `("${'""'.repeat(size / 2)}")`],
  ["pair", (size) => `("${'""'.repeat(size / 2)}","{${"a,".repeat(size / 2)}b}")`],
  ["pair", (size) => `("${"x".repeat(size)}`, "refused"],
  ["int4range", (size) => `[${" ".repeat(size)}`, "refused"],
  ["textrange", (size) => `["${"\\\\".repeat(size / 2)}",z)`],
  ["textmultirange", (size) => `{${'["a",b),'.repeat(size / 8)}[c,d)}`],
  ["int4multirange", (size) => `{${"[1,2),".repeat(size / 6)}[1,2)}`],
  ["path", (size) => `((1,2)${",(3.5,4)".repeat(size / 8)})`],
  ["polygon", (size) => `((1,2)${",(3.5,4)".repeat(size / 8)})`],
  ["polygon", (size) => `((1,2)${",(3.5,4".repeat(size / 8)}`, "refused"],
  ["point", (size) => `(${"1".repeat(size)}`, "refused"],
  ["hstore", (size) => `"a"=>"1"${', "b"=>NULL'.repeat(size / 11)}`],
  ["hstore", (size) => `"${'\\"'.repeat(size / 2)}"=>"x"`],
  ["hstore", (size) => `"${"x".repeat(size)}`, "refused"],
  ["vector", (size) => `[${"1.5,".repeat(size / 4)}1]`],
  ["halfvec", (size) => `[${"1.5,".repeat(size / 4)}1]`],
  [
    "sparsevec",
    (size) => `{1:1${Array.from({ length: size / 9 }, (_, i) => `,${i + 2}:1`).join("")}}/${size}`,
  ],
  ["date", (size) => `${"1".repeat(size)}-01-01`],
  ["date", (size) => "1".repeat(size), "refused"],
  ["date", (size) => `01/${"1".repeat(size)}`, "refused"],
  ["timestamp", (size) => "1".repeat(size), "refused"],
  ["timestamptz", (size) => `2024-01-01 00:00:00.${"1".repeat(size)}`],
  ["timestamptz", (size) => `2024-01-01 00:00:00+00${":00".repeat(size / 3)}`],
  ["timestamptz", (size) => `Tue 18 Aug 00:00:00.${"1".repeat(size)} 2024 X`, "refused"],
  ["interval", (size) => `1 day${" 1 mon".repeat(size / 6)}`],
  ["interval", (size) => `P${"1D".repeat(size / 2)}`],
  ["interval", (size) => "1".repeat(size) + "x", "refused"],
  ["interval", (size) => `P${"1".repeat(size)}`, "refused"],
  ["interval", (size) => `+1-2${" +3".repeat(size / 3)}`],
  ["time", (size) => `01:02:03.${"1".repeat(size)}`],
  ["time", (size) => "1".repeat(size), "refused"],
  ["int4", (size) => "1".repeat(size), "refused"],
  ["int8", (size) => "1".repeat(size), "refused"],
  ["xid8", (size) => "1".repeat(size / 100), "refused"],
  ["float8", (size) => `0.${"1".repeat(size)}`],
  ["float8", (size) => "1".repeat(size), "refused"],
  ["float8", (size) => `1${"e1".repeat(size / 2)}`, "refused"],
  ["numeric", (size) => "1".repeat(size)],
  ["numeric", (size) => `-${"Infinity".repeat(size / 8)}`, "refused"],
  ["point", (size) => `(${"1".repeat(size)},1)`, "refused"],
  ["path", (size) => `[${"(1,2),".repeat(size / 6)}(1,2)]`],
  ["path", (size) => `[${"(1,2".repeat(size / 4)}`, "refused"],
];

// Enough for milliseconds where a character costs nanoseconds.
const SIZE = 50_000;

for (const [type, create, refused] of TEXTS) {
  const codec = registry.codecFor(registry.oidOf(type)!)!;
  test(`${type} ${create(20).slice(0, 24)}… is read in linear time`, async () => {
    const decode = (bytes: Uint8Array): void => {
      try {
        codec.decodeText(bytes, 0, bytes.length);
      } catch (error) {
        assert.ok(refused && error instanceof ValueError, String(error));
      }
    };
    await assertLinear(
      (size) => {
        const bytes = encoder.encode(create(size));
        const began = performance.now();
        for (let i = 0; i < 3; i++) decode(bytes);
        return performance.now() - began;
      },
      SIZE,
      16,
    );
  });
}

test("long texts are read whole: no parser goes as deep as its text is long", () => {
  for (const [type, create, refused] of TEXTS) {
    if (refused) continue;
    const codec = registry.codecFor(registry.oidOf(type)!)!;
    const bytes = encoder.encode(create(1_000_000));
    assert.doesNotThrow(() => codec.decodeText(bytes, 0, bytes.length), `${type} ${create(20)}`);
  }
});
