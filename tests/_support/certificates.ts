/**
 * X.509 certificates made when a test needs them, so that none is committed and none expires. Keys and signatures by
 * WebCrypto, the DER around them by hand (RFC 5280, RFC 5958, RFC 8018).
 */

/** How a certificate is signed, by the kind of its issuer's key. */
export type SignatureAlgorithm =
  | "ecdsa-sha256"
  | "ecdsa-sha384"
  | "rsa-sha1"
  | "rsa-sha256"
  | "rsa-sha512"
  | "rsa-pss-sha384"
  | "ed25519";

/** What a certificate says. */
export interface CertificateOptions {
  /** Common name of the subject. */
  readonly name: string;
  /** Who signs; absent: it signs itself. */
  readonly issuer?: Certificate;
  /** Kind of its key, and how it signs others. Default `ecdsa-sha256`. */
  readonly algorithm?: SignatureAlgorithm;
  /** Subject alternative names: DNS names. */
  readonly dnsNames?: readonly string[];
  /** Subject alternative names: IPv4 addresses, or 16 numbers of an IPv6 one. */
  readonly addresses?: readonly (string | readonly number[])[];
  /** Whether it may sign others. Default `false`. */
  readonly authority?: boolean;
  /** Days from now; negative: it has expired. Default 30. */
  readonly days?: number;
}

/** A certificate with its key. */
export interface Certificate {
  readonly name: string;
  readonly der: Uint8Array;
  /** PEM. */
  readonly certificate: string;
  /** PEM, PKCS #8. */
  readonly key: string;
  readonly serial: number;
  readonly signer: Signer;
}

interface Signer {
  readonly algorithm: SignatureAlgorithm;
  readonly privateKey: CryptoKey;
}

type Bytes = Uint8Array<ArrayBuffer>;

const encoder: TextEncoder = new TextEncoder();

/** One DER element. */
export function der(tag: number, ...parts: readonly (Uint8Array | readonly number[])[]): Bytes {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const header = length < 128
    ? [tag, length]
    : length < 256
    ? [tag, 0x81, length]
    : [tag, 0x82, length >> 8, length & 0xff];
  const bytes = new Uint8Array(header.length + length);
  bytes.set(header);
  let at = header.length;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** An object identifier from its numbers. */
export function oid(dotted: string): Bytes {
  const [first, second, ...rest] = dotted.split(".").map(Number);
  const body = [first! * 40 + second!];
  for (const number of rest) {
    const digits = [number & 0x7f];
    for (let left = Math.floor(number / 128); left > 0; left = Math.floor(left / 128)) {
      digits.unshift(left & 0x7f | 0x80);
    }
    body.push(...digits);
  }
  return der(0x06, body);
}

const sequence = (...parts: readonly Uint8Array[]) => der(0x30, ...parts);
const integer = (value: number) => unsigned(Uint8Array.of(value >> 24, value >> 16, value >> 8, value));
const NULL = der(0x05);

interface AlgorithmFacts {
  readonly generate: RsaHashedKeyGenParams | EcKeyGenParams | { readonly name: "Ed25519" };
  readonly sign: AlgorithmIdentifier | EcdsaParams | RsaPssParams;
  readonly identifier: Bytes;
}

function facts(algorithm: SignatureAlgorithm): AlgorithmFacts {
  const rsa = (hash: string, identifier: Bytes, name: string = "RSASSA-PKCS1-v1_5"): AlgorithmFacts => ({
    generate: { name, hash, modulusLength: 2048, publicExponent: Uint8Array.of(1, 0, 1) },
    sign: name === "RSA-PSS" ? { name, saltLength: 48 } as RsaPssParams : { name },
    identifier,
  });
  switch (algorithm) {
    case "ecdsa-sha256":
      return {
        generate: { name: "ECDSA", namedCurve: "P-256" },
        sign: { name: "ECDSA", hash: "SHA-256" },
        identifier: sequence(oid("1.2.840.10045.4.3.2")),
      };
    case "ecdsa-sha384":
      return {
        generate: { name: "ECDSA", namedCurve: "P-384" },
        sign: { name: "ECDSA", hash: "SHA-384" },
        identifier: sequence(oid("1.2.840.10045.4.3.3")),
      };
    case "rsa-sha1":
      return rsa("SHA-1", sequence(oid("1.2.840.113549.1.1.5"), NULL));
    case "rsa-sha256":
      return rsa("SHA-256", sequence(oid("1.2.840.113549.1.1.11"), NULL));
    case "rsa-sha512":
      return rsa("SHA-512", sequence(oid("1.2.840.113549.1.1.13"), NULL));
    case "rsa-pss-sha384": {
      const hash = sequence(oid("2.16.840.1.101.3.4.2.2"), NULL);
      const parameters = sequence(
        der(0xa0, hash),
        der(0xa1, sequence(oid("1.2.840.113549.1.1.8"), hash)),
        der(0xa2, integer(48)),
      );
      return rsa("SHA-384", sequence(oid("1.2.840.113549.1.1.10"), parameters), "RSA-PSS");
    }
    case "ed25519":
      return {
        generate: { name: "Ed25519" },
        sign: { name: "Ed25519" },
        identifier: sequence(oid("1.3.101.112")),
      };
  }
}

let serials = Math.floor(Math.random() * 1_000_000) + 1;

/** Makes a key, and a certificate for it. */
export async function issueCertificate(options: CertificateOptions): Promise<Certificate> {
  const algorithm = options.algorithm ?? "ecdsa-sha256";
  const pair = await crypto.subtle.generateKey(facts(algorithm).generate as EcKeyGenParams, true, [
    "sign",
    "verify",
  ]) as CryptoKeyPair;
  const signer = options.issuer?.signer ?? { algorithm, privateKey: pair.privateKey };
  const serial = serials++;
  const day = 86_400_000;
  const days = options.days ?? 30;
  const { identifier } = facts(signer.algorithm);
  const body = sequence(
    der(0xa0, integer(2)),
    integer(serial),
    identifier,
    distinguishedName(options.issuer?.name ?? options.name),
    sequence(time(Date.now() - 60 * day), time(Date.now() + days * day)),
    distinguishedName(options.name),
    new Uint8Array(await crypto.subtle.exportKey("spki", pair.publicKey)),
    der(0xa3, sequence(...extensions(options))),
  );
  const bytes = sequence(body, identifier, der(0x03, [0], await sign(signer, body)));
  const key = new Uint8Array(await crypto.subtle.exportKey("pkcs8", pair.privateKey));
  return {
    name: options.name,
    der: bytes,
    certificate: pem("CERTIFICATE", bytes),
    key: pem("PRIVATE KEY", key),
    serial,
    signer: { algorithm, privateKey: pair.privateKey },
  };
}

/** A list of revoked certificates, PEM. */
export async function revocationList(issuer: Certificate, revoked: readonly Certificate[]): Promise<string> {
  const { identifier } = facts(issuer.signer.algorithm);
  const now = Date.now();
  const body = sequence(
    integer(1),
    identifier,
    distinguishedName(issuer.name),
    time(now - 86_400_000),
    time(now + 30 * 86_400_000),
    ...(revoked.length === 0
      ? []
      : [sequence(...revoked.map(({ serial }) => sequence(integer(serial), time(now - 86_400_000))))]),
  );
  return pem("X509 CRL", sequence(body, identifier, der(0x03, [0], await sign(issuer.signer, body))));
}

/** The same key under a passphrase: PBES2 with AES-256-CBC, as `openssl pkcs8 -topk8` writes it. */
export async function encryptKey(key: string, passphrase: string): Promise<string> {
  const salt = crypto.getRandomValues(new Uint8Array(16));
  const iv = crypto.getRandomValues(new Uint8Array(16));
  const secret = await crypto.subtle.importKey("raw", encoder.encode(passphrase), "PBKDF2", false, [
    "deriveKey",
  ]);
  const cipher = await crypto.subtle.deriveKey(
    { name: "PBKDF2", hash: "SHA-256", salt, iterations: 2048 },
    secret,
    { name: "AES-CBC", length: 256 },
    false,
    ["encrypt"],
  );
  const sealed = new Uint8Array(
    await crypto.subtle.encrypt({ name: "AES-CBC", iv }, cipher, fromPem(key)),
  );
  const derivation = sequence(
    oid("1.2.840.113549.1.5.12"),
    sequence(der(0x04, salt), integer(2048), sequence(oid("1.2.840.113549.2.9"), NULL)),
  );
  const scheme = sequence(oid("2.16.840.1.101.3.4.1.42"), der(0x04, iv));
  const parameters = sequence(oid("1.2.840.113549.1.5.13"), sequence(derivation, scheme));
  return pem("ENCRYPTED PRIVATE KEY", sequence(parameters, der(0x04, sealed)));
}

function distinguishedName(name: string): Bytes {
  return sequence(der(0x31, sequence(oid("2.5.4.3"), der(0x0c, encoder.encode(name)))));
}

function time(milliseconds: number): Bytes {
  const text = new Date(milliseconds).toISOString().replace(/\.\d+Z/, "Z").replace(/[-:T]/g, "").slice(2);
  return der(0x17, encoder.encode(text));
}

function extensions({ authority = false, dnsNames = [], addresses = [] }: CertificateOptions): Bytes[] {
  const list: Bytes[] = [
    sequence(
      oid("2.5.29.19"),
      der(0x01, [0xff]),
      der(0x04, authority ? sequence(der(0x01, [0xff])) : sequence()),
    ),
  ];
  if (authority) list.push(sequence(oid("2.5.29.15"), der(0x01, [0xff]), der(0x04, der(0x03, [1, 0x06]))));
  const names = [
    ...dnsNames.map((name) => der(0x82, encoder.encode(name))),
    ...addresses.map((address) =>
      der(0x87, typeof address === "string" ? address.split(".").map(Number) : address)
    ),
  ];
  if (names.length > 0) list.push(sequence(oid("2.5.29.17"), der(0x04, sequence(...names))));
  return list;
}

async function sign({ algorithm, privateKey }: Signer, data: Bytes): Promise<Uint8Array> {
  const signature = new Uint8Array(
    await crypto.subtle.sign(facts(algorithm).sign as EcdsaParams, privateKey, data),
  );
  if (!algorithm.startsWith("ecdsa")) return signature;
  const half = signature.length / 2;
  return sequence(unsigned(signature.subarray(0, half)), unsigned(signature.subarray(half)));
}

function unsigned(bytes: Uint8Array): Bytes {
  let from = 0;
  while (from < bytes.length - 1 && bytes[from] === 0) from++;
  const rest = bytes.subarray(from);
  return rest[0]! & 0x80 ? der(0x02, [0], rest) : der(0x02, rest);
}

function pem(label: string, bytes: Uint8Array): string {
  const base64 = btoa(String.fromCharCode(...bytes)).replace(/.{1,64}/g, "$&\n");
  return `-----BEGIN ${label}-----\n${base64}-----END ${label}-----\n`;
}

function fromPem(text: string): Bytes {
  return Uint8Array.from(atob(text.replace(/-----[^-]+-----|\s/g, "")), (c) => c.charCodeAt(0));
}
