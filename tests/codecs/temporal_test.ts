import assert from "node:assert/strict";
import { test } from "node:test";
import type { Codec } from "../../src/codecs/codec.ts";
import { Interval } from "../../src/codecs/interval.ts";
import { isAmbiguous } from "../../src/codecs/parameter.ts";
import { createRegistry } from "../../src/codecs/registry.ts";
import { textForm } from "../../src/codecs/text_form.ts";
import { ConfigurationError, ValueError } from "../../src/errors.ts";
import { decodeBinary, decodeText, hex } from "./codec_cases.ts";

// Not every runtime has Temporal, nor every library its types.
// deno-lint-ignore no-explicit-any
const Temporal: any = (globalThis as { Temporal?: unknown }).Temporal;
const options = { skip: Temporal === undefined ? "this runtime has no Temporal" : false };

/** The class and text of the value, from text and from binary. */
function assertTemporal(type: string, cases: readonly (readonly [string, string, string | null])[]): void {
  const registry = createRegistry({ temporal: true });
  const codec = registry.codecFor(registry.oidOf(type)!) as Codec;
  for (const [expected, text, binary] of cases) {
    const values = [decodeText(codec, text)];
    if (binary !== null) values.push(decodeBinary(codec, hex(binary)));
    for (const value of values) {
      const tag = (value as { [Symbol.toStringTag]?: string })[Symbol.toStringTag] ?? typeof value;
      assert.equal(`${tag} ${value}`, expected);
    }
  }
}

test("temporal: true needs a runtime with Temporal", () => {
  const saved = Object.getOwnPropertyDescriptor(globalThis, "Temporal");
  Object.defineProperty(globalThis, "Temporal", { value: undefined, configurable: true, writable: true });
  try {
    assert.throws(() => createRegistry({ temporal: true }), ConfigurationError);
  } finally {
    if (saved === undefined) delete (globalThis as { Temporal?: unknown }).Temporal;
    else Object.defineProperty(globalThis, "Temporal", saved);
  }
});

test("dates and times are Temporal objects that keep microseconds", options, () => {
  assertTemporal("date", [
    ["Temporal.PlainDate 2024-02-29", "2024-02-29", "00002279"],
    ["Temporal.PlainDate -000043-03-15", "0044-03-15 BC", "fff49d7b"],
    ["Temporal.PlainDate 0050-01-01", "0050-01-01", "fff521e2"],
    ["string infinity", "infinity", "7fffffff"],
  ]);
  assertTemporal("time", [["Temporal.PlainTime 23:59:59.999999", "23:59:59.999999", "000000141dd75fff"]]);
  assertTemporal("timestamp", [
    ["Temporal.PlainDateTime 1999-12-31T23:59:59.999999", "1999-12-31 23:59:59.999999", "ffffffffffffffff"],
    ["Temporal.PlainDateTime 0000-01-01T00:00:00", "0001-01-01 00:00:00 BC", "ff1fc63d1bb12000"],
    ["Temporal.PlainDateTime +012345-01-02T03:04:05.678", "12345-01-02 03:04:05.678", "0487ceb9b735cbb0"],
    ["number -Infinity", "-infinity", "8000000000000000"],
  ]);
  assertTemporal("timestamptz", [
    ["Temporal.Instant 1969-12-31T23:59:59.9995Z", "1969-12-31 23:59:59.9995+00", "fffca2fec4c81e0c"],
    ["Temporal.Instant -000043-03-15T00:00:00Z", "0044-03-15 05:41:16+05:41:16 BC", "ff1af9deec5b2000"],
    ["Temporal.Instant 2026-08-18T01:02:03.5Z", "2026-08-17 21:02:03.5-04", "0002fc469a8159e0"],
    ["number Infinity", "infinity", "7fffffffffffffff"],
  ]);
  assertTemporal("interval", [
    ["Temporal.Duration P1Y2M3DT4H5M6.789001S", "1 year 2 mons 3 days 04:05:06.789001", null],
    ["Temporal.Duration -P1Y", "-1 years", "0000000000000000 00000000 fffffff4"],
    ["Temporal.Duration PT0S", "00:00:00", "0000000000000000 00000000 00000000"],
  ]);
});

test("what Temporal cannot hold is a ValueError", options, () => {
  const registry = createRegistry({ temporal: true });
  for (const [oid, text] of [[1082, "5874897-12-31"], [1083, "24:00:00"], [1186, "1 mon -1 days"]] as const) {
    assert.throws(() => decodeText(registry.codecFor(oid)!, text), ValueError);
  }
  assert.throws(() => decodeText(registry.codecFor(1114)!, "294276-12-31 23:59:59.999999"), ValueError);
  assert.ok(decodeText(registry.codecFor(1186)!, "infinity") instanceof Interval);
});

test("Temporal objects have a text form of their own", options, () => {
  const cases: readonly (readonly [unknown, string])[] = [
    [Temporal.PlainDate.from("2024-02-29[u-ca=hebrew]"), "2024-02-29"],
    [Temporal.PlainDate.from("-000043-03-15"), "0044-03-15 BC"],
    [Temporal.PlainDate.from("0000-12-31"), "0001-12-31 BC"],
    [Temporal.PlainDateTime.from("+012345-01-02T03:04:05.000001"), "12345-01-02T03:04:05.000001"],
    [Temporal.Instant.from("1969-12-31T23:59:59.9995Z"), "1969-12-31T23:59:59.9995Z"],
    [Temporal.ZonedDateTime.from("2026-08-18T03:02:03[Europe/Paris]"), "2026-08-18T01:02:03Z"],
    [Temporal.PlainTime.from("01:02:03.000004"), "01:02:03.000004"],
    [Temporal.Duration.from("P1Y2M1W3DT4H5M6.789001S"), "P14M10DT14706.789001000S"],
    [Temporal.Duration.from("-PT0.5S"), "P0M0DT-0.500000000S"],
  ];
  const registry = createRegistry();
  for (const [value, text] of cases) {
    assert.equal(textForm(value), text);
    assert.equal(isAmbiguous(value), false);
    assert.throws(() => registry.codecFor(3802)!.encodeText(value), ValueError);
  }
  assert.equal(registry.codecFor(1187)!.encodeText([cases[7]![0]]), "{P14M10DT14706.789001000S}");
  assert.equal(registry.codecFor(1186)!.encodeText(cases[7]![0]), "P14M10DT14706.789001000S");
  assert.equal(isAmbiguous(Temporal.PlainYearMonth.from("2024-01")), true);
});
