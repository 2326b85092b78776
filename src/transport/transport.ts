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
  /** Begins reading. Called once; bytes that arrived before are delivered then. */
  start(handler: TransportHandler): void;
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
}

/** UTF-8 text of `bytes[start, end)`; malformed sequences become U+FFFD. */
export type Utf8Slice = (bytes: Uint8Array, start: number, end: number) => string;

/** What a runtime supplies. */
export interface TransportFactory {
  /** `deno`, `bun`, `node` or `memory`; for messages. */
  readonly name: string;
  /** Opens a socket with TCP_NODELAY; rejects with a ConnectionError that keeps the system's `code`. */
  connect(target: ConnectTarget): Promise<Transport>;
  /** The runtime's quickest way to make a short string, where it has one. */
  readonly utf8Slice?: Utf8Slice | undefined;
  /** Whether an error made after awaiting a thenable shows the awaiting caller in its stack. */
  readonly asyncStacks: boolean;
}
