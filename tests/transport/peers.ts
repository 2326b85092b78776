/** The other side of a transport under test: a `node:net` server (it runs on all three runtimes), or memory. */

import net from "node:net";
import os from "node:os";
import path from "node:path";
import { createMemoryFactory, type MemoryTransport } from "../../src/transport/memory.ts";
import type { ConnectTarget, TransportFactory } from "../../src/transport/transport.ts";

/** One accepted connection. It collects what it reads. */
export interface Peer {
  write(bytes: Uint8Array): void;
  /** Closes orderly, after what was written. */
  end(): void;
  /** Closes abruptly: by a reset, or over a Unix-domain socket with bytes unread. */
  breakOff(): void;
  pause(): void;
  resume(): void;
  /** Bytes read so far. */
  received(): number;
  /** Called with each chunk read. */
  onData: (chunk: Uint8Array) => void;
  /** Resolves when the connection is gone. */
  readonly closed: Promise<void>;
}

/** A listening server. */
export interface Listener {
  readonly factory: TransportFactory;
  readonly target: ConnectTarget;
  /** Open connections. */
  open(): number;
  close(): Promise<void>;
}

/** Starts a listener; `onPeer` gets each accepted connection. */
export type Listen = (onPeer: (peer: Peer) => void) => Promise<Listener>;

/** Listens on 127.0.0.1 for connections made by `factory`. */
export function listenTcp(factory: TransportFactory, host = "127.0.0.1"): Listen {
  return (onPeer) =>
    listen(factory, onPeer, (server, ready) => server.listen(0, host, ready), (server) => {
      return { host, port: (server.address() as net.AddressInfo).port };
    });
}

/** Listens on a Unix-domain socket in the temporary directory. */
export function listenUnix(factory: TransportFactory): Listen {
  const unique = Math.random().toString(36).slice(2);
  const socketPath = path.join(os.tmpdir(), `pipegres-${unique}.sock`);
  return (onPeer) =>
    listen(factory, onPeer, (server, ready) => server.listen(socketPath, ready), () => {
      return { host: "", port: 1, path: socketPath };
    });
}

/** Connects `factory`-less: pairs in memory. */
export const listenMemory: Listen = (onPeer) => {
  let open = 0;
  const factory = createMemoryFactory((server) => {
    open++;
    const peer = memoryPeer(server);
    peer.closed.then(() => open--);
    onPeer(peer);
  });
  return Promise.resolve({
    factory,
    target: { host: "memory", port: 1 },
    open: () => open,
    close: () => Promise.resolve(),
  });
};

async function listen(
  factory: TransportFactory,
  onPeer: (peer: Peer) => void,
  bind: (server: net.Server, ready: () => void) => void,
  target: (server: net.Server) => ConnectTarget,
): Promise<Listener> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer({ allowHalfOpen: false }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    onPeer(netPeer(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject);
    bind(server, resolve);
  });
  return {
    factory,
    target: target(server),
    open: () => sockets.size,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** The same over an accepted socket of another kind. */
export function netPeer(socket: net.Socket): Peer {
  let received = 0;
  const peer: Peer = {
    write: (bytes) => void socket.write(bytes),
    end: () => void socket.end(),
    breakOff: () => void (socket.remoteAddress === undefined ? socket.destroy() : socket.resetAndDestroy()),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    received: () => received,
    onData() {},
    closed: new Promise((resolve) => socket.on("close", () => resolve())),
  };
  socket.setNoDelay(true);
  socket.on("error", () => {}); // resets are part of the suite
  socket.on("data", (chunk) => {
    received += chunk.length;
    peer.onData(chunk as Uint8Array);
  });
  return peer;
}

function memoryPeer(server: MemoryTransport): Peer {
  let received = 0;
  let tellClosed = (): void => {};
  const peer: Peer = {
    write: (bytes) => void server.write(bytes),
    end: () => server.close(),
    breakOff: () => server.reset(),
    pause: () => server.pauseReading(),
    resume: () => server.resumeReading(),
    received: () => received,
    onData() {},
    closed: new Promise((resolve) => tellClosed = resolve),
  };
  server.start({
    onBytes(chunk) {
      received += chunk.length;
      peer.onData(chunk);
    },
    onEnd: () => tellClosed(),
  });
  return peer;
}
