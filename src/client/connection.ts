/** One session with a server, and how it is opened. */

import type { ConnectOptions } from "../connection/options.ts";
import { openConnection } from "../connection/open.ts";
import type { ServerConnection } from "../connection/server_connection.ts";
import { createRegistry } from "../codecs/registry.ts";
import type { Request } from "../engine/request.ts";
import { IN_FAILED_TRANSACTION, IN_TRANSACTION } from "../wire/message_types.ts";
import { Types } from "./planner.ts";
import type { Executor } from "./query.ts";
import { type BoundSql, createBoundSql, runQuery, runScript } from "./queryable.ts";
import type { Result, Row } from "./result.ts";

/** Whether a transaction block is open on a session: none, open, or failed and waiting for ROLLBACK. */
export type TransactionStatus = "idle" | "transaction" | "failed";

/**
 * One session with a server. Queries issued without waiting are pipelined: they share a write, and each is answered
 * in order and fails alone.
 */
export class Connection implements AsyncDisposable {
  /** Makes queries: ``await conn.sql`select * from users where id = ${id}` ``. It can be taken off the connection. */
  readonly sql: BoundSql;
  readonly #connection: ServerConnection;
  readonly #executor: Executor;

  /** Use {@linkcode connect}. */
  constructor(connection: ServerConnection, executor: Executor) {
    this.#connection = connection;
    this.#executor = executor;
    this.sql = createBoundSql(executor);
  }

  /**
   * Runs one statement with parameters by number.
   *
   * @param text one SQL statement
   * @param values what `$1`, `$2` … stand for; default none
   * @returns rows as objects, the number of rows, the command and the columns
   * @throws {PostgresError} when the server reports an error
   * @throws {ValueError} when a value cannot be sent or read
   * @throws {ConnectionError} when the connection is lost or closed
   */
  query<T = Row>(text: string, values: readonly unknown[] = []): Promise<Result<T>> {
    return runQuery<T>(this.#executor, text, values);
  }

  /**
   * Runs a script of any number of statements in the simple protocol; outside a transaction block they are one
   * implicit transaction.
   *
   * @returns one result for each statement
   * @throws {PostgresError} when the server reports an error: of the statement that failed, those after it did not run
   * @see PostgreSQL manual, 53.2.2.1 "Multiple Statements in a Simple Query"
   */
  exec<T = Row>(text: string): Promise<Result<T>[]> {
    return runScript<T>(this.#executor, text);
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
    return this.#connection.close(options.timeout ?? 5_000);
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
  const { connection, resolved, keepsStacks } = await openConnection(target, overrides, signal);
  const registry = createRegistry({ int8: resolved.int8, temporal: resolved.temporal }).extend(
    resolved.types,
  );
  const executor: Executor = {
    types: new Types(registry),
    keepsStacks,
    submit: (request: Request) => connection.submit(request),
  };
  return new Connection(connection, executor);
}
