/**
 * A transaction block on one connection.
 *
 * BEGIN is written with the first query, so that a transaction of one awaited query costs two round trips. It shares
 * that query's segment: should BEGIN fail, nothing behind it can run outside a transaction. Queries issued before the
 * server has answered BEGIN join the segment too, or wait.
 */

import type { ServerConnection } from "../connection/server_connection.ts";
import type { Lease } from "../connection/lease.ts";
import * as phase from "../engine/phase.ts";
import {
  CLOSE,
  EXTENDED,
  type Failure,
  NO_PARAMETERS,
  Request,
  SIMPLE,
  SYNC_LATER,
  SYNC_SHARED,
} from "../engine/request.ts";
import { PipegresError, PipelineAbortedError, PostgresError } from "../errors.ts";
import { keepShape } from "../wire/keep_shape.ts";
import { IDLE } from "../wire/message_types.ts";
import { type Attachment, chainObserver, type Executor } from "./executor.ts";
import { OpenCopies } from "./open_copies.ts";
import type { Types } from "./types.ts";
import { type BatchSource, PortalSource } from "./row_stream.ts";

/** How a transaction runs. */
export interface TransactionOptions {
  /** Default: the session's `default_transaction_isolation`. */
  readonly isolation?: "read uncommitted" | "read committed" | "repeatable read" | "serializable" | undefined;
  /** Default: the session's `default_transaction_read_only`. */
  readonly readOnly?: boolean | undefined;
  /** For serializable read-only transactions: waits for a snapshot that cannot fail. Default `false`. */
  readonly deferrable?: boolean | undefined;
  /**
   * Ends the wait for the transaction's turn. Later it rolls the transaction back: its queries are cancelled and reject
   * with the signal's reason, as does all that is asked of it afterwards. A COMMIT that was sent stands.
   */
  readonly signal?: AbortSignal | undefined;
}

const ISOLATION_LEVELS = ["read uncommitted", "read committed", "repeatable read", "serializable"];

/**
 * The BEGIN of these options.
 *
 * @throws {TypeError} for an unknown isolation level: it must not become SQL text
 */
export function beginText(options: TransactionOptions): string {
  const { isolation, readOnly, deferrable } = options;
  if (isolation !== undefined && !ISOLATION_LEVELS.includes(isolation)) {
    throw new TypeError(`Cannot begin a transaction: unknown isolation level ${JSON.stringify(isolation)}`);
  }
  const modes = [
    ...(isolation === undefined ? [] : [`isolation level ${isolation}`]),
    ...(readOnly === undefined ? [] : [readOnly ? "read only" : "read write"]),
    ...(deferrable === undefined ? [] : [deferrable ? "deferrable" : "not deferrable"]),
  ];
  return `begin${modes.length === 0 ? "" : ` ${modes.join(", ")}`}`;
}

/** What a transaction block's requests go through: BEGIN first, COMMIT or ROLLBACK last. */
export class TransactionExecutor implements Executor {
  readonly types: Types;
  readonly keepsStacks: boolean;
  /** COPY operations, once there has been one. */
  copies: OpenCopies | undefined = undefined;
  readonly #connection: ServerConnection;
  readonly #lease: Lease;
  readonly #beginText: string;
  readonly #owner: Executor;
  #begin: Request | undefined = undefined;
  /** Segments that have not settled, where somebody may want them to be given up. */
  #open: Set<Request> | undefined = undefined;
  /** Segments that wait for the answer to BEGIN. */
  #waiting: Request[] = [];
  /** Whether BEGIN failed: whatever is sent would run outside a block. */
  #refused: boolean = false;
  /** Whether a query of the user's has closed the block. */
  #endedByQuery: boolean = false;
  /** Why no more requests are taken. */
  #ended: Failure | undefined = undefined;
  #firstFailure: Request | undefined = undefined;
  #portals: number = 0;
  #savepoints: number = 0;

  constructor(connection: ServerConnection, lease: Lease, begin: string, owner: Executor) {
    this.#connection = connection;
    this.#lease = lease;
    this.#beginText = begin;
    this.#owner = owner;
    this.types = owner.types;
    this.keepsStacks = owner.keepsStacks;
  }

  /** Whether there is a block to be closed: BEGIN was sent, and the server did not refuse it. */
  get begun(): boolean {
    return this.#begin !== undefined && !this.#refused && !this.#endedByQuery;
  }

  /** Whether COMMIT has nothing to do: nothing was sent, and the connection is open. */
  get unused(): boolean {
    return this.#begin === undefined && !this.#connection.closed;
  }

  /** The first request that failed, which explains why COMMIT becomes ROLLBACK. */
  get firstFailure(): Request | undefined {
    return this.#firstFailure;
  }

  submit(request: Request): void {
    if (this.#ended !== undefined) {
      // A statement outlives the transaction in which it was prepared, and may be closed behind it.
      if (request.kind === CLOSE && request.statement !== null) return this.#lease.submit(request);
      return refuse(request, this.#ended);
    }
    for (let each: Request | null = request; each !== null; each = each.next) {
      chainObserver(each, this.#onSettled);
    }
    if (mayShare(request)) request.sync = SYNC_SHARED;
    if (this.#open !== undefined) this.#keep(request);
    this.#route(request);
  }

  /** From now on everything can be given up. */
  keepOpen(): void {
    this.#open = new Set();
  }

  #keep(segment: Request): void {
    let last = segment;
    while (last.next !== null) last = last.next;
    this.#open!.add(segment);
    chainObserver(last, () => this.#open!.delete(segment));
  }

  /** Gives up everything that has not settled, for a reason. Nothing of it may be needed: the block is rolled back. */
  giveUpAll(failure: Failure): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const segment of waiting) refuse(segment, failure);
    const begin = this.#begin;
    // A BEGIN that was not written leaves the queue with what is behind it; else the server says nothing before both.
    if (begin !== undefined && !begin.settled && begin.next !== null) {
      this.#giveUp(begin, begin.phase === phase.QUEUED ? begin : begin.next, failure);
    }
    for (const segment of this.#open ?? []) if (!segment.settled) this.#giveUp(segment, segment, failure);
  }

  /** Gives up a segment from one of its requests on. */
  #giveUp(segment: Request, from: Request, failure: Failure): void {
    for (let each: Request | null = from; each !== null; each = each.next) {
      each.aborted = true;
      each.fail(failure);
    }
    this.#connection.giveUp(segment);
    if (segment.settled) refuse(segment, failure);
  }

  readonly #onSettled = (request: Request): void => {
    if (request.failure !== null) this.#firstFailure ??= request;
    if (this.#begin?.settled && !this.#refused && this.#connection.session.transactionStatus === IDLE) {
      this.#endedByQuery = true;
      this.#ended ??= () =>
        new PipegresError(
          "Transaction has ended: a query of it was COMMIT or ROLLBACK; use the handle's methods",
        );
    }
  };

  /** Behind BEGIN, in its segment or after its answer. */
  #route(request: Request): void {
    const shares = request.sync === SYNC_SHARED;
    if (this.#begin === undefined) return this.#submitBegin(request, shares);
    const joins = shares && this.#waiting.length === 0 && this.#connection.joins(request);
    if (this.#begin.settled || joins) this.#lease.submit(request);
    else this.#wait(request);
  }

  /** Values are read when the query is issued, whatever becomes of them until BEGIN is answered. */
  #wait(request: Request): void {
    for (let each: Request | null = request; each !== null; each = each.next) each.parameters.snapshot();
    this.#waiting.push(request);
  }

  giveUp(request: Request): void {
    const index = this.#waiting.indexOf(request);
    if (index < 0) return this.#connection.giveUp(request);
    this.#waiting.splice(index, 1);
    request.settle();
  }

  openStream(request: Request, site: Error | undefined): BatchSource {
    return new PortalSource(this, request, this.newPortal(), site);
  }

  /** A name for a portal that this transaction has not used. */
  newPortal(): string {
    return `pipegres_portal_${++this.#portals}`;
  }

  inBlock(): boolean {
    return true;
  }

  afterwards(): Executor | undefined {
    return this.#ended === undefined || this.#endedByQuery ? undefined : this.#owner;
  }

  attach(): Promise<Attachment> {
    return Promise.resolve((this.copies ??= new OpenCopies()).watch({
      connection: this.#connection,
      submit: (each) => this.submit(each),
      giveUp: (each) => this.giveUp(each),
      release(): void {},
    }));
  }

  /** A name for a savepoint that this transaction has not used. */
  newSavepoint(): string {
    return `pipegres_savepoint_${++this.#savepoints}`;
  }

  /**
   * Runs a command of the transaction itself, with a Sync of its own; resolves with the settled request. It is a simple
   * query: no lost statement can keep a block from being closed.
   *
   * @param ended why it must not be sent any more; default: the transaction's own end
   */
  control(text: string, ended: Failure | undefined = this.#ended): Promise<Request> {
    return new Promise((resolve) => {
      const request = new Request(SIMPLE, text, NO_PARAMETERS, this.types.objects, resolve);
      if (ended !== undefined) refuse(request, ended);
      else this.#route(request);
    });
  }

  /** Takes no more requests. */
  end(failure: Failure): void {
    this.#ended = failure;
  }

  /** Gives the connection back, or up where the block is not known to be closed. */
  release(): void {
    const { connection, lease } = { connection: this.#connection, lease: this.#lease };
    // A session that was closed meanwhile has been rolled back, and the block may be somebody else's.
    if (lease.held && !connection.closed && this.begun && connection.session.transactionStatus !== IDLE) {
      connection.destroy(() =>
        new PipegresError("Connection given up: its transaction block could not be closed")
      );
    }
    lease.release();
  }

  #submitBegin(first: Request, shares: boolean): void {
    const begin = new Request(EXTENDED, this.#beginText, NO_PARAMETERS, this.types.objects, () => {});
    this.#begin = begin;
    begin.observer = () => this.#onBegun(begin);
    if (!shares) {
      this.#wait(first);
      return this.#lease.submit(begin);
    }
    begin.sync = SYNC_LATER;
    begin.next = first;
    begin.names = first.names;
    begin.learner = first.learner;
    this.#lease.submit(begin);
  }

  #onBegun(begin: Request): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    if (begin.failure !== null) {
      if (begin.phase === phase.QUEUED && begin.next !== null) {
        // Nothing was written: a value of the first query did not fit. The next one begins.
        this.#begin = undefined;
        for (const request of waiting) this.#route(request);
        return;
      }
      const failure = begin.failure;
      this.#refused = true;
      this.#ended ??= begin.serverError === null
        ? failure
        : () => new PipegresError("Transaction could not begin", { cause: failure() });
      for (const request of waiting) refuse(request, this.#ended);
      return;
    }
    for (const request of waiting) this.#lease.submit(request);
  }
}

/** Whether a request may stand behind one Sync with its neighbours: its rows and errors stay its own. */
function mayShare(request: Request): boolean {
  return request.kind === EXTENDED && request.portal === "" && !request.alone && !request.last &&
    !request.inBatch;
}

function refuse(request: Request, failure: Failure): void {
  for (let each: Request | null = request; each !== null; each = each.next) {
    if (each.settled) continue;
    each.fail(failure);
    each.settle();
  }
}

/** The error for a COMMIT that the server answered by rolling back. */
export function commitRolledBack(cause: Request | undefined): PipegresError {
  const failure = cause?.failure?.();
  return new PipegresError(
    "Transaction was rolled back: the server answered COMMIT with ROLLBACK, since a query of it had failed",
    failure === undefined ? undefined : { cause: failure },
  );
}

/** The error for a savepoint that the server does not release. */
export function releaseRefused(cause: Request): PipegresError {
  return new PipegresError("Nested transaction was rolled back, since a query of it had failed", {
    cause: cause.failure!(),
  });
}

/** Whether repeating the transaction may succeed: 40001 serialization_failure, 40P01 deadlock_detected. */
export function isRetryable(error: unknown): boolean {
  // Of queries of one turn the first to be awaited may be one that never ran because of another.
  const reason = error instanceof PipelineAbortedError ? error.cause : error;
  return reason instanceof PostgresError && (reason.code === "40001" || reason.code === "40P01");
}

/** Keeps a second error with the first, which wins. */
export function attachRollbackError(error: unknown, rollbackError: unknown): void {
  if (typeof error !== "object" || error === null || !Object.isExtensible(error)) return;
  if (error === rollbackError) return;
  Object.defineProperty(error, "rollbackError", { value: rollbackError, configurable: true, writable: true });
}

keepShape(
  new TransactionExecutor({} as ServerConnection, {} as Lease, "", {} as Executor),
);
