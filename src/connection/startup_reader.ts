/** Messages one at a time while a session is being established, and what was read beyond them afterwards. */

import { ConnectionError, ProtocolError } from "../errors.ts";

/** One backend message; `body` is not written over. */
export interface StartupMessage {
  readonly type: number;
  readonly body: Uint8Array;
}

// Enough for every ParameterStatus and a long error; a peer that speaks another protocol is soon found out.
const MAX_MESSAGE = 65_536;

/** Bytes that may wait while nobody reads, as during a password function; no server has that much to say by then. */
const MAX_WAITING = 1 << 20;

const EMPTY: Uint8Array = new Uint8Array(0);

/**
 * Collects bytes from the transport: `take() ?? await next()` is the next message. Most of them come together, and a
 * promise for each would cost more than reading it.
 */
export class StartupReader {
  #bytes: Uint8Array = EMPTY;
  /** Where the next message begins. */
  #at: number = 0;
  #ended: { readonly reason: Error | undefined } | undefined = undefined;
  #wake: (() => void) | undefined = undefined;
  #tellEnded: (() => void) | undefined = undefined;

  /**
   * Bytes from the transport; copied.
   *
   * @throws {ProtocolError} when too many of them wait
   */
  push(chunk: Uint8Array): void {
    const left = this.#bytes.subarray(this.#at);
    if (left.length + chunk.length > MAX_WAITING) {
      throw new ProtocolError(
        `Cannot establish the session: more than ${MAX_WAITING} bytes came that nobody had asked for`,
      );
    }
    const joined = new Uint8Array(left.length + chunk.length);
    joined.set(left);
    joined.set(chunk, left.length);
    this.#bytes = joined;
    this.#at = 0;
    this.#signal();
  }

  /** No further bytes will come; waiting and later calls of `next` reject, once what is here is used up. */
  end(reason: Error | undefined): void {
    this.#ended ??= { reason };
    this.#tellEnded?.();
    this.#signal();
  }

  /** The next message, if all of it is here. */
  take(): StartupMessage | undefined {
    const bytes = this.#bytes;
    const at = this.#at;
    const available = bytes.length - at;
    if (available < 5) return undefined;
    const type = bytes[at]!;
    const length = (bytes[at + 1]! << 24) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 8) | bytes[at + 4]!;
    if (length < 4 || length > MAX_MESSAGE) {
      throw new ProtocolError(
        "Cannot establish the session: the peer does not speak PostgreSQL's protocol " +
          `(message type ${type}, length ${length})`,
      );
    }
    if (available <= length) return undefined;
    this.#at = at + 1 + length;
    return { type, body: bytes.subarray(at + 5, this.#at) };
  }

  /** The next message. */
  async next(): Promise<StartupMessage> {
    for (;;) {
      const message = this.take();
      if (message !== undefined) return message;
      if (this.#ended !== undefined) throw this.#ended.reason ?? lost();
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }

  /** Resolves when no further bytes will come. */
  whenEnded(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#ended !== undefined) resolve();
      else this.#tellEnded = resolve;
    });
  }

  /** What {@linkcode end} was told. */
  get endedBy(): Error | undefined {
    return this.#ended?.reason;
  }

  /** What was read and not used; the reader is of no use afterwards. */
  rest(): Uint8Array {
    const rest = this.#bytes.subarray(this.#at);
    this.#bytes = EMPTY;
    this.#at = 0;
    return rest;
  }

  #signal(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

function lost(): Error {
  return new ConnectionError("Connection lost: the server closed it while it was being set up", {
    code: "CONNECTION_LOST",
  });
}
