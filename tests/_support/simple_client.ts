/**
 * The smallest client that can ask a real server: simple queries, text results, one at a time, over node:net.
 *
 * It shares no code with the driver, so tests can use it to look at the server behind the driver's back.
 */

import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import { createConnection, type Socket } from "node:net";

/** Where and as whom to connect. */
export interface SimpleClientOptions {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password?: string;
  readonly database: string;
}

/** The server's ErrorResponse. */
export class SimpleClientError extends Error {
  /** SQLSTATE. */
  readonly code: string;

  constructor(fields: ReadonlyMap<string, string>) {
    super(`${fields.get("C")}: ${fields.get("M")}`);
    this.code = fields.get("C") ?? "";
  }
}

/** The options that a `postgres://user:password@host:port/database` URI gives. */
export function parseTestUrl(url: string): SimpleClientOptions {
  const { hostname, port, username, password, pathname } = new URL(url);
  return {
    host: hostname,
    port: Number(port || 5432),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: decodeURIComponent(pathname.slice(1)) || "postgres",
  };
}

interface Message {
  readonly type: string;
  readonly body: Buffer;
}

/** One connection. */
export class SimpleClient {
  #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #ended: Error | undefined;
  #wake: () => void = () => {};

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#wake();
    });
    const end = (error?: Error) => {
      this.#ended ??= error ?? new Error("The server closed the connection");
      this.#wake();
    };
    socket.on("error", end);
    socket.on("close", () => end());
  }

  /** Opens a connection and authenticates. */
  static async connect(target: string | SimpleClientOptions): Promise<SimpleClient> {
    const options = typeof target === "string" ? parseTestUrl(target) : target;
    const client = new SimpleClient(createConnection({ host: options.host, port: options.port }));
    try {
      await client.#start(options);
      return client;
    } catch (error) {
      client.#socket.destroy();
      throw error;
    }
  }

  /** Runs a script and returns the rows of its last result; NULL is `null`. */
  async query(sql: string): Promise<(string | null)[][]> {
    this.#send("Q", cstring(sql));
    let rows: (string | null)[][] = [];
    let failure: SimpleClientError | undefined;
    for (;;) {
      const { type, body } = await this.#receive();
      if (type === "T") rows = [];
      else if (type === "D") rows.push(readRow(body));
      else if (type === "E") failure ??= new SimpleClientError(readFields(body));
      else if (type === "Z") break;
    }
    if (failure) throw failure;
    return rows;
  }

  /** Says goodbye and resolves when the socket is closed. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      if (this.#socket.destroyed) resolve();
      else this.#socket.once("close", () => resolve());
    });
    this.#send("X", Buffer.alloc(0));
    this.#socket.end();
    await closed;
  }

  #send(type: string, body: Buffer): void {
    const header = Buffer.alloc(type.length + 4);
    header.write(type);
    header.writeInt32BE(body.length + 4, type.length);
    this.#socket.write(Buffer.concat([header, body]));
  }

  async #receive(): Promise<Message> {
    for (;;) {
      const length = this.#received.length >= 5 ? this.#received.readInt32BE(1) : Infinity;
      if (this.#received.length > length) {
        const message = {
          type: String.fromCharCode(this.#received[0]!),
          body: this.#received.subarray(5, length + 1),
        };
        this.#received = this.#received.subarray(length + 1);
        return message;
      }
      if (this.#ended) throw this.#ended;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }

  async #start(options: SimpleClientOptions): Promise<void> {
    const version = Buffer.from([0, 3, 0, 0]);
    const parameters = [
      "user",
      options.user,
      "database",
      options.database,
      "application_name",
      "simple client",
      "",
    ];
    this.#send("", Buffer.concat([version, ...parameters.map(cstring)]));
    let scram: ScramClient | undefined;
    for (;;) {
      const { type, body } = await this.#receive();
      if (type === "E") throw new SimpleClientError(readFields(body));
      if (type === "Z") return;
      if (type !== "R") continue;
      const request = body.readInt32BE(0);
      if (request === 3) this.#send("p", cstring(options.password ?? ""));
      else if (request === 10) {
        scram = new ScramClient(options.password ?? "");
        const first = Buffer.from(scram.first());
        const size = Buffer.alloc(4);
        size.writeInt32BE(first.length);
        this.#send("p", Buffer.concat([cstring("SCRAM-SHA-256"), size, first]));
      } else if (request === 11) this.#send("p", Buffer.from(scram!.final(body.toString("utf8", 4))));
      else if (request !== 0 && request !== 12) {
        throw new Error(`Authentication request ${request} is not supported`);
      }
    }
  }
}

/** RFC 5802 and 7677 without checks of the server: it is the test's own. */
class ScramClient {
  #password: string;
  #bare: string = `n=,r=${randomBytes(18).toString("base64")}`;

  constructor(password: string) {
    this.#password = password;
  }

  first(): string {
    return `n,,${this.#bare}`;
  }

  final(serverFirst: string): string {
    const [, nonce, salt, iterations] = /^r=([^,]*),s=([^,]*),i=(\d+)/.exec(serverFirst)!;
    const salted = pbkdf2Sync(this.#password, Buffer.from(salt!, "base64"), Number(iterations), 32, "sha256");
    const clientKey = createHmac("sha256", salted).update("Client Key").digest();
    const storedKey = createHash("sha256").update(clientKey).digest();
    const withoutProof = `c=biws,r=${nonce}`;
    const signature = createHmac("sha256", storedKey)
      .update(`${this.#bare},${serverFirst},${withoutProof}`).digest();
    const proof = Buffer.from(clientKey.map((byte, i) => byte ^ signature[i]!));
    return `${withoutProof},p=${proof.toString("base64")}`;
  }
}

function cstring(text: string): Buffer {
  return Buffer.from(`${text}\0`);
}

function readRow(body: Buffer): (string | null)[] {
  const row: (string | null)[] = [];
  for (let at = 2, left = body.readInt16BE(0); left > 0; left--) {
    const size = body.readInt32BE(at);
    at += 4;
    row.push(size < 0 ? null : body.toString("utf8", at, at + size));
    if (size > 0) at += size;
  }
  return row;
}

function readFields(body: Buffer): Map<string, string> {
  const fields = body.toString().split("\0").filter((field) => field !== "");
  return new Map(fields.map((field) => [field[0]!, field.slice(1)]));
}
