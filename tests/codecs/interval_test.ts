import assert from "node:assert/strict";
import { test } from "node:test";
import { Interval, intervalCodec } from "../../src/codecs/interval.ts";
import { ValueError } from "../../src/errors.ts";
import { assertCases, assertProperty, assertRefuses, decodeText } from "./codec_cases.ts";

const of = (months: number, days: number, microseconds: number): Interval =>
  new Interval(months, days, microseconds);

test("interval in every IntervalStyle and in binary", () => {
  // Per line: the value, styles postgres, iso_8601, postgres_verbose and sql_standard, and the binary form.
  const cases: readonly (readonly [Interval, string, string, string, string, string])[] = [
    [
      of(10, 3, -14706789000),
      "10 mons 3 days -04:05:06.789",
      "P10M3DT-4H-5M-6.789S",
      "@ 10 mons 3 days -4 hours -5 mins -6.789 secs",
      "+0-10 +3 -4:05:06.789",
      "fffffffc93683578 00000003 0000000a",
    ],
    [
      of(0, 0, -500000),
      "-00:00:00.5",
      "PT-0.5S",
      "@ 0.5 secs ago",
      "-0:00:00.5",
      "fffffffffff85ee0 00000000 00000000",
    ],
    [of(14, 0, 0), "1 year 2 mons", "P1Y2M", "@ 1 year 2 mons", "1-2", "0000000000000000 00000000 0000000e"],
    [
      of(0, -3, -14706000000),
      "-3 days -04:05:06",
      "P-3DT-4H-5M-6S",
      "@ 3 days 4 hours 5 mins 6 secs ago",
      "-3 4:05:06",
      "fffffffc93743f80 fffffffd 00000000",
    ],
    [of(0, 3, 0), "3 days", "P3D", "@ 3 days", "3 0:00:00", "0000000000000000 00000003 00000000"],
    [of(0, 0, 0), "00:00:00", "PT0S", "@ 0", "0", "0000000000000000 00000000 00000000"],
    [of(-12, 0, 0), "-1 years", "P-1Y", "@ 1 year ago", "-1-0", "0000000000000000 00000000 fffffff4"],
    [
      of(0, 1, -3600000000),
      "1 day -01:00:00",
      "P1DT-1H",
      "@ 1 day -1 hours",
      "+0-0 +1 -1:00:00",
      "ffffffff296c5c00 00000001 00000000",
    ],
    [
      of(0, 0, 1500000),
      "00:00:01.5",
      "PT1.5S",
      "@ 1.5 secs",
      "0:00:01.5",
      "000000000016e360 00000000 00000000",
    ],
    [
      of(-1, 1, 0),
      "-1 mons +1 day",
      "P-1M1D",
      "@ 1 mon -1 days ago",
      "-0-1 +1 +0:00:00",
      "0000000000000000 00000001 ffffffff",
    ],
    [
      of(0, 0, -1000001),
      "-00:00:01.000001",
      "PT-1.000001S",
      "@ 1.000001 secs ago",
      "-0:00:01.000001",
      "fffffffffff0bdbf 00000000 00000000",
    ],
    [
      of(2136000000, 0, 0),
      "178000000 years",
      "P178000000Y",
      "@ 178000000 years",
      "178000000-0",
      "0000000000000000 00000000 7f50c600",
    ],
    [
      of(0, 0, 86340000000),
      "23:59:00",
      "PT23H59M",
      "@ 23 hours 59 mins",
      "23:59:00",
      "000000141a43d900 00000000 00000000",
    ],
    [
      of(1, 2, 10800000000),
      "1 mon 2 days 03:00:00",
      "P1M2DT3H",
      "@ 1 mon 2 days 3 hours",
      "+0-1 +2 +3:00:00",
      "0000000283baec00 00000002 00000001",
    ],
    [
      of(Infinity, Infinity, Infinity),
      "infinity",
      "infinity",
      "infinity",
      "infinity",
      "7fffffffffffffff 7fffffff 7fffffff",
    ],
    [
      of(-Infinity, -Infinity, -Infinity),
      "-infinity",
      "-infinity",
      "-infinity",
      "-infinity",
      "8000000000000000 80000000 80000000",
    ],
  ];
  for (const [value, postgres, iso, verbose, standard, binary] of cases) {
    assertCases(intervalCodec, [[value, postgres, binary], [value, iso], [value, verbose], [
      value,
      standard,
    ]]);
  }
});

test("more microseconds than a number holds, and what is no interval, are refused", () => {
  assertRefuses(intervalCodec, ValueError, {
    text: [
      "2562047788:00:54.775807",
      "PT2562047788H54.775807S",
      "",
      "1 parsec",
      "P1",
      "PX",
      "1:2:3:4",
      "1 day 2",
      "x",
    ],
    binary: ["7fffffffffffffff 00000000 00000000", "00"],
  });
});

test("an Interval is sent as ISO 8601 and comes back", () => {
  assert.equal(intervalCodec.encodeText(of(10, 3, -14706789000)), "P10M3DT-14706.789S");
  assert.equal(intervalCodec.encodeText(of(0, 0, 0)), "P0M0DT0S");
  assert.equal(intervalCodec.encodeText(of(-1, 1, -1)), "P-1M1DT-0.000001S");
  assert.equal(intervalCodec.encodeText(of(Infinity, Infinity, Infinity)), "infinity");
  assert.equal(intervalCodec.encodeText({ months: 1, days: 2, microseconds: 3 }), "P1M2DT0.000003S");
  assert.equal(JSON.stringify(of(1, 0, 0)), '"P1M0DT0S"');
  for (
    const value of [of(1.5, 0, 0), of(NaN, 0, 0), of(Infinity, 0, 0), of(0, 0, 2 ** 53), {}, {
      months: "1",
      days: 0,
      microseconds: 0,
    }]
  ) {
    assert.throws(() => intervalCodec.encodeText(value), ValueError);
  }
  assertProperty("interval", 10_000, (random) => {
    const field = (bits: number) => Math.trunc((random() - 0.5) * 2 ** (random() * bits)) + 0;
    const value = of(field(31), field(31), field(53));
    assert.deepStrictEqual(decodeText(intervalCodec, intervalCodec.encodeText(value)), value);
  });
});
