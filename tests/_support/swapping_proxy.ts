/**
 * A proxy that serves each client by several sessions of a server, the next one after every ReadyForQuery that says
 * idle: what a pooler in transaction mode may do. It knows nothing of prepared statements.
 *
 * The server must let the client in without a password, since the startup is played to every session.
 */

import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";

/** A running proxy. */
export interface SwappingProxy {
  readonly port: number;
  /** How often a client has been given another session. */
  swaps(): number;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** Starts a proxy on a free port of 127.0.0.1, with so many sessions for each client. */
export async function startSwappingProxy(
  target: { readonly host: string; readonly port: number },
  sessions: number = 2,
): Promise<SwappingProxy> {
  const sockets = new Set<Socket>();
  let swaps = 0;
  const track = (socket: Socket): Socket => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => {}); // an end like any other
    socket.on("close", () => sockets.delete(socket));
    return socket;
  };
  const server = createServer((client) => {
    track(client);
    const backends = Array.from({ length: sessions }, () => track(createConnection({ ...target })));
    serve(client, backends, () => swaps++);
  });
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    swaps: () => swaps,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function serve(client: Socket, backends: readonly Socket[], onSwap: () => void): void {
  const requests = new Messages(false);
  const waiting: Buffer[] = [];
  let current = 0;
  /** Sessions that have not said ReadyForQuery yet. */
  let starting = backends.length;
  /** Whether the current session has been given a Sync or a Query that it has not answered. */
  let busy = true;

  const pump = (): void => {
    while (!busy && waiting.length > 0) {
      const message = waiting.shift()!;
      backends[current]!.write(message);
      const type = String.fromCharCode(message[0]!);
      if (type === "X") client.end();
      busy = type === "S" || type === "Q";
    }
  };

  client.on("data", (chunk: Buffer) => {
    for (const message of requests.push(chunk)) {
      // The StartupMessage alone has no type: it goes to every session.
      if (message[0] === 0) { for (const backend of backends) backend.write(message); }
      else waiting.push(message);
    }
    pump();
  });
  client.on("close", () => backends.forEach((backend) => backend.destroy()));

  backends.forEach((backend, index) => {
    const replies = new Messages(true);
    let ready = false;
    backend.on("data", (chunk: Buffer) => {
      for (const message of replies.push(chunk)) {
        // Of the startups the client sees the first session's.
        if (ready || index === 0) client.write(message);
        if (message[0] !== 0x5a /* 'Z' ReadyForQuery */) continue;
        if (!ready) {
          ready = true;
          if (--starting > 0) continue;
        } else if (message[5] === 0x49 /* 'I' idle */) {
          current = (current + 1) % backends.length;
          onSwap();
        }
        busy = starting > 0;
        pump();
      }
    });
    backend.on("close", () => client.destroy());
  });
}

/** Cuts a stream into messages. */
class Messages {
  #bytes: Buffer = Buffer.alloc(0);
  #typed: boolean;

  /** @param typed false where a StartupMessage comes first */
  constructor(typed: boolean) {
    this.#typed = typed;
  }

  push(chunk: Buffer): Buffer[] {
    // A copy: the runtime may use its buffer again.
    let bytes = Buffer.concat([this.#bytes, chunk]);
    const messages: Buffer[] = [];
    for (;;) {
      const header = this.#typed ? 1 : 0;
      if (bytes.length < header + 4) break;
      const size = header + bytes.readInt32BE(header);
      if (bytes.length < size) break;
      messages.push(bytes.subarray(0, size));
      bytes = bytes.subarray(size);
      this.#typed = true;
    }
    this.#bytes = bytes;
    return messages;
  }
}
