/**
 * TLS on top of any transport, by `node:tls`, which all three runtimes have and which alone does all that is asked for:
 * chains verified or not, the server's certificate shown, client certificates, ALPN.
 *
 * Under Node.js it takes the socket itself, which costs half of a stream in between. Deno and Bun get such a stream
 * over their native sockets: what is spoken in clear until then, and whenever a server has no TLS, stays native.
 *
 * Names are not checked here: the caller does, by the certificate.
 */

import { Buffer } from "node:buffer";
import { createPrivateKey } from "node:crypto";
import { Duplex } from "node:stream";
import tls from "node:tls";
import { ConfigurationError } from "../errors.ts";
import { BaseTransport } from "./base_transport.ts";
import { isPermitted } from "./permissions.ts";
import { lostError, tlsError } from "./socket_error.ts";
import { unrefTimer } from "./timers.ts";
import type { TlsCredentials, TlsOptions, TlsTransport, Transport } from "./transport.ts";

/** Milliseconds for the peer to take what was written before a close. */
const FAREWELL = 1_000;

const HIGH_WATER_MARK = 262_144;
const LOW_WATER_MARK = 65_536;

/**
 * Starts TLS, as the client. The transport must have no handler; it belongs to the new one from now on.
 *
 * @param signal ends the handshake; the promise then rejects with its reason
 * @throws {ConnectionError} when the handshake fails; the transport is closed
 * @throws {ConfigurationError} when the credentials cannot be used
 */
export function startTls(
  transport: Transport,
  options: TlsOptions,
  signal?: AbortSignal,
): Promise<TlsTransport> {
  return new Promise((resolve, reject) => {
    let secured: tls.TLSSocket;
    let raw: Duplex | undefined;
    let stream: TransportStream | undefined;
    try {
      signal?.throwIfAborted();
      const secureContext = contextOf(options.credentials);
      raw = (transport as { takeSocket?: () => Duplex | undefined }).takeSocket?.();
      if (raw === undefined) stream = new TransportStream(transport);
      secured = tls.connect({ socket: raw ?? stream!, secureContext, ...terms(options) });
    } catch (error) {
      raw?.destroy();
      transport.close();
      reject(signal?.aborted ? signal.reason : error instanceof ConfigurationError ? error : tlsError(error));
      return;
    }
    const end = (reason: unknown) => {
      signal?.removeEventListener("abort", onAbort);
      reject(reason);
      secured.destroy();
    };
    const onAbort = () => end(signal!.reason);
    const onError = (error: Error) => end(tlsError(error));
    const onClose = () => end(tlsError(new Error("the server closed the connection during the handshake")));
    signal?.addEventListener("abort", onAbort, { once: true });
    secured.on("error", onError);
    secured.on("close", onClose);
    secured.once("secureConnect", () => {
      signal?.removeEventListener("abort", onAbort);
      const made = new NodeTlsTransport(secured, stream);
      secured.off("error", onError);
      secured.off("close", onClose);
      resolve(made);
    });
  });
}

function terms({ credentials, serverName, alpnProtocol }: TlsOptions): tls.ConnectionOptions {
  return {
    // Not every runtime looks into the context.
    ...materials(credentials),
    // Absent it would be "localhost".
    servername: serverName ?? "",
    ALPNProtocols: [alpnProtocol],
    rejectUnauthorized: credentials.trust !== undefined,
    checkServerIdentity: () => undefined,
  };
}

/** Making a context parses every trusted certificate, so it is done once for the same credentials. */
const contexts: WeakMap<TlsCredentials, tls.SecureContext> = new WeakMap();

function contextOf(credentials: TlsCredentials): tls.SecureContext {
  let context = contexts.get(credentials);
  if (context === undefined) {
    checkCredentials(credentials);
    try {
      context = tls.createSecureContext(materials(credentials));
    } catch (error) {
      throw new ConfigurationError(`Cannot use the certificates and keys for TLS: ${reasonOf(error)}`);
    }
    contexts.set(credentials, context);
  }
  return context;
}

/** What one runtime or another passes over in silence. */
function checkCredentials({ key, passphrase, trust }: TlsCredentials): void {
  if (key !== undefined) {
    try {
      // Asked without one, OpenSSL would ask at the terminal.
      createPrivateKey({ key, format: "pem", passphrase: passphrase ?? "" });
    } catch (error) {
      throw new ConfigurationError(
        `Cannot use the private key for TLS (sslkey, sslpassword): ${reasonOf(error)}`,
      );
    }
  }
  if (trust?.revocationList !== undefined && (globalThis as { readonly Deno?: unknown }).Deno !== undefined) {
    throw new ConfigurationError(
      "Cannot use the list of revoked certificates (sslcrl, root.crl): Deno does not check it",
    );
  }
}

/** The runtime's own words; a passphrase is not among them. */
function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : "no reason given";
}

function materials(credentials: TlsCredentials): tls.SecureContextOptions {
  const { trust, certificate, key, passphrase, minVersion, maxVersion } = credentials;
  return {
    minVersion,
    ...(maxVersion !== undefined && { maxVersion }),
    ...(trust !== undefined && { ca: trust.roots === "system" ? systemRoots() : trust.roots }),
    ...(trust?.revocationList !== undefined && { crl: trust.revocationList }),
    ...(certificate !== undefined && { cert: certificate }),
    ...(key !== undefined && { key }),
    ...(passphrase !== undefined && { passphrase }),
  };
}

/**
 * The system's store, `SSL_CERT_FILE` heeded; where it is empty or must not be read, the certificates that come with the
 * runtime.
 */
function systemRoots(): string[] {
  const { getCACertificates } = tls as { getCACertificates?: (type: string) => string[] };
  const system = isPermitted({ name: "sys", kind: "ca" }) && getCACertificates?.("system") || [];
  return system.length > 0 ? system : [...tls.rootCertificates];
}

/** What `node:tls` takes for a socket. */
class TransportStream extends Duplex {
  readonly transport: Transport;
  #stopped = false;

  constructor(transport: Transport) {
    super({ allowHalfOpen: false });
    this.transport = transport;
    transport.start({
      onBytes: (chunk) => {
        if (!this.push(Buffer.from(chunk))) transport.pauseReading();
      },
      onEnd: (cause) => {
        if (cause === undefined) this.push(null);
        else this.destroy(cause);
      },
    });
  }

  /** Reads nothing more until {@linkcode go}, however much TLS asks for. */
  stop(): void {
    this.#stopped = true;
    this.transport.pauseReading();
  }

  go(): void {
    this.#stopped = false;
    if (this.readableLength < this.readableHighWaterMark) this.transport.resumeReading();
  }

  override _read(): void {
    if (!this.#stopped) this.transport.resumeReading();
  }

  override _write(chunk: Uint8Array, _encoding: string, done: () => void): void {
    // A copy: what a transport gets is its own, and TLS may use its buffer again.
    const accepted = this.transport.write(new Uint8Array(chunk));
    if (accepted === undefined) done();
    else accepted.then(() => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.transport.close();
    done(error);
  }
}

class NodeTlsTransport extends BaseTransport implements TlsTransport {
  readonly peerCertificate: Uint8Array | undefined;
  readonly alpnProtocol: string | undefined;
  readonly version: string;
  readonly #socket: tls.TLSSocket;
  readonly #below: TransportStream | undefined;
  /** Bytes given to the TLS above a stream and not yet passed on. */
  #unsent = 0;

  constructor(socket: tls.TLSSocket, below: TransportStream | undefined) {
    super();
    this.#socket = socket;
    this.#below = below;
    const certificate = socket.getPeerCertificate(true) as { readonly raw?: Uint8Array } | undefined;
    this.peerCertificate = certificate?.raw && new Uint8Array(certificate.raw);
    this.alpnProtocol = socket.alpnProtocol || undefined;
    this.version = socket.getProtocol() ?? "unknown";
    this.stopReading(); // no byte is read before start()
    socket.on("data", (chunk: Uint8Array) => this.deliver(chunk));
    socket.on("drain", this.#onDrain);
    below?.on("drain", this.#onDrain);
    socket.on("end", () => this.finish(undefined));
    socket.on("close", () => this.finish(undefined));
    socket.on("error", (error) => this.finish(lostError(error)));
  }

  override write(bytes: Uint8Array): Promise<void> | undefined {
    // Deno's TLS never gets over an empty one.
    if (this.ended || bytes.length === 0) return undefined;
    if (this.#below === undefined) return this.#socket.write(bytes) ? undefined : this.congested();
    // Over a stream, TLS takes everything at once and encrypts it in later turns.
    this.#unsent += bytes.length;
    this.#socket.write(bytes, () => {
      this.#unsent -= bytes.length;
      this.#onDrain();
    });
    return this.waiting || this.#unsent > HIGH_WATER_MARK || this.#below.writableNeedDrain
      ? this.congested()
      : undefined;
  }

  readonly #onDrain = (): void => {
    if (this.#unsent > LOW_WATER_MARK || this.#below?.writableNeedDrain) return;
    if (!this.#socket.writableNeedDrain || this.#below !== undefined) this.drained();
  };

  override setKeepAlive(keepProcessAlive: boolean): void {
    if (this.ended) return;
    if (this.#below !== undefined) this.#below.transport.setKeepAlive(keepProcessAlive);
    else if (keepProcessAlive) this.#socket.ref();
    else this.#socket.unref();
  }

  protected override startReading(): void {
    if (this.#below === undefined) this.#socket.resume();
    else this.#below.go();
  }

  /** Over a stream, that is held up instead: what TLS has read already is kept until it is asked for. */
  protected override stopReading(): void {
    if (this.#below === undefined) this.#socket.pause();
    else this.#below.stop();
  }

  protected override closeSocket(): void {
    const socket = this.#socket;
    if (this.waiting || socket.destroyed || socket.writableEnded) {
      socket.destroy();
      return;
    }
    // What was written is encrypted in later turns.
    const timer = setTimeout(() => socket.destroy(), FAREWELL);
    unrefTimer(timer);
    socket.once("close", () => clearTimeout(timer));
    socket.end(() => socket.destroy());
  }
}
