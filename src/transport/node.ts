/**
 * `node:net`, for Node.js; it also works inside Deno and Bun.
 *
 * Reads go into one buffer by `onread`, which halves the cost of large reads over `'data'` events.
 */

import { Buffer } from "node:buffer";
import net from "node:net";
import { BaseTransport } from "./base_transport.ts";
import { settleAttempt, systemPath } from "./connect_attempt.ts";
import { lookup } from "./lookup.ts";
import { lostError } from "./socket_error.ts";
import type { ConnectTarget, Transport, TransportFactory } from "./transport.ts";
import { unfilledOf } from "./unfilled.ts";
import { JAVASCRIPTCORE_LOOP_LIMIT, nativeUtf8Slice } from "./utf8_slice.ts";

/**
 * What all sockets read into: libuv fills it and calls back before it reads from any other socket, and received bytes are
 * borrowed until that call returns.
 */
const READ_BUFFER: Uint8Array = new Uint8Array(65_536);
const WRITE_HIGH_WATER_MARK = 262_144;

/** Milliseconds before the next address of a name is tried: Node.js' 250 gives up on distant servers. */
const ADDRESS_ATTEMPT_TIMEOUT = 1_000;

/** Makes the `node:net` transport. */
export function createNodeTransport(): TransportFactory {
  const onBun = (globalThis as { readonly Bun?: unknown }).Bun !== undefined;
  return {
    name: "node",
    connect,
    lookup,
    utf8Slice: nativeUtf8Slice(Buffer.prototype),
    utf8LoopLimit: onBun ? JAVASCRIPTCORE_LOOP_LIMIT : undefined,
    unfilled: unfilledOf(Buffer),
    asyncStacks: !onBun, // JavaScriptCore does not follow thenables
  };
}

function connect(target: ConnectTarget): Promise<Transport> {
  return settleAttempt(target, () => {
    const transport = new NodeTransport(target);
    return { opened: transport.opened, giveUp: () => transport.close() };
  });
}

class NodeTransport extends BaseTransport {
  /** Settles with the attempt. */
  readonly opened: Promise<Transport>;
  #socket: net.Socket;
  #taken = false;

  constructor(target: ConnectTarget) {
    super();
    const options = {
      ...(target.path === undefined
        ? { host: target.host, port: target.port }
        : { path: systemPath(target.path) }),
      noDelay: true,
      ...(target.keepalive && { keepAlive: true, keepAliveInitialDelay: target.keepalive.idle }),
      autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_TIMEOUT,
      writableHighWaterMark: WRITE_HIGH_WATER_MARK,
      onread: {
        buffer: READ_BUFFER,
        callback: (length: number): boolean => {
          this.deliver(READ_BUFFER.subarray(0, length));
          return true;
        },
      },
    };
    const socket = net.connect(options as net.NetConnectOpts);
    this.#socket = socket;
    this.opened = new Promise((resolve, reject) => {
      socket.once("connect", () => resolve(this));
      socket.on("error", (error) => {
        reject(error);
        this.finish(lostError(error));
      });
      // Only a socket that is destroyed while it connects gets here unsettled.
      socket.once("close", () => {
        reject(new Error("The socket was closed while connecting"));
        this.finish(undefined);
      });
    });
    socket.on("end", () => this.finish(undefined));
    socket.on("drain", () => this.drained());
    socket.pause(); // no byte is read, and no end is seen, before start()
  }

  override write(bytes: Uint8Array): Promise<void> | undefined {
    if (this.ended) return undefined;
    return this.#socket.write(bytes) ? undefined : this.congested();
  }

  override setKeepAlive(keepProcessAlive: boolean): void {
    if (keepProcessAlive) this.#socket.ref();
    else this.#socket.unref();
  }

  protected override startReading(): void {
    this.#socket.resume();
  }

  protected override stopReading(): void {
    this.#socket.pause();
  }

  protected override closeSocket(): void {
    if (!this.#taken) this.#socket.destroy();
  }

  /**
   * Gives the socket away, for TLS on top; this transport has ended then. `undefined` where the runtime's TLS does not
   * take such a socket, or bytes have been read that would be lost.
   */
  takeSocket(): net.Socket | undefined {
    const global = globalThis as { readonly Bun?: unknown; readonly Deno?: unknown };
    if (this.ended || this.holding || global.Bun !== undefined || global.Deno !== undefined) return undefined;
    this.#taken = true;
    this.finish(undefined);
    return this.#socket;
  }
}
