/**
 * `Deno.connect`, for Deno.
 *
 * Bytes are read into one buffer per socket by `conn.read`; the Web streams of a connection cost twice as much.
 * Deno's `write` is asynchronous and may be partial, so there is at most one in flight, and what comes meanwhile waits
 * in order. The caller is told to wait once more than 256 KiB are unsent, and to go on at 64 KiB.
 */

import { Buffer } from "node:buffer";
import { BaseTransport } from "./base_transport.ts";
import { settleAttempt, systemPath } from "./connect_attempt.ts";
import { lookup } from "./lookup.ts";
import { isPermitted } from "./permissions.ts";
import { lostError } from "./socket_error.ts";
import type { ConnectTarget, Transport, TransportFactory } from "./transport.ts";
import { nativeUtf8Slice } from "./utf8_slice.ts";

/** Bytes of the buffer that reads go into: at first, and once a read has filled that. */
const FIRST_READ_SIZE = 8_192;
const READ_SIZE = 65_536;
const HIGH_WATER_MARK = 262_144;
const LOW_WATER_MARK = 65_536;
/** Waiting chunks are joined into one write of up to this size. */
const JOIN_SIZE = 65_536;

/** Makes the `Deno.connect` transport. */
export function createDenoTransport(): TransportFactory {
  return { name: "deno", connect, lookup, utf8Slice: nativeUtf8Slice(Buffer.prototype), asyncStacks: true };
}

type Conn = Deno.TcpConn | Deno.UnixConn;

function connect(target: ConnectTarget): Promise<Transport> {
  return settleAttempt(target, () => ({
    opened: open(target).then((conn) => new DenoTransport(conn)),
    giveUp() {
      // Deno heeds the signal itself for TCP, in newer versions.
    },
  }));
}

async function open({ host, port, path, signal, keepalive }: ConnectTarget): Promise<Conn> {
  if (path !== undefined) return await Deno.connect({ transport: "unix", path: systemPath(path) });
  const hostname = host.includes("%") ? await numericZone(host) : host;
  const conn = await Deno.connect({ hostname, port, ...(signal && { signal }) });
  conn.setNoDelay(true);
  if (keepalive !== undefined) conn.setKeepAlive(true);
  return conn;
}

/** Deno takes the zone of an IPv6 address as a number only. */
async function numericZone(host: string): Promise<string> {
  const [address, zone] = host.split("%") as [string, string];
  if (/^\d+$/.test(zone) || !isPermitted({ name: "sys", kind: "networkInterfaces" })) return host;
  try {
    const { networkInterfaces } = await import("node:os");
    const found = networkInterfaces()[zone]?.find(({ family }) => family === "IPv6");
    if (found === undefined) return host;
    return found.scopeid ? `${address}%${found.scopeid}` : address;
  } catch {
    return host; // not permitted
  }
}

class DenoTransport extends BaseTransport {
  #conn: Conn;
  #buffer: Uint8Array<ArrayBuffer> = new Uint8Array(FIRST_READ_SIZE);
  #wanted = false;
  #reading = false;
  #queue: Uint8Array[] = [];
  #unsent = 0;
  /** What `conn.write` is busy with. */
  #inFlight: Uint8Array | undefined = undefined;
  #writeError: Error | undefined = undefined;

  constructor(conn: Conn) {
    super();
    this.#conn = conn;
  }

  override write(bytes: Uint8Array): Promise<void> | undefined {
    if (this.ended) return undefined;
    // Whoever writes waits for the end: a loop that does nothing else would keep the read from finding it.
    if (this.#writeError !== undefined) return this.congested();
    this.#unsent += bytes.length;
    if (this.#inFlight === undefined) this.#send(bytes);
    else this.#queue.push(bytes);
    return this.waiting || this.#unsent > HIGH_WATER_MARK ? this.congested() : undefined;
  }

  override setKeepAlive(keepProcessAlive: boolean): void {
    if (this.ended) return;
    if (keepProcessAlive) this.#conn.ref();
    else this.#conn.unref();
  }

  protected override startReading(): void {
    this.#wanted = true;
    if (!this.#reading) this.#readLoop();
  }

  protected override stopReading(): void {
    this.#wanted = false;
  }

  protected override closeSocket(): void {
    this.#queue = [];
    this.#conn.close(); // a pending read or write rejects, and is caught in its loop
  }

  async #readLoop(): Promise<void> {
    this.#reading = true;
    try {
      while (this.#wanted && !this.ended) {
        const length = await this.#conn.read(this.#buffer);
        if (length === null) this.finish(this.#writeError);
        else if (length > 0) this.deliver(this.#buffer.subarray(0, length)); // 0 is not the end
        if (length === FIRST_READ_SIZE) this.#buffer = new Uint8Array(READ_SIZE);
      }
    } catch (error) {
      this.finish(lostError(error));
    }
    this.#reading = false;
  }

  #send(bytes: Uint8Array): void {
    this.#inFlight = bytes;
    this.#conn.write(bytes).then(this.#onWritten, this.#onWriteError);
  }

  // Made once: an async function would make a promise and two closures for every write.
  #onWritten = (length: number): void => {
    const bytes = this.#inFlight!;
    this.#inFlight = undefined;
    if (this.ended) return;
    this.#unsent -= length;
    if (length < bytes.length) this.#send(bytes.subarray(length));
    else if (this.#queue.length > 0) this.#send(this.#takeQueued());
    if (this.#unsent <= LOW_WATER_MARK) this.drained();
  };

  #onWriteError = (error: unknown): void => {
    // The peer may have said why before it left: what it sent is still read, and the read tells the end.
    this.#writeError = lostError(error);
    this.#queue = [];
  };

  #takeQueued(): Uint8Array {
    const queue = this.#queue;
    let count = 0;
    let size = 0;
    while (count < queue.length && size + queue[count]!.length <= JOIN_SIZE) size += queue[count++]!.length;
    if (count < 2) return queue.shift()!;
    const joined = new Uint8Array(size);
    let at = 0;
    for (const bytes of queue.splice(0, count)) {
      joined.set(bytes, at);
      at += bytes.length;
    }
    return joined;
  }
}
