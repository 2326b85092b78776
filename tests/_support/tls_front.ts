/**
 * A server in front of a server: it answers SSLRequest as it is told, ends TLS with the certificate it is given, passes
 * on what is inside, and keeps what was sent to it in clear and in cipher.
 */

import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import tls from "node:tls";
import type { Certificate } from "./certificates.ts";

/** What it says to SSLRequest. */
export type SslAnswer =
  /** `S`, then TLS. */
  | "accept"
  /** `N`, and goes on in clear. */
  | "refuse"
  /** `E` with an ErrorResponse, and closes. */
  | "error"
  /** Closes. */
  | "close"
  /** Nothing. */
  | "stall"
  /** `S`, and closes at the ClientHello. */
  | "close-handshake"
  /** `S`, and nothing to the ClientHello. */
  | "stall-handshake"
  /** `S`, and bytes that are no TLS. */
  | "no-tls"
  /** `S` and a message in one go. */
  | "extra"
  /** `N` and a message in one go. */
  | "refuse-extra"
  /** A byte that is no answer. */
  | "unknown";

/** Options of {@linkcode startTlsFront}. */
export interface TlsFrontOptions {
  readonly answer: SslAnswer;
  /** Who it says it is. */
  readonly certificate: Pick<Certificate, "certificate" | "key">;
  /** Protocols for ALPN. Default `postgresql`; empty: it knows none. */
  readonly protocols?: readonly string[];
  /** The server that gets what is inside. */
  readonly upstream: { readonly host: string; readonly port: number };
  /** Speaks TLS to that server in its turn: somebody in the middle. Default `false`. */
  readonly encryptAgain?: boolean;
}

/** What came over one connection. */
export interface FrontRecord {
  /** How the frontend began. */
  begin: "ssl-request" | "tls" | "clear" | "nothing";
  /** All bytes from the frontend as they were on the wire, the SSLRequest included. */
  bytes: Uint8Array[];
  closed: boolean;
}

/** A running front. */
export interface TlsFront {
  readonly host: string;
  readonly port: number;
  readonly connections: readonly FrontRecord[];
  /** What all connections sent, one character a byte. */
  sniffed(): string;
  close(): Promise<void>;
}

const SSL_REQUEST = "0000000804d2162f";

/** Starts a front on a free port of 127.0.0.1. */
export async function startTlsFront(options: TlsFrontOptions): Promise<TlsFront> {
  const sockets = new Set<Socket>();
  const connections: FrontRecord[] = [];
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
    return socket;
  };
  const { protocols = ["postgresql"], certificate, upstream } = options;
  const inside = tls.createServer({
    cert: certificate.certificate,
    key: certificate.key,
    ...(protocols.length > 0 && { ALPNProtocols: [...protocols] }),
  }, async (socket) => {
    keep(socket).pause();
    const onward = options.encryptAgain ? await connectTls(upstream, keep) : keep(connect(upstream));
    join(socket, onward);
    socket.resume();
  });
  inside.on("tlsClientError", () => {});
  const tlsPort = await listen(inside);
  const outside = createServer((socket) => {
    const record: FrontRecord = { begin: "nothing", bytes: [], closed: false };
    connections.push(record);
    keep(socket);
    socket.on("close", () => record.closed = true);
    socket.on("data", (chunk: Uint8Array) => {
      record.bytes.push(new Uint8Array(chunk));
      if (record.bytes.length > 1) return;
      const hex = [...chunk.subarray(0, 8)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
      record.begin = hex === SSL_REQUEST ? "ssl-request" : chunk[0] === 0x16 ? "tls" : "clear";
      if (record.begin === "ssl-request") {
        return answer(socket, options.answer, () => connect(tlsPort, "127.0.0.1"), {
          keep,
          upstream,
        });
      }
      const next = keep(record.begin === "tls" ? connect(tlsPort, "127.0.0.1") : connect(upstream));
      next.write(chunk);
      join(socket, next);
    });
  });
  const port = await listen(outside);
  return {
    host: "127.0.0.1",
    port,
    connections,
    sniffed: () =>
      connections.flatMap(({ bytes }) => bytes).map((bytes) => String.fromCharCode(...bytes)).join(""),
    async close() {
      for (const socket of sockets) socket.destroy();
      for (const server of [inside, outside]) {
        await new Promise<void>((resolve) => server.close(() => resolve()));
      }
    },
  };
}

interface Surroundings {
  readonly keep: (socket: Socket) => Socket;
  readonly upstream: { readonly host: string; readonly port: number };
}

function answer(
  socket: Socket,
  how: SslAnswer,
  openTls: () => Socket,
  { keep, upstream }: Surroundings,
): void {
  const message = errorResponse();
  switch (how) {
    case "accept":
      socket.write("S");
      return join(socket, keep(openTls()));
    case "refuse":
      socket.write("N");
      return join(socket, keep(connect(upstream)));
    case "error":
      return void socket.end(message);
    case "close":
      return void socket.end();
    case "stall":
      return;
    case "close-handshake":
      socket.write("S");
      socket.once("data", () => socket.end());
      return;
    case "stall-handshake":
      return void socket.write("S");
    case "no-tls":
      socket.write("S");
      socket.once("data", () => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"));
      return;
    case "extra":
      return void socket.write(concat(new TextEncoder().encode("S"), message));
    case "refuse-extra":
      return void socket.write(concat(new TextEncoder().encode("N"), message));
    case "unknown":
      return void socket.write("x");
  }
}

async function connectTls(
  upstream: TlsFrontOptions["upstream"],
  keep: (socket: Socket) => Socket,
): Promise<Socket> {
  const socket = keep(connect(upstream));
  socket.write(Uint8Array.from(SSL_REQUEST.match(/../g)!, (hex) => parseInt(hex, 16)));
  await new Promise<void>((resolve) => socket.once("data", () => resolve()));
  const secured = tls.connect({ socket, rejectUnauthorized: false, ALPNProtocols: ["postgresql"] });
  keep(secured);
  await new Promise<void>((resolve) => secured.once("secureConnect", resolve));
  return secured;
}

/** FATAL 53300. */
function errorResponse(): Uint8Array {
  const body = new TextEncoder().encode("SFATAL\0VFATAL\0C53300\0Mnot to be trusted\0\0");
  const header = new Uint8Array(5);
  header[0] = 0x45;
  new DataView(header.buffer).setInt32(1, body.length + 4);
  return concat(header, body);
}

function concat(left: Uint8Array, right: Uint8Array): Uint8Array {
  const joined = new Uint8Array(left.length + right.length);
  joined.set(left);
  joined.set(right, left.length);
  return joined;
}

/** Passes on both ways; the end of one is the end of the other. */
function join(left: Socket, right: Socket): void {
  for (const [from, to] of [[left, right], [right, left]] as const) {
    from.on("data", (chunk: Uint8Array) => void to.write(chunk));
    from.on("end", () => void to.end());
    from.on("close", () => void to.destroySoon());
  }
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return (server.address() as AddressInfo).port;
}
