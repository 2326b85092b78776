import { test } from "node:test";
import assert from "node:assert/strict";
import * as frontend from "../../src/wire/frontend.ts";
import { PORTAL, PROTOCOL_3_2, STATEMENT } from "../../src/wire/message_types.ts";
import { Writer } from "../../src/wire/writer.ts";
import { FrontendReader } from "../_support/frontend_reader.ts";

/** Checks the bytes of a message, behind another one so that positions are not all zero. */
function assertBytes(write: (writer: Writer) => void, expected: string): void {
  const writer = new Writer(16);
  writer.uint8(0xaa);
  write(writer);
  const hex = Array.from(writer.take(), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
  assert.equal(hex, `aa ${expected.replace(/\s+/g, " ").trim()}`);
}

test("beginBind() opens a Bind of a portal and a statement", () => {
  assertBytes(
    (writer) => {
      const mark = frontend.beginBind(writer, "st", "po");
      writer.int16(1);
      writer.int16(1);
      writer.int16(1);
      writer.int32(2);
      writer.int16(300);
      writer.int16(0);
      writer.endMessage(mark);
    },
    `42 00 00 00 18 70 6f 00 73 74 00 00 01 00 01 00 01 00 00 00 02 01 2c 00 00`,
  );
  assertBytes(
    (writer) => writer.endMessage(frontend.beginBind(writer, "")),
    "42 00 00 00 06 00 00",
  );
});

test("a Bind from bindHead() and bindEnd() is what the messages are by themselves", () => {
  for (const name of ["", "s1", "p0123456789_zz", "ä".repeat(40)]) {
    for (
      const formats of [[0, 0], [0, 1, 0, 1], [0, 30, ...Array(60).fill(1)]].map((each) =>
        Uint8Array.from(each)
      )
    ) {
      const plain = new Writer(16);
      const mark = frontend.beginBind(plain, name);
      plain.int32(0);
      plain.bytes(formats);
      plain.endMessage(mark);
      frontend.writeExecute(plain, "", 0);
      const executed = plain.length;
      frontend.writeSync(plain);
      const wanted = plain.take();
      const end = frontend.bindEnd(formats);
      for (const rest of [end.executed, end.synced]) {
        const writer = new Writer(16);
        const mark = writer.beginWith(frontend.bindHead(name));
        writer.int32(0);
        writer.endWith(mark, rest, end.inBind);
        assert.deepEqual(writer.take(), wanted.subarray(0, rest === end.synced ? wanted.length : executed));
      }
      // Kept with every plan of a statement: no slab behind it.
      assert.equal(end.synced.buffer.byteLength, formats.length + 15);
    }
  }
});

test("writeCancelRequest() echoes keys of any length", () => {
  assertBytes(
    (writer) => frontend.writeCancelRequest(writer, 4711, Uint8Array.of(1, 2, 3, 0xff)),
    "00 00 00 10 04 d2 16 2e 00 00 12 67 01 02 03 ff",
  );
  for (const [length, size] of [[32, 44], [256, 268]] as const) {
    const writer = new Writer();
    frontend.writeCancelRequest(writer, 1, new Uint8Array(length).fill(7));
    const bytes = writer.take();
    assert.equal(bytes.length, size);
    assert.equal(new DataView(bytes.buffer, bytes.byteOffset).getInt32(0), size);
  }
});

test("writeClose() and writeDescribe() aim at a statement or a portal", () => {
  assertBytes((writer) => frontend.writeClose(writer, STATEMENT, "s1"), "43 00 00 00 08 53 73 31 00");
  assertBytes((writer) => frontend.writeClose(writer, PORTAL, ""), "43 00 00 00 06 50 00");
  assertBytes((writer) => frontend.writeDescribe(writer, STATEMENT, ""), "44 00 00 00 06 53 00");
  assertBytes((writer) => frontend.writeDescribe(writer, PORTAL, "p"), "44 00 00 00 07 50 70 00");
});

test("the COPY messages", () => {
  assertBytes((writer) => frontend.writeCopyData(writer, Uint8Array.of(0, 255)), "64 00 00 00 06 00 ff");
  assertBytes((writer) => frontend.writeCopyDone(writer), "63 00 00 00 04");
  assertBytes((writer) => frontend.writeCopyFail(writer, "no"), "66 00 00 00 07 6e 6f 00");
});

test("writeExecute() gives the portal and the most rows", () => {
  assertBytes((writer) => frontend.writeExecute(writer, "", 0), "45 00 00 00 09 00 00 00 00 00");
  assertBytes((writer) => frontend.writeExecute(writer, "p", 500), "45 00 00 00 0a 70 00 00 00 01 f4");
});

test("writeFlush(), writeSync() and writeTerminate() have no body", () => {
  assertBytes((writer) => frontend.writeFlush(writer), "48 00 00 00 04");
  assertBytes((writer) => frontend.writeSync(writer), "53 00 00 00 04");
  assertBytes((writer) => frontend.writeTerminate(writer), "58 00 00 00 04");
});

test("writeParse() gives name, text and type OIDs, unsigned", () => {
  assertBytes(
    (writer) => frontend.writeParse(writer, "s", "select $1", [0, 4_294_967_295]),
    "50 00 00 00 1a 73 00 73 65 6c 65 63 74 20 24 31 00 00 02 00 00 00 00 ff ff ff ff",
  );
  assertBytes((writer) => frontend.writeParse(writer, "", "", []), "50 00 00 00 08 00 00 00 00");
});

test("the password messages", () => {
  assertBytes((writer) => frontend.writePassword(writer, "é"), "70 00 00 00 07 c3 a9 00");
  assertBytes((writer) => frontend.writePassword(writer, ""), "70 00 00 00 05 00");
  assertBytes(
    (writer) => frontend.writeSaslInitialResponse(writer, "M", Uint8Array.of(1, 2)),
    "70 00 00 00 0c 4d 00 00 00 00 02 01 02",
  );
  assertBytes((writer) => frontend.writeSaslResponse(writer, Uint8Array.of(1, 2)), "70 00 00 00 06 01 02");
});

test("writeQuery() gives the text as UTF-8", () => {
  assertBytes((writer) => frontend.writeQuery(writer, "é"), "51 00 00 00 07 c3 a9 00");
});

test("writeSslRequest() gives its code", () => {
  assertBytes((writer) => frontend.writeSslRequest(writer), "00 00 00 08 04 d2 16 2f");
});

test("writeStartupMessage() gives pairs and a closing zero", () => {
  assertBytes(
    (writer) => frontend.writeStartupMessage(writer, PROTOCOL_3_2, { user: "u", a: "" }),
    "00 00 00 13 00 03 00 02 75 73 65 72 00 75 00 61 00 00 00",
  );
  assertBytes(
    (writer) => frontend.writeStartupMessage(writer, 0x0003_0000, {}),
    "00 00 00 09 00 03 00 00 00",
  );
});

test("every message written together is read back as itself, one byte at a time", () => {
  const writer = new Writer(16);
  frontend.writeParse(writer, "s1", "select 1", [23]);
  frontend.writeDescribe(writer, STATEMENT, "s1");
  frontend.writeFlush(writer);
  const mark = frontend.beginBind(writer, "s1");
  writer.int32(0);
  writer.int16(0);
  writer.endMessage(mark);
  frontend.writeExecute(writer, "", 7);
  frontend.writeClose(writer, PORTAL, "");
  frontend.writeSync(writer);
  frontend.writeQuery(writer, "select 2");
  frontend.writeCopyData(writer, Uint8Array.of(1));
  frontend.writeCopyDone(writer);
  frontend.writeCopyFail(writer, "x");
  frontend.writePassword(writer, "p");
  frontend.writeTerminate(writer);
  const reader = new FrontendReader(true);
  const messages = Array.from(writer.take(), (byte) => reader.push(Uint8Array.of(byte))).flat();
  assert.equal(reader.pending, 0);
  assert.deepEqual(messages.map(({ type }) => type), [
    "Parse",
    "Describe",
    "Flush",
    "Bind",
    "Execute",
    "Close",
    "Sync",
    "Query",
    "CopyData",
    "CopyDone",
    "CopyFail",
    "Password",
    "Terminate",
  ]);
});
