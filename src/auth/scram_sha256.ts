/**
 * SCRAM-SHA-256 and SCRAM-SHA-256-PLUS, the client's side (RFC 5802, RFC 7677; PostgreSQL manual, 53.3.1).
 *
 * Hashing goes through WebCrypto, which works off the event loop. The server is checked as strictly as the client
 * is: a nonce that does not extend ours, an unreasonable iteration count, an extension that must be understood, or a
 * signature made without the password end the exchange.
 */

import { ConnectionError, ProtocolError } from "../errors.ts";
import type { Authenticator, ChannelBinding } from "./authenticator.ts";
import { decodeBase64, encodeBase64 } from "./base64.ts";
import { saslprep } from "./saslprep.ts";

/** The greatest iteration count accepted unless told otherwise. */
export const MAX_ITERATIONS = 10_000_000;

const NONCE_BYTES = 18;

/** What an exchange needs. */
export interface ScramOptions {
  /** As the user gave it; SASLprep is applied here. */
  readonly password: string;
  /** Default empty: PostgreSQL takes the name from the startup message. */
  readonly user?: string | undefined;
  /** Default `{ type: "unsupported" }`. */
  readonly channelBinding?: ChannelBinding | undefined;
  /** The greatest iteration count accepted, 1 to 2^31-1; default {@linkcode MAX_ITERATIONS}. */
  readonly maxIterations?: number | undefined;
  /** For tests: printable ASCII without a comma. Default: 18 random bytes in base64. */
  readonly nonce?: string | undefined;
}

/** The turn of the exchange: what is expected next. */
type Turn = "start" | "challenge" | "hashing" | "final" | "finished" | "failed";

const encoder: TextEncoder = new TextEncoder();

/** One SCRAM exchange. */
export class ScramSha256 implements Authenticator {
  readonly mechanism: "SCRAM-SHA-256" | "SCRAM-SHA-256-PLUS";
  readonly #password: string;
  readonly #user: string;
  readonly #nonce: string;
  readonly #maxIterations: number;
  readonly #gs2Header: string;
  readonly #bindingData: Uint8Array;
  #turn: Turn = "start";
  #serverSignature: Uint8Array = new Uint8Array(0);

  constructor(options: ScramOptions) {
    const binding = options.channelBinding ?? { type: "unsupported" };
    this.#password = options.password;
    this.#user = options.user ?? "";
    this.#nonce = options.nonce ?? randomNonce();
    this.#maxIterations = options.maxIterations ?? MAX_ITERATIONS;
    this.#gs2Header = gs2Header(binding);
    this.#bindingData = binding.type === "tls-server-end-point" ? binding.data : new Uint8Array(0);
    this.mechanism = binding.type === "tls-server-end-point" ? "SCRAM-SHA-256-PLUS" : "SCRAM-SHA-256";
  }

  get finished(): boolean {
    return this.#turn === "finished";
  }

  /** The client-first-message. */
  // deno-lint-ignore require-await -- an out-of-turn call rejects like every other failure
  async start(): Promise<Uint8Array> {
    this.#take("start", "challenge", "SASL exchange started");
    return encoder.encode(this.#gs2Header + this.#clientFirstBare());
  }

  /** Takes the server-first-message, gives the client-final-message. */
  async next(challenge: Uint8Array): Promise<Uint8Array> {
    this.#take("challenge", "hashing", "AuthenticationSASLContinue");
    const serverFirst = readText(challenge, "server-first-message");
    const { nonce, salt, iterations } = parseServerFirst(serverFirst);
    if (!nonce.startsWith(this.#nonce) || nonce.length === this.#nonce.length) {
      throw new ProtocolError("Cannot authenticate: the server's SCRAM nonce does not extend the client's");
    }
    if (iterations > this.#maxIterations) {
      throw new ProtocolError(
        `Cannot authenticate: the server asks for ${iterations} SCRAM iterations, at most ${this.#maxIterations} are accepted`,
      );
    }
    const withoutProof = `c=${this.#channelBindingInput()},r=${nonce}`;
    const authMessage = encoder.encode(`${this.#clientFirstBare()},${serverFirst},${withoutProof}`);
    const keys = await signWith(await keysOf(saslprep(this.#password), salt, iterations), authMessage);
    this.#serverSignature = keys.serverSignature;
    this.#take("hashing", "final", "AuthenticationSASLContinue");
    return encoder.encode(`${withoutProof},p=${encodeBase64(keys.clientProof)}`);
  }

  /** Takes the server-final-message. */
  finish(final: Uint8Array): void {
    this.#take("final", "failed", "AuthenticationSASLFinal");
    const text = readText(final, "server-final-message");
    if (text.startsWith("e=")) {
      throw new ConnectionError(
        `Cannot authenticate: the server ended the SCRAM exchange with "${printable(text.slice(2))}"`,
        { code: "AUTHENTICATION_FAILED" },
      );
    }
    const [verifier, ...extensions] = text.split(",");
    if (!verifier!.startsWith("v=") || !extensions.every(isExtension)) {
      failMalformed("server-final-message");
    }
    const signature = decodeBase64(verifier!.slice(2));
    if (signature === undefined) failMalformed("server signature");
    if (!equalInConstantTime(signature, this.#serverSignature)) {
      throw new ConnectionError(
        "Cannot authenticate: the server's SCRAM signature is wrong, so it does not know the password",
        { code: "AUTHENTICATION_FAILED" },
      );
    }
    this.#turn = "finished";
  }

  #clientFirstBare(): string {
    return `n=${this.#user.replaceAll("=", "=3D").replaceAll(",", "=2C")},r=${this.#nonce}`;
  }

  #channelBindingInput(): string {
    const header = encoder.encode(this.#gs2Header);
    const input = new Uint8Array(header.length + this.#bindingData.length);
    input.set(header);
    input.set(this.#bindingData, header.length);
    return encodeBase64(input);
  }

  /** Moves on from `expected`; any failure behind leaves a turn in which nothing is accepted any more. */
  #take(expected: Turn, following: Turn, event: string): void {
    if (this.#turn !== expected) {
      const turn = this.#turn;
      this.#turn = "failed";
      throw new ProtocolError(
        `Cannot authenticate: ${event} came out of turn, the SCRAM exchange was at "${turn}"`,
      );
    }
    this.#turn = following;
  }
}

function gs2Header(binding: ChannelBinding): string {
  if (binding.type === "unsupported") return "n,,";
  return binding.type === "not-offered" ? "y,," : "p=tls-server-end-point,,";
}

interface ServerFirst {
  readonly nonce: string;
  readonly salt: Uint8Array;
  readonly iterations: number;
}

function parseServerFirst(text: string): ServerFirst {
  const [nonce = "", salt = "", iterations = "", ...extensions] = text.split(",");
  if (nonce.startsWith("m=")) {
    throw new ProtocolError(
      "Cannot authenticate: the server demands a SCRAM extension that is not supported",
    );
  }
  if (nonce.startsWith("e=")) {
    throw new ConnectionError(
      `Cannot authenticate: the server ended the SCRAM exchange with "${printable(nonce.slice(2))}"`,
      { code: "AUTHENTICATION_FAILED" },
    );
  }
  if (!/^r=[\x21-\x2b\x2d-\x7e]+$/.test(nonce)) failMalformed("nonce");
  const saltBytes = salt.startsWith("s=") ? decodeBase64(salt.slice(2)) : undefined;
  if (saltBytes === undefined || saltBytes.length === 0) failMalformed("salt");
  const count = /^i=([1-9][0-9]{0,9})$/.exec(iterations)?.[1];
  if (count === undefined || Number(count) > 0x7fff_ffff) failMalformed("iteration count");
  if (!extensions.every(isExtension)) failMalformed("server-first-message");
  return { nonce: nonce.slice(2), salt: saltBytes, iterations: Number(count) };
}

/** An optional extension, to be ignored (RFC 5802, section 5.1); `m` may only come first and must not be ignored. */
function isExtension(attribute: string): boolean {
  return /^[A-Za-z]=./.test(attribute) && !attribute.startsWith("m=");
}

/** What follows from a password, a salt and an iteration count, whatever the exchange. */
interface PasswordKeys {
  readonly clientKey: Uint8Array;
  readonly storedKey: CryptoKey;
  readonly serverKey: CryptoKey;
}

/**
 * Keys of the passwords used last. To derive them takes longer than all the rest of connecting, and a pool opens many
 * connections with one password. They are worth what the password is, which its owner keeps in memory all the same.
 */
const keysInUse: Map<string, Promise<PasswordKeys>> = new Map();
const MOST_KEYS = 16;

function keysOf(password: string, salt: Uint8Array, iterations: number): Promise<PasswordKeys> {
  const name = `${iterations} ${encodeBase64(salt)} ${password}`;
  let keys = keysInUse.get(name);
  if (keys === undefined) {
    keys = deriveKeys(password, salt, iterations);
    keysInUse.set(name, keys);
    keys.catch(() => keysInUse.delete(name));
    if (keysInUse.size > MOST_KEYS) keysInUse.delete(keysInUse.keys().next().value!);
  }
  return keys;
}

/** RFC 5802, section 3. */
async function deriveKeys(password: string, salt: Uint8Array, iterations: number): Promise<PasswordKeys> {
  const subtle = webCrypto();
  const secret = await subtle.importKey("raw", encoder.encode(password), "PBKDF2", false, ["deriveBits"]);
  const saltedPassword = await subtle.deriveBits(
    { name: "PBKDF2", hash: "SHA-256", salt: salt as Uint8Array<ArrayBuffer>, iterations },
    secret,
    256,
  );
  const salted = await hmacKey(saltedPassword);
  const [clientKey, serverKey] = await Promise.all([
    subtle.sign("HMAC", salted, encoder.encode("Client Key")),
    subtle.sign("HMAC", salted, encoder.encode("Server Key")),
  ]);
  const storedKey = await subtle.digest("SHA-256", clientKey);
  return {
    clientKey: new Uint8Array(clientKey),
    storedKey: await hmacKey(storedKey),
    serverKey: await hmacKey(serverKey),
  };
}

interface Signatures {
  readonly clientProof: Uint8Array;
  readonly serverSignature: Uint8Array;
}

async function signWith(keys: PasswordKeys, authMessage: Uint8Array): Promise<Signatures> {
  const [clientProof, serverSignature] = await Promise.all([
    hmac(keys.storedKey, authMessage),
    hmac(keys.serverKey, authMessage),
  ]);
  for (let i = 0; i < clientProof.length; i++) clientProof[i]! ^= keys.clientKey[i]!;
  return { clientProof, serverSignature };
}

async function hmac(key: CryptoKey, message: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await webCrypto().sign("HMAC", key, message as Uint8Array<ArrayBuffer>));
}

function hmacKey(key: ArrayBuffer): Promise<CryptoKey> {
  return webCrypto().importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}

function webCrypto(): SubtleCrypto {
  const subtle = globalThis.crypto?.subtle;
  if (subtle === undefined) {
    throw new ConnectionError("Cannot authenticate with SCRAM: this runtime has no WebCrypto", {
      code: "UNSUPPORTED",
    });
  }
  return subtle;
}

function randomNonce(): string {
  webCrypto();
  return encodeBase64(globalThis.crypto.getRandomValues(new Uint8Array(NONCE_BYTES)));
}

function equalInConstantTime(left: Uint8Array, right: Uint8Array): boolean {
  if (left.length !== right.length) return false;
  let difference = 0;
  for (let i = 0; i < left.length; i++) difference |= left[i]! ^ right[i]!;
  return difference === 0;
}

function readText(bytes: Uint8Array, message: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return failMalformed(message);
  }
}

/** The server's word for an error, for a message: no control characters, not endless. */
function printable(text: string): string {
  return text.split(",", 1)[0]!.slice(0, 100).replace(/[^\x20-\x7e]/g, "?");
}

function failMalformed(part: string): never {
  throw new ProtocolError(`Cannot authenticate: the ${part} of the server's SCRAM exchange is malformed`);
}
