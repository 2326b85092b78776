/** One session with a server, and how it is opened. */

import { NotificationHub } from "../pool/notification_hub.ts";
import { createRegistry } from "../codecs/registry.ts";
import type { Lease } from "../connection/lease.ts";
import { openTarget, resolveTarget } from "../connection/open.ts";
import type { ConnectOptions } from "../connection/options.ts";
import type { ServerConnection } from "../connection/server_connection.ts";
import { losesStacks } from "../transport/select.ts";
import { IDLE, IN_FAILED_TRANSACTION, IN_TRANSACTION } from "../wire/message_types.ts";
import type { Attachment, Executor } from "./executor.ts";
import { Types } from "./types.ts";
import {
  listenOn,
  type NotificationEvent,
  type NotificationStream,
  PROBE_INTERVAL,
  type Subscription,
} from "./notifications.ts";
import { type PreparedStatement, prepareOn } from "./prepared_statement.ts";
import { FlushSource } from "./row_stream.ts";
import { beginText, TransactionExecutor, type TransactionOptions } from "./transaction.ts";
import { Transaction } from "./transaction_block.ts";
import { Transactional } from "./transactional.ts";

/** Whether a transaction block is open on a session: none, open, or failed and waiting for ROLLBACK. */
export type TransactionStatus = "idle" | "transaction" | "failed";

/**
 * One session with a server. Queries issued without waiting are pipelined: they share a write, and each is answered
 * in order and fails alone.
 */
export class Connection extends Transactional<TransactionOptions> implements AsyncDisposable {
  readonly #connection: ServerConnection;
  readonly #executor: Executor;
  readonly #acquire: (signal: AbortSignal | undefined) => Promise<Lease>;
  #hub: NotificationHub | undefined = undefined;

  /** Not for use from outside: see {@linkcode connect}. */
  constructor(
    connection: ServerConnection,
    executor: Executor,
    acquire: (signal: AbortSignal | undefined) => Promise<Lease> = (signal) => connection.acquire(signal),
  ) {
    super(executor);
    this.#connection = connection;
    this.#executor = executor;
    this.#acquire = acquire;
  }

  /**
   * Opens a transaction. Until it has ended, queries that are not its own wait.
   *
   * The server learns of it with its first query: a transaction without any costs nothing.
   *
   * @throws {TimeoutError} when another transaction of this connection takes too long
   * @throws the reason of `options.signal`
   */
  override async begin(options: TransactionOptions = {}): Promise<Transaction> {
    const begin = beginText(options);
    const lease = await this.#acquire(options.signal);
    return Transaction.open(new TransactionExecutor(this.#connection, lease, begin, this.#executor), options);
  }

  /**
   * Prepares a statement under a name of its own, which lives until it is closed. Like all queries of the connection its
   * executions wait while a transaction is open: for those inside, see {@linkcode Transaction.prepare}.
   *
   * @throws {PostgresError} when the server does not accept it
   */
  prepare(text: string): Promise<PreparedStatement> {
    return prepareOn(this.#executor, text);
  }

  /**
   * Listens to a channel on this connection, until the loop or the stream ends. A lost connection ends it with an error.
   * Begun inside a block that a query has opened, it hears what is notified from the block's end on.
   *
   * @param channel its name as it is, quoted here; at most 63 bytes
   * @param options.signal ends listening; the iterator then throws its reason
   * @throws {ValueError} when the channel's name is empty, too long, or holds NUL or a lone surrogate
   */
  listen(channel: string, options?: { readonly signal?: AbortSignal | undefined }): NotificationStream;
  /** The same with a callback; resolves when the server listens. */
  listen(
    channel: string,
    callback: (event: NotificationEvent) => void,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<Subscription>;
  listen(channel: string, ...args: readonly unknown[]): NotificationStream | Promise<Subscription> {
    this.#hub ??= new NotificationHub({
      open: () => Promise.resolve(this.#connection),
      owned: false,
      probeInterval: PROBE_INTERVAL,
      submit: (request) => this.#executor.submit(request),
    });
    return listenOn(this.#hub, channel, args);
  }

  /** Transaction status as of the last answer of the server. */
  get transactionStatus(): TransactionStatus {
    const status = this.#connection.session.transactionStatus;
    return status === IN_TRANSACTION ? "transaction" : status === IN_FAILED_TRANSACTION ? "failed" : "idle";
  }

  /** Run-time parameters that the server reports (`server_version`, `TimeZone`, …), kept up to date. */
  get parameters(): ReadonlyMap<string, string> {
    return this.#connection.session.parameters;
  }

  /** Process ID of the backend, `undefined` when the server does not tell. */
  get processId(): number | undefined {
    return this.#connection.session.keyData?.processId;
  }

  /** Whether the connection is closed, or lost. */
  get closed(): boolean {
    return this.#connection.closed;
  }

  /**
   * Lets queries that were issued finish, then closes. Idempotent; never rejects.
   *
   * @param options.timeout milliseconds until unfinished queries are given up and reject; 0 gives them up at once.
   * Default 5_000
   */
  close(options: { readonly timeout?: number } = {}): Promise<void> {
    this.endListening();
    return this.#connection.close(options.timeout ?? 5_000);
  }

  /** Ends what `listen` began. */
  protected endListening(): void {
    this.#hub?.close();
    this.#hub = undefined;
  }

  /** Same as {@linkcode close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/**
 * Opens a session.
 *
 * @param target a connection URI, a conninfo string (`host=localhost dbname=app`) or options; default: the environment
 * and libpq's defaults
 * @param options options that go before those of `target`; `signal` ends the attempt
 * @throws {ConfigurationError} when the options cannot be used
 * @throws {ConnectionError} when no host can be reached; the message names each that was tried
 * @throws {PostgresError} when the server refuses (`28P01`, `3D000`, …)
 * @throws {TimeoutError} when `connectTimeout` passes
 *
 * @example
 * ```ts ignore
 * await using conn = await connect("postgres://app@localhost/app");
 * const users = await conn.sql`select * from users where id = ${1}`;
 * ```
 */
export async function connect(
  target?: string | URL | ConnectOptions,
  options: ConnectOptions & { readonly signal?: AbortSignal | undefined } = {},
): Promise<Connection> {
  const { signal, ...overrides } = options;
  signal?.throwIfAborted();
  const resolved = await resolveTarget(target, overrides);
  // Options that cannot be used are known before a session is open.
  const types = createTypes(resolved.options);
  const connection = await openTarget(resolved, signal);
  return new Connection(connection, createExecutor(connection, types));
}

/** Runs requests on one connection. */
export function createExecutor(connection: ServerConnection, types: Types): Executor {
  return {
    types,
    keepsStacks: losesStacks(),
    submit: (request) => connection.submit(request),
    giveUp: (request) => connection.giveUp(request),
    openStream: (request, site) => new FlushSource(connection, request, site),
    attach: () => Promise.resolve(attachTo(connection, connection)),
    inBlock: () => connection.session.transactionStatus !== IDLE,
  };
}

/** A connection that is there for an operation as it is: its queue gives the operation its turn. */
export function attachTo(
  connection: ServerConnection,
  queue: Pick<Executor, "submit" | "giveUp">,
): Attachment {
  return {
    connection,
    submit: (request) => queue.submit(request),
    giveUp: (request) => queue.giveUp(request),
    release(): void {},
  };
}

/** How values are represented by these options. */
export function createTypes(options: Pick<ConnectOptions, "int8" | "temporal" | "types">): Types {
  const { int8 = "bigint", temporal = false, types = {} } = options;
  return new Types(createRegistry({ int8, temporal }).extend(types));
}
