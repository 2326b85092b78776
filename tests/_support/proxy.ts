/**
 * A TCP proxy between a driver and a server that cuts, joins, holds, breaks off and records what passes.
 *
 * Between chunks it waits a turn of the event loop, never a time.
 */

import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import { setImmediate } from "node:timers";
import { resetSocket } from "./reset_socket.ts";

/** Where bytes come from. */
export type Direction = "frontend" | "backend";

/** Cuts bytes into chunks; `offset` is the stream position of the first one. Together they must be all the bytes. */
export type Chunking = (bytes: Uint8Array, offset: number) => readonly Uint8Array[];

/** As they come. */
export const whole: Chunking = (bytes) => [bytes];

/** Chunks of `size` bytes. */
export function chunksOf(size: number): Chunking {
  return (bytes) => {
    const chunks: Uint8Array[] = [];
    for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
    return chunks;
  };
}

/** Cuts before the bytes at these stream positions. */
export function cutsAt(...positions: readonly number[]): Chunking {
  return (bytes, offset) => {
    const inside = positions.map((position) => position - offset).filter((at) => at > 0 && at < bytes.length);
    const edges = [0, ...inside.sort((a, b) => a - b), bytes.length];
    return edges.slice(1).map((edge, i) => bytes.subarray(edges[i]!, edge));
  };
}

/** Chunks of 1 to `max` bytes; the same for the same seed. */
export function randomChunks(seed: number, max: number = 64): Chunking {
  const random = seededRandom(seed);
  return (bytes) => {
    const chunks: Uint8Array[] = [];
    for (let at = 0; at < bytes.length;) {
      const end = at + 1 + Math.floor(random() * max);
      chunks.push(bytes.subarray(at, end));
      at = end;
    }
    return chunks;
  };
}

/** Numbers from 0 to 1 that follow from the seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = state + 0x6d2b79f5 | 0;
    let mixed = Math.imul(state ^ state >>> 15, 1 | state);
    mixed = mixed + Math.imul(mixed ^ mixed >>> 7, 61 | mixed) ^ mixed;
    return ((mixed ^ mixed >>> 14) >>> 0) / 4_294_967_296;
  };
}

/** Breaks connections off after `after` bytes of a direction have been passed on. */
export interface Cut {
  readonly direction: Direction;
  readonly after: number;
  /** Orderly, or by a reset. */
  readonly how: "end" | "reset";
}

/** Bytes as they came, before they were cut. */
export interface Recorded {
  readonly connection: number;
  readonly from: Direction;
  readonly bytes: Uint8Array;
}

/** Options of {@linkcode startProxy}. */
export interface ProxyOptions {
  /** The server: a port of a host, or a socket's path. */
  readonly target: { readonly host: string; readonly port: number } | { readonly path: string };
  /** How each direction is cut. Default {@linkcode whole}. */
  readonly frontend?: Chunking;
  readonly backend?: Chunking;
  /** Turns of the event loop between two chunks, in which more bytes may come and are joined. Default 1. */
  readonly turns?: number;
  /** Where connections break; may be set later with {@linkcode Proxy.cut}. */
  readonly cut?: Cut;
  /** Keeps what passes. Default `false`. */
  readonly record?: boolean;
}

/** A running proxy. */
export interface Proxy {
  readonly host: string;
  readonly port: number;
  /** What has passed, when `record` was set. */
  readonly recorded: readonly Recorded[];
  /** Connections accepted so far. */
  connections(): number;
  /** Connections open now. */
  open(): number;
  /** Breaks off, from now on and once that many bytes have passed; undefined takes it back. */
  cut(cut: Cut | undefined): void;
  /** Passes nothing on in this direction until {@linkcode release}; bytes are kept. */
  hold(direction: Direction): void;
  release(direction: Direction): void;
  /** Ends all connections and resolves when nothing is left. */
  close(): Promise<void>;
}

/** Starts a proxy on a free port of 127.0.0.1. */
export async function startProxy(options: ProxyOptions): Promise<Proxy> {
  const state: ProxyState = { options, cut: options.cut, held: new Set(), recorded: [], wake: new Set() };
  const links = new Set<Link>();
  let connections = 0;
  // Half-open, so that an end is passed on behind the bytes before it.
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const link = new Link(state, connections++, socket, () => links.delete(link));
    links.add(link);
  });
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const wake = () => state.wake.forEach((pump) => pump());
  return {
    host: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
    recorded: state.recorded,
    connections: () => connections,
    open: () => links.size,
    cut(cut) {
      state.cut = cut;
      wake();
    },
    hold: (direction) => void state.held.add(direction),
    release(direction) {
      state.held.delete(direction);
      wake();
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const link of links) link.breakOff("end");
      await closed;
      while (links.size > 0) await turn();
    },
  };
}

interface ProxyState {
  readonly options: ProxyOptions;
  cut: Cut | undefined;
  readonly held: Set<Direction>;
  readonly recorded: Recorded[];
  readonly wake: Set<() => void>;
}

/** One connection through the proxy: two sockets and two pumps. */
class Link {
  #frontend: Socket;
  #backend: Socket;
  #open: number = 2;

  constructor(state: ProxyState, index: number, frontend: Socket, onClosed: () => void) {
    this.#frontend = frontend;
    this.#backend = createConnection({ ...state.options.target, allowHalfOpen: true });
    const pumps = [
      new Pump(state, index, "frontend", this.#frontend, this.#backend, (how) => this.breakOff(how)),
      new Pump(state, index, "backend", this.#backend, this.#frontend, (how) => this.breakOff(how)),
    ];
    for (const [i, socket] of [this.#frontend, this.#backend].entries()) {
      socket.setNoDelay(true);
      socket.on("error", () => this.breakOff("reset"));
      socket.on("close", () => {
        pumps[i]!.sourceClosed();
        pumps[1 - i]!.stop();
        if (--this.#open === 0) onClosed();
      });
    }
  }

  breakOff(how: "end" | "reset"): void {
    for (const socket of [this.#frontend, this.#backend]) {
      if (how === "reset") resetSocket(socket);
      else socket.destroySoon();
    }
  }
}

/** Passes bytes on in one direction. */
class Pump {
  #state: ProxyState;
  #index: number;
  #direction: Direction;
  #target: Socket;
  #breakOff: (how: "end" | "reset") => void;
  #waiting: Uint8Array[] = [];
  #chunks: Uint8Array[] = [];
  #passed: number = 0;
  #running: boolean = false;
  #sourceEnded: boolean = false;
  #sourceClosed: boolean = false;
  #stopped: boolean = false;
  #pump: () => void = () => void this.#run();

  constructor(
    state: ProxyState,
    index: number,
    direction: Direction,
    source: Socket,
    target: Socket,
    breakOff: (how: "end" | "reset") => void,
  ) {
    this.#state = state;
    this.#index = index;
    this.#direction = direction;
    this.#target = target;
    this.#breakOff = breakOff;
    state.wake.add(this.#pump);
    source.on("data", (chunk: Uint8Array) => {
      // A copy: the runtime may use its buffer again.
      this.#waiting.push(new Uint8Array(chunk));
      if (state.options.record) {
        state.recorded.push({ connection: index, from: direction, bytes: new Uint8Array(chunk) });
      }
      this.#pump();
    });
    source.on("end", () => {
      this.#sourceEnded = true;
      this.#pump();
    });
  }

  /** What came is still passed on, then the target is closed: it has nobody left to talk to. */
  sourceClosed(): void {
    this.#sourceClosed = true;
    this.#pump();
  }

  stop(): void {
    this.#stopped = true;
    this.#state.wake.delete(this.#pump);
  }

  async #run(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    for (let chunk = this.#next(); chunk !== undefined; chunk = this.#next()) {
      this.#passed += chunk.length;
      await write(this.#target, chunk);
      for (let i = this.#state.options.turns ?? 1; i > 0; i--) await turn();
    }
    this.#running = false;
  }

  /** The next chunk to pass on, or undefined when there is none for now or for ever. */
  #next(): Uint8Array | undefined {
    if (this.#stopped || this.#state.held.has(this.#direction)) return undefined;
    const cut = this.#state.cut?.direction === this.#direction ? this.#state.cut : undefined;
    if (cut && this.#passed >= cut.after) {
      this.#breakOff(cut.how);
      return undefined;
    }
    if (this.#chunks.length === 0) {
      const bytes = join(this.#waiting.splice(0));
      const chunking = this.#state.options[this.#direction] ?? whole;
      if (bytes.length > 0) this.#chunks.push(...chunking(bytes, this.#passed));
    }
    const chunk = this.#chunks.shift();
    if (chunk === undefined && this.#sourceClosed) this.#target.destroySoon();
    else if (chunk === undefined && this.#sourceEnded) this.#target.end();
    return chunk && cut ? chunk.subarray(0, cut.after - this.#passed) : chunk;
  }
}

/** Resolves when the socket has taken the bytes, or is gone. */
function write(socket: Socket, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed || bytes.length === 0) resolve();
    else socket.write(bytes, () => resolve());
  });
}

function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

function join(chunks: readonly Uint8Array[]): Uint8Array {
  if (chunks.length === 1) return chunks[0]!;
  const joined = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    joined.set(chunk, at);
    at += chunk.length;
  }
  return joined;
}
