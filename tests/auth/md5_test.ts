import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { md5, md5Password } from "../../src/auth/md5.ts";
import { ProtocolError } from "../../src/errors.ts";

/** RFC 1321, appendix A.5. */
const SUITE: Record<string, string> = {
  "": "d41d8cd98f00b204e9800998ecf8427e",
  "a": "0cc175b9c0f1b6a831c399e269772661",
  "abc": "900150983cd24fb0d6963f7d28e17f72",
  "message digest": "f96b697d7cb7938d525a2f31aaf161d0",
  "abcdefghijklmnopqrstuvwxyz": "c3fcd3d76192e4007dfb496cca67e13b",
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789": "d174ab98d277d9f5a5611c2c9f419d9f",
  "12345678901234567890123456789012345678901234567890123456789012345678901234567890":
    "57edf4a22be3c955ac49da2e2107b67a",
};

test("md5() gives the digests of RFC 1321", () => {
  for (const [message, digest] of Object.entries(SUITE)) {
    assert.equal(md5(new TextEncoder().encode(message)), digest, message);
  }
});

test("md5() agrees with the runtime's for every length up to three blocks", () => {
  for (let length = 0; length <= 200; length++) {
    const message = Uint8Array.from({ length }, (_, i) => i * 7 + length & 0xff);
    assert.equal(md5(message), createHash("md5").update(message).digest("hex"), `length ${length}`);
  }
});

test("md5Password() hashes the password with the user, then with the salt", () => {
  const salt = Uint8Array.of(0x01, 0x02, 0xfe, 0xff);
  const inner = createHash("md5").update("pä$$wörd" + "jürgen").digest("hex");
  const outer = createHash("md5").update(inner).update(salt).digest("hex");
  assert.equal(md5Password("jürgen", "pä$$wörd", salt), `md5${outer}`);
});

test("md5Password() refuses a salt that has not four bytes", () => {
  for (const length of [0, 3, 5]) {
    assert.throws(() => md5Password("u", "s3cr3t-XYZ", new Uint8Array(length)), (error) => {
      assert.ok(error instanceof ProtocolError);
      assert.ok(!error.message.includes("s3cr3t"));
      return true;
    });
  }
});
