/**
 * Two transports joined in memory, for tests: a whole connection runs without sockets.
 *
 * How bytes are cut, when a writer is told to wait and how the connection ends are the test's to decide. A delivered
 * chunk is overwritten as soon as `onBytes` returns, so that nobody keeps borrowed bytes unnoticed.
 */

import { BaseTransport } from "./base_transport.ts";
import { connectError } from "./socket_error.ts";
import type { ConnectTarget, Transport, TransportFactory } from "./transport.ts";

/** Options of {@linkcode createMemoryPair}. */
export interface MemoryOptions {
  /** Largest chunk delivered, in bytes. Default: chunks are as they were written. */
  readonly splitAt?: number | undefined;
  /** Joins all bytes that wait into one chunk, before `splitAt` cuts it. Default `false`. */
  readonly merge?: boolean | undefined;
  /** Undelivered bytes above which `write` returns a promise; it resolves at a quarter. Default 262_144. */
  readonly highWaterMark?: number | undefined;
}

/** One end of a pair. */
export interface MemoryTransport extends Transport {
  /** Ends abruptly: the peer's undelivered bytes are lost, and its `onEnd` gets `cause` (default: an ECONNRESET). */
  reset(cause?: Error): void;
  /** Changes how bytes to this end are cut, from the next chunk on. */
  cutAt(options: Pick<MemoryOptions, "splitAt" | "merge">): void;
}

/** Makes two transports; what one writes, the other reads. */
export function createMemoryPair(options: MemoryOptions = {}): [MemoryTransport, MemoryTransport] {
  const client = new MemoryEnd(options);
  const server = new MemoryEnd(options);
  client.join(server);
  server.join(client);
  return [client, server];
}

/**
 * Makes a factory whose connections end in `serve`.
 *
 * @param serve gets the server's end of each connection; what it throws refuses the connection
 */
export function createMemoryFactory(
  serve: (server: MemoryTransport, target: ConnectTarget) => void,
  options: MemoryOptions = {},
): TransportFactory {
  return {
    name: "memory",
    asyncStacks: true,
    async connect(target: ConnectTarget): Promise<Transport> {
      target.signal?.throwIfAborted();
      await Promise.resolve();
      target.signal?.throwIfAborted();
      const [client, server] = createMemoryPair(options);
      try {
        serve(server, target);
      } catch (error) {
        throw connectError(target, error);
      }
      return client;
    },
  };
}

const DEFAULT_HIGH_WATER_MARK = 262_144;
/** What overwrites a chunk after its delivery. */
const SCRIBBLE = 0xdb;

class MemoryEnd extends BaseTransport implements MemoryTransport {
  #peer: MemoryEnd | undefined = undefined;
  #inbox: Uint8Array[] = [];
  #inboxSize = 0;
  #inboxEnded = false;
  #wanted = false;
  #pumping = false;
  #splitAt: number;
  #merge: boolean;
  #highWaterMark: number;

  constructor(options: MemoryOptions) {
    super();
    this.#splitAt = options.splitAt ?? Infinity;
    this.#merge = options.merge ?? false;
    this.#highWaterMark = options.highWaterMark ?? DEFAULT_HIGH_WATER_MARK;
  }

  join(peer: MemoryEnd): void {
    this.#peer = peer;
  }

  override write(bytes: Uint8Array): Promise<void> | undefined {
    const peer = this.#peer!;
    if (this.ended || peer.ended) return undefined;
    if (bytes.length > 0) peer.#inbox.push(bytes);
    peer.#inboxSize += bytes.length;
    peer.#pumpLater();
    return this.waiting || peer.#inboxSize > this.#highWaterMark ? this.congested() : undefined;
  }

  override setKeepAlive(_keepProcessAlive: boolean): void {
    // Memory keeps no process alive.
  }

  reset(cause?: Error): void {
    const peer = this.#peer!;
    peer.#inbox = [];
    peer.finish(cause ?? Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }));
    this.close();
  }

  cutAt(options: Pick<MemoryOptions, "splitAt" | "merge">): void {
    this.#splitAt = options.splitAt ?? Infinity;
    this.#merge = options.merge ?? false;
  }

  protected override startReading(): void {
    this.#wanted = true;
    this.#pumpLater();
  }

  protected override stopReading(): void {
    this.#wanted = false;
  }

  protected override closeSocket(): void {
    this.#inbox = [];
    const peer = this.#peer!;
    peer.#inboxEnded = true;
    peer.drained();
    peer.#pumpLater();
  }

  #pumpLater(): void {
    if (this.#pumping || !this.#wanted || this.ended) return;
    this.#pumping = true;
    queueMicrotask(() => this.#pump());
  }

  #pump(): void {
    this.#pumping = false;
    while (this.#wanted && !this.ended && this.#inbox.length > 0) {
      const chunk = this.#take();
      this.#inboxSize -= chunk.length;
      if (this.#inboxSize <= this.#peer!.#highWaterMark / 4) this.#peer!.drained();
      this.deliver(chunk);
      chunk.fill(SCRIBBLE);
    }
    if (this.#inbox.length === 0 && this.#inboxEnded && this.#wanted) this.finish(undefined);
  }

  /** A copy of the next chunk: the writer's bytes are not ours to overwrite. */
  #take(): Uint8Array {
    const inbox = this.#inbox;
    if (this.#merge && inbox.length > 1) {
      const joined = new Uint8Array(this.#inboxSize);
      let at = 0;
      for (const bytes of inbox.splice(0)) {
        joined.set(bytes, at);
        at += bytes.length;
      }
      inbox.push(joined);
    }
    const first = inbox[0]!;
    if (first.length <= this.#splitAt) {
      inbox.shift();
      return new Uint8Array(first);
    }
    inbox[0] = first.subarray(this.#splitAt);
    return new Uint8Array(first.subarray(0, this.#splitAt));
  }
}
