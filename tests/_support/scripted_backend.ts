/**
 * A backend that follows a script of expect and send steps, over TCP or in memory: for servers that fail, lie, or
 * answer in odd orders.
 *
 * A step that does not come true rejects the script, which breaks off the connection; `close()` tells.
 */

import assert from "node:assert/strict";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createMemoryFactory, type MemoryOptions, type MemoryTransport } from "../../src/transport/memory.ts";
import type { TransportFactory } from "../../src/transport/transport.ts";
import {
  authenticationOk,
  backendKeyData,
  concat,
  parameterStatus,
  readyForQuery,
} from "./backend_writer.ts";
import { type FrontendMessage, FrontendReader } from "./frontend_reader.ts";
import { limit } from "./limit.ts";
import { resetSocket } from "./reset_socket.ts";

/** A frontend message of one type. */
export type MessageOf<T extends FrontendMessage["type"]> = Extract<FrontendMessage, { readonly type: T }>;

/** What a script says to one connection; `index` counts the connections from 0. */
export type Script = (session: ScriptedSession, index: number) => Promise<void>;

/** One side of a byte duplex, as a script needs it. */
interface Duplex {
  write(bytes: Uint8Array): void;
  /** Closes orderly, after what was written. */
  end(): void;
  /** Breaks off at once. */
  reset(): void;
}

/** Milliseconds that a script waits for a message. */
const PATIENCE = 10_000;

/** One connection, seen from the backend. */
export class ScriptedSession {
  /** Every message received so far, for tests that look at the whole. */
  readonly received: FrontendMessage[] = [];
  #duplex: Duplex;
  #reader: FrontendReader = new FrontendReader();
  #taken: number = 0;
  #ended: boolean = false;
  #failure: unknown;
  #wake: () => void = () => {};

  constructor(duplex: Duplex) {
    this.#duplex = duplex;
  }

  /** Sends messages in one write. */
  send(...messages: readonly Uint8Array[]): void {
    this.#duplex.write(concat(...messages));
  }

  /** The next message, whatever it is; undefined at the end of the connection. */
  async receive(): Promise<FrontendMessage | undefined> {
    while (this.#taken === this.received.length) {
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#ended) return undefined;
      await limit(
        new Promise<void>((resolve) => this.#wake = resolve),
        PATIENCE,
        "a message from the frontend",
      );
    }
    return this.received[this.#taken++];
  }

  /** The next message, which must be of this type and have these fields. */
  async expect<T extends FrontendMessage["type"]>(
    type: T,
    fields: Partial<MessageOf<T>> = {},
  ): Promise<MessageOf<T>> {
    const message = await this.receive();
    const shown = message === undefined ? "the end of the connection" : JSON.stringify(message);
    assert.equal(message?.type, type, `Expected ${type}, got ${shown}`);
    for (const [name, value] of Object.entries(fields)) {
      assert.deepEqual(message?.[name as keyof FrontendMessage], value, `${type}.${name}`);
    }
    return message as MessageOf<T>;
  }

  /** Expects these types in this order. */
  async expectTypes(...types: readonly FrontendMessage["type"][]): Promise<void> {
    for (const type of types) await this.expect(type);
  }

  /** Waits for the end of the connection; what comes before is looked at by nobody. */
  async drain(): Promise<void> {
    while (await this.receive() !== undefined);
  }

  /** Expects the frontend to leave: Terminate (or nothing), then the end. */
  async expectEnd(): Promise<void> {
    const message = await this.receive();
    if (message === undefined) return;
    assert.equal(message.type, "Terminate", `Expected the end, got ${JSON.stringify(message)}`);
    assert.equal(await this.receive(), undefined);
  }

  /** Plays the establishment with trust authentication; returns the StartupMessage. */
  async establish(
    options: { parameters?: Readonly<Record<string, string>> } = {},
  ): Promise<MessageOf<"StartupMessage">> {
    const startup = await this.expect("StartupMessage");
    const parameters = { server_version: "18.4", client_encoding: "UTF8", ...options.parameters };
    this.send(
      authenticationOk,
      ...Object.entries(parameters).map(([name, value]) => parameterStatus(name, value)),
      backendKeyData(4711, new Uint8Array([1, 2, 3, 4])),
      readyForQuery(),
    );
    return startup;
  }

  /** Closes the connection orderly. */
  end(): void {
    this.#duplex.end();
  }

  /** Breaks the connection off. */
  reset(): void {
    this.#duplex.reset();
  }

  /** For the transport below. */
  onBytes(chunk: Uint8Array): void {
    try {
      this.received.push(...this.#reader.push(chunk));
    } catch (error) {
      this.#failure ??= error;
    }
    this.#wake();
  }

  /** For the transport below. */
  onEnd(): void {
    this.#ended = true;
    if (this.#reader.pending > 0) this.#failure ??= new Error("The connection ended within a message");
    this.#wake();
  }
}

/** Runs scripts and remembers their failures. */
class ScriptRunner {
  #script: Script;
  #running: Promise<void>[] = [];
  #failures: unknown[] = [];

  constructor(script: Script) {
    this.#script = script;
  }

  get count(): number {
    return this.#running.length;
  }

  run(duplex: Duplex): ScriptedSession {
    const session = new ScriptedSession(duplex);
    const running = this.#script(session, this.#running.length).catch((error) => {
      this.#failures.push(error);
      session.reset();
    });
    this.#running.push(running);
    return session;
  }

  async finish(): Promise<void> {
    await limit(Promise.all(this.#running), PATIENCE * 2, "the end of all scripts");
    if (this.#failures.length > 0) throw this.#failures[0];
  }
}

/** A scripted backend that listens on 127.0.0.1. */
export interface ScriptedBackend {
  readonly host: string;
  readonly port: number;
  /** Connection URI, without a password. */
  readonly url: string;
  /** How many connections there were. */
  connections(): number;
  /** Waits for the scripts' ends, closes everything, and rejects with the first failure of a script. */
  close(): Promise<void>;
}

/** Starts a backend on a free port. */
export async function startScriptedBackend(script: Script): Promise<ScriptedBackend> {
  const runner = new ScriptRunner(script);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => {}); // An end like any other: "close" follows.
    const session = runner.run({
      write: (bytes) => void socket.write(bytes),
      end: () => void socket.end(),
      reset: () => resetSocket(socket),
    });
    socket.on("data", (chunk: Uint8Array) => session.onBytes(chunk));
    socket.on("end", () => session.onEnd());
    socket.on("close", () => {
      sockets.delete(socket);
      session.onEnd();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    host: "127.0.0.1",
    port,
    url: `postgres://scripted@127.0.0.1:${port}/scripted?sslmode=disable`,
    connections: () => runner.count,
    async close() {
      try {
        await runner.finish();
      } finally {
        for (const socket of sockets) socket.destroy();
        await new Promise<void>((resolve) => server.close(() => resolve()));
      }
    },
  };
}

/** A scripted backend in memory: no socket, no port. */
export interface MemoryBackend {
  /** For the `transport` option. */
  readonly factory: TransportFactory;
  connections(): number;
  /** Waits for the scripts' ends, and rejects with the first failure of a script. */
  close(): Promise<void>;
}

/** Makes a backend in memory; `options` cut what both sides read. */
export function createMemoryBackend(script: Script, options: MemoryOptions = {}): MemoryBackend {
  const runner = new ScriptRunner(script);
  const factory = createMemoryFactory((server: MemoryTransport) => {
    const session = runner.run({
      write: (bytes) => void server.write(bytes),
      end: () => server.close(),
      reset: () => server.reset(),
    });
    server.start({ onBytes: (chunk) => session.onBytes(chunk), onEnd: () => session.onEnd() });
  }, options);
  return { factory, connections: () => runner.count, close: () => runner.finish() };
}
