/**
 * What all transports share: the one end, the order of bytes and end, bytes that come too early, and congestion.
 *
 * A runtime's transport overrides three hooks and calls `deliver`, `finish`, `congested` and `drained`. It needs no
 * checks of its own: after the end all four do nothing.
 *
 * Invariants
 * - The handler is never called from inside a method of the transport; ends are told in a microtask of their own.
 * - `onEnd` comes once and after the last byte, even where the end arrives while reading is paused with bytes held.
 * - A chunk is passed on as it is, borrowed; only what cannot be delivered at once is copied.
 */

import { asError } from "./socket_error.ts";
import type { Transport, TransportHandler } from "./transport.ts";

/** Base of every transport. */
export abstract class BaseTransport implements Transport {
  #handler: TransportHandler | undefined = undefined;
  #paused = false;
  #held: Uint8Array[] = [];
  #ended = false;
  #endTold = false;
  #cause: Error | undefined = undefined;
  #drain: Promise<void> | undefined = undefined;
  #resolveDrain: (() => void) | undefined = undefined;

  /** Asks the runtime for bytes. May be called when it is reading already. */
  protected abstract startReading(): void;
  /** Asks the runtime to stop. What it delivers nevertheless is held. */
  protected abstract stopReading(): void;
  /** Releases the socket; called once. Unsent bytes are dropped. */
  protected abstract closeSocket(): void;
  abstract write(bytes: Uint8Array): Promise<void> | undefined;
  abstract setKeepAlive(keepProcessAlive: boolean): void;

  /** Whether the socket is closed or has ended. */
  protected get ended(): boolean {
    return this.#ended;
  }

  /** Whether bytes wait for a handler. */
  protected get holding(): boolean {
    return this.#held.length > 0;
  }

  /** Whether a promise of {@linkcode congested} is pending. */
  protected get waiting(): boolean {
    return this.#drain !== undefined;
  }

  start(handler: TransportHandler): void {
    if (this.#handler !== undefined) throw new Error("Cannot start the transport: it was started before");
    this.#handler = handler;
    if (this.#held.length > 0 || this.#ended) this.#releaseLater();
    if (!this.#ended && !this.#paused) this.startReading();
  }

  detach(): void {
    this.#handler = undefined;
    // The next handler has to hear of it, too.
    this.#endTold = false;
    if (!this.#ended) this.stopReading();
  }

  pauseReading(): void {
    if (this.#paused || this.#ended) return;
    this.#paused = true;
    this.stopReading();
  }

  resumeReading(): void {
    if (!this.#paused) return;
    this.#paused = false;
    if (this.#held.length > 0) this.#releaseLater();
    if (!this.#ended && this.#handler !== undefined) this.startReading();
  }

  close(): void {
    this.#held = [];
    if (this.#ended) this.#releaseLater();
    else this.finish(undefined);
  }

  /** Passes a chunk on, or keeps a copy of it while nobody may be called. */
  protected deliver(chunk: Uint8Array): void {
    if (this.#ended) return;
    if (this.#handler === undefined || this.#paused || this.#held.length > 0) {
      this.#held.push(new Uint8Array(chunk)); // not slice(): a Buffer's shares its memory
      if (this.#handler === undefined || this.#paused) this.stopReading();
      return;
    }
    this.#call(this.#handler, chunk);
  }

  /** Ends the transport: closes the socket, lets writers go on, and tells the handler later. */
  protected finish(cause: Error | undefined): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#cause = cause;
    this.closeSocket();
    this.drained();
    this.#releaseLater();
  }

  /** The promise that `write` returns until {@linkcode drained} is called. */
  protected congested(): Promise<void> {
    return this.#drain ??= new Promise((resolve) => {
      this.#resolveDrain = resolve;
    });
  }

  /** The socket takes more. */
  protected drained(): void {
    const resolve = this.#resolveDrain;
    if (resolve === undefined) return;
    this.#drain = undefined;
    this.#resolveDrain = undefined;
    resolve();
  }

  #call(handler: TransportHandler, chunk: Uint8Array): void {
    try {
      handler.onBytes(chunk);
    } catch (error) {
      // The handler's state is unknown now: it gets no more bytes, and hears of its own error as the end.
      this.#held = [];
      this.finish(asError(error));
    }
  }

  #releaseLater(): void {
    queueMicrotask(() => this.#release());
  }

  #release(): void {
    const handler = this.#handler;
    if (handler === undefined) return;
    while (this.#held.length > 0 && !this.#paused && this.#handler === handler) {
      this.#call(handler, this.#held.shift()!);
    }
    if (this.#handler !== handler) return;
    if (!this.#ended || this.#endTold || this.#held.length > 0) return;
    this.#endTold = true;
    handler.onEnd(this.#cause);
  }
}
