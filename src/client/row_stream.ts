/**
 * Rows a batch at a time: at most one batch is made ahead of the one that is being consumed.
 *
 * Outside a transaction block a portal lives until Sync, so the stream holds its connection and sends Flush; inside
 * one the portal is named, each batch is a request of its own, and other queries may go between.
 */

import type { ServerConnection } from "../connection/server_connection.ts";
import { CLOSE_TARGET, SUSPENDED } from "../engine/phase.ts";
import { CLOSE, EXTENDED, type Failure, FETCH, NO_PARAMETERS, Request } from "../engine/request.ts";
import { PipegresError, ValueError } from "../errors.ts";
import { IDLE } from "../wire/message_types.ts";
import { chainObserver, type Executor, throwIfFailed } from "./executor.ts";

/** Gives batches of rows until there are no more. */
export interface BatchSource {
  /** The next batch; `undefined` at the end. Not called again before it has resolved. */
  next(): Promise<unknown[] | undefined>;
  /** Gives up what is left; resolves when the connection is free again. Idempotent. */
  close(): Promise<void>;
  /**
   * `close` will be called when the calls of `next` made before it are answered: one that has to wait for long resolves
   * with `undefined`.
   */
  leave?(): void;
  /** The request it was made from has failed since its caller gave up: `next` rejects at once. */
  abort(): void;
  /** Where its caller may give up: why they have. Rows that they have not got yet are of no use then. */
  givenUp?(): Failure | undefined;
}

/**
 * How many rows to ask for at a time; default 500.
 *
 * @throws {ValueError} for what an Execute cannot say: 0 would be all
 */
export function checkBatch(batch: number = 500): number {
  if (Number.isInteger(batch) && batch >= 1 && batch <= 0x7fff_ffff) return batch;
  throw new ValueError(`Cannot stream in batches of ${batch}: wanted a whole number from 1 to 2147483647`);
}

/** Milliseconds that a batch which nobody wants may take: a cancel costs more than one that is made quickly. */
const LEAVING_PAUSE = 100;

/** A portal that holds its connection. */
export class FlushSource implements BatchSource {
  givenUp?: () => Failure | undefined;
  readonly #connection: ServerConnection;
  readonly #queue: Pick<Executor, "submit" | "giveUp">;
  readonly #request: Request;
  readonly #site: Error | undefined;
  #ready: unknown[] | undefined = undefined;
  #closing: boolean = false;
  #wake: (() => void) | undefined = undefined;
  /** Runs while the stream is being left. */
  #leaving: ReturnType<typeof setTimeout> | undefined = undefined;
  /** Whether a batch was cancelled since the stream was being left. */
  #left: boolean = false;

  /**
   * @param request a STREAM that is not submitted yet
   * @param queue how it gets to the connection
   */
  constructor(
    connection: ServerConnection,
    request: Request,
    site: Error | undefined,
    queue: Pick<Executor, "submit" | "giveUp"> = connection,
  ) {
    this.#connection = connection;
    this.#queue = queue;
    this.#request = request;
    this.#site = site;
    request.onSuspended = () => this.#onSuspended();
    chainObserver(request, () => this.#onSettled());
    queue.submit(request);
  }

  async next(): Promise<unknown[] | undefined> {
    const request = this.#request;
    while (this.#ready === undefined && !request.settled && (this.#left || !request.aborted)) {
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    if (this.#left) return undefined;
    throwIfFailed(request, this.#site);
    const rows = this.#ready;
    this.#ready = undefined;
    // The next batch is made while this one is consumed.
    if (!request.settled) this.#connection.fetch(request);
    // It has as long as the one before.
    if (this.#leaving !== undefined) this.leave();
    return rows;
  }

  leave(): void {
    clearTimeout(this.#leaving);
    if (!this.#request.settled) this.#leaving = setTimeout(() => this.#cancel(), LEAVING_PAUSE);
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#ready = undefined;
    this.#connection.finish(this.#request);
    this.leave();
    while (!this.#request.settled) await new Promise<void>((resolve) => this.#wake = resolve);
  }

  abort(): void {
    this.#signal();
  }

  /** Its owner ends: the server is told that nobody wants the rows that are left, and `next` rejects at once. */
  giveUp(failure: Failure): void {
    const request = this.#request;
    if (request.settled) return;
    request.aborted = true;
    request.fail(failure);
    this.givenUp = () => request.failure!;
    this.#signal();
    this.#queue.giveUp(request);
  }

  /** Cancels the batch that the server is making; inside a transaction block that would fail the block. */
  #cancel(): void {
    const request = this.#request;
    if (request.failure !== null) return;
    const isMade = this.#connection.isAnswering(request) && request.phase !== SUSPENDED &&
      request.phase !== CLOSE_TARGET;
    if (!isMade || this.#connection.session.transactionStatus !== IDLE) return this.leave();
    this.#left = true;
    request.aborted = true;
    request.fail(() => new PipegresError("Stream was left"));
    this.#queue.giveUp(request);
  }

  #onSuspended(): void {
    if (this.#closing) return this.#connection.finish(this.#request);
    this.#ready = this.#request.rows;
    this.#request.rows = [];
    this.#signal();
  }

  #onSettled(): void {
    clearTimeout(this.#leaving);
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
  readonly #executor: Pick<Executor, "submit" | "giveUp">;
  /** What was asked for. It is never submitted itself, and settles at the stream's end. */
  readonly #stream: Request;
  readonly #site: Error | undefined;
  /** The batch under way: its request, who waits for it, and how that is told. */
  #running: Request;
  #pending: Promise<Request>;
  #resolve: (request: Request) => void = () => {};

  /**
   * @param executor takes requests of the transaction
   * @param stream the STREAM that was asked for
   * @param portal a name not used before
   */
  constructor(
    executor: Pick<Executor, "submit" | "giveUp">,
    stream: Request,
    portal: string,
    site: Error | undefined,
  ) {
    this.#executor = executor;
    this.#stream = stream;
    this.#site = site;
    stream.portal = portal;
    const { text, parameters, planner } = stream;
    this.#running = new Request(EXTENDED, text, parameters, planner, (request) => this.#resolve(request));
    this.#running.statement = stream.statement;
    this.#running.describes = stream.describes;
    this.#running.learner = stream.learner;
    this.#running.names = stream.names;
    this.#pending = this.#run(this.#running);
  }

  async next(): Promise<unknown[] | undefined> {
    if (!this.#stream.settled) {
      const request = await this.#pending;
      const { failure, rows, suspended } = request;
      if (this.#stream.failure === null && failure === null && suspended) {
        this.#running = this.#fetch(request);
        this.#pending = this.#run(this.#running);
        return rows;
      }
      this.#end(request);
      if (this.#stream.failure === null) return rows.length > 0 ? rows : undefined;
    }
    throwIfFailed(this.#stream, this.#site);
    return undefined;
  }

  async close(): Promise<void> {
    if (this.#stream.settled) return;
    this.#end(await this.#pending);
  }

  abort(): void {
    const running = this.#running;
    if (!running.settled) {
      running.aborted = true;
      running.fail(this.#stream.failure!);
      this.#resolve(running);
      this.#executor.giveUp(running);
    }
    this.#end(running);
  }

  #end(last: Request): void {
    const stream = this.#stream;
    if (stream.settled) return;
    if (last.failure !== null) stream.fail(last.failure);
    stream.tag = last.tag;
    stream.settle();
    closePortal(this.#executor, stream);
  }

  #fetch(before: Request): Request {
    const { text, planner } = this.#stream;
    const request = new Request(FETCH, text, NO_PARAMETERS, planner, (settled) => this.#resolve(settled));
    request.fields = before.fields;
    request.decoder = before.decoder;
    return request;
  }

  #run(request: Request): Promise<Request> {
    const { portal, maxRows, last } = this.#stream;
    request.portal = portal;
    request.maxRows = maxRows;
    request.last = last;
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#executor.submit(request);
    });
  }
}

/** A portal that is left open keeps its table from being altered in the same transaction. */
export function closePortal(executor: Pick<Executor, "submit">, { portal, planner }: Request): void {
  const request = new Request(CLOSE, "", NO_PARAMETERS, planner, () => {});
  request.portal = portal;
  executor.submit(request);
}

/** Rows one by one, from batches. Concurrent calls of `next` are answered in order. */
export class RowStream<T> implements AsyncIterableIterator<T, undefined, undefined>, AsyncDisposable {
  readonly #open: () => Promise<BatchSource>;
  #source: BatchSource | undefined = undefined;
  #batch: unknown[] = [];
  #at: number = 0;
  #done: boolean = false;
  /** Whether `return` was called behind others. */
  #leaving: boolean = false;
  /** The call before, which goes first. */
  #turn: Promise<unknown> | undefined = undefined;

  /** Use `stream()` of a query. The first `next` calls `open`, which starts it. */
  constructor(open: () => Promise<BatchSource>) {
    this.#open = open;
  }

  /** The next row. */
  next(): Promise<IteratorResult<T, undefined>> {
    // Without a wait for the server a row costs one promise.
    if (this.#turn === undefined && this.#at < this.#batch.length && !this.#isGivenUp) {
      return Promise.resolve({ done: false, value: this.#batch[this.#at++] as T });
    }
    return this.#inTurn(() => this.#nextRow());
  }

  /**
   * Gives up the rows that are left. A batch that the server is still making is cancelled when it is not done soon, and
   * calls of `next` that wait for it learn of no more rows; inside a transaction block, which a cancel would fail, it is
   * waited for.
   */
  return(): Promise<IteratorResult<T, undefined>> {
    if (this.#turn !== undefined) {
      this.#leaving = true;
      this.#source?.leave?.();
    }
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

  /**
   * The rows as a Web stream: a batch is asked for when the rows before it have been read. Cancelling it gives up the
   * rows that are left.
   */
  toReadable(): ReadableStream<T> {
    return new ReadableStream<T>({
      pull: async (controller): Promise<void> => {
        const first = await this.next();
        if (first.done) return controller.close();
        controller.enqueue(first.value);
        // What the controller has is given, whatever becomes of the query: the whole batch only if it cannot be given up.
        if (this.#source?.givenUp !== undefined) return;
        while (this.#at < this.#batch.length) controller.enqueue(this.#batch[this.#at++] as T);
      },
      cancel: async (): Promise<void> => void await this.return(),
    }, { highWaterMark: 0 });
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

  get #isGivenUp(): boolean {
    return this.#source?.givenUp?.() !== undefined;
  }

  async #nextRow(): Promise<IteratorResult<T, undefined>> {
    while (this.#at >= this.#batch.length || this.#isGivenUp) {
      const rows = await this.#nextBatch();
      if (rows === undefined) return { done: true, value: undefined };
      this.#batch = rows;
      this.#at = 0;
    }
    return { done: false, value: this.#batch[this.#at++] as T };
  }

  async #nextBatch(): Promise<unknown[] | undefined> {
    const failure = this.#done ? undefined : this.#source?.givenUp?.();
    if (failure !== undefined) {
      // The server may have said all it had to say: then nobody else gives the connection back.
      void this.#end();
      throw failure();
    }
    if (this.#at < this.#batch.length) {
      const rest = this.#batch.slice(this.#at);
      this.#at = this.#batch.length;
      return rest;
    }
    if (this.#done) return undefined;
    try {
      if (this.#source === undefined) {
        this.#source = await this.#open();
        if (this.#leaving) this.#source.leave?.();
      }
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
