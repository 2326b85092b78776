/**
 * Rows a batch at a time: at most one batch is made ahead of the one that is being consumed.
 *
 * Outside a transaction block a portal lives until Sync, so the stream holds its connection and sends Flush; inside
 * one the portal is named, each batch is a request of its own, and other queries may go between.
 */

import type { ServerConnection } from "../connection/server_connection.ts";
import { CLOSE, EXTENDED, FETCH, NO_PARAMETERS, Request } from "../engine/request.ts";
import { chainObserver, throwIfFailed } from "./executor.ts";

/** Gives batches of rows until there are no more. */
export interface BatchSource {
  /** The next batch; `undefined` at the end. Not called again before it has resolved. */
  next(): Promise<unknown[] | undefined>;
  /** Gives up what is left; resolves when the connection is free again. Idempotent. */
  close(): Promise<void>;
}

/** A portal that holds its connection. */
export class FlushSource implements BatchSource {
  readonly #connection: ServerConnection;
  readonly #request: Request;
  readonly #site: Error | undefined;
  #ready: unknown[] | undefined = undefined;
  #closing: boolean = false;
  #wake: (() => void) | undefined = undefined;

  /**
   * @param request a STREAM that is not submitted yet
   * @param submit how it gets to the connection
   */
  constructor(
    connection: ServerConnection,
    request: Request,
    site: Error | undefined,
    submit: (request: Request) => void = (each) => connection.submit(each),
  ) {
    this.#connection = connection;
    this.#request = request;
    this.#site = site;
    request.onSuspended = () => this.#onSuspended();
    chainObserver(request, () => this.#onSettled());
    submit(request);
  }

  async next(): Promise<unknown[] | undefined> {
    while (this.#ready === undefined && !this.#request.settled) {
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    throwIfFailed(this.#request, this.#site);
    const rows = this.#ready;
    this.#ready = undefined;
    // The next batch is made while this one is consumed.
    if (!this.#request.settled) this.#connection.fetch(this.#request);
    return rows;
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#ready = undefined;
    this.#connection.finish(this.#request);
    while (!this.#request.settled) await new Promise<void>((resolve) => this.#wake = resolve);
  }

  #onSuspended(): void {
    if (this.#closing) return this.#connection.finish(this.#request);
    this.#ready = this.#request.rows;
    this.#request.rows = [];
    this.#signal();
  }

  #onSettled(): void {
    if (!this.#closing && this.#request.rows.length > 0) {
      this.#ready = this.#ready === undefined ? this.#request.rows : this.#ready.concat(this.#request.rows);
    }
    this.#signal();
  }

  #signal(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

/** A named portal in a transaction block. */
export class PortalSource implements BatchSource {
  readonly #submit: (request: Request) => void;
  readonly #first: Request;
  readonly #site: Error | undefined;
  /** The batch under way. */
  #pending: Promise<Request> | undefined = undefined;
  #ended: boolean = false;

  /**
   * @param submit takes requests of the transaction
   * @param first the STREAM that was asked for; its text, parameters and batch size are used
   * @param portal a name not used before
   */
  constructor(submit: (request: Request) => void, first: Request, portal: string, site: Error | undefined) {
    this.#submit = submit;
    this.#site = site;
    this.#pending = new Promise((resolve) => {
      const opening = new Request(EXTENDED, first.text, first.parameters, first.planner, resolve);
      opening.portal = portal;
      opening.maxRows = first.maxRows;
      opening.last = first.last;
      this.#submit(opening);
    });
    this.#first = first;
    this.#first.portal = portal;
  }

  async next(): Promise<unknown[] | undefined> {
    if (this.#ended) return undefined;
    const request = await this.#pending!;
    this.#pending = undefined;
    if (request.failure !== null || !request.suspended) this.#ended = true;
    if (request.suspended && request.failure !== null) await this.#closePortal();
    throwIfFailed(request, this.#site);
    if (this.#ended) {
      // A portal that is left open keeps its table from being altered in the same transaction.
      await this.#closePortal();
      return request.rows.length > 0 ? request.rows : undefined;
    }
    const rows = request.rows;
    this.#pending = this.#fetch(request);
    return rows;
  }

  async close(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await this.#pending;
    this.#pending = undefined;
    await this.#closePortal();
  }

  #fetch(before: Request): Promise<Request> {
    return new Promise((resolve) => {
      const { text, planner, portal, maxRows } = this.#first;
      const request = new Request(FETCH, text, NO_PARAMETERS, planner, resolve);
      request.portal = portal;
      request.maxRows = maxRows;
      request.fields = before.fields;
      request.decoder = before.decoder;
      this.#submit(request);
    });
  }

  async #closePortal(): Promise<void> {
    await new Promise<Request>((resolve) => {
      const request = new Request(CLOSE, "", NO_PARAMETERS, this.#first.planner, resolve);
      request.portal = this.#first.portal;
      this.#submit(request);
    });
  }
}

/** Rows one by one, from batches. Concurrent calls of `next` are answered in order. */
export class RowStream<T> implements AsyncIterableIterator<T, undefined, undefined>, AsyncDisposable {
  readonly #open: () => BatchSource;
  #source: BatchSource | undefined = undefined;
  #batch: unknown[] = [];
  #at: number = 0;
  #done: boolean = false;
  /** The call before, which goes first. */
  #turn: Promise<unknown> | undefined = undefined;

  /** @param open starts the query; called by the first `next` */
  constructor(open: () => BatchSource) {
    this.#open = open;
  }

  /** The next row. */
  next(): Promise<IteratorResult<T, undefined>> {
    // Without a wait for the server a row costs one promise.
    if (this.#turn === undefined && this.#at < this.#batch.length) {
      return Promise.resolve({ done: false, value: this.#batch[this.#at++] as T });
    }
    return this.#inTurn(() => this.#nextRow());
  }

  /** Gives up the rows that are left. */
  return(): Promise<IteratorResult<T, undefined>> {
    return this.#inTurn(async () => {
      await this.#end();
      return { done: true, value: undefined };
    });
  }

  /** Same as {@linkcode return}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  /** The stream itself. */
  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The rows as arrays of up to the batch's size. */
  async *batches(): AsyncGenerator<T[], undefined, undefined> {
    try {
      for (;;) {
        const rows = await this.#inTurn(() => this.#nextBatch());
        if (rows === undefined) return;
        yield rows as T[];
      }
    } finally {
      await this.return();
    }
  }

  #inTurn<R>(work: () => Promise<R>): Promise<R> {
    const before = this.#turn;
    const mine = before === undefined ? work() : before.then(work, work);
    this.#turn = mine;
    const clear = () => {
      if (this.#turn === mine) this.#turn = undefined;
    };
    mine.then(clear, clear);
    return mine;
  }

  async #nextRow(): Promise<IteratorResult<T, undefined>> {
    while (this.#at >= this.#batch.length) {
      const rows = await this.#nextBatch();
      if (rows === undefined) return { done: true, value: undefined };
      this.#batch = rows;
      this.#at = 0;
    }
    return { done: false, value: this.#batch[this.#at++] as T };
  }

  async #nextBatch(): Promise<unknown[] | undefined> {
    if (this.#at < this.#batch.length) {
      const rest = this.#batch.slice(this.#at);
      this.#at = this.#batch.length;
      return rest;
    }
    if (this.#done) return undefined;
    try {
      this.#source ??= this.#open();
      const rows = await this.#source.next();
      if (rows === undefined) this.#done = true;
      return rows;
    } catch (error) {
      this.#done = true;
      throw error;
    }
  }

  async #end(): Promise<void> {
    this.#batch = [];
    this.#at = 0;
    if (this.#done) return;
    this.#done = true;
    await this.#source?.close();
  }
}
