/**
 * What has to be known of a server's X.509 certificate (RFC 5280): its names, for sslmode=verify-full, and how it is
 * signed, for channel binding. Reads DER, and takes nothing on trust that it reads.
 */

import { ConnectionError } from "../errors.ts";

const SEQUENCE = 0x30;
const SET = 0x31;
const OBJECT_IDENTIFIER = 0x06;
const OCTET_STRING = 0x04;
const BOOLEAN = 0x01;

/** One element: its tag, and where its contents are. */
interface Element {
  readonly tag: number;
  readonly start: number;
  readonly end: number;
}

/** Walks over the elements between two places. */
class Der {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  #at: number;

  constructor(bytes: Uint8Array, start: number = 0, end: number = bytes.length) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  get done(): boolean {
    return this.#at === this.#end;
  }

  /** The next element; of this tag, where one is given. */
  next(tag?: number): Element {
    const bytes = this.#bytes;
    const found = this.#byte();
    // Tags of several bytes do not occur in certificates.
    if ((found & 0x1f) === 0x1f || tag !== undefined && found !== tag) failMalformed();
    let length = this.#byte();
    if (length > 0x7f) {
      const count = length & 0x7f;
      if (count === 0 || count > 3) failMalformed();
      length = 0;
      for (let i = 0; i < count; i++) length = length << 8 | this.#byte();
      if (length < 0x80) failMalformed();
    }
    const start = this.#at;
    if (length > this.#end - start || start > bytes.length) failMalformed();
    this.#at = start + length;
    return { tag: found, start, end: this.#at };
  }

  /** The next element where it has this tag; else nothing is taken. */
  optional(tag: number): Element | undefined {
    return !this.done && this.#bytes[this.#at] === tag ? this.next(tag) : undefined;
  }

  /** The elements inside of the next one. */
  enter(tag: number): Der {
    return this.inside(this.next(tag));
  }

  inside({ start, end }: Element): Der {
    return new Der(this.#bytes, start, end);
  }

  slice({ start, end }: Element): Uint8Array {
    return this.#bytes.subarray(start, end);
  }

  /** The next element, an object identifier, as dotted numbers. */
  objectIdentifier(): string {
    const body = this.slice(this.next(OBJECT_IDENTIFIER));
    const numbers: number[] = [];
    let number = 0;
    for (const byte of body) {
      number = number * 128 + (byte & 0x7f);
      if (number > Number.MAX_SAFE_INTEGER / 128) failMalformed();
      if (byte & 0x80) continue;
      if (numbers.length === 0) numbers.push(Math.min(2, Math.floor(number / 40)));
      if (numbers.length === 1) number -= numbers[0]! * 40;
      numbers.push(number);
      number = 0;
    }
    return numbers.join(".");
  }

  #byte(): number {
    if (this.#at >= this.#end) failMalformed();
    return this.#bytes[this.#at++]!;
  }
}

function failMalformed(): never {
  throw new ConnectionError("Cannot read the server's certificate: it is malformed", { code: "TLS_FAILED" });
}

/** Whom a certificate is for. Texts are bytes as they stand there, one character each. */
export interface CertificateNames {
  /** The first common name of the subject. */
  readonly commonName: string | undefined;
  /** Subject alternative names of type dNSName. */
  readonly dnsNames: readonly string[];
  /** Subject alternative names of type iPAddress: 4 or 16 bytes. */
  readonly addresses: readonly Uint8Array[];
}

/**
 * Reads the names of a certificate.
 *
 * @throws {ConnectionError} `TLS_FAILED` when it is malformed
 */
export function certificateNames(certificate: Uint8Array): CertificateNames {
  const body = new Der(certificate).enter(SEQUENCE).enter(SEQUENCE);
  body.optional(0xa0); // version
  body.next(0x02); // serial number
  body.next(SEQUENCE); // signature
  body.next(SEQUENCE); // issuer
  body.next(SEQUENCE); // validity
  const commonName = readCommonName(body.enter(SEQUENCE));
  body.next(SEQUENCE); // subject's public key
  const dnsNames: string[] = [];
  const addresses: Uint8Array[] = [];
  while (!body.done) {
    const element = body.next();
    if (element.tag !== 0xa3) continue;
    const extensions = body.inside(element).enter(SEQUENCE);
    while (!extensions.done) {
      const extension = extensions.enter(SEQUENCE);
      if (extension.objectIdentifier() !== "2.5.29.17") continue;
      extension.optional(BOOLEAN);
      const names = extension.enter(OCTET_STRING).enter(SEQUENCE);
      while (!names.done) {
        const name = names.next();
        if (name.tag === 0x82) dnsNames.push(binaryText(names.slice(name)));
        if (name.tag === 0x87) addresses.push(names.slice(name));
      }
    }
  }
  return { commonName, dnsNames, addresses };
}

function readCommonName(subject: Der): string | undefined {
  while (!subject.done) {
    const relative = subject.enter(SET);
    while (!relative.done) {
      const attribute = relative.enter(SEQUENCE);
      if (attribute.objectIdentifier() === "2.5.4.3") return binaryText(attribute.slice(attribute.next()));
    }
  }
  return undefined;
}

function binaryText(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

/**
 * Whether a certificate is for a host, by libpq's rules: a name or address among the alternative names of its kind;
 * the common name counts only where there is none of the host's kind. `*` stands for one whole label at the start.
 *
 * @param host a host name, an IPv4 or an IPv6 address
 */
export function isForHost(names: CertificateNames, host: string): boolean {
  const address = parseAddress(host);
  const wanted = binaryText(new TextEncoder().encode(host));
  if (names.dnsNames.some((name) => matchesName(name, wanted))) return true;
  if (address !== undefined && names.addresses.some((each) => equalBytes(each, address))) return true;
  const sameKind = address === undefined ? names.dnsNames : names.addresses;
  return sameKind.length === 0 && names.commonName !== undefined && matchesName(names.commonName, wanted);
}

function matchesName(pattern: string, host: string): boolean {
  if (pattern.includes("\0") || host === "") return false;
  const [left, right] = [lowerCase(pattern), lowerCase(host)];
  if (left === right) return true;
  if (!left.startsWith("*.") || left.length < 3) return false;
  const label = right.length - (left.length - 1);
  return label > 0 && right.endsWith(left.slice(1)) && !right.slice(0, label).includes(".");
}

/** Of ASCII alone: names on the wire know no other case. */
function lowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

function equalBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, i) => byte === right[i]);
}

/** The 4 or 16 bytes of an address; `undefined` for anything else, an IPv6 address with a zone included. */
export function parseAddress(text: string): Uint8Array | undefined {
  return parseIpv4(text) ?? parseIpv6(text);
}

function parseIpv4(text: string): Uint8Array | undefined {
  if (!/^\d{1,3}(?:\.\d{1,3}){3}$/.test(text)) return undefined;
  const numbers = text.split(".").map(Number);
  return numbers.every((number) => number < 256) ? Uint8Array.from(numbers) : undefined;
}

function parseIpv6(text: string): Uint8Array | undefined {
  if (!text.includes(":") || !/^[0-9A-Fa-f:.]{2,45}$/.test(text)) return undefined;
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const [head, tail] = halves.map((half, i) => groupBytes(half, i === halves.length - 1));
  if (head === undefined || halves.length === 2 && tail === undefined) return undefined;
  const length = head.length + (tail?.length ?? 0);
  if (halves.length === 1 ? length !== 16 : length > 14) return undefined;
  const bytes = new Uint8Array(16);
  bytes.set(head);
  if (tail !== undefined) bytes.set(tail, 16 - tail.length);
  return bytes;
}

/** The bytes of groups between colons; of the last half, the last one may be an IPv4 address. */
function groupBytes(text: string, last: boolean): number[] | undefined {
  if (text === "") return [];
  const bytes: number[] = [];
  const groups = text.split(":");
  for (const [i, group] of groups.entries()) {
    const ipv4 = last && i === groups.length - 1 ? parseIpv4(group) : undefined;
    if (ipv4 !== undefined) bytes.push(...ipv4);
    else if (/^[0-9A-Fa-f]{1,4}$/.test(group)) {
      bytes.push(parseInt(group, 16) >> 8, parseInt(group, 16) & 0xff);
    } else return undefined;
  }
  return bytes;
}

/** Hashes by signature algorithm. MD5 and SHA-1 are replaced by SHA-256 (RFC 5929, section 4.1). */
const SIGNATURE_HASHES: Readonly<Record<string, string>> = {
  "1.2.840.113549.1.1.4": "SHA-256", // md5WithRSAEncryption
  "1.2.840.113549.1.1.5": "SHA-256", // sha1WithRSAEncryption
  "1.2.840.113549.1.1.11": "SHA-256",
  "1.2.840.113549.1.1.12": "SHA-384",
  "1.2.840.113549.1.1.13": "SHA-512",
  "1.2.840.10045.4.1": "SHA-256", // ecdsa-with-SHA1
  "1.2.840.10045.4.3.2": "SHA-256",
  "1.2.840.10045.4.3.3": "SHA-384",
  "1.2.840.10045.4.3.4": "SHA-512",
  "1.2.840.10040.4.3": "SHA-256", // dsa-with-sha1
  "2.16.840.1.101.3.4.3.2": "SHA-256", // dsa-with-sha256
};

const RSA_PSS = "1.2.840.113549.1.1.10";

/** The hashes that RSASSA-PSS may name in its parameters. */
const HASHES: Readonly<Record<string, string>> = {
  "1.2.840.113549.2.5": "SHA-256", // MD5
  "1.3.14.3.2.26": "SHA-256", // SHA-1
  "2.16.840.1.101.3.4.2.1": "SHA-256",
  "2.16.840.1.101.3.4.2.2": "SHA-384",
  "2.16.840.1.101.3.4.2.3": "SHA-512",
};

/**
 * The channel binding data `tls-server-end-point`: the hash of the certificate by the hash of its signature.
 *
 * @throws {ConnectionError} `UNSUPPORTED` for a signature without such a hash (Ed25519), as in libpq
 */
export async function tlsServerEndPoint(certificate: Uint8Array): Promise<Uint8Array> {
  const hash = signatureHash(certificate);
  return new Uint8Array(await crypto.subtle.digest(hash, certificate as Uint8Array<ArrayBuffer>));
}

function signatureHash(certificate: Uint8Array): string {
  const outer = new Der(certificate).enter(SEQUENCE);
  outer.next(SEQUENCE); // what is signed
  const algorithm = outer.enter(SEQUENCE);
  const signature = algorithm.objectIdentifier();
  let hash = SIGNATURE_HASHES[signature];
  if (signature === RSA_PSS) {
    const parameters = algorithm.done ? undefined : algorithm.enter(SEQUENCE);
    const named = parameters?.optional(0xa0);
    // SHA-1 where nothing is said, and that is replaced.
    hash = named === undefined
      ? "SHA-256"
      : HASHES[parameters!.inside(named).enter(SEQUENCE).objectIdentifier()];
  }
  if (hash === undefined) {
    throw new ConnectionError(
      `Cannot bind the authentication to the TLS channel: the server's certificate is signed with ${signature}, ` +
        "for which no hash is defined (channel_binding=disable does without)",
      { code: "UNSUPPORTED" },
    );
  }
  return hash;
}
