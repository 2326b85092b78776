import { test } from "node:test";
import { strictEqual, throws } from "node:assert/strict";
import { ProtocolError } from "../../src/errors.ts";
import { readCommandComplete } from "../../src/wire/backend.ts";

const encoder = new TextEncoder();

/** Reads a tag that stands somewhere in a larger buffer. */
function read(body: Uint8Array, known: string): string {
  const bytes = new Uint8Array(body.length + 5).fill(0x41);
  bytes.set(body, 2);
  return readCommandComplete(bytes, 2, 2 + body.length, known);
}

test("a tag is what the bytes say, whatever the one before it was", () => {
  const tags = ["", "SELECT 1", "SELECT 10", "SELECT 2", "INSERT 0 5", "É", "\u00c3\u0089", "SELECT"];
  for (const known of tags) {
    for (const tag of tags) {
      strictEqual(read(encoder.encode(`${tag}\0`), known), tag, `${known} before ${tag}`);
    }
  }
});

test("a broken tag is refused, whatever the one before it was", () => {
  for (const known of ["", "SELECT 1", "SELECT 1\0", "SELECT \x001"]) {
    throws(() => read(encoder.encode("SELECT 1"), known), ProtocolError);
    throws(() => read(encoder.encode("SELECT 1\0\0"), known), ProtocolError);
    throws(() => read(encoder.encode("SELECT \x001\0"), known), ProtocolError);
    throws(() => read(new Uint8Array(0), known), ProtocolError);
  }
});
