/** Messages one at a time while a session is being established, and what was read beyond them afterwards. */

import { ConnectionError, ProtocolError } from "../errors.ts";

/** One backend message; `body` is a copy. */
export interface StartupMessage {
  readonly type: number;
  readonly body: Uint8Array;
}

// Enough for every ParameterStatus and a long error; a peer that speaks another protocol is soon found out.
const MAX_MESSAGE = 65_536;

const EMPTY: Uint8Array = new Uint8Array(0);

/** Collects bytes from the transport; `next()` waits for a whole message. */
export class StartupReader {
  #bytes: Uint8Array = EMPTY;
  #ended: { readonly reason: unknown } | undefined = undefined;
  #wake: (() => void) | undefined = undefined;

  /** Bytes from the transport; copied. */
  push(chunk: Uint8Array): void {
    const joined = new Uint8Array(this.#bytes.length + chunk.length);
    joined.set(this.#bytes);
    joined.set(chunk, this.#bytes.length);
    this.#bytes = joined;
    this.#signal();
  }

  /** No further bytes will come; waiting and later calls of `next` reject, once what is here is used up. */
  end(reason: Error | undefined): void {
    this.#ended ??= { reason: reason ?? lost() };
    this.#signal();
  }

  /** The next message. */
  async next(): Promise<StartupMessage> {
    for (;;) {
      const message = this.#take();
      if (message !== undefined) return message;
      if (this.#ended !== undefined) throw this.#ended.reason;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }

  /** What was read and not used; the reader is of no use afterwards. */
  rest(): Uint8Array {
    const rest = this.#bytes;
    this.#bytes = EMPTY;
    return rest;
  }

  #signal(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  #take(): StartupMessage | undefined {
    const bytes = this.#bytes;
    if (bytes.length < 5) return undefined;
    const type = bytes[0]!;
    const length = (bytes[1]! << 24) | (bytes[2]! << 16) | (bytes[3]! << 8) | bytes[4]!;
    if (length < 4 || length > MAX_MESSAGE) {
      throw new ProtocolError(
        "Cannot establish the session: the peer does not speak PostgreSQL's protocol " +
          `(message type ${type}, length ${length})`,
      );
    }
    if (bytes.length <= length) return undefined;
    this.#bytes = bytes.slice(1 + length);
    return { type, body: bytes.slice(5, 1 + length) };
  }
}

function lost(): Error {
  return new ConnectionError("Connection lost: the server closed it while it was being set up", {
    code: "CONNECTION_LOST",
  });
}
