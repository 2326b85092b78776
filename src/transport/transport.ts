/**
 * The contract between a runtime's sockets and a connection: bytes in, bytes out, one end.
 *
 * A transport knows no PostgreSQL, and only files in this folder name a runtime.
 */

/** What a transport calls. Never called re-entrantly from a method of the transport. */
export interface TransportHandler {
  /**
   * Bytes have arrived. `chunk` is borrowed: it may be overwritten once this call returns. What this throws closes the
   * transport and becomes the cause that `onEnd` gets.
   */
  onBytes(chunk: Uint8Array): void;
  /** The socket has ended; called exactly once. `cause` is set unless the end was orderly or our own. */
  onEnd(cause?: Error): void;
}

/** One open byte duplex. */
export interface Transport {
  /** Begins reading. Called once, or once more after {@linkcode detach}; bytes that arrived before are delivered then. */
  start(handler: TransportHandler): void;
  /** Takes the handler away: what comes is kept for the next one, and so is the end. */
  detach(): void;
  /**
   * Sends bytes, which are given away for good: the caller never writes over them.
   *
   * @returns `undefined` when the socket accepted them, or a promise that resolves when it takes more. It never
   * rejects: a broken socket resolves it, and `onEnd` tells why. Partial writes are finished inside.
   */
  write(bytes: Uint8Array): Promise<void> | undefined;
  /** Stops delivering bytes until {@linkcode resumeReading}; at most one further chunk is delivered. */
  pauseReading(): void;
  /** Takes {@linkcode pauseReading} back. */
  resumeReading(): void;
  /** Keeps the process alive while open (`true`, the default) or not (`false`). */
  setKeepAlive(keepProcessAlive: boolean): void;
  /** Closes at once; bytes that wait to be sent are dropped. Idempotent. `onEnd` follows, in a later turn, if it has not been called. */
  close(): void;
}

/** Where to connect. */
export interface ConnectTarget {
  /** Host name or address; ignored when `path` is set. */
  readonly host: string;
  /** TCP port, 1 to 65535. */
  readonly port: number;
  /** Unix-domain socket path (`/run/postgresql/.s.PGSQL.5432`). */
  readonly path?: string | undefined;
  /** Aborts the attempt; the promise then rejects with the signal's reason and nothing is left open. */
  readonly signal?: AbortSignal | undefined;
  /** TCP keepalives. Default: none. */
  readonly keepalive?: TcpKeepalive | undefined;
}

/** TCP keepalives, as far as a runtime can set them: all three switch them on, Deno takes no time. */
export interface TcpKeepalive {
  /** Milliseconds without traffic before the first; 0: the system's default. */
  readonly idle: number;
}

/** What TLS is to be started with. */
export interface TlsOptions {
  /** Name for Server Name Indication; `undefined`: none is sent. */
  readonly serverName: string | undefined;
  /** The protocol to offer by Application-Layer Protocol Negotiation (RFC 7301). */
  readonly alpnProtocol: string;
  /** Certificates, keys and versions. Kept by identity: the same object is prepared once. */
  readonly credentials: TlsCredentials;
}

/** Certificates and keys are PEM texts. */
export interface TlsCredentials {
  /** Whom the server's chain must lead to; `undefined`: it is not verified. Names and addresses never are, here. */
  readonly trust:
    | { readonly roots: string | "system"; readonly revocationList: string | undefined }
    | undefined;
  /** The client's certificate, and what may stand behind it. */
  readonly certificate: string | undefined;
  /** The client's private key. */
  readonly key: string | undefined;
  /** The passphrase of the key. */
  readonly passphrase: string | undefined;
  /** The oldest version accepted. */
  readonly minVersion: "TLSv1" | "TLSv1.1" | "TLSv1.2" | "TLSv1.3";
  /** The newest version offered; `undefined`: what the runtime has. */
  readonly maxVersion: "TLSv1" | "TLSv1.1" | "TLSv1.2" | "TLSv1.3" | undefined;
}

/** A transport inside TLS. */
export interface TlsTransport extends Transport {
  /** The server's certificate, DER. */
  readonly peerCertificate: Uint8Array | undefined;
  /** What the server chose of the protocols offered; `undefined`: it chose none. */
  readonly alpnProtocol: string | undefined;
  /** The version in use (`TLSv1.3`). */
  readonly version: string;
}

/** UTF-8 text of `bytes[start, end)`; malformed sequences become U+FFFD. */
export type Utf8Slice = (bytes: Uint8Array, start: number, end: number) => string;

/** What a runtime supplies. */
export interface TransportFactory {
  /** `deno`, `bun`, `node` or `memory`; for messages. */
  readonly name: string;
  /** Opens a socket with TCP_NODELAY; rejects with a ConnectionError that keeps the system's `code`. */
  connect(target: ConnectTarget): Promise<Transport>;
  /**
   * The addresses of a host name, in the order to be tried, an address' own at once; absent: `connect` takes names as
   * they are. Rejects with a ConnectionError when there are none.
   */
  lookup?(host: string, port: number): readonly string[] | Promise<readonly string[]>;
  /** The runtime's quickest way to make a short string, where it has one. */
  readonly utf8Slice?: Utf8Slice | undefined;
  /** The most bytes for which a loop over them beats `utf8Slice`; default 12. */
  readonly utf8LoopLimit?: number | undefined;
  /** Memory that is not cleared, as a plain Uint8Array, where the runtime has some: all of it is written before use. */
  readonly unfilled?: ((size: number) => Uint8Array) | undefined;
  /** Whether an error made after awaiting a thenable shows the awaiting caller in its stack. */
  readonly asyncStacks: boolean;
}
