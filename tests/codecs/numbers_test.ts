import assert from "node:assert/strict";
import { test } from "node:test";
import { boolCodec } from "../../src/codecs/bool.ts";
import { float4Codec, float8Codec } from "../../src/codecs/float.ts";
import { int2Codec, int4Codec, oidCodec } from "../../src/codecs/int.ts";
import { int8Codec, int8NumberCodec, int8StringCodec, xid8Codec } from "../../src/codecs/int8.ts";
import { numericCodec } from "../../src/codecs/numeric.ts";
import { ValueError } from "../../src/errors.ts";
import {
  assertCases,
  assertProperty,
  assertRefuses,
  decodeBinary,
  encodeBinary,
  hex,
} from "./codec_cases.ts";
import { decodeText } from "./codec_cases.ts";

test("bool is a boolean", () => {
  assertCases(boolCodec, [[true, "t", "01"], [false, "f", "00"]]);
  assertRefuses(boolCodec, ValueError, { binary: ["", "0100"] });
});

test("int2, int4 and oid are numbers", () => {
  assertCases(int2Codec, [[0, "0", "0000"], [-1, "-1", "ffff"], [32767, "32767", "7fff"], [
    -32768,
    "-32768",
    "8000",
  ]]);
  assertCases(int4Codec, [
    [127, "127", "0000007f"],
    [128, "128", "00000080"],
    [200, "200", "000000c8"],
    [-1, "-1", "ffffffff"],
    [2147483647, "2147483647", "7fffffff"],
    [-2147483648, "-2147483648", "80000000"],
  ]);
  assertCases(oidCodec, [[0, "0", "00000000"], [4294967295, "4294967295", "ffffffff"]]);
  assertRefuses(int2Codec, ValueError, { binary: ["00", "000000", ""] });
  assertRefuses(int4Codec, ValueError, { binary: ["0000", "0000000000"] });
  assertRefuses(oidCodec, ValueError, { binary: ["0000"] });
});

test("integers have a binary form only where it is the number itself", () => {
  for (const codec of [int2Codec, int4Codec, oidCodec]) {
    for (const value of [1.5, NaN, Infinity, -0.5, 2 ** 32, "1", 1n, true, null, undefined, {}]) {
      assert.equal(encodeBinary(codec, value), false, `${codec.name} ${String(value)}`);
    }
  }
  assert.equal(encodeBinary(int2Codec, 32768), false);
  assert.equal(encodeBinary(int4Codec, 2147483648), false);
  assert.equal(encodeBinary(oidCodec, -1), false);
});

const INT8_CASES = [
  [0n, "0", "0000000000000000"],
  [-1n, "-1", "ffffffffffffffff"],
  [9223372036854775807n, "9223372036854775807", "7fffffffffffffff"],
  [-9223372036854775808n, "-9223372036854775808", "8000000000000000"],
  [9007199254740993n, "9007199254740993", "0020000000000001"],
  [4294967295n, "4294967295", "00000000ffffffff"],
  [4294967296n, "4294967296", "0000000100000000"],
  [-4294967296n, "-4294967296", "ffffffff00000000"],
] as const;

test("int8 is a bigint", () => {
  assertCases(int8Codec, INT8_CASES);
  assertRefuses(int8Codec, ValueError, { binary: ["00000000", ""] });
  assert.equal(encodeBinary(int8Codec, 2n ** 63n), false);
  assert.equal(encodeBinary(int8Codec, -5), "fffffffffffffffb");
  assert.equal(encodeBinary(int8Codec, 4294967296), "0000000100000000");
  assert.equal(encodeBinary(int8Codec, Number.MAX_SAFE_INTEGER), "001fffffffffffff");
  assert.equal(encodeBinary(int8Codec, Number.MIN_SAFE_INTEGER), "ffe0000000000001");
  assert.equal(encodeBinary(int8Codec, 2 ** 53), "0020000000000000");
  assert.equal(encodeBinary(int8Codec, 2 ** 60 + 256), "1000000000000100");
  assert.equal(encodeBinary(int8Codec, -(2 ** 63)), "8000000000000000");
  for (const value of [2 ** 63, -(2 ** 63) - 2048, 0.5, NaN, Infinity]) {
    assert.equal(encodeBinary(int8Codec, value), false, String(value));
  }
});

test("int8 as number refuses what a number cannot hold", () => {
  assertCases(int8NumberCodec, [
    [0, "0", "0000000000000000"],
    [-1, "-1", "ffffffffffffffff"],
    [9007199254740991, "9007199254740991", "001fffffffffffff"],
    [-9007199254740991, "-9007199254740991", "ffe0000000000001"],
  ]);
  assertRefuses(int8NumberCodec, ValueError, {
    text: ["9007199254740992", "9007199254740993", "-9223372036854775808"],
    binary: ["0020000000000000", "0020000000000001", "8000000000000000"],
  });
});

test("int8 as string keeps its digits", () => {
  assertCases(int8StringCodec, INT8_CASES.map(([value, text, binary]) => [String(value), text, binary]));
});

test("xid8 is an unsigned bigint", () => {
  assertCases(xid8Codec, [
    [18446744073709551615n, "18446744073709551615", "ffffffffffffffff"],
    [1n, "1", "0000000000000001"],
  ]);
});

test("float8 keeps infinities, NaN and the sign of zero", () => {
  assertCases(float8Codec, [
    [0, "0", "0000000000000000"],
    [-0, "-0", "8000000000000000"],
    [0.1, "0.1", "3fb999999999999a"],
    [5e-324, "5e-324", "0000000000000001"],
    [NaN, "NaN", "7ff8000000000000"],
    [Infinity, "Infinity", "7ff0000000000000"],
    [-Infinity, "-Infinity", "fff0000000000000"],
    [1.7976931348623157e308, "1.7976931348623157e+308", "7fefffffffffffff"],
    [12, "12", "4028000000000000"],
  ]);
});

test("float4 is the shortest decimal the server prints, also from binary", () => {
  assertCases(float4Codec, [
    [0.1, "0.1"],
    [-0, "-0", "80000000"],
    [16777216, "1.6777216e+07", "4b800000"],
    [NaN, "NaN", "7fc00000"],
    [-Infinity, "-Infinity", "ff800000"],
    [0.5, "0.5", "3f000000"],
  ]);
  // Decimals that are no float4 are rounded as the server rounds them.
  const decimals = [[0.1, "3dcccccd"], [0.3, "3e99999a"], [3.4028235e38, "7f7fffff"], [
    1e-45,
    "00000001",
  ]] as const;
  for (const [value, bytes] of decimals) {
    assert.equal(decodeBinary(float4Codec, hex(bytes)), value);
    assert.equal(encodeBinary(float4Codec, value), bytes);
  }
  // Half-way between two float4: the server prints neighbours, never 3e+10.
  assert.equal(decodeBinary(float4Codec, hex("50df8476")), 3.0000001e10);
  // Too large or too small: the server says so.
  for (const value of [1e300, -1e300, 3.5e38, 1e-46]) assert.equal(encodeBinary(float4Codec, value), false);
});

test("float4 from binary reads back as the same float4", () => {
  const view = new DataView(new ArrayBuffer(4));
  assertProperty("float4", 100_000, (random) => {
    view.setUint32(0, random() * 0x1_0000_0000);
    const value = view.getFloat32(0);
    const shown = decodeBinary(float4Codec, new Uint8Array(view.buffer)) as number;
    assert.ok(Object.is(Math.fround(shown), value), `${value} became ${shown}`);
    assert.ok(
      !Number.isFinite(shown) || String(shown).replace(/e.*|\D/g, "").replace(/^0+|0+$/g, "").length <= 9,
    );
  });
});

test("numeric is its decimal text", () => {
  assertCases(numericCodec, [
    ["0", "0", "0000000000000000"],
    ["1.50", "1.50", "0002 0000 0000 0002 0001 1388"],
    ["0.000000001", "0.000000001", "0001 fffd 0000 0009 03e8"],
    ["0.00012300", "0.00012300", "0002 ffff 0000 0008 0001 08fc"],
    ["0.0000000000000000000100000", "0.0000000000000000000100000", "0001 fffb 0000 0019 0001"],
    ["100000000000000000000", "100000000000000000000", "0001 0005 0000 0000 0001"],
    ["-12345.678", "-12345.678", "0003 0001 4000 0003 0001 0929 1a7c"],
    ["10000", "10000", "0001 0001 0000 0000 0001"],
    ["0.00", "0.00", "0000 0000 0000 0002"],
    ["NaN", "NaN", "0000 0000 c000 0000"],
    ["Infinity", "Infinity", "0000 0000 d000 0020"],
    ["-Infinity", "-Infinity", "0000 0000 f000 0020"],
  ]);
  assertRefuses(numericCodec, ValueError, { binary: ["", "00000000", "0002 0000 0000 0002 0001"] });
});

test("numeric survives its binary form", () => {
  assertProperty("numeric", 20_000, (random) => {
    const digits = (most: number) =>
      Array.from({ length: random() * most }, () => random() < 0.3 ? 0 : Math.floor(random() * 10)).join("");
    const whole = digits(20).replace(/^0+/, "") || "0";
    const fraction = digits(20);
    const isZero = !/[1-9]/.test(whole + fraction);
    const value = `${random() < 0.5 && !isZero ? "-" : ""}${whole}${fraction === "" ? "" : "." + fraction}`;
    assert.equal(decodeBinary(numericCodec, hex(encodeBinary(numericCodec, value) as string)), value);
  });
  for (const value of ["", ".", "1e5", "NaN", " 1", "+1", "0x10", 1, 1n]) {
    assert.equal(encodeBinary(numericCodec, value), false);
  }
  assert.equal(encodeBinary(numericCodec, "-0.00"), "0000000000000002");
  assert.equal(encodeBinary(numericCodec, "007.5"), encodeBinary(numericCodec, "7.5"));
});

test("int8 text and binary agree", () => {
  const view = new DataView(new ArrayBuffer(8));
  assertProperty("int8", 20_000, (random) => {
    const bits = BigInt(Math.floor(random() * 2 ** 32)) << 32n | BigInt(Math.floor(random() * 2 ** 32));
    const value = BigInt.asIntN(64, bits) >> BigInt(Math.floor(random() * 64));
    view.setBigInt64(0, value);
    const bytes = new Uint8Array(view.buffer);
    assert.equal(decodeBinary(int8Codec, bytes), value);
    assert.equal(decodeText(int8Codec, String(value)), value);
    assert.equal(decodeBinary(int8StringCodec, bytes), String(value));
    if (Number.isSafeInteger(Number(value))) {
      assert.equal(decodeBinary(int8NumberCodec, bytes), Number(value));
    }
  });
});
