/** A handler that writes down what a transport tells it, and waits with a time limit. */

import type { Transport, TransportHandler } from "../../src/transport/transport.ts";

const LIMIT = 10_000;

/** Rejects when `promise` takes longer than `LIMIT`. */
export async function within<T>(promise: Promise<T>, what: string, limit: number = LIMIT): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Waited ${limit} ms in vain for ${what}`)), limit);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Lets the event loop turn for `milliseconds`. */
export function turn(milliseconds: number = 2): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Collects bytes and the end. */
export class Recorder implements TransportHandler {
  /** Copies of the chunks; empty while `keep` is false. */
  chunks: Uint8Array[] = [];
  keep = true;
  received = 0;
  deliveries = 0;
  ends = 0;
  cause: Error | undefined = undefined;
  /** True while a method of the transport is being called: no call back may come then. */
  insideCall = false;
  reentered = false;
  onChunk: (chunk: Uint8Array) => void = () => {};
  #waiting: (() => void)[] = [];

  onBytes(chunk: Uint8Array): void {
    if (this.insideCall) this.reentered = true;
    if (this.ends > 0) throw new Error("Bytes came after the end");
    this.received += chunk.length;
    this.deliveries++;
    if (this.keep) this.chunks.push(new Uint8Array(chunk));
    this.onChunk(chunk);
    this.#wake();
  }

  onEnd(cause?: Error): void {
    if (this.insideCall) this.reentered = true;
    this.ends++;
    this.cause = cause;
    this.#wake();
  }

  /** Calls into the transport, watching for re-entrant call backs. */
  call<T>(method: () => T): T {
    this.insideCall = true;
    try {
      return method();
    } finally {
      this.insideCall = false;
    }
  }

  /** All bytes so far. */
  bytes(): Uint8Array {
    const all = new Uint8Array(this.received);
    let at = 0;
    for (const chunk of this.chunks) {
      all.set(chunk, at);
      at += chunk.length;
    }
    return all;
  }

  text(): string {
    return new TextDecoder().decode(this.bytes());
  }

  async until(condition: () => boolean, what: string): Promise<void> {
    while (!condition()) {
      await within(new Promise<void>((resolve) => this.#waiting.push(resolve)), what);
    }
  }

  ended(): Promise<void> {
    return this.until(() => this.ends > 0, "onEnd");
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** Starts `transport` with a recorder. */
export function record(transport: Transport): Recorder {
  const recorder = new Recorder();
  recorder.call(() => transport.start(recorder));
  return recorder;
}
