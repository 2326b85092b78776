/** A runtime's native socket with nothing on top: what every driver has to pay at least. */

import { Socket } from "node:net";

/** An open socket that counts messages. */
export interface RawSocket {
  write(bytes: Uint8Array): void;
  close(): void;
}

/** Called with what was read; the bytes are borrowed. */
export type OnBytes = (chunk: Uint8Array) => void;

/** Connects the quickest way there is: `Deno.connect`, `Bun.connect`, or `node:net` with one buffer for all reads. */
export function connectRaw(host: string, port: number, onBytes: OnBytes): Promise<RawSocket> {
  if ("Bun" in globalThis) return connectBun(host, port, onBytes);
  if ("Deno" in globalThis) return connectDeno(host, port, onBytes);
  return connectNode(host, port, onBytes);
}

const READ_SIZE = 65_536;

function connectNode(host: string, port: number, onBytes: OnBytes): Promise<RawSocket> {
  return new Promise((resolve, reject) => {
    const buffer = new Uint8Array(READ_SIZE);
    const onread = {
      buffer,
      callback: (length: number) => {
        onBytes(length === READ_SIZE ? buffer : buffer.subarray(0, length));
        return true;
      },
    };
    // The option is of connect() in the documentation, and of the constructor in the implementation.
    const socket = new Socket({ onread } as unknown as ConstructorParameters<typeof Socket>[0]);
    socket.once("error", reject);
    socket.connect({ host, port, noDelay: true } as { host: string; port: number }, () => {
      socket.on("error", () => {});
      resolve({ write: (bytes) => void socket.write(bytes), close: () => socket.destroy() });
    });
  });
}

async function connectDeno(host: string, port: number, onBytes: OnBytes): Promise<RawSocket> {
  const connection = await Deno.connect({ hostname: host, port });
  connection.setNoDelay(true);
  const buffer = new Uint8Array(READ_SIZE);
  (async () => {
    for (;;) {
      const length = await connection.read(buffer);
      if (length === null) return;
      onBytes(buffer.subarray(0, length));
    }
  })().catch(() => {});
  let writing: Promise<unknown> | undefined;
  const write = async (bytes: Uint8Array) => {
    for (let at = 0; at < bytes.length;) at += await connection.write(at === 0 ? bytes : bytes.subarray(at));
  };
  return {
    write(bytes) {
      const previous = writing;
      const current = (previous === undefined ? write(bytes) : previous.then(() => write(bytes))).catch(
        () => {},
      )
        .then(() => {
          if (writing === current) writing = undefined;
        });
      writing = current;
    },
    close: () => connection.close(),
  };
}

interface BunSocket {
  write(bytes: Uint8Array): number;
  end(): void;
  setNoDelay(on: boolean): void;
}

interface BunGlobal {
  readonly Bun: { connect(options: unknown): Promise<BunSocket> };
}

async function connectBun(host: string, port: number, onBytes: OnBytes): Promise<RawSocket> {
  let waiting: Uint8Array[] = [];
  const send = (target: BunSocket, bytes: Uint8Array): void => {
    if (waiting.length > 0) return void waiting.push(bytes);
    const written = target.write(bytes);
    if (written >= 0 && written < bytes.length) waiting.push(bytes.subarray(written));
  };
  const socket = await (globalThis as unknown as BunGlobal).Bun.connect({
    hostname: host,
    port,
    socket: {
      data: (_: BunSocket, chunk: Uint8Array) => onBytes(chunk),
      drain(target: BunSocket) {
        const rest = waiting;
        waiting = [];
        for (const bytes of rest) send(target, bytes);
      },
    },
  });
  socket.setNoDelay(true);
  return { write: (bytes) => send(socket, bytes), close: () => socket.end() };
}
