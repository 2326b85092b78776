import { test } from "node:test";
import assert from "node:assert/strict";
import { ProtocolError } from "../../src/errors.ts";
import * as backend from "../../src/wire/backend.ts";
import * as encode from "../_support/backend_writer.ts";

type Read = (bytes: Uint8Array, start: number, end: number) => unknown;

interface Case {
  readonly name: string;
  readonly read: Read;
  /** The message as the server sends it, type and length included. */
  readonly hex: string;
  readonly value: unknown;
  /** Whether the last field takes what is there, so that only some lengths are wrong. */
  readonly openEnded?: (body: number) => boolean;
}

const FIELD_A: backend.Field = {
  name: "a",
  tableOid: 4_294_967_295,
  columnNumber: -1,
  typeOid: 23,
  typeSize: 4,
  typeModifier: -1,
  format: 0,
};
const FIELD_E: backend.Field = {
  name: "é",
  tableOid: 0,
  columnNumber: 0,
  typeOid: 25,
  typeSize: -1,
  typeModifier: 260,
  format: 1,
};

const CASES: readonly Case[] = [
  {
    name: "readAuthentication",
    read: backend.readAuthentication,
    hex: "52 0000000c 00000005 01020304",
    value: { request: 5, data: Uint8Array.of(1, 2, 3, 4) },
    openEnded: (body) => body >= 4,
  },
  {
    name: "readBackendKeyData",
    read: backend.readBackendKeyData,
    hex: "4b 0000000c 00001267 fffefdfc",
    value: { processId: 4711, secretKey: Uint8Array.of(255, 254, 253, 252) },
    openEnded: (body) => body >= 5,
  },
  {
    name: "readCommandComplete",
    read: (bytes, start, end) => backend.readCommandComplete(bytes, start, end, ""),
    hex: "43 0000000f 494e5345525420302035 00",
    value: "INSERT 0 5",
  },
  {
    name: "readCopyResponse",
    read: backend.readCopyResponse,
    hex: "47 0000000b 01 0002 0001 0000",
    value: { format: 1, columnFormats: [1, 0] },
  },
  {
    name: "readResponseFields",
    read: (bytes, start, end) => ({ ...backend.readResponseFields("ErrorResponse", bytes, start, end) }),
    hex: "45 00000015 534552524f5200 433432503031 00 4d00 00",
    value: { S: "ERROR", C: "42P01", M: "" },
  },
  {
    name: "readNegotiateProtocolVersion",
    read: backend.readNegotiateProtocolVersion,
    hex: "76 00000013 00030000 00000001 5f70715f2e7800",
    value: { version: 0x0003_0000, unrecognizedOptions: ["_pq_.x"] },
  },
  {
    name: "readNotificationResponse",
    read: backend.readNotificationResponse,
    hex: "41 0000000d 00000007 6300 c3a900",
    value: { processId: 7, channel: "c", payload: "é" },
  },
  {
    name: "readParameterDescription",
    read: backend.readParameterDescription,
    hex: "74 0000000e 0002 00000017 ffffffff",
    value: [23, 4_294_967_295],
  },
  {
    name: "readParameterStatus",
    read: backend.readParameterStatus,
    hex: "53 00000011 54696d655a6f6e6500 55544300",
    value: { name: "TimeZone", value: "UTC" },
  },
  {
    name: "readReadyForQuery",
    read: backend.readReadyForQuery,
    hex: "5a 00000005 54",
    value: 0x54,
  },
  {
    name: "readRowDescription",
    read: backend.readRowDescription,
    hex: "54 0000002f 0002 6100 ffffffff ffff 00000017 0004 ffffffff 0000 " +
      "c3a900 00000000 0000 00000019 ffff 00000104 0001",
    value: [FIELD_A, FIELD_E],
  },
];

const HEADER = 5;

function unhex(text: string): Uint8Array {
  return Uint8Array.from(text.replaceAll(" ", "").match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** Reads a body that stands amid other bytes of a chunk, none of which is zero. */
function readAmid(read: Read, body: Uint8Array): unknown {
  const chunk = new Uint8Array(body.length + 16).fill(0x41);
  chunk.set(body, 8);
  return read(chunk, 8, 8 + body.length);
}

for (const { name, read, hex, value, openEnded } of CASES) {
  const message = unhex(hex);
  const body = message.subarray(HEADER);

  test(`${name}() reads the message whole`, () => {
    assert.equal(new DataView(message.buffer).getInt32(1), message.length - 1, "the case itself");
    assert.deepEqual(readAmid(read, body), value);
  });

  test(`${name}() refuses the message cut at every byte`, () => {
    for (let length = 0; length < body.length; length++) {
      const act = () => readAmid(read, body.subarray(0, length));
      if (openEnded?.(length)) act();
      else assert.throws(act, ProtocolError, `${length} of ${body.length} bytes`);
    }
  });

  test(`${name}() refuses a byte too many`, () => {
    for (const extra of [0, 1, 0x49]) {
      const longer = encode.concat(body, Uint8Array.of(extra));
      if (openEnded !== undefined) readAmid(read, longer);
      else assert.throws(() => readAmid(read, longer), /Cannot read \w+: 1 bytes are left over/);
    }
  });
}

test("readBackendKeyData() takes keys of 1 to 256 bytes", () => {
  for (const length of [1, 4, 32, 256]) {
    const body = encode.backendKeyData(1, new Uint8Array(length).fill(9)).subarray(HEADER);
    const { secretKey } = backend.readBackendKeyData(body, 0, body.length);
    assert.equal(secretKey.length, length);
  }
  for (const length of [0, 257]) {
    const body = encode.backendKeyData(1, new Uint8Array(length)).subarray(HEADER);
    assert.throws(() => backend.readBackendKeyData(body, 0, body.length), {
      name: "ProtocolError",
      message: `Cannot read BackendKeyData: the secret key has ${length} bytes, wanted 1 to 256`,
    });
  }
});

test("readReadyForQuery() knows three transaction statuses", () => {
  for (const status of ["I", "T", "E"] as const) {
    const body = encode.readyForQuery(status).subarray(HEADER);
    assert.equal(backend.readReadyForQuery(body, 0, body.length), status.charCodeAt(0));
  }
  assert.throws(() => backend.readReadyForQuery(Uint8Array.of(0x58), 0, 1), {
    message: "Cannot read ReadyForQuery: unknown transaction status 88",
  });
});

test("readRowDescription() refuses a format code that is neither text nor binary", () => {
  const body = encode.rowDescription([{ name: "a" }, { name: "b", format: 2 }]).subarray(HEADER);
  assert.throws(() => backend.readRowDescription(body, 0, body.length), {
    message: "Cannot read RowDescription: column 2 has the format code 2",
  });
});

test("readRowDescription() and readParameterDescription() read counts as unsigned", () => {
  const columns = Array.from({ length: 40_000 }, (_, i) => `c${i}`);
  const row = encode.rowDescription(columns).subarray(HEADER);
  assert.equal(backend.readRowDescription(row, 0, row.length).length, 40_000);
  const parameters = encode.parameterDescription(new Array<number>(65_535).fill(23)).subarray(HEADER);
  assert.equal(backend.readParameterDescription(parameters, 0, parameters.length).length, 65_535);
});

test("readNegotiateProtocolVersion() refuses a negative or lying count", () => {
  for (const count of [-1, 1, 0x7fff_ffff]) {
    const body = encode.concat(encode.int32(0x0003_0000), encode.int32(count));
    assert.throws(() => backend.readNegotiateProtocolVersion(body, 0, body.length), ProtocolError);
  }
});

test("readResponseFields() keeps unknown codes and a field called __proto__ or not", () => {
  const body = encode.errorResponse({ "?": "new", _: "low" }).subarray(HEADER);
  const fields = backend.readResponseFields("ErrorResponse", body, 0, body.length);
  assert.equal(fields["?"], "new");
  assert.equal(fields["_"], "low");
  assert.equal(Object.getPrototypeOf(fields), null);
});

test("readEmpty() refuses a body", () => {
  backend.readEmpty("ParseComplete", 5, 5);
  assert.throws(
    () => backend.readEmpty("ParseComplete", 5, 8),
    new ProtocolError("Cannot read ParseComplete: 3 bytes are left over"),
  );
});
