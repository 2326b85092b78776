import assert from "node:assert/strict";
import { createHash, createHmac, pbkdf2Sync } from "node:crypto";
import { test } from "node:test";
import type { ChannelBinding } from "../../src/auth/authenticator.ts";
import { ScramSha256 } from "../../src/auth/scram_sha256.ts";
import { ConnectionError, ProtocolError } from "../../src/errors.ts";
import { limit } from "../_support/limit.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

const PASSWORD = "s3cr3t-XYZ";
const NONCE = "fyko+d2lbbFgONRv9qkxdawL";
const SALT = "W22ZaJ0SNY7soEsUEjb6gQ==";

/** The server's side, made from the runtime's own hashes: checks the proof and signs. */
function answer(clientFirst: string, serverFirst: string, clientFinal: string, password: string): string {
  const [, salt, iterations] = /s=([^,]*),i=(\d+)/.exec(serverFirst)!;
  const salted = pbkdf2Sync(password, Uint8Array.from(atob(salt!), byteOf), Number(iterations), 32, "sha256");
  const hmac = (key: Uint8Array, text: string) => createHmac("sha256", key).update(text).digest();
  const clientKey = hmac(salted, "Client Key");
  const bare = clientFirst.replace(/^(?:n|y|p=[^,]*),,/, "");
  const [withoutProof, proof] = clientFinal.split(",p=");
  const authMessage = `${bare},${serverFirst},${withoutProof}`;
  const signature = hmac(createHash("sha256").update(clientKey).digest(), authMessage);
  assert.equal(proof, btoa(String.fromCharCode(...clientKey.map((byte, i) => byte ^ signature[i]!))));
  return `v=${hmac(hmac(salted, "Server Key"), authMessage).toString("base64")}`;
}

function byteOf(character: string): number {
  return character.charCodeAt(0);
}

/** A client that has sent its first message. */
async function started(options: { maxIterations?: number } = {}): Promise<ScramSha256> {
  const scram = new ScramSha256({ password: PASSWORD, nonce: NONCE, ...options });
  assert.equal(decode(await limit(scram.start())), `n,,n=,r=${NONCE}`);
  return scram;
}

/** Asserts that a promise or call fails, without the password, and that the exchange stays unfinished. */
async function refuses(
  scram: ScramSha256,
  work: () => unknown,
  type: typeof ProtocolError | typeof ConnectionError,
  part: RegExp,
): Promise<void> {
  await assert.rejects(limit((async () => await work())()), (error) => {
    assert.ok(error instanceof type, String(error));
    assert.match(error.message, part);
    assert.ok(!error.message.includes("s3cr3t"));
    return true;
  });
  assert.equal(scram.finished, false);
}

test("ScramSha256 reproduces the exchange of RFC 7677", async () => {
  const scram = new ScramSha256({ password: "pencil", user: "user", nonce: "rOprNGfwEbeRWgbNEkqO" });
  assert.equal(scram.mechanism, "SCRAM-SHA-256");
  assert.equal(decode(await limit(scram.start())), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
  const final = await limit(scram.next(encode(
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
  )));
  assert.equal(
    decode(final),
    "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
  );
  assert.equal(scram.finished, false);
  scram.finish(encode("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
  assert.equal(scram.finished, true);
});

const BINDINGS: readonly (readonly [ChannelBinding, header: string, c: string])[] = [
  [{ type: "unsupported" }, "n,,", "biws"],
  [{ type: "not-offered" }, "y,,", "eSws"],
  [
    { type: "tls-server-end-point", data: Uint8Array.of(0, 1, 254, 255) },
    "p=tls-server-end-point,,",
    btoa("p=tls-server-end-point,,\x00\x01\xfe\xff"),
  ],
];

for (const [channelBinding, header, c] of BINDINGS) {
  test(`ScramSha256 with channel binding ${channelBinding.type} convinces a server`, async () => {
    const plus = channelBinding.type === "tls-server-end-point";
    // The password needs SASLprep, the user SCRAM's escapes.
    const scram = new ScramSha256({ password: "p\u00a0\u2168", user: "a=b,c", channelBinding });
    assert.equal(scram.mechanism, plus ? "SCRAM-SHA-256-PLUS" : "SCRAM-SHA-256");
    const first = decode(await limit(scram.start()));
    const nonce = /,r=([A-Za-z0-9+/]{24})$/.exec(first)?.[1];
    assert.ok(nonce !== undefined, first);
    assert.equal(first, `${header}n=a=3Db=2Cc,r=${nonce}`);
    const serverFirst = `r=${nonce}!~,s=${SALT},i=1,x=ignored`;
    const final = decode(await limit(scram.next(encode(serverFirst))));
    assert.ok(final.startsWith(`c=${c},r=${nonce}!~,p=`), final);
    scram.finish(encode(`${answer(first, serverFirst, final, "p IX")},x=ignored`));
    assert.equal(scram.finished, true);
  });
}

test("ScramSha256 makes a fresh nonce each time", async () => {
  const firsts = new Set<string>();
  for (let i = 0; i < 20; i++) {
    firsts.add(decode(await limit(new ScramSha256({ password: "x" }).start())));
  }
  assert.equal(firsts.size, 20);
});

const LIES: readonly (readonly [name: string, serverFirst: string, part: RegExp])[] = [
  ["another nonce", `r=other,s=${SALT},i=4096`, /does not extend/],
  ["the same nonce", `r=${NONCE},s=${SALT},i=4096`, /does not extend/],
  ["a shorter nonce", `r=${NONCE.slice(0, 10)},s=${SALT},i=4096`, /does not extend/],
  ["our nonce at the end", `r=x${NONCE},s=${SALT},i=4096`, /does not extend/],
  ["no nonce", `r=,s=${SALT},i=4096`, /nonce .*malformed/],
  ["a nonce with a control character", `r=${NONCE}\u0007,s=${SALT},i=4096`, /nonce .*malformed/],
  ["a nonce that is not ASCII", `r=${NONCE}é,s=${SALT},i=4096`, /nonce .*malformed/],
  ["iteration count 0", `r=${NONCE}x,s=${SALT},i=0`, /iteration count .*malformed/],
  ["iteration count -1", `r=${NONCE}x,s=${SALT},i=-1`, /iteration count .*malformed/],
  ["iteration count +1", `r=${NONCE}x,s=${SALT},i=+1`, /iteration count .*malformed/],
  ["iteration count 4096x", `r=${NONCE}x,s=${SALT},i=4096x`, /iteration count .*malformed/],
  ["iteration count 1e3", `r=${NONCE}x,s=${SALT},i=1e3`, /iteration count .*malformed/],
  ["iteration count 010", `r=${NONCE}x,s=${SALT},i=010`, /iteration count .*malformed/],
  ["iteration count 2^31", `r=${NONCE}x,s=${SALT},i=2147483648`, /iteration count .*malformed/],
  ["iteration count 10^20", `r=${NONCE}x,s=${SALT},i=100000000000000000000`, /iteration count .*malformed/],
  ["iteration count past the limit", `r=${NONCE}x,s=${SALT},i=10000001`, /10000001 .*at most 10000000/],
  ["no iteration count", `r=${NONCE}x,s=${SALT}`, /iteration count .*malformed/],
  ["an empty salt", `r=${NONCE}x,s=,i=4096`, /salt .*malformed/],
  ["a salt that is not base64", `r=${NONCE}x,s=W22Z*J0S,i=4096`, /salt .*malformed/],
  ["a salt without padding", `r=${NONCE}x,s=W22ZaJ0SNY7soEsUEjb6gQ,i=4096`, /salt .*malformed/],
  ["a salt with a space", `r=${NONCE}x,s=W22ZaJ0 ,i=4096`, /salt .*malformed/],
  ["a salt with loose bits", `r=${NONCE}x,s=W22ZaJ0SNY7soEsUEjb6gR==,i=4096`, /salt .*malformed/],
  ["a salt of padding", `r=${NONCE}x,s====,i=4096`, /salt .*malformed/],
  ["attributes in another order", `s=${SALT},r=${NONCE}x,i=4096`, /nonce .*malformed/],
  ["a mandatory extension", `m=x,r=${NONCE}x,s=${SALT},i=4096`, /extension that is not supported/],
  ["a mandatory extension behind", `r=${NONCE}x,s=${SALT},i=4096,m=x`, /server-first-message .*malformed/],
  ["garbage behind", `r=${NONCE}x,s=${SALT},i=4096,`, /server-first-message .*malformed/],
  ["nothing", "", /nonce .*malformed/],
];

for (const [name, serverFirst, part] of LIES) {
  test(`ScramSha256 refuses a server-first-message with ${name}`, async () => {
    const scram = await started();
    await refuses(scram, () => scram.next(encode(serverFirst)), ProtocolError, part);
    // Nothing revives it.
    await refuses(scram, () => scram.next(encode(`r=${NONCE}x,s=${SALT},i=1`)), ProtocolError, /out of turn/);
    await refuses(scram, () => scram.finish(encode("v=AAAA")), ProtocolError, /out of turn/);
  });
}

test("ScramSha256 refuses a message that is not UTF-8", async () => {
  const scram = await started();
  await refuses(scram, () => scram.next(Uint8Array.of(0x72, 0x3d, 0xff)), ProtocolError, /malformed/);
});

test("ScramSha256 reports the server's error, first or last", async () => {
  const early = await started();
  await refuses(
    early,
    () => early.next(encode("e=other-error")),
    ConnectionError,
    /ended the SCRAM exchange with "other-error"/,
  );
  const late = await started();
  await limit(late.next(encode(`r=${NONCE}x,s=${SALT},i=1`)));
  await refuses(
    late,
    () => late.finish(encode("e=invalid-proof\u0007,x=y")),
    ConnectionError,
    /"invalid-proof\?"/,
  );
});

test("ScramSha256 takes its iteration limit as an option", async () => {
  const scram = await started({ maxIterations: 5 });
  await refuses(scram, () => scram.next(encode(`r=${NONCE}x,s=${SALT},i=6`)), ProtocolError, /at most 5/);
  const other = await started({ maxIterations: 5 });
  await limit(other.next(encode(`r=${NONCE}x,s=${SALT},i=5`)));
});

const FINALS: readonly (readonly [string, string, typeof ProtocolError | typeof ConnectionError, RegExp])[] =
  [
    ["a wrong signature", `v=${btoa("x".repeat(32))}`, ConnectionError, /signature is wrong/],
    ["a short signature", "v=AAAA", ConnectionError, /signature is wrong/],
    ["an empty signature", "v=", ConnectionError, /signature is wrong/],
    ["a signature that is not base64", "v=?", ProtocolError, /server signature .*malformed/],
    ["no signature", "x=y", ProtocolError, /server-final-message .*malformed/],
    ["nothing", "", ProtocolError, /server-final-message .*malformed/],
  ];

for (const [name, final, type, part] of FINALS) {
  test(`ScramSha256 refuses a server-final-message with ${name}`, async () => {
    const scram = await started();
    await limit(scram.next(encode(`r=${NONCE}x,s=${SALT},i=1`)));
    await refuses(scram, () => scram.finish(encode(final)), type, part);
    await refuses(scram, () => scram.finish(encode(final)), ProtocolError, /out of turn/);
  });
}

test("ScramSha256 refuses a signature with one bit turned, at every byte", async () => {
  const serverFirst = `r=${NONCE}x,s=${SALT},i=1`;
  for (let at = 0; at < 32; at++) {
    const scram = await started();
    const final = decode(await limit(scram.next(encode(serverFirst))));
    const right = answer(`n,,n=,r=${NONCE}`, serverFirst, final, PASSWORD);
    const bytes = Uint8Array.from(atob(right.slice(2)), byteOf);
    bytes[at]! ^= 1 << (at & 7);
    const wrong = btoa(String.fromCharCode(...bytes));
    await refuses(scram, () => scram.finish(encode(`v=${wrong}`)), ConnectionError, /signature is wrong/);
  }
});

test("ScramSha256 keeps its turns", async () => {
  const fresh = new ScramSha256({ password: PASSWORD });
  await refuses(fresh, () => fresh.finish(encode("v=AAAA")), ProtocolError, /out of turn/);
  const early = new ScramSha256({ password: PASSWORD });
  await refuses(early, () => early.next(encode("r=x")), ProtocolError, /out of turn/);
  const twice = await started();
  await refuses(twice, () => twice.start(), ProtocolError, /out of turn/);

  // A second challenge while the first is being hashed ends both.
  const scram = await started();
  const first = scram.next(encode(`r=${NONCE}x,s=${SALT},i=50000`));
  const outcome = first.then(() => "answered", (error: Error) => error.message);
  await refuses(scram, () => scram.next(encode(`r=${NONCE}x,s=${SALT},i=1`)), ProtocolError, /out of turn/);
  assert.match(await limit(outcome), /out of turn/);
});

test("ScramSha256 refuses a second server-final-message", async () => {
  const scram = await started();
  const serverFirst = `r=${NONCE}x,s=${SALT},i=1`;
  const final = decode(await limit(scram.next(encode(serverFirst))));
  const signature = encode(answer(`n,,n=,r=${NONCE}`, serverFirst, final, PASSWORD));
  scram.finish(signature);
  assert.equal(scram.finished, true);
  await refuses(scram, () => scram.finish(signature), ProtocolError, /out of turn/);
});

test("ScramSha256 leaves the event loop free while it hashes", async () => {
  const scram = await started();
  let turns = 0;
  const ticking = setInterval(() => turns++, 1);
  try {
    await limit(scram.next(encode(`r=${NONCE}x,s=${SALT},i=500000`)), 60_000);
  } finally {
    clearInterval(ticking);
  }
  assert.ok(turns >= 3, `${turns} turns of the event loop`);
});

test("ScramSha256 shows its password to nobody", async () => {
  const scram = await started();
  const { inspect } = await import("node:util");
  for (
    const text of [
      inspect(scram, { depth: Infinity, showHidden: true }),
      JSON.stringify(scram),
      String(scram),
    ]
  ) {
    assert.ok(!text.includes("s3cr3t"), text);
  }
});

test("ScramSha256 never takes the keys of another password, salt or iteration count", async () => {
  const salts = [SALT, "QSXCR+Q6sek8bf92", btoa(" 1 "), btoa("1 ")];
  // More than are kept, so that some are derived again; many at once.
  const exchanges = ["a", "b", "a b", " a", "1 a"].flatMap((password) =>
    salts.flatMap((salt) => [1, 11, 2].map((iterations) => ({ password, salt, iterations })))
  );
  for (let round = 0; round < 2; round++) {
    await Promise.all([...exchanges, ...exchanges].map(async ({ password, salt, iterations }) => {
      const scram = new ScramSha256({ password, nonce: NONCE });
      const first = decode(await limit(scram.start()));
      const serverFirst = `r=${NONCE}x,s=${salt},i=${iterations}`;
      const final = decode(await limit(scram.next(encode(serverFirst))));
      scram.finish(encode(answer(first, serverFirst, final, password)));
      assert.equal(scram.finished, true);
    }));
  }
});
