import assert from "node:assert/strict";
import { test } from "node:test";
import { concat, cstring, int16, int32, int8, message } from "./backend_writer.ts";
import {
  type FrontendMessage,
  FrontendReader,
  readPassword,
  readSaslInitialResponse,
  readSaslResponse,
} from "./frontend_reader.ts";

const text = (value: string): Uint8Array => new TextEncoder().encode(value);

/** A message without type byte. */
function untyped(...parts: readonly Uint8Array[]): Uint8Array {
  const body = concat(...parts);
  return concat(int32(body.length + 4), body);
}

const UNTYPED: readonly [Uint8Array, FrontendMessage][] = [
  [
    untyped(int32(80_877_102), int32(5), new Uint8Array([1, 2, 3])),
    { type: "CancelRequest", processId: 5, secretKey: new Uint8Array([1, 2, 3]) },
  ],
  [untyped(int32(80_877_103)), { type: "SSLRequest" }],
  [untyped(int32(80_877_104)), { type: "GSSENCRequest" }],
  [
    untyped(int32(0x30002), cstring("user"), cstring("ä"), cstring("database"), cstring("d"), int8(0)),
    { type: "StartupMessage", version: 0x30002, parameters: { user: "ä", database: "d" } },
  ],
];

const TYPED: readonly [Uint8Array, FrontendMessage][] = [
  [
    message(
      "B",
      concat(
        ...[cstring("p"), cstring("s"), int16(1), int16(1)],
        ...[int16(2), int32(-1), int32(2), text("ab"), int16(2), int16(0), int16(1)],
      ),
    ),
    {
      type: "Bind",
      portal: "p",
      statement: "s",
      parameterFormats: [1],
      parameters: [null, text("ab")],
      resultFormats: [0, 1],
    },
  ],
  [message("C", concat(text("S"), cstring("s"))), { type: "Close", target: "statement", name: "s" }],
  [message("d", text("x\n")), { type: "CopyData", data: text("x\n") }],
  [message("c"), { type: "CopyDone" }],
  [message("f", cstring("why")), { type: "CopyFail", reason: "why" }],
  [message("D", concat(text("P"), cstring(""))), { type: "Describe", target: "portal", name: "" }],
  [message("E", concat(cstring(""), int32(10))), { type: "Execute", portal: "", maxRows: 10 }],
  [message("F", text("x")), { type: "FunctionCall", data: text("x") }],
  [message("H"), { type: "Flush" }],
  [
    message("P", concat(cstring("s"), cstring("select $1"), int16(2), int32(0), int32(-1))),
    { type: "Parse", statement: "s", text: "select $1", parameterTypes: [0, 0xffff_ffff] },
  ],
  [message("p", cstring("secret")), { type: "Password", data: text("secret\0") }],
  [message("Q", cstring("select 1")), { type: "Query", text: "select 1" }],
  [message("S"), { type: "Sync" }],
  [message("X"), { type: "Terminate" }],
];

for (const [bytes, expected] of UNTYPED) {
  test(`${expected.type} is decoded, whole and byte by byte`, () => {
    assert.deepEqual(new FrontendReader().push(bytes), [expected]);
    const reader = new FrontendReader();
    assert.deepEqual([...bytes].flatMap((byte) => reader.push(new Uint8Array([byte]))), [expected]);
    assert.equal(reader.pending, 0);
  });
}

for (const [bytes, expected] of TYPED) {
  test(`${expected.type} is decoded, whole and byte by byte`, () => {
    assert.deepEqual(new FrontendReader(true).push(bytes), [expected]);
    const reader = new FrontendReader(true);
    assert.deepEqual([...bytes].flatMap((byte) => reader.push(new Uint8Array([byte]))), [expected]);
    assert.equal(reader.pending, 0);
  });
}

test("messages joined in one chunk are told apart, with types from the StartupMessage on", () => {
  const all = [...UNTYPED, ...TYPED];
  assert.deepEqual(
    new FrontendReader().push(concat(...all.map(([bytes]) => bytes))),
    all.map(([, expected]) => expected),
  );
});

test("the forms of a PasswordMessage are decoded", () => {
  assert.equal(readPassword(text("secret\0")), "secret");
  assert.throws(() => readPassword(text("secret")), /no end/);
  assert.throws(() => readPassword(text("secret\0x")), /left over/);
  assert.deepEqual(readSaslInitialResponse(concat(cstring("M"), int32(2), text("n,"))), {
    mechanism: "M",
    response: "n,",
  });
  assert.deepEqual(readSaslInitialResponse(concat(cstring("M"), int32(-1))), {
    mechanism: "M",
    response: undefined,
  });
  assert.equal(readSaslResponse(text("c=")), "c=");
});

test("malformed messages are refused", () => {
  const refused: readonly [Uint8Array, RegExp][] = [
    [message("S", int8(0)), /left over/],
    [message("Q", text("select 1")), /no end/],
    [message("Q", text("\xff\0").map((byte) => byte === 0xc3 ? 0xff : byte)), /./],
    [message("B", concat(cstring(""), cstring(""), int16(0), int16(1), int32(9))), /longer than its message/],
    [message("C", concat(text("X"), cstring(""))), /aims at/],
    [message("?"), /Unknown frontend message/],
    [message("Q", cstring(""), 3), /announces 3 bytes/],
  ];
  for (const [bytes, problem] of refused) assert.throws(() => new FrontendReader(true).push(bytes), problem);
});
