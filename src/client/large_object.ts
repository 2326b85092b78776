/** Large objects (PostgreSQL manual, chapter 33): files of up to 4 TB that live in the database. */

import { createRegistry } from "../codecs/registry.ts";
import { describeValue } from "../codecs/text_form.ts";
import { EXTENDED } from "../engine/request.ts";
import { PipegresError, ValueError } from "../errors.ts";
import { execute, type Executor, throwIfFailed } from "./executor.ts";
import { Types } from "./types.ts";

/** What a large object is opened for. */
export type LargeObjectMode = "read" | "write" | "read write";

/** Where a position is counted from. */
export type SeekOrigin = "start" | "current" | "end";

// src/include/libpq/libpq-fs.h
const MODES: Readonly<Record<LargeObjectMode, number>> = {
  "read": 0x40000,
  "write": 0x20000,
  "read write": 0x60000,
};
const ORIGINS: Readonly<Record<SeekOrigin, number>> = { start: 0, current: 1, end: 2 };

/** Bytes of one call of loread or lowrite: large enough for the round trip, small enough for both memories. */
const CHUNK = 262_144;

let plainTypes: Types | undefined;

/** How a session represents values has no part in this. */
function types(): Types {
  return plainTypes ??= new Types(createRegistry({ int8: "number" }));
}

/** Calls functions of the server. */
class Caller {
  readonly #executor: Executor;

  constructor(executor: Executor) {
    this.#executor = {
      types: types(),
      keepsStacks: executor.keepsStacks,
      submit: (request) => executor.submit(request),
      giveUp: (request) => executor.giveUp(request),
      openStream: (request, site) => executor.openStream(request, site),
      attach: () => executor.attach(),
    };
  }

  /** The only value of a query. */
  async call<T>(text: string, values: readonly unknown[]): Promise<T> {
    const request = await execute(this.#executor, EXTENDED, { text, values }, types().arrays);
    throwIfFailed(request, undefined);
    return (request.rows as [T][])[0]![0];
  }
}

/** Makes a large object; resolves with its OID. */
export function createLargeObject(executor: Executor, oid: number): Promise<number> {
  return new Caller(executor).call<number>("select pg_catalog.lo_create($1)", [oid]);
}

/** Opens a large object. */
export async function openLargeObject(
  executor: Executor,
  oid: number,
  mode: LargeObjectMode,
): Promise<LargeObject> {
  if (!Object.hasOwn(MODES, mode)) {
    throw new ValueError(
      `Cannot open a large object for ${JSON.stringify(mode)}: wanted "read", "write" or "read write"`,
    );
  }
  const caller = new Caller(executor);
  const descriptor = await caller.call<number>("select pg_catalog.lo_open($1, $2)", [oid, MODES[mode]]);
  return new LargeObject(caller, oid, descriptor);
}

/** Deletes a large object. */
export async function unlinkLargeObject(executor: Executor, oid: number): Promise<void> {
  await new Caller(executor).call("select pg_catalog.lo_unlink($1)", [oid]);
}

/**
 * A large object that is open in a transaction, until it is closed or the transaction ends. It has one position, which
 * reading and writing move on; all its methods share it, and calls that are not waited for are answered in order.
 */
export class LargeObject implements AsyncDisposable {
  /** Its OID: what a table keeps of it. */
  readonly oid: number;
  readonly #caller: Caller;
  readonly #descriptor: number;
  #closed: boolean = false;
  /** The last call of those that have to be waited for: of several requests, or behind such a one. */
  #turn: Promise<unknown> | undefined = undefined;

  /** Use `largeObject()` or `createLargeObject()` of a transaction. */
  constructor(caller: Caller, oid: number, descriptor: number) {
    this.#caller = caller;
    this.oid = oid;
    this.#descriptor = descriptor;
  }

  /**
   * Reads from the position on.
   *
   * @param size bytes at most
   * @returns fewer bytes at the end of the object, none behind it
   */
  async read(size: number): Promise<Uint8Array> {
    checkCount("size", size);
    if (size <= CHUNK) return await this.#inTurn(() => this.#read(size));
    return await this.#inTurn(() => this.#readParts(size), true);
  }

  async #readParts(size: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    let length = 0;
    while (length < size) {
      const part = await this.#read(Math.min(CHUNK, size - length));
      parts.push(part);
      length += part.length;
      if (part.length === 0) break;
    }
    const bytes = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    return bytes;
  }

  /**
   * Writes at the position, over what is there. Behind the end the object grows; a gap reads as zeros.
   *
   * @throws {ValueError} for what is no Uint8Array
   */
  async write(data: Uint8Array): Promise<void> {
    if (!(data instanceof Uint8Array)) {
      throw new ValueError(
        `Expected a Uint8Array as data of a large object, received ${describeValue(data)}`,
      );
    }
    const several = data.length > CHUNK;
    // What is not sent at once might be changed by the caller before it is.
    const own = several || this.#turn !== undefined ? new Uint8Array(data) : data;
    await this.#inTurn(() => this.#writeParts(own), several);
  }

  async #writeParts(data: Uint8Array): Promise<void> {
    for (let at = 0; at < data.length; at += CHUNK) {
      const part = data.subarray(at, at + CHUNK);
      const written = await this.#call<number>("select pg_catalog.lowrite($1, $2)", [part]);
      if (written !== part.length) {
        throw new PipegresError(`Large object took ${written} of ${part.length} bytes`);
      }
    }
  }

  /**
   * Moves the position.
   *
   * @param offset bytes; may be negative where it is not counted from the start
   * @param origin where it is counted from. Default `"start"`
   * @returns the new position in bytes from the start
   */
  async seek(offset: number, origin: SeekOrigin = "start"): Promise<number> {
    if (!Number.isSafeInteger(offset)) {
      throw new ValueError(`Cannot seek to ${offset}: wanted a whole number of bytes`);
    }
    if (!Object.hasOwn(ORIGINS, origin)) {
      throw new ValueError(
        `Cannot seek from ${JSON.stringify(origin)}: wanted "start", "current" or "end"`,
      );
    }
    return await this.#inTurn(() =>
      this.#call<number>("select pg_catalog.lo_lseek64($1, $2, $3)", [offset, ORIGINS[origin]])
    );
  }

  /** The position, in bytes from the start. */
  async tell(): Promise<number> {
    return await this.#inTurn(() => this.#call<number>("select pg_catalog.lo_tell64($1)", []));
  }

  /** The size in bytes; the position stays. */
  async size(): Promise<number> {
    return await this.#inTurn(() => this.#call<number>(SIZE, []));
  }

  /** Cuts the object off, or lengthens it by zeros, to `size` bytes; the position stays. */
  async truncate(size: number): Promise<void> {
    checkCount("size", size);
    await this.#inTurn(() => this.#call("select pg_catalog.lo_truncate64($1, $2)", [size]));
  }

  /** Reads from the position to the end, a quarter of a megabyte at a time, when it is read from. */
  readable(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>({
      pull: async (controller): Promise<void> => {
        const bytes = await this.read(CHUNK);
        if (bytes.length > 0) controller.enqueue(bytes);
        else controller.close();
      },
    }, { highWaterMark: 0 });
  }

  /** Writes from the position on. Whether the data is kept is for the transaction to decide, as with every change. */
  writable(): WritableStream<Uint8Array> {
    return new WritableStream<Uint8Array>({ write: (chunk): Promise<void> => this.write(chunk) });
  }

  /** Closes it, not the transaction. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return;
    const closed = this.#inTurn(() => this.#call("select pg_catalog.lo_close($1)", []));
    this.#closed = true;
    await closed;
  }

  /** Closes it, unless the transaction has failed or ended, which closes it as well. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.close();
    } catch {
      // The error that ended the transaction is told by whatever met it first.
    }
  }

  /**
   * Runs a call when those before it are done. Calls of one request are in order by the connection's queue: they are
   * pipelined, unless one of `several` requests is under way.
   */
  async #inTurn<T>(call: () => Promise<T>, several: boolean = false): Promise<T> {
    if (this.#closed) throw new PipegresError("Large object is closed");
    const before = this.#turn;
    if (before === undefined && !several) return await call();
    const mine = before === undefined ? call() : before.then(call, call);
    this.#turn = mine;
    try {
      return await mine;
    } finally {
      if (this.#turn === mine) this.#turn = undefined;
    }
  }

  #read(size: number): Promise<Uint8Array> {
    return this.#call<Uint8Array>("select pg_catalog.loread($1, $2)", [size]);
  }

  #call<T>(text: string, values: readonly unknown[]): Promise<T> {
    return this.#caller.call<T>(text, [this.#descriptor, ...values]);
  }
}

/** Goes to the end and back: each step is given to the next one, so that their order is certain. */
const SIZE = `with
  here as materialized (select pg_catalog.lo_tell64($1::int4) as at),
  there as materialized (select at, pg_catalog.lo_lseek64($1::int4, at * 0, 2) as size from here)
select size from there where pg_catalog.lo_lseek64($1::int4, at + size * 0, 0) >= 0`;

function checkCount(what: string, count: number): void {
  if (Number.isSafeInteger(count) && count >= 0) return;
  throw new ValueError(`Cannot use ${what} ${count}: wanted a whole number of bytes from 0 on`);
}
