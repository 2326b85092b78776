/** Names and signatures of certificates, and every way in which a certificate may be cut or bent. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { certificateNames, isForHost, parseAddress, tlsServerEndPoint } from "../../src/auth/certificate.ts";
import { ConnectionError } from "../../src/errors.ts";
import { der, issueCertificate, oid, type SignatureAlgorithm } from "../_support/certificates.ts";
import { seededRandom } from "../_support/proxy.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

test("certificateNames() reads the common name and the alternative names", async () => {
  const { der } = await issueCertificate({
    name: "db.example",
    dnsNames: ["a.example", "*.b.example"],
    addresses: ["127.0.0.1", [...new Array(15).fill(0), 1]],
  });
  const names = certificateNames(der);
  assert.equal(names.commonName, "db.example");
  assert.deepEqual(names.dnsNames, ["a.example", "*.b.example"]);
  assert.deepEqual(names.addresses.map((address) => [...address]), [
    [127, 0, 0, 1],
    [...new Array(15).fill(0), 1],
  ]);
  assert.deepEqual(certificateNames((await issueCertificate({ name: "x" })).der).dnsNames, []);
});

interface Names {
  readonly cn?: string;
  readonly dns?: readonly string[];
  readonly ip?: readonly string[];
}

/** Whom libpq takes (fe-secure-common.c, fe-secure-openssl.c of PostgreSQL 18). */
const MATCHES: readonly (readonly [Names, string, boolean])[] = [
  [{ dns: ["db.example"] }, "db.example", true],
  [{ dns: ["DB.Example"] }, "db.eXAMPLE", true],
  [{ dns: ["db.example"] }, "db.example.org", false],
  [{ dns: ["db.example"] }, "xdb.example", false],
  [{ dns: ["*.example"] }, "db.example", true],
  [{ dns: ["*.example"] }, "a.b.example", false],
  [{ dns: ["*.example"] }, "example", false],
  [{ dns: ["*.example"] }, ".example", false],
  [{ dns: ["*"] }, "db", false],
  [{ dns: ["*."] }, "db.", false],
  [{ dns: ["d*.example"] }, "db.example", false],
  [{ dns: ["a.*"] }, "a.example", false],
  [{ dns: ["db.example\0.evil"] }, "db.example", false],
  [{ cn: "db.example" }, "db.example", true],
  [{ cn: "*.example" }, "db.example", true],
  [{ cn: "db.example", dns: ["other.example"] }, "db.example", false],
  [{ cn: "db.example", ip: ["10.0.0.1"] }, "db.example", true],
  [{ ip: ["10.0.0.1"] }, "10.0.0.1", true],
  [{ ip: ["10.0.0.1"] }, "10.0.0.2", false],
  [{ dns: ["10.0.0.1"] }, "10.0.0.1", true],
  [{ cn: "10.0.0.1" }, "10.0.0.1", true],
  [{ cn: "10.0.0.1", dns: ["other.example"] }, "10.0.0.1", true],
  [{ cn: "10.0.0.1", ip: ["10.0.0.2"] }, "10.0.0.1", false],
  [{ ip: ["::1"] }, "::1", true],
  [{ ip: ["::1"] }, "0:0:0:0:0:0:0:1", true],
  [{ ip: ["::ffff:10.0.0.1"] }, "10.0.0.1", false],
  [{ ip: ["fe80::1"] }, "fe80::1%lo", false],
  [{}, "db.example", false],
  [{ dns: [""] }, "", false],
];

for (const [names, host, expected] of MATCHES) {
  test(`isForHost(${JSON.stringify(names)}, ${JSON.stringify(host)}) is ${expected}`, () => {
    const { cn, dns = [], ip = [] } = names;
    const addresses = ip.map((address) => parseAddress(address)!);
    assert.equal(isForHost({ commonName: cn, dnsNames: dns, addresses }, host), expected);
  });
}

test("parseAddress() reads IPv4 and IPv6, and nothing else", () => {
  const hex = (text: string) => {
    const bytes = parseAddress(text);
    return bytes && [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  };
  assert.equal(hex("255.0.1.2"), "ff000102");
  assert.equal(hex("::"), "0".repeat(32));
  assert.equal(hex("1:2:3:4:5:6:7:8"), "00010002000300040005000600070008");
  assert.equal(hex("1::8"), `0001${"0".repeat(24)}0008`);
  assert.equal(hex("::ffff:1.2.3.4"), `${"0".repeat(20)}ffff01020304`);
  assert.equal(hex("ABCD:ef::"), `abcd00ef${"0".repeat(24)}`);
  const wrong = [
    "",
    "1",
    "1.2.3",
    "256.1.1.1",
    "1.2.3.4.5",
    ":",
    ":::",
    "1::2::3",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "12345::",
    "g::",
    "::1%lo",
    "1:2:3:4:5:6:7::8",
    "::1.2.3",
    "1.2.3.4::",
    "[::1]",
    " ::1",
  ];
  for (const text of wrong) assert.equal(hex(text), undefined, JSON.stringify(text));
});

const HASHES: readonly (readonly [SignatureAlgorithm, string])[] = [
  ["ecdsa-sha256", "sha256"],
  ["ecdsa-sha384", "sha384"],
  ["rsa-sha1", "sha256"],
  ["rsa-sha256", "sha256"],
  ["rsa-sha512", "sha512"],
  ["rsa-pss-sha384", "sha384"],
];

for (const [algorithm, hash] of HASHES) {
  test(`tlsServerEndPoint() hashes an ${algorithm} certificate by ${hash}`, async () => {
    const { der } = await issueCertificate({ name: "x", algorithm });
    assert.deepEqual(
      new Uint8Array(await tlsServerEndPoint(der)),
      new Uint8Array(createHash(hash).update(der).digest()),
    );
  });
}

/** A certificate of which nothing but the algorithm makes sense. */
function signedWith(...algorithm: Uint8Array[]): Uint8Array {
  return der(0x30, der(0x30), der(0x30, ...algorithm), der(0x03, [0]));
}

test("tlsServerEndPoint() replaces MD5 and SHA-1, in PSS too, and refuses what has no hash", async () => {
  const sha256 = (bytes: Uint8Array) => new Uint8Array(createHash("sha256").update(bytes).digest());
  const pss = oid("1.2.840.113549.1.1.10");
  const named = (hash: string) => der(0x30, der(0xa0, der(0x30, oid(hash))));
  const replaced = [
    signedWith(oid("1.2.840.113549.1.1.4")),
    signedWith(oid("1.2.840.10045.4.1")),
    signedWith(pss),
    signedWith(pss, der(0x30)),
    signedWith(pss, named("1.3.14.3.2.26")),
    signedWith(pss, named("2.16.840.1.101.3.4.2.1")),
  ];
  for (const bytes of replaced) assert.deepEqual(await tlsServerEndPoint(bytes), sha256(bytes));
  const refused = [
    (await issueCertificate({ name: "x", algorithm: "ed25519" })).der,
    signedWith(oid("1.3.101.113")),
    signedWith(oid("1.2.3.4")),
    signedWith(pss, named("1.2.3.4")),
  ];
  for (const bytes of refused) {
    await assert.rejects(
      tlsServerEndPoint(bytes),
      (error) =>
        error instanceof ConnectionError && error.code === "UNSUPPORTED" &&
        /channel_binding=disable/.test(error.message),
    );
  }
});

async function read(bytes: Uint8Array): Promise<void> {
  try {
    certificateNames(bytes);
    await tlsServerEndPoint(bytes);
  } catch (error) {
    assert.ok(error instanceof ConnectionError, String(error));
  }
}

test("a certificate cut anywhere, and anything else, is a ConnectionError or nothing", async () => {
  const { der: whole } = await issueCertificate({ name: "x", dnsNames: ["a", "b"], addresses: ["1.2.3.4"] });
  for (let length = 0; length < whole.length; length++) {
    assert.throws(() => certificateNames(whole.subarray(0, length)), ConnectionError, `${length} bytes`);
  }
  const seed = Date.now() | 0;
  console.log(`seed ${seed}`);
  const random = seededRandom(seed);
  for (let i = 0; i < 2_000; i++) {
    const bent = whole.slice();
    for (let n = 0; n < 3; n++) bent[Math.floor(random() * bent.length)] = Math.floor(random() * 256);
    await read(bent);
  }
  for (const bytes of [[], [0x30], [0x30, 0x80], [0x30, 0x84, 0xff, 0xff, 0xff, 0xff], [0x1f, 0x81]]) {
    await read(Uint8Array.from(bytes));
  }
  await read(bytesOf("-----BEGIN CERTIFICATE-----"));
});
