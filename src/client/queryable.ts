/** The query methods that a connection, a pool and a transaction share. */

import { EXTENDED, SIMPLE } from "../engine/request.ts";
import { type BatchOptions, runAtomicBatch, runSettledBatch } from "./batch.ts";
import { execute, type Executor, type QueryOptions, throwIfFailed } from "./executor.ts";
import { Query } from "./query.ts";
import { type Result, resultOf, resultsOf, type Row } from "./result.ts";
import { mendResults, runMended } from "./type_loader.ts";
import { checkText, type Fragment, helpers, type SqlHelpers } from "./sql.ts";

/** A template tag that makes queries of this session, with the helpers of `sql`. */
export interface BoundSql extends SqlHelpers {
  <T = Row>(strings: TemplateStringsArray, ...values: unknown[]): Query<T>;
}

/** What can run queries. */
export class Queryable {
  /** Makes queries: ``await conn.sql`select * from users where id = ${id}` ``. It can be taken off its owner. */
  readonly sql: BoundSql;
  readonly #executor: Executor;

  /** Not for use from outside: see {@linkcode connect}. */
  constructor(executor: Executor) {
    this.#executor = executor;
    this.sql = Object.assign(
      <T>(strings: TemplateStringsArray, ...values: unknown[]): Query<T> =>
        new Query<T>(executor, strings, values),
      helpers,
    );
  }

  /**
   * Runs one statement with parameters by number.
   *
   * @param text one SQL statement
   * @param values what `$1`, `$2` … stand for; default none
   * @param options signal, time limit, label
   * @returns rows as objects, the number of rows, the command and the columns
   * @throws {PostgresError} when the server reports an error
   * @throws {ValueError} when a value cannot be sent or read
   * @throws {ConnectionError} when the connection is lost or closed
   */
  async query<T = Row>(
    text: string,
    values: readonly unknown[] = [],
    options?: QueryOptions,
  ): Promise<Result<T>> {
    const executor = this.#executor;
    const site = executor.keepsStacks ? new Error() : undefined;
    checkText(text);
    const statement = { text, values };
    const request = await runMended(
      executor,
      () => execute(executor, EXTENDED, statement, executor.types.objects, options),
    );
    throwIfFailed(request, site);
    return resultOf(request);
  }

  /**
   * Runs a script of any number of statements in the simple protocol; outside a transaction block they are one
   * implicit transaction.
   *
   * @param text SQL statements, separated by semicolons
   * @param options signal, time limit, label
   * @returns one result for each statement
   * @throws {PostgresError} when the server reports an error: of the statement that failed, those after it did not run
   * @see PostgreSQL manual, 53.2.2.1 "Multiple Statements in a Simple Query"
   */
  async exec<T = Row>(text: string, options?: QueryOptions): Promise<Result<T>[]> {
    const executor = this.#executor;
    const site = executor.keepsStacks ? new Error() : undefined;
    checkText(text);
    const request = await execute(executor, SIMPLE, { text, values: [] }, executor.types.objects, options);
    if (executor.types.concerns(request)) await mendResults(executor, request);
    throwIfFailed(request, site);
    return resultsOf(request);
  }

  /**
   * Runs statements in one round trip, in order.
   *
   * By default one Sync stands behind all: outside a transaction block they are one implicit transaction, and when one
   * fails the error is its, those before it are rolled back and those behind it never run. With `sync: "each"` each
   * succeeds or fails alone.
   *
   * @param queries fragments or queries of any session; they are run here
   * @throws {PostgresError} of the statement that failed, which the message names
   * @throws {ValueError} when a value cannot be sent: none has run then
   */
  batch(queries: readonly Fragment[], options?: { readonly sync?: "one" | undefined }): Promise<Result[]>;
  /** The same with a Sync each: resolves with what became of each statement. */
  batch(
    queries: readonly Fragment[],
    options: { readonly sync: "each" },
  ): Promise<PromiseSettledResult<Result>[]>;
  batch(
    queries: readonly Fragment[],
    options: BatchOptions = {},
  ): Promise<Result[] | PromiseSettledResult<Result>[]> {
    return options.sync === "each"
      ? runSettledBatch(this.#executor, queries)
      : runAtomicBatch(this.#executor, queries);
  }
}
