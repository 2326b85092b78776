/** The query methods that a connection, a pool and a transaction share. */

import { SIMPLE } from "../engine/request.ts";
import { type BatchOptions, runAtomicBatch, runSettledBatch } from "./batch.ts";
import { CopyFromStream, CopyToStream } from "./copy.ts";
import { type CopyRow, copyRows, type CopyRowsOptions } from "./copy_rows.ts";
import { execute, type Executor, executorFor, type QueryOptions, throwIfFailed } from "./executor.ts";
import { checkChannel } from "./notifications.ts";
import { Query } from "./query.ts";
import { type Result, resultOf, resultsOf, type Row } from "./result.ts";
import { Run } from "./run.ts";
import { mendResults, noteTag } from "./type_loader.ts";
import { checkText, type Fragment, helpers, type SqlHelpers } from "./sql.ts";

/** A template tag that makes queries of this session, with the helpers of `sql`. */
export interface BoundSql extends SqlHelpers {
  <T = Row>(strings: TemplateStringsArray, ...values: unknown[]): Query<T>;
}

function createTag(executor: Executor): BoundSql {
  const tag = <T>(strings: TemplateStringsArray, ...values: unknown[]): Query<T> =>
    new Query<T>(executor, strings, values);
  return Object.assign(tag, helpers);
}

/** What can run queries. */
export class Queryable {
  readonly #executor: Executor;
  #sql: BoundSql | undefined = undefined;

  /** Not for use from outside: see {@linkcode connect}. */
  constructor(executor: Executor) {
    this.#executor = executor;
  }

  /** Makes queries: ``await conn.sql`select * from users where id = ${id}` ``. It can be taken off its owner. */
  get sql(): BoundSql {
    return this.#sql ??= createTag(this.#executor);
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
  query<T = Row>(
    text: string,
    values: readonly unknown[] = [],
    options?: QueryOptions,
  ): Promise<Result<T>> {
    try {
      checkText(text);
      const executor = executorFor(this.#executor, options);
      return new Run(executor, { text, values }, "object", options).start(resultOf<T>);
    } catch (error) {
      return Promise.reject(error);
    }
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
    const executor = executorFor(this.#executor, options);
    checkText(text);
    const request = await execute(executor, SIMPLE, { text, values: [] }, executor.types.objects, options);
    for (const result of request.results ?? []) noteTag(executor, result);
    if (executor.types.concerns(request)) await mendResults(executor, request);
    throwIfFailed(request, undefined);
    return resultsOf(request);
  }

  /**
   * Takes the data of a COPY FROM STDIN, in whatever format the statement says; strings are sent as UTF-8.
   *
   * When the stream is aborted, or its source fails, nothing is stored. A row that the server refuses errors the
   * stream at once with the server's error, whose `where` names the line.
   *
   * @param text `copy … from stdin`
   * @example
   * ```ts ignore
   * await file.readable.pipeTo(db.copyFrom("copy t from stdin (format csv)"));
   * ```
   */
  copyFrom(text: string): CopyFromStream {
    return new CopyFromStream(this.#executor, text);
  }

  /**
   * Gives the data of a COPY TO STDOUT as it comes, at most a quarter of a megabyte ahead of its reader. It starts when
   * it is first read from; cancelling the stream, or leaving its loop, cancels the COPY.
   *
   * @param text `copy … to stdout`
   * @example
   * ```ts ignore
   * await db.copyTo("copy t to stdout (format csv, header)").pipeTo(file.writable);
   * for await (const row of db.copyTo("copy t to stdout").rows()) console.log(row.id);
   * ```
   */
  copyTo(text: string): CopyToStream {
    return new CopyToStream(this.#executor, text);
  }

  /**
   * Stores rows by COPY, in binary format where the values allow it. When the source of the rows fails, nothing is stored
   * and its error is thrown.
   *
   * @param table its name, or its parts (`["schema", "table"]`); quoted here
   * @param columns their names; quoted here
   * @param rows arrays in column order, or objects keyed by column name
   * @param options.signal ends the COPY; nothing is stored
   * @param options.format `"binary"` or `"text"`; default: as the first values suggest
   * @returns the number of rows
   * @throws {ValueError} when a value does not fit its column; nothing is stored
   * @throws {PostgresError} when the server refuses; nothing is stored
   */
  copyRows(
    table: string | readonly string[],
    columns: readonly string[],
    rows: Iterable<CopyRow> | AsyncIterable<CopyRow>,
    options?: CopyRowsOptions,
  ): Promise<number> {
    return copyRows(this.#executor, table, columns, rows, options);
  }

  /**
   * Notifies whoever listens to a channel.
   *
   * @param channel its name as it is, at most 63 bytes
   * @param payload at most 7999 bytes; default empty
   * @throws {ValueError} when the channel's name is empty, too long, or holds NUL or a lone surrogate
   */
  async notify(channel: string, payload: string = ""): Promise<void> {
    checkChannel(channel);
    await this.query("select pg_catalog.pg_notify($1, $2)", [channel, payload]);
  }

  /**
   * Runs statements in one round trip, in order.
   *
   * By default one Sync stands behind all: outside a transaction block they are one implicit transaction, and when one
   * fails the error is its, those before it are rolled back and those behind it never run. With `sync: "each"` each
   * succeeds or fails alone.
   *
   * @param queries fragments or queries of any session; they are run here. Of what `with` said of them only the label
   * counts
   * @param options signal and time limit for all of them; inside a transaction block giving up fails the block
   * @throws {PostgresError} of the statement that failed, which the message names
   * @throws {ValueError} when a value cannot be sent: none has run then
   * @throws {ConfigurationError} when a query has options of its own that only the batch can have: none has run then
   */
  batch(
    queries: readonly Fragment[],
    options?: BatchOptions & { readonly sync?: "one" | undefined },
  ): Promise<Result[]>;
  /** The same with a Sync each: resolves with what became of each statement. */
  batch(
    queries: readonly Fragment[],
    options: BatchOptions & { readonly sync: "each" },
  ): Promise<PromiseSettledResult<Result>[]>;
  batch(
    queries: readonly Fragment[],
    options: BatchOptions = {},
  ): Promise<Result[] | PromiseSettledResult<Result>[]> {
    return options.sync === "each"
      ? runSettledBatch(executorFor(this.#executor, options), queries, options)
      : runAtomicBatch(executorFor(this.#executor, options), queries, options);
  }
}
