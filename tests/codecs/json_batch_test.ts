import assert from "node:assert/strict";
import { test } from "node:test";
import { createRegistry } from "../../src/codecs/registry.ts";
import { createRowDecoder, type RowShape } from "../../src/codecs/row_decoder.ts";
import { ProtocolError, ValueError } from "../../src/errors.ts";
import type { Field } from "../../src/wire/backend.ts";
import { seededRandom } from "../_support/proxy.ts";

const registry = createRegistry();
const encoder = new TextEncoder();
const OIDS = { json: 114, jsonb: 3802, int4: 23, text: 25 };

function fieldsOf(columns: readonly (readonly [name: string, type: keyof typeof OIDS])[]): Field[] {
  return columns.map(([name, type]) => ({
    name,
    tableOid: 0,
    columnNumber: 0,
    typeOid: OIDS[type],
    typeSize: -1,
    typeModifier: -1,
    format: 0,
  }));
}

/** The body of a DataRow. */
function body(cells: readonly (string | null)[]): Uint8Array {
  const bytes: number[] = [cells.length >> 8, cells.length & 255];
  for (const cell of cells) {
    const text = cell === null ? undefined : encoder.encode(cell);
    const length = text?.length ?? -1;
    bytes.push(length >> 24 & 255, length >> 16 & 255, length >> 8 & 255, length & 255, ...text ?? []);
  }
  return Uint8Array.from(bytes);
}

/** Rows of both kinds of decoders: one that parses each value, and one that puts JSON off. */
function both(
  fields: readonly Field[],
  rows: readonly Uint8Array[],
  shape: RowShape,
): [unknown[], unknown[]] {
  const plain = createRowDecoder(fields, registry, shape);
  const deferring = createRowDecoder(fields, registry, shape, true);
  const decode = (decoder: typeof plain) => rows.map((row) => decoder(row, 0, row.length));
  const deferred = decode(deferring);
  deferring.deferred!.flush();
  return [decode(plain), deferred];
}

const VALUES: readonly (string | null)[] = [
  null,
  "null",
  " [1, 2,\t3]\n",
  '{"a": {"b": [null, true, -1.5e300]}, "__proto__": 1, "é\\u0000\\"": "😀"}',
  '"a,b]["',
  "12345678901234567890",
  "[]",
  `{"long": "${"x".repeat(5_000)}"}`,
  '"\\ud800"',
];

test("JSON that is put off gives the rows that JSON parsed at once gives", () => {
  const shapes: RowShape[] = ["object", "array"];
  const layouts = [
    [["a", "json"]],
    [["a", "jsonb"], ["n", "int4"], ["b", "json"]],
    [["same", "json"], ["same", "jsonb"], ["__proto__", "json"], ["", "jsonb"], ['a"b\\', "json"], [
      "1",
      "json",
    ]],
    [["same", "json"], ["same", "text"], ["j", "json"]],
  ] as const;
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = seededRandom(seed);
  for (const layout of layouts) {
    const fields = fieldsOf(layout);
    for (const shape of shapes) {
      for (const count of [1, 2, 500]) {
        const rows = Array.from(
          { length: count },
          (_, i) =>
            body(
              layout.map(([, type]) =>
                type === "int4"
                  ? String(i)
                  : type === "text"
                  ? `t${i}`
                  : VALUES[Math.floor(random() * VALUES.length)]!
              ),
            ),
        );
        const [plain, deferred] = both(fields, rows, shape);
        assert.deepEqual(deferred, plain, `seed ${seed}`);
        for (const [i, row] of deferred.entries()) {
          assert.deepEqual(Object.keys(row as object), Object.keys(plain[i] as object));
          assert.equal(Object.getPrototypeOf(row), Object.getPrototypeOf(plain[i]));
        }
      }
    }
  }
});

test("a value that is no JSON is named, and leaves nothing behind", () => {
  const fields = fieldsOf([["good", "json"], ["bad", "jsonb"]]);
  const decode = createRowDecoder(fields, registry, "object", true);
  for (const value of ["", "{", "1,2", "1],[2", "]", '"', "undefined", "\0"]) {
    const rows = [body(["1", "2"]), body(["3", value]), body(["4", "5"])];
    for (const row of rows) decode(row, 0, row.length);
    assert.throws(() => decode.deferred!.flush(), (error) => {
      assert.ok(error instanceof ValueError && error.cause instanceof SyntaxError, String(error));
      assert.equal(error.message, 'Cannot decode column "bad" of type jsonb');
      return true;
    }, JSON.stringify(value));
    const next = body(["6", "7"]);
    const row = decode(next, 0, next.length);
    decode.deferred!.flush();
    assert.deepEqual(row, { good: 6, bad: 7 });
  }
  // Together they look like as many values as there should be.
  const rows = [body(["1,2", "3"]), body(["4", ""])];
  for (const row of rows) decode(row, 0, row.length);
  assert.throws(() => decode.deferred!.flush(), ValueError);
});

test("a row that fails takes its own JSON with it, and no other's", () => {
  // In binary format, whose length a codec checks.
  const fields = fieldsOf([["j", "json"], ["n", "int4"]]).map((field, i) => ({
    ...field,
    format: i as 0 | 1,
  }));
  const decode = createRowDecoder(fields, registry, "object", true);
  const make = (cells: readonly (string | null)[]) => {
    const row = body(cells);
    return decode(row, 0, row.length);
  };
  const first = make(["[1]", "\0\0\0\x01"]);
  assert.throws(() => make(["[2]", "five5"]), ValueError);
  assert.throws(() => decode(body(["[3]", "\0\0\0\x03"]), 0, 12), ProtocolError);
  const last = make(["[4]", "\0\0\0\x04"]);
  decode.deferred!.flush();
  assert.deepEqual([first, last], [{ j: [1], n: 1 }, { j: [4], n: 4 }]);
  // What nobody wants any more is not found in what comes later.
  make(["[5]", "\0\0\0\x05"]);
  decode.deferred!.discard();
  const next = make([null, "\0\0\0\x06"]);
  decode.deferred!.flush();
  assert.deepEqual(next, { j: null, n: 6 });
});
