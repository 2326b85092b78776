import assert from "node:assert/strict";
import { test } from "node:test";
import { createDateCodec, dateCodec } from "../../src/codecs/date.ts";
import { dateOrderOf } from "../../src/codecs/date_style.ts";
import { createRegistry } from "../../src/codecs/registry.ts";
import { formatDate } from "../../src/codecs/text_form.ts";
import { timeCodec, timetzCodec } from "../../src/codecs/time.ts";
import { createTimestampCodec, timestampCodec, timestamptzCodec } from "../../src/codecs/timestamp.ts";
import { ValueError } from "../../src/errors.ts";
import { assertCases, assertProperty, assertRefuses, decodeBinary, decodeText } from "./codec_cases.ts";
import { encodeBinary, hex } from "./codec_cases.ts";

test("date is the server's ISO text", () => {
  assertCases(dateCodec, [
    ["2024-02-29", "2024-02-29", "00002279"],
    ["4714-11-24 BC", "4714-11-24 BC", "ffda97a7"],
    ["0001-01-01 BC", "0001-01-01 BC", "fff4da8b"],
    ["0001-01-01", "0001-01-01", "fff4dbf9"],
    ["0044-03-15 BC", "0044-03-15 BC", "fff49d7b"],
    ["0050-01-01", "0050-01-01", "fff521e2"],
    ["5874897-12-31", "5874897-12-31", "7fda970c"],
    ["1970-01-01", "1970-01-01", "ffffd533"],
    ["2000-01-01", "2000-01-01", "00000000"],
    ["1999-12-31", "1999-12-31", "ffffffff"],
    ["infinity", "infinity", "7fffffff"],
    ["-infinity", "-infinity", "80000000"],
  ]);
});

test("a date has a binary form only as the server prints it", () => {
  for (
    const value of [
      "2024-02-30",
      "2023-02-29",
      "2024-1-1",
      "2024-13-01",
      "20240101",
      "today",
      "0000-01-01",
      new Date(0),
      5,
    ]
  ) {
    assert.equal(encodeBinary(dateCodec, value), false, String(value));
  }
});

test("date in any DateStyle is read where it says which number is the day, else refused", () => {
  assertCases(dateCodec, [
    ["2026-08-18", "18.08.2026"],
    ["0044-03-15 BC", "15.03.0044 BC"],
    ["12345-01-02", "02.01.12345"],
    ["2026-08-18", "18/08/2026"],
    ["2026-08-18", "08/18/2026"],
    ["2026-08-18", "08-18-2026"],
    ["0044-07-07 BC", "07-07-0044 BC"],
  ]);
  assertRefuses(dateCodec, ValueError, { text: ["05/08/2026", "08-05-2026"] });
});

test("the session's order tells day from month", () => {
  assertCases(createDateCodec("DMY"), [["2026-08-05", "05/08/2026"], ["2026-08-05 BC", "05-08-2026 BC"]]);
  assertCases(createDateCodec("MDY"), [["2026-05-08", "05/08/2026"], ["2026-08-05", "2026-08-05"]]);
  assertCases(createTimestampCodec("timestamp", "DMY"), [
    [new Date("2026-08-05T01:02:03.5Z"), "05/08/2026 01:02:03.5"],
  ]);
  const registry = createRegistry({ dateOrder: "DMY" });
  assert.deepStrictEqual(decodeText(registry.codecFor(1182)!, "{05/08/2026,NULL}"), ["2026-08-05", null]);
});

test("time and timetz are the server's text", () => {
  assertCases(timeCodec, [
    ["00:00:00", "00:00:00", "0000000000000000"],
    ["04:05:06.789", "04:05:06.789", "000000036c97ca88"],
    ["24:00:00", "24:00:00", "000000141dd76000"],
    ["23:59:59.999999", "23:59:59.999999", "000000141dd75fff"],
    ["00:00:00.000001", "00:00:00.000001", "0000000000000001"],
  ]);
  assertCases(timetzCodec, [
    ["04:05:06+02", "04:05:06+02", "000000036c8bc080 ffffe3e0"],
    ["04:05:06.5-05:30", "04:05:06.5-05:30", "000000036c9361a0 00004d58"],
    ["04:05:06-00:00:30", "04:05:06-00:00:30", "000000036c8bc080 0000001e"],
    ["00:00:00+15:59:59", "00:00:00+15:59:59", "0000000000000000 ffff1f01"],
  ]);
  assertRefuses(timeCodec, ValueError, { binary: ["00", "ffffffffffffffff", "000000141dd76001"] });
});

test("timestamp is a Date whose UTC parts are the wall clock", () => {
  assertCases(timestampCodec, [
    [new Date("2026-08-18T01:02:03.500Z"), "2026-08-18 01:02:03.5", "0002fc469a8159e0"],
    [new Date("1999-12-31T23:59:59.999Z"), "1999-12-31 23:59:59.999", "fffffffffffffc18"],
    [new Date(-62167219200000), "0001-01-01 00:00:00 BC", "ff1fc63d1bb12000"],
    [new Date(-60589296000000), "0050-01-01 00:00:00", "ff256159fb82c000"],
    [new Date(-210866803200000), "4714-11-24 00:00:00 BC", "fd0f7cc1411fa000"],
    [new Date("+012345-01-02T03:04:05.678Z"), "12345-01-02 03:04:05.678", "0487ceb9b735cbb0"],
    [Infinity, "infinity", "7fffffffffffffff"],
    [-Infinity, "-infinity", "8000000000000000"],
  ]);
});

test("timestamptz is the instant, whatever zone it is printed in", () => {
  assertCases(timestamptzCodec, [
    [new Date("2026-08-18T01:02:03.500Z"), "2026-08-18 01:02:03.5+00", "0002fc469a8159e0"],
    [new Date("2026-08-18T01:02:03.500Z"), "2026-08-18 06:47:03.5+05:45", "0002fc469a8159e0"],
    [new Date("2026-08-18T01:02:03.500Z"), "2026-08-17 21:02:03.5-04"],
    [new Date(-63517824000000), "0044-03-15 00:00:00+00 BC", "ff1af9deec5b2000"],
    [new Date(-63517824000000), "0044-03-15 05:41:16+05:41:16 BC"],
    [new Date(-1), "1969-12-31 23:59:59.999+00", "fffca2fec4c81c18"],
    [new Date(8.64e15), "275760-09-13 00:00:00+00", "77e41537f0282000"],
    [Infinity, "infinity", "7fffffffffffffff"],
  ]);
});

test("microseconds are cut to the millisecond before", () => {
  const before = [["1999-12-31 23:59:59.999999", "ffffffffffffffff"], [
    "1999-12-31 23:59:59.9995",
    "fffffffffffffe0c",
  ]];
  for (const [text, binary] of before) {
    const expected = new Date("1999-12-31T23:59:59.999Z");
    assert.deepStrictEqual(decodeText(timestampCodec, text!), expected);
    assert.deepStrictEqual(decodeBinary(timestampCodec, hex(binary!)), expected);
  }
});

test("timestamps outside the range of a Date are refused", () => {
  for (const codec of [timestampCodec, timestamptzCodec]) {
    assertRefuses(codec, ValueError, {
      text: ["275760-09-13 00:00:00.001", "294276-12-31 23:59:59.999999"],
      binary: ["77e41537f02823e8", "7fffff5bb3b29fff", "7ffffffffffffffe", "00"],
    });
  }
});

test("other DateStyles are read where they say what they mean, else refused", () => {
  const instant = new Date("2026-08-18T01:02:03.500Z");
  assertCases(createTimestampCodec("timestamptz", dateOrderOf("SQL, DMY; UTC")), [
    [instant, "18.08.2026 01:02:03.5 UTC"],
    [instant, "18.08.2026 06:47:03.5 +0545"],
    [instant, "Tue 18 Aug 01:02:03.5 2026 UTC"],
    [instant, "Tue Aug 18 01:02:03.5 2026 UTC"],
    [instant, "Tue Aug 18 06:47:03.5 2026 +0545"],
    [new Date(-63517824000000), "15.03.0044 00:00:00 UTC BC"],
  ]);
  assertCases(timestampCodec, [
    [instant, "18.08.2026 01:02:03.5"],
    [instant, "Tue 18 Aug 01:02:03.5 2026"],
    [new Date("2026-08-18T01:02:03Z"), "18.08.2026 01:02:03"],
  ]);
  assertRefuses(timestamptzCodec, ValueError, {
    text: [
      "18.08.2026 03:02:03.5 CEST",
      "05/08/2026 01:02:03.5 UTC",
      "Tue 18 Aug 03:02:03 2026 CEST",
      "nonsense",
      "",
      // Nothing says that the zone's name is not somebody's own.
      "18.08.2026 01:02:03.5 UTC",
      "Tue Aug 18 06:47:03.5 2026 +0545",
    ],
  });
  assertRefuses(createTimestampCodec("timestamptz", dateOrderOf("German, DMY; Europe/Berlin")), ValueError, {
    text: ["18.08.2026 03:02:03.5 CEST", "Tue 18 Aug 03:02:03 2026 CEST"],
  });
  const own = createTimestampCodec("timestamptz", dateOrderOf("SQL, DMY; UTC+3"));
  assertRefuses(own, ValueError, { text: ["18/08/2026 01:02:03.5 UTC", "Tue 18 Aug 06:47:03.5 2026 +0545"] });
  assertCases(own, [[instant, "2026-08-18 04:02:03.5+03"]]);
  assertCases(createTimestampCodec("timestamp", dateOrderOf("SQL, DMY; UTC+3")), [
    [new Date("2026-08-05T01:02:03.5Z"), "05/08/2026 01:02:03.5"],
  ]);
});

test("only a TimeZone that is a name has abbreviations that are known", () => {
  for (const zone of ["UTC", "Europe/Berlin", "Etc/GMT-5", "America/Port-au-Prince", "GMT"]) {
    assert.equal(dateOrderOf(`SQL, DMY; ${zone}`), "DMY", zone);
    assert.equal(dateOrderOf(`German; ${zone}`), "MDY", zone);
  }
  for (const zone of ["", "UTC+3", "utc-03:30", "<UTC>-3", "<+05>-3", "GMT5GMT", "DMY+1"]) {
    assert.equal(dateOrderOf(`Postgres, MDY; ${zone}`), "MDY?", zone);
  }
  assert.equal(dateOrderOf("SQL, DMY"), "DMY?");
});

test("timestamps agree in text and binary", () => {
  const view = new DataView(new ArrayBuffer(8));
  assertProperty("timestamp", 20_000, (random) => {
    const milliseconds = Math.floor((random() - 0.4) * 10 ** (3 + Math.floor(random() * 12)));
    const micros = Math.floor(random() * 1000);
    view.setBigInt64(0, (BigInt(milliseconds) - 946684800000n) * 1000n + BigInt(micros));
    const date = new Date(milliseconds);
    const [day, clock] = formatDate(date).replace("Z", "").split("T") as [string, string];
    const [time, era] = clock.split(" ") as [string, string?];
    const text = `${day} ${time}${String(micros).padStart(3, "0")}${era ? " BC" : ""}`;
    assert.deepStrictEqual(decodeText(timestampCodec, text), date);
    assert.deepStrictEqual(decodeBinary(timestampCodec, new Uint8Array(view.buffer)), date);
  });
});

test("date agrees with the calendar of Date on every day of 800 years", () => {
  const view = new DataView(new ArrayBuffer(4));
  for (let day = -146_097; day <= 146_097; day++) {
    view.setInt32(0, day);
    const iso = new Date(946_684_800_000 + day * 86_400_000).toISOString().slice(0, 10);
    const decoded = dateCodec.decodeBinary!(new Uint8Array(view.buffer), 0, 4);
    if (decoded !== iso) assert.equal(decoded, iso);
  }
});

test("a Date is sent in ISO format with its era", () => {
  const cases: readonly (readonly [number, string])[] = [
    [0, "1970-01-01T00:00:00.000Z"],
    [-60589296000000, "0050-01-01T00:00:00.000Z"],
    [-62135596800000, "0001-01-01T00:00:00.000Z"],
    [-62167219200000, "0001-01-01T00:00:00.000Z BC"],
    [-63517824000000, "0044-03-15T00:00:00.000Z BC"],
    [-210866803200000, "4714-11-24T00:00:00.000Z BC"],
    [Date.UTC(12345, 0, 2), "12345-01-02T00:00:00.000Z"],
    [8.64e15, "275760-09-13T00:00:00.000Z"],
  ];
  for (const [milliseconds, text] of cases) assert.equal(formatDate(new Date(milliseconds)), text);
  assert.throws(() => formatDate(new Date(NaN)), ValueError);
});

test("binary lengths are checked", () => {
  for (const codec of [dateCodec, timeCodec, timetzCodec, timestampCodec]) {
    assert.throws(() => decodeBinary(codec, hex("000000")), ValueError);
  }
});
