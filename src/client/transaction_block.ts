/** The handle of a transaction, and of a savepoint inside one. */

import { CLOSE, type Request } from "../engine/request.ts";
import { PipegresError } from "../errors.ts";
import { type Attachment, chainObserver, type Executor, throwIfFailed } from "./executor.ts";
import {
  createLargeObject,
  type LargeObject,
  type LargeObjectMode,
  openLargeObject,
  unlinkLargeObject,
} from "./large_object.ts";
import { keepShape } from "../wire/keep_shape.ts";
import { OpenCopies } from "./open_copies.ts";
import { type PreparedStatement, prepareOn } from "./prepared_statement.ts";
import { Queryable } from "./queryable.ts";
import { type BatchSource, closePortal, PortalSource } from "./row_stream.ts";
import {
  attachRollbackError,
  commitRolledBack,
  isRetryable,
  releaseRefused,
  type TransactionExecutor,
  type TransactionOptions,
} from "./transaction.ts";

/** A transaction, or a part of one behind a savepoint. After a loss of its connection every call rejects. */
export class Transaction extends Queryable implements AsyncDisposable {
  readonly #executor: TransactionExecutor;
  /** `undefined` for the transaction itself. */
  readonly #savepoint: SavepointExecutor | undefined;
  #state: "open" | "ended" = "open";
  /** Whether a nested transaction is open. */
  #nested: boolean = false;
  /** What ends it, if anything. */
  #signal: AbortSignal | undefined = undefined;
  /** Rejects with the signal's reason once that has ended the transaction, and it is rolled back. */
  #aborted: Promise<never> | undefined = undefined;
  /** Tells whoever runs a function in it. */
  #tellAborted: ((aborted: Promise<never>) => void) | undefined = undefined;

  /** Not for use from outside: see {@linkcode Connection.begin}. */
  constructor(executor: TransactionExecutor, savepoint?: SavepointExecutor) {
    super(savepoint ?? executor);
    this.#executor = executor;
    this.#savepoint = savepoint;
  }

  /**
   * A transaction whose turn has come.
   *
   * @throws the signal's reason
   */
  static open(executor: TransactionExecutor, { signal }: TransactionOptions): Transaction {
    const transaction = new Transaction(executor);
    if (signal?.aborted) {
      executor.release();
      throw signal.reason;
    }
    if (signal !== undefined) {
      executor.keepOpen();
      transaction.#signal = signal;
      signal.addEventListener("abort", transaction.#onAbort, { once: true });
    }
    return transaction;
  }

  readonly #onAbort = (): void => {
    const { reason } = this.#signal!;
    this.#executor.giveUpAll(() => reason as Error);
    const done = this.#rollBack();
    this.#executor.end(() => reason as Error);
    this.#aborted = done.catch((error) => attachRollbackError(reason, error)).then(() => {
      throw reason;
    });
    // Whoever awaits something of the transaction learns of it there.
    this.#aborted.catch(() => {});
    this.#tellAborted?.(this.#aborted);
  };

  /**
   * Runs a function in a nested transaction: SAVEPOINT before, RELEASE behind; when it rejects, ROLLBACK TO SAVEPOINT,
   * and the outer transaction may go on.
   *
   * @throws {PipegresError} when a nested transaction of this one is open: they cannot overlap
   * @throws what the function rejects with
   */
  async transaction<R>(fn: (transaction: Transaction) => R | PromiseLike<R>): Promise<R> {
    this.#assertOpen();
    if (this.#nested) {
      throw new PipegresError(
        "Cannot nest a transaction: another one is open; use its handle, or wait for its end",
      );
    }
    this.#nested = true;
    const savepoint = new SavepointExecutor(this.#savepoint ?? this.#executor);
    const nested = new Transaction(this.#executor, savepoint);
    try {
      const result = await fn(nested);
      this.#assertOpen();
      if (nested.#state === "open") await nested.commit();
      return result;
    } catch (error) {
      await nested.#abandon(error);
      throw error;
    } finally {
      this.#nested = false;
    }
  }

  /**
   * Commits; of a nested transaction, releases its savepoint.
   *
   * @throws the reason of the transaction's signal, when that has rolled it back
   * @throws {PipegresError} when a nested transaction of this one is open
   * @throws {PostgresError} when the server refuses (`40001`, `23505` of a deferred constraint, …)
   * @throws {PipegresError} when the server rolled back instead, since a query had failed; that error is the cause
   * @throws {ConnectionError} when the connection is lost; with `sent: "unknown"` nobody knows whether it is committed
   */
  async commit(): Promise<void> {
    this.#assertOpen();
    if (this.#nested) {
      throw new PipegresError("Cannot commit a transaction: a nested one is open; wait for its end");
    }
    this.#leaveCopies();
    if (this.#savepoint !== undefined) {
      const released = this.#savepoint.release();
      this.#end("committed");
      return await released;
    }
    try {
      const committed = this.#executor.unused ? undefined : this.#executor.control("commit");
      this.#end("committed");
      if (committed === undefined) return;
      const request = await committed;
      throwIfFailed(request, undefined);
      if (request.tag === "ROLLBACK") throw commitRolledBack(this.#executor.firstFailure);
    } finally {
      this.#executor.release();
    }
  }

  /** Rolls back; of a nested transaction, to its savepoint. Does nothing when the transaction has ended. */
  async rollback(): Promise<void> {
    if (this.#aborted !== undefined) return await this.#aborted.catch(() => {});
    if (this.#state === "ended") return;
    await this.#rollBack();
  }

  async #rollBack(): Promise<void> {
    this.#leaveCopies();
    if (this.#savepoint !== undefined) {
      const undone = this.#savepoint.rollBack();
      this.#end("rolled back");
      return await undone;
    }
    try {
      const undone = this.#executor.begun ? this.#executor.control("rollback") : undefined;
      this.#end("rolled back");
      if (undone !== undefined) throwIfFailed(await undone, undefined);
    } finally {
      this.#executor.release();
    }
  }

  /**
   * Prepares a statement under a name of its own, to be executed in this transaction. It lives until it is closed, which
   * is possible when the transaction has ended, too.
   *
   * @throws {PostgresError} when the server does not accept it
   */
  prepare(text: string): Promise<PreparedStatement> {
    return prepareOn(this.#savepoint ?? this.#executor, text);
  }

  /**
   * Opens a large object, until it is closed or the transaction ends.
   *
   * @param options.mode `"read"`, `"write"` or `"read write"`. Default `"read write"`
   * @throws {PostgresError} `42704` when there is none with this OID
   */
  largeObject(oid: number, options: { readonly mode?: LargeObjectMode } = {}): Promise<LargeObject> {
    const { mode = "read write" } = options;
    return openLargeObject(this.#savepoint ?? this.#executor, oid, mode);
  }

  /**
   * Makes a large object and opens it for reading and writing. It stays when the transaction is committed; keep its
   * `oid`, which is the only way to it.
   *
   * @param options.oid the OID it shall have. Default: the server chooses one
   * @throws {PostgresError} `23505` when there is one with this OID
   */
  async createLargeObject(options: { readonly oid?: number } = {}): Promise<LargeObject> {
    const executor = this.#savepoint ?? this.#executor;
    return await openLargeObject(executor, await createLargeObject(executor, options.oid ?? 0), "read write");
  }

  /**
   * Deletes a large object.
   *
   * @throws {PostgresError} `42704` when there is none with this OID
   */
  unlinkLargeObject(oid: number): Promise<void> {
    return unlinkLargeObject(this.#savepoint ?? this.#executor, oid);
  }

  /** Rolls back unless the transaction has been committed. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.rollback();
  }

  /** A COPY that is still open would keep COMMIT or ROLLBACK waiting for whoever gives or takes its data. */
  #leaveCopies(): void {
    const failure = () => new PipegresError("COPY was given up: its transaction has ended");
    (this.#savepoint ?? this.#executor).copies?.giveUp(failure);
  }

  #end(how: string): void {
    this.#state = "ended";
    this.#signal?.removeEventListener("abort", this.#onAbort);
    const failure = () => new PipegresError(`Transaction has ended: it was ${how}`);
    (this.#savepoint ?? this.#executor).end(failure);
  }

  #assertOpen(): void {
    if (this.#aborted !== undefined) throw this.#signal!.reason;
    if (this.#state === "ended") throw new PipegresError("Transaction has ended");
  }

  /** Rolls back because of `error`, which wins over whatever that meets. */
  async #abandon(error: unknown): Promise<void> {
    try {
      await this.rollback();
    } catch (rollbackError) {
      attachRollbackError(error, rollbackError);
    }
  }

  /** What a function gives, unless the signal ends the transaction before. */
  #untilAborted<R>(result: R | PromiseLike<R>): R | PromiseLike<R> {
    if (this.#signal === undefined) return result;
    const aborted = new Promise<never>((resolve) => this.#tellAborted = resolve);
    return Promise.race([result, this.#aborted ?? aborted]);
  }

  /** Runs a function in a transaction that `begin` opens, again when the server says that this may help. */
  static async run<R>(
    begin: () => Promise<Transaction>,
    retry: number,
    fn: (transaction: Transaction) => R | PromiseLike<R>,
  ): Promise<R> {
    for (let attempt = 0;; attempt++) {
      const transaction = await begin();
      try {
        const result = await transaction.#untilAborted(fn(transaction));
        if (transaction.#aborted !== undefined) await transaction.#aborted;
        if (transaction.#state === "open") await transaction.commit();
        return result;
      } catch (error) {
        await transaction.#abandon(error);
        if (transaction.#aborted !== undefined) throw transaction.#signal!.reason;
        if (attempt >= retry || !isRetryable(error)) throw error;
      }
    }
  }
}

/** Requests behind a savepoint, which is written with the first of them. */
class SavepointExecutor implements Executor {
  readonly types: TransactionExecutor["types"];
  readonly keepsStacks: boolean;
  /** COPY operations, once there has been one. */
  copies: OpenCopies | undefined = undefined;
  /** The transaction, or the savepoint around this one. */
  readonly #outer: TransactionExecutor | SavepointExecutor;
  #name: string | undefined = undefined;
  #open: number = 0;
  #ended: (() => Error) | undefined = undefined;
  #firstFailure: Request | undefined = undefined;
  /** Streams that have not ended. */
  readonly #streams: Set<Request> = new Set();

  constructor(outer: TransactionExecutor | SavepointExecutor) {
    this.#outer = outer;
    this.types = outer.types;
    this.keepsStacks = outer.keepsStacks;
  }

  submit(request: Request): void {
    // A portal outlives the release of its savepoint, and may be closed behind it.
    if (request.kind === CLOSE) return this.#outer.submit(request);
    const ended = this.#ended;
    if (ended !== undefined) {
      for (let each: Request | null = request; each !== null; each = each.next) {
        each.fail(ended);
        each.settle();
      }
      return;
    }
    this.ensureSavepoint();
    for (let each: Request | null = request; each !== null; each = each.next) {
      this.#open++;
      chainObserver(each, (settled) => {
        this.#open--;
        if (settled.failure !== null) this.#firstFailure ??= settled;
      });
    }
    this.#outer.submit(request);
  }

  giveUp(request: Request): void {
    this.#outer.giveUp(request);
  }

  openStream(request: Request, site: Error | undefined): BatchSource {
    this.#streams.add(request);
    chainObserver(request, () => this.#streams.delete(request));
    return new PortalSource(this, request, this.newPortal(), site);
  }

  async attach(): Promise<Attachment> {
    const attachment = await this.#outer.attach();
    this.copies ??= new OpenCopies();
    return this.copies.watch({ ...attachment, submit: (each) => this.submit(each) });
  }

  inBlock(): boolean {
    return true;
  }

  afterwards(): Executor | undefined {
    return this.#ended === undefined ? undefined : this.#outer.afterwards() ?? this.#outer;
  }

  newPortal(): string {
    return this.#outer.newPortal();
  }

  newSavepoint(): string {
    return this.#outer.newSavepoint();
  }

  control(text: string, ended: (() => Error) | undefined = this.#ended): Promise<Request> {
    return this.#outer.control(text, ended);
  }

  /** Writes the savepoint, and those around it first. */
  ensureSavepoint(): void {
    if (this.#name !== undefined) return;
    if (this.#outer instanceof SavepointExecutor) this.#outer.ensureSavepoint();
    this.#name = this.newSavepoint();
    this.#outer.control(`savepoint ${this.#name}`);
  }

  end(failure: () => Error): void {
    this.#ended = failure;
  }

  /**
   * Without open or failed requests RELEASE cannot fail but with the connection: nobody waits for it. Where it fails,
   * the transaction goes on from the savepoint.
   */
  async release(): Promise<void> {
    if (this.#name === undefined) return;
    for (const stream of this.#streams) closePortal(this.#outer, stream);
    const released = this.#outer.control(`release savepoint ${this.#name}`);
    if (this.#open === 0 && this.#firstFailure === undefined) return;
    const { failure, serverError } = await released;
    if (failure === null) return;
    const isFailed = serverError?.["C"] === "25P02" && this.#firstFailure !== undefined;
    const error = isFailed ? releaseRefused(this.#firstFailure!) : failure();
    try {
      await this.rollBack();
    } catch (rollbackError) {
      attachRollbackError(error, rollbackError);
    }
    throw error;
  }

  async rollBack(): Promise<void> {
    if (this.#name === undefined) return;
    const undone = this.#outer.control(`rollback to savepoint ${this.#name}`);
    const released = this.#outer.control(`release savepoint ${this.#name}`);
    throwIfFailed(await undone, undefined);
    throwIfFailed(await released, undefined);
  }
}

{
  const executor = { types: undefined, keepsStacks: false } as unknown as TransactionExecutor;
  const savepoint = new SavepointExecutor(executor);
  keepShape(savepoint);
  keepShape(new Transaction(executor, savepoint));
}
