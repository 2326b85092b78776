/**
 * `Bun.connect`, for Bun.
 *
 * One set of handlers serves all sockets; which transport one belongs to stands in its `data`. Bun's `write` is
 * one system call that may take a part only: the rest is kept here and sent at `drain`.
 *
 * Limit: Bun cannot give up a socket that is still connecting. An aborted `connect` rejects at once and a late socket
 * is closed, but where the peer does not answer at all the system keeps trying for as long as it is set to.
 */

import { Buffer } from "node:buffer";
import { BaseTransport } from "./base_transport.ts";
import { type ConnectAttempt, settleAttempt, systemPath } from "./connect_attempt.ts";
import { lookup } from "./lookup.ts";
import { lostError } from "./socket_error.ts";
import type { ConnectTarget, TcpKeepalive, Transport, TransportFactory } from "./transport.ts";
import { unfilledOf } from "./unfilled.ts";
import { JAVASCRIPTCORE_LOOP_LIMIT, nativeUtf8Slice } from "./utf8_slice.ts";

/** What is used of Bun's socket. */
interface BunSocket {
  data: BunTransport;
  write(bytes: Uint8Array, offset: number, length: number): number;
  pause(): void;
  resume(): void;
  ref(): void;
  unref(): void;
  end(): void;
  setNoDelay(noDelay: boolean): boolean;
  setKeepAlive(enable: boolean, initialDelay: number): boolean;
}

interface BunHandlers {
  open(socket: BunSocket): void;
  data(socket: BunSocket, chunk: Uint8Array): void;
  drain(socket: BunSocket): void;
  end(socket: BunSocket): void;
  close(socket: BunSocket, error?: Error): void;
  error(socket: BunSocket, error: Error): void;
  connectError(socket: BunSocket, error: Error): void;
}

interface BunConnectOptions {
  readonly hostname?: string;
  readonly port?: number;
  readonly unix?: string;
  readonly data: BunTransport;
  readonly socket: BunHandlers;
}

interface BunGlobal {
  readonly Bun: { connect(options: BunConnectOptions): Promise<BunSocket> };
}

/** Makes the `Bun.connect` transport. */
export function createBunTransport(): TransportFactory {
  // JavaScriptCore does not follow thenables.
  return {
    name: "bun",
    connect,
    lookup,
    utf8Slice: nativeUtf8Slice(Buffer.prototype),
    utf8LoopLimit: JAVASCRIPTCORE_LOOP_LIMIT,
    unfilled: unfilledOf(Buffer),
    asyncStacks: false,
  };
}

function connect(target: ConnectTarget): Promise<Transport> {
  return settleAttempt(target, (): ConnectAttempt => {
    const transport = new BunTransport(target.keepalive);
    const { host, port, path } = target;
    const socket = (globalThis as unknown as BunGlobal).Bun.connect({
      ...(path === undefined ? { hostname: host, port } : { unix: systemPath(path) }),
      data: transport,
      socket: HANDLERS,
    });
    return { opened: socket.then(() => transport), giveUp: () => transport.close() };
  });
}

const HANDLERS: BunHandlers = {
  open(socket) {
    socket.data.onOpen(socket);
  },
  data(socket, chunk) {
    socket.data.onData(chunk);
  },
  drain(socket) {
    socket.data.onDrain();
  },
  end(socket) {
    socket.data.onEnd(undefined);
  },
  close(socket, error) {
    socket.data.onEnd(error);
  },
  error(socket, error) {
    socket.data.onEnd(error);
  },
  connectError() {
    // The promise of Bun.connect rejects with the same error.
  },
};

class BunTransport extends BaseTransport {
  #socket: BunSocket | undefined = undefined;
  #queue: Uint8Array[] = [];
  readonly #keepalive: TcpKeepalive | undefined;

  constructor(keepalive: TcpKeepalive | undefined) {
    super();
    this.#keepalive = keepalive;
  }

  onOpen(socket: BunSocket): void {
    this.#socket = socket;
    if (this.ended) return socket.end();
    socket.setNoDelay(true);
    if (this.#keepalive !== undefined) socket.setKeepAlive(true, this.#keepalive.idle);
  }

  onData(chunk: Uint8Array): void {
    this.deliver(chunk);
  }

  onDrain(): void {
    while (this.#queue.length > 0) {
      const rest = this.#send(this.#queue[0]!);
      if (rest !== undefined) {
        this.#queue[0] = rest;
        return;
      }
      this.#queue.shift();
    }
    this.drained();
  }

  onEnd(error: Error | undefined): void {
    this.finish(error ? lostError(error) : undefined);
  }

  override write(bytes: Uint8Array): Promise<void> | undefined {
    if (this.ended) return undefined;
    const rest = this.#queue.length > 0 ? bytes : this.#send(bytes);
    if (rest === undefined) return undefined;
    this.#queue.push(rest);
    return this.congested();
  }

  override setKeepAlive(keepProcessAlive: boolean): void {
    if (this.ended) return;
    if (keepProcessAlive) this.#socket?.ref();
    else this.#socket?.unref();
  }

  protected override startReading(): void {
    this.#socket?.resume();
  }

  protected override stopReading(): void {
    this.#socket?.pause();
  }

  protected override closeSocket(): void {
    this.#queue = [];
    this.#socket?.end(); // closes at once, and with FIN; terminate() would reset and lose what the peer has not read
  }

  /** Writes what the socket takes, and returns what it does not. */
  #send(bytes: Uint8Array): Uint8Array | undefined {
    const length = this.#socket!.write(bytes, 0, bytes.length);
    if (length < 0 || length === bytes.length) return undefined; // -1: closed, of which `close` tells
    return length === 0 ? bytes : bytes.subarray(length);
  }
}
