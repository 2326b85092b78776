import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseMechanism, type MechanismOptions } from "../../src/auth/authenticator.ts";
import { ConnectionError, ProtocolError } from "../../src/errors.ts";

const PLAIN = "SCRAM-SHA-256";
const PLUS = "SCRAM-SHA-256-PLUS";
const HASH = Uint8Array.of(1, 2, 3);
const SHOWN: MechanismOptions = { tls: true, certificateHash: HASH };

function choice(offered: readonly string[], options?: MechanismOptions): string {
  const { mechanism, channelBinding } = chooseMechanism(offered, options);
  return `${mechanism} ${channelBinding.type}`;
}

test("chooseMechanism() without TLS takes SCRAM-SHA-256 unbound", () => {
  assert.equal(choice([PLAIN]), `${PLAIN} unsupported`);
  assert.equal(choice(["X-FOO", PLAIN]), `${PLAIN} unsupported`);
});

test("chooseMechanism() binds to the channel where both sides can", () => {
  assert.equal(choice([PLUS, PLAIN], SHOWN), `${PLUS} tls-server-end-point`);
  assert.equal(choice([PLUS], { ...SHOWN, channelBinding: "require" }), `${PLUS} tls-server-end-point`);
  assert.equal(choice([PLAIN], SHOWN), `${PLAIN} not-offered`);
  assert.equal(choice([PLUS, PLAIN], { tls: true }), `${PLAIN} unsupported`);
  assert.equal(choice([PLUS, PLAIN], { ...SHOWN, channelBinding: "disable" }), `${PLAIN} unsupported`);
  assert.equal(choice([PLAIN], { ...SHOWN, channelBinding: "disable" }), `${PLAIN} unsupported`);
});

test("chooseMechanism() refuses what cannot be spoken and names it", () => {
  const refused = (offered: string[], options: MechanismOptions, part: RegExp) =>
    assert.throws(() => chooseMechanism(offered, options), (error) => {
      assert.ok(error instanceof ConnectionError, String(error));
      assert.match(error.message, part);
      return true;
    });
  refused(["X-FOO", "X-BAR"], {}, /"X-FOO", "X-BAR"/);
  refused(["\u0007<b>"], {}, /"\?\?b\?"/);
  refused(Array(5000).fill("X".repeat(500)), {}, /^.{0,700}$/);
  refused([PLUS], { tls: true }, /none of which is supported/);
  refused([PLUS], { ...SHOWN, channelBinding: "disable" }, /none of which is supported/);
  refused([PLAIN], { ...SHOWN, channelBinding: "require" }, /does not offer SCRAM-SHA-256-PLUS/);
  refused([PLAIN], { channelBinding: "require" }, /no TLS/);
  refused([PLUS, PLAIN], { tls: true, channelBinding: "require" }, /does not show/);
});

test("chooseMechanism() calls an empty list and a binding without a channel a breach of the protocol", () => {
  assert.throws(() => chooseMechanism([]), ProtocolError);
  assert.throws(() => chooseMechanism([PLUS, PLAIN]), ProtocolError);
});
