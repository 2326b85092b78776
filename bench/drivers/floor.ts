/**
 * The floor: the runtime's native socket, the bytes that our driver sends, replies only counted.
 *
 * Messages are encoded once and kept, so that nothing but the socket, the message headers of the replies and one
 * promise per wait is paid. The counting proxy shows in the report whether the bytes are the same as ours.
 */

import { chooseMechanism } from "../../src/auth/authenticator.ts";
import { md5Password } from "../../src/auth/md5.ts";
import { ScramSha256 } from "../../src/auth/scram_sha256.ts";
import { encodeParameters, parameterTypes } from "../../src/codecs/parameter_encoder.ts";
import { createRegistry } from "../../src/codecs/registry.ts";
import { resultFormats } from "../../src/codecs/row_decoder.ts";
import {
  type Field,
  readAuthentication,
  readParameterDescription,
  readRowDescription,
} from "../../src/wire/backend.ts";
import { Framer } from "../../src/wire/framer.ts";
import * as frontend from "../../src/wire/frontend.ts";
import * as types from "../../src/wire/message_types.ts";
import { Writer } from "../../src/wire/writer.ts";
import type { Counted, Driver, Execute, Rows, Session, Target, Values } from "../harness/driver.ts";
import { connectRaw, type RawSocket } from "./raw_socket.ts";

const MAX_MESSAGE = 1 << 30;

const driver: Driver = {
  name: "floor",
  runtimes: ["deno", "bun", "node"],
  packages: [],
  counts: true,
  notes: [
    "no driver: the runtime's native socket sends the bytes that pipegres sends, and counts messages by their headers",
    "many at once are one write and one promise",
  ],
  lacks: {
    cursor: "not exercised",
    json: "nothing is decoded",
    subscribe: "not exercised",
    insert: "not exercised",
  },
  async open(target) {
    const connection = new Connection();
    await connection.open(target);
    return sessionOf([connection]);
  },
  async openPool(target, max) {
    const connections = Array.from({ length: max }, () => new Connection());
    await Promise.all(connections.map((connection) => connection.open(target)));
    return sessionOf(connections);
  },
};
export default driver;

/** A statement that the server knows. */
interface Prepared {
  readonly name: string;
  readonly parameters: readonly number[];
  readonly formats: readonly number[];
  /** Bind and Execute by the values they are for, with and without Sync. */
  readonly messages: Map<Values, { readonly synced: Uint8Array; readonly bare: Uint8Array }>;
}

/** One socket and what is awaited on it. */
class Connection {
  #socket: RawSocket | undefined;
  #framer: Framer = new Framer(MAX_MESSAGE);
  #onMessage: ((type: number, body: Uint8Array) => void) | undefined;
  /** Bytes of a message that have not come, or of a header that is incomplete. */
  #skip: number = 0;
  #head: number[] = [];
  #rows: number = 0;
  #ready: number = 0;
  #wanted: number = 0;
  #resolve: ((rows: number) => void) | undefined;
  #registry = createRegistry();
  #statements: Map<string, Prepared> = new Map();
  #queries: Map<string, Uint8Array> = new Map();
  /** Bytes of CopyData bodies, for COPY TO. */
  copied: number = 0;
  #copyReady: (() => void) | undefined;

  async open(target: Target): Promise<void> {
    this.#socket = await connectRaw(target.host, target.port, (chunk) => this.#receive(chunk));
    const writer = new Writer();
    const startup = {
      user: target.user,
      database: target.database,
      client_encoding: "UTF8",
    };
    const ready = this.#exchange(target, writer);
    frontend.writeStartupMessage(writer, types.PROTOCOL_3_0, startup);
    this.#socket.write(writer.take());
    await ready;
  }

  /** Authenticates and waits for the first ReadyForQuery. */
  #exchange(target: Target, writer: Writer): Promise<void> {
    let scram: ScramSha256 | undefined;
    const answer = async (body: Uint8Array): Promise<void> => {
      const { request, data } = readAuthentication(body, 0, body.length);
      if (request === types.AUTHENTICATION_SASL) {
        const names = new TextDecoder().decode(data).split("\0").filter((name) => name !== "");
        scram = new ScramSha256({
          password: target.password,
          channelBinding: chooseMechanism(names).channelBinding,
        });
        frontend.writeSaslInitialResponse(writer, scram.mechanism, await scram.start());
      } else if (request === types.AUTHENTICATION_SASL_CONTINUE) {
        frontend.writeSaslResponse(writer, await scram!.next(data));
      } else if (request === types.AUTHENTICATION_MD5_PASSWORD) {
        frontend.writePassword(writer, md5Password(target.user, target.password, data));
      } else if (request === types.AUTHENTICATION_CLEARTEXT_PASSWORD) {
        frontend.writePassword(writer, target.password);
      } else return;
      this.#socket!.write(writer.take());
    };
    return new Promise<void>((resolve, reject) => {
      this.#onMessage = (type, body) => {
        if (type === types.READY_FOR_QUERY) resolve();
        else if (type === types.AUTHENTICATION) answer(body).catch(reject);
        else if (type === types.ERROR_RESPONSE) reject(new Error(new TextDecoder().decode(body)));
      };
    }).then(() => {
      this.#onMessage = undefined;
    });
  }

  #receive(chunk: Uint8Array): void {
    if (this.#onMessage === undefined) return this.#count(chunk);
    this.#framer.feed(chunk);
    while (this.#framer.next()) {
      const { type, bytes, start, end } = this.#framer;
      this.#onMessage?.(type, bytes.slice(start, end));
    }
  }

  /** Looks at headers only. */
  #count(chunk: Uint8Array): void {
    const length = chunk.length;
    let at = 0;
    if (this.#head.length > 0) {
      while (this.#head.length < 5 && at < length) this.#head.push(chunk[at++]!);
      if (this.#head.length < 5) return;
      const [type, a, b, c, d] = this.#head as [number, number, number, number, number];
      this.#head = [];
      const size = a << 24 | b << 16 | c << 8 | d;
      this.#skip = size - 4;
      this.#onHeader(type, size);
    }
    at += this.#skip;
    while (at + 5 <= length) {
      const size = chunk[at + 1]! << 24 | chunk[at + 2]! << 16 | chunk[at + 3]! << 8 | chunk[at + 4]!;
      const type = chunk[at]!;
      if (type === 0x44) this.#rows++; // 'D' DataRow
      else this.#onHeader(type, size);
      at += size + 1;
    }
    this.#skip = 0;
    if (at > length) this.#skip = at - length;
    else while (at < length) this.#head.push(chunk[at++]!);
    if (this.#resolve !== undefined && this.#ready >= this.#wanted && this.#skip === 0) this.#settle();
  }

  #onHeader(type: number, size: number): void {
    if (type === 0x44) this.#rows++; // 'D' DataRow
    else if (type === types.READY_FOR_QUERY) this.#ready++;
    else if (type === types.COPY_DATA) this.copied += size - 4;
    else if (type === types.COPY_IN_RESPONSE) this.#copyReady?.();
    else if (type === types.ERROR_RESPONSE) throw new Error("The floor's query failed");
  }

  #settle(): void {
    const resolve = this.#resolve!;
    this.#resolve = undefined;
    resolve(this.#rows);
  }

  /** Sends bytes that hold `syncs` Syncs or simple queries; resolves to the number of DataRows. */
  send(bytes: Uint8Array, syncs: number): Promise<number> {
    this.#rows = this.#ready = 0;
    this.#wanted = syncs;
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#socket!.write(bytes);
    });
  }

  query(text: string): Uint8Array {
    let message = this.#queries.get(text);
    if (message === undefined) {
      const writer = new Writer();
      frontend.writeQuery(writer, text);
      message = writer.take();
      this.#queries.set(text, message);
    }
    return message;
  }

  /** Bind and Execute for these values, and a Sync unless `bare`. The statement has been prepared. */
  execution(text: string, values: Values, bare: boolean = false): Uint8Array {
    const statement = this.#statements.get(text)!;
    let messages = statement.messages.get(values);
    if (messages === undefined) {
      messages = {
        synced: this.#encode(statement, values, true),
        bare: this.#encode(statement, values, false),
      };
      statement.messages.set(values, messages);
    }
    return bare ? messages.bare : messages.synced;
  }

  #encode(statement: Prepared, values: Values, synced: boolean): Uint8Array {
    const writer = new Writer(1024);
    const mark = frontend.beginBind(writer, statement.name);
    if (values.length === 0) writer.int32(0);
    else encodeParameters(values, statement.parameters, this.#registry, writer);
    const { formats } = statement;
    if (formats.every((format) => format === formats[0])) {
      if (formats[0] === 1) writer.int32(0x0001_0001);
      else writer.int16(0);
    } else {
      writer.int16(formats.length);
      for (const format of formats) writer.int16(format);
    }
    writer.endMessage(mark);
    frontend.writeExecute(writer, "", 0);
    if (synced) frontend.writeSync(writer);
    return writer.take();
  }

  /** Makes the statement known to the server and to us. */
  async prepare(text: string, values: Values): Promise<void> {
    if (this.#statements.has(text)) return;
    // As long as ours.
    const name = `pfloorfloo_${this.#statements.size + 1}`;
    const writer = new Writer();
    const declared = parameterTypes(values, this.#registry);
    frontend.writeParse(writer, name, text, declared.some((oid) => oid !== 0) ? declared : []);
    frontend.writeDescribe(writer, types.STATEMENT, name);
    frontend.writeSync(writer);
    let [parameters, fields]: [readonly number[], readonly Field[]] = [[], []];
    await new Promise<void>((resolve, reject) => {
      this.#framer = new Framer(MAX_MESSAGE);
      this.#onMessage = (type, body) => {
        if (type === types.PARAMETER_DESCRIPTION) parameters = readParameterDescription(body, 0, body.length);
        else if (type === types.ROW_DESCRIPTION) fields = readRowDescription(body, 0, body.length);
        else if (type === types.ERROR_RESPONSE) reject(new Error(new TextDecoder().decode(body)));
        else if (type === types.READY_FOR_QUERY) resolve();
      };
      this.#socket!.write(writer.take());
    });
    this.#onMessage = undefined;
    const formats = resultFormats(fields, this.#registry);
    this.#statements.set(text, { name, parameters, formats, messages: new Map() });
  }

  isPrepared(text: string): boolean {
    return this.#statements.has(text);
  }

  /** Waits for CopyInResponse, sends everything. */
  async copyIn(text: string, messages: readonly Uint8Array[]): Promise<number> {
    const ready = new Promise<void>((resolve) => this.#copyReady = resolve);
    const done = this.send(this.query(text), 1);
    await ready;
    this.#copyReady = undefined;
    for (const message of messages) this.#socket!.write(message);
    return await done;
  }

  close(): void {
    this.#socket!.write(TERMINATE);
    this.#socket!.close();
  }
}

const NO_VALUES: Values = [];
const TERMINATE: Uint8Array = Uint8Array.of(0x58, 0, 0, 0, 4);
const SYNC: Uint8Array = Uint8Array.of(0x53, 0, 0, 0, 4);

function concat(parts: readonly Uint8Array[]): Uint8Array {
  let size = 0;
  for (const part of parts) size += part.length;
  const joined = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

// size: the capabilities, in the order of Session.
function sessionOf(connections: readonly Connection[]): Session {
  const first = connections[0]!;
  const counted = async (rows: Promise<number>): Promise<Counted> => ({ counted: await rows });
  const one = (text: string, values: Values): Promise<Counted> =>
    counted(first.send(first.execution(text, values), 1));
  const prepare = async (text: string, values: Values): Promise<Execute> => {
    await first.prepare(text, values);
    const execute: Execute = (each) => one(text, each);
    return execute;
  };
  const batch = async (text: string, list: readonly Values[]): Promise<readonly Rows[]> => {
    if (!first.isPrepared(text)) await first.prepare(text, list[0]!);
    const parts = list.map((values) => first.execution(text, values, true));
    return [await counted(first.send(concat([...parts, SYNC]), 1))];
  };
  /** Deals messages out to all connections, one write for each. */
  const deal = async (messages: (connection: Connection, index: number) => Uint8Array, count: number) => {
    const sent = connections.map((connection, c) => {
      const parts: Uint8Array[] = [];
      for (let i = c; i < count; i += connections.length) parts.push(messages(connection, i));
      return parts.length === 0
        ? 0
        : connection.send(parts.length === 1 ? parts[0]! : concat(parts), parts.length);
    });
    let rows = 0;
    for (const each of sent) rows += await each;
    return { counted: rows };
  };
  return {
    simple: (text) => counted(first.send(first.query(text), 1)),
    async extended(text, values) {
      if (!first.isPrepared(text)) await first.prepare(text, values);
      return one(text, values);
    },
    prepare,
    prepareBinary: prepare,
    async transaction(text, list) {
      if (!first.isPrepared(text)) await first.prepare(text, list[0]!);
      const parts = list.map((values) => first.execution(text, values, true));
      const bytes = concat([first.query("begin"), ...parts, SYNC, first.query("commit")]);
      return [await counted(first.send(bytes, 3))];
    },
    async openTransaction() {
      await first.send(first.query("begin"), 1);
      return { run: batch, end: () => first.send(first.query("rollback"), 1) };
    },
    batch,
    async copyIn(text, chunks) {
      await first.copyIn(text, copyMessages(chunks));
      return -1;
    },
    async copyOut(text) {
      first.copied = 0;
      await first.send(first.query(text), 1);
      return first.copied;
    },
    burst: {
      async simple(texts) {
        if (connections.length === 1) {
          return await deal((connection, i) => connection.query(texts[i]!), texts.length);
        }
        // On a pool ours prepares.
        for (const connection of connections) {
          for (const text of new Set(texts)) {
            if (!connection.isPrepared(text)) await connection.prepare(text, NO_VALUES);
          }
        }
        return await deal((connection, i) => connection.execution(texts[i]!, NO_VALUES), texts.length);
      },
      async extended(text, list) {
        for (const connection of connections) {
          if (!connection.isPrepared(text)) await connection.prepare(text, list[0]!);
        }
        return await deal((connection, i) => connection.execution(text, list[i]!), list.length);
      },
    },
    close() {
      for (const connection of connections) connection.close();
      return Promise.resolve();
    },
  };
}

const copies: WeakMap<readonly Uint8Array[], readonly Uint8Array[]> = new WeakMap();

/** CopyData messages and CopyDone, encoded once. */
function copyMessages(chunks: readonly Uint8Array[]): readonly Uint8Array[] {
  let messages = copies.get(chunks);
  if (messages === undefined) {
    messages = [
      ...chunks.map((chunk) => encode((writer) => frontend.writeCopyData(writer, chunk))),
      encode(frontend.writeCopyDone),
    ];
    copies.set(chunks, messages);
  }
  return messages;
}

function encode(write: (writer: Writer) => void): Uint8Array {
  const writer = new Writer();
  write(writer);
  return writer.take();
}
