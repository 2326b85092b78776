/**
 * A query that has not run yet.
 *
 * It runs once, when it is awaited or one of its methods asks for the result; until then it can become part of
 * another query.
 */

import {
  createStream,
  execute,
  type Executor,
  executorFor,
  type QueryOptions,
  throwIfFailed,
  trace,
  watch,
  withSite,
} from "./executor.ts";
import { type Field, type Result, resultOf, type Row } from "./result.ts";
import { type BatchSource, checkBatch, RowStream } from "./row_stream.ts";
import { setReadOptions } from "./own_options.ts";
import { compile, Fragment } from "./sql.ts";
import { DESCRIBE, type Failure, type Request } from "../engine/request.ts";
import { ColumnBuilder, type Columns } from "../codecs/columns.ts";
import { ValueError } from "../errors.ts";
import { keepShape } from "../wire/keep_shape.ts";
import { Run } from "./run.ts";
import type { RowShape } from "./types.ts";

/** A query's parameters and columns as the server describes them. */
export interface Description {
  /** Type OIDs of `$1`, `$2` …. */
  readonly parameters: readonly number[];
  /** The columns; empty for a statement that returns no rows. */
  readonly fields: readonly Field[];
}

/** A lazy query. Await it for all rows as objects, or call one of its methods; it runs once. */
export class Query<T = Row> extends Fragment implements PromiseLike<T[]> {
  readonly #executor: Executor;
  readonly #site: Error | undefined;
  #options: QueryOptions | undefined = undefined;
  #run: Run | undefined = undefined;

  static {
    setReadOptions((fragment) => #options in fragment ? fragment.#options : undefined);
  }

  /** Use the `sql` tag of a connection or a pool. */
  constructor(executor: Executor, strings: readonly string[], values: readonly unknown[]) {
    super(strings, values);
    this.#executor = executor;
    this.#site = executor.keepsStacks ? new Error() : undefined;
  }

  /**
   * Says how to run the query; later calls add to earlier ones. What becomes part of another query cannot be run in a
   * way of its own: only the label may be given to it.
   *
   * @returns the query itself
   */
  with(options: QueryOptions): this {
    this.#options = { ...this.#options, ...options };
    return this;
  }

  /** Runs the query; resolves with its rows as objects keyed by column name. */
  then<A = T[], B = never>(
    onFulfilled?: ((rows: T[]) => A | PromiseLike<A>) | null,
    // deno-lint-ignore no-explicit-any -- as Promise has it
    onRejected?: ((reason: any) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#rows().then(onFulfilled, onRejected);
  }

  /** Runs the query; see `Promise.prototype.catch`. */
  catch<B = never>( // deno-lint-ignore no-explicit-any -- as Promise has it
    onRejected?: ((reason: any) => B | PromiseLike<B>) | null,
  ): Promise<T[] | B> {
    return this.#rows().catch(onRejected);
  }

  /** Runs the query; see `Promise.prototype.finally`. */
  finally(onFinally?: (() => void) | null): Promise<T[]> {
    return this.#rows().finally(onFinally);
  }

  /**
   * Runs the query; resolves with its only row.
   *
   * @throws {ValueError} when there is no row, or more than one
   */
  one(): Promise<T> {
    return this.#settled("object", ({ rows }) => {
      if (rows.length !== 1) throw withSite(failCount("exactly one row", rows.length), this.#site);
      return rows[0] as T;
    });
  }

  /**
   * Runs the query; resolves with its only row, or `undefined` when there is none.
   *
   * @throws {ValueError} when there is more than one row
   */
  maybeOne(): Promise<T | undefined> {
    return this.#settled("object", ({ rows }) => {
      if (rows.length > 1) throw withSite(failCount("at most one row", rows.length), this.#site);
      return rows[0] as T | undefined;
    });
  }

  /**
   * Runs the query; resolves with the first column of its only row.
   *
   * @throws {ValueError} when there is no row or more than one, or no column
   */
  scalar(): Promise<T> {
    return this.#settled("array", ({ rows }) => {
      if (rows.length !== 1) throw withSite(failCount("exactly one row", rows.length), this.#site);
      const row = rows[0] as unknown[];
      if (row.length === 0) throw withSite(new ValueError("Expected a column, received none"), this.#site);
      return row[0] as T;
    });
  }

  /** Runs the query; resolves with rows, count, command, fields and notices. */
  result(): Promise<Result<T>> {
    return this.#settled("object", resultOf<T>);
  }

  /** Runs the query; resolves with rows as arrays in column order, columns of one name all kept. */
  arrays<A extends unknown[] = unknown[]>(): Promise<A[]> {
    return this.#settled("array", rowsOf<A>);
  }

  /**
   * Runs the query; resolves with one array for each column, keyed by its name; of columns with one name the last wins.
   *
   * Where the type has a fixed width and no value is NULL the array is typed: int2 Int16Array, int4 Int32Array, oid
   * and xid Uint32Array, int8 BigInt64Array, xid8 BigUint64Array, float4 Float32Array, float8 Float64Array. Else it is a
   * plain array.
   */
  columns<C extends Columns = Columns>(): Promise<C> {
    return this.#settled("array", ({ fields, rows }) => {
      const { types } = executorFor(this.#executor, this.#options);
      const builder = new ColumnBuilder(fields ?? [], types.registry);
      for (const row of rows) builder.addRow(row as unknown[]);
      return builder.finish() as C;
    });
  }

  /**
   * Runs the query; resolves with its rows as the text of a JSON array of objects, made from the wire without objects
   * in between. It says what the server's `json_agg` of the rows would say: int8 and numeric keep their digits, json
   * columns are passed through. No rows are `[]`.
   */
  async json(): Promise<string> {
    this.#options?.signal?.throwIfAborted();
    return await this.#settled("json", ({ rows }) => `[${rows.join(",")}]`);
  }

  /**
   * Runs the query and gives its rows one by one, at most one batch ahead of their consumer; the connection is held
   * until the last row or the end of the loop.
   *
   * @param options.batch rows the server is asked for at a time; default 500
   */
  stream(options: { readonly batch?: number } = {}): RowStream<T> {
    const batch = checkBatch(options.batch);
    // deno-lint-ignore require-await -- what it throws is what its promise rejects with
    return new RowStream<T>(async () => {
      const executor = executorFor(this.#executor, this.#options);
      this.#options?.signal?.throwIfAborted();
      const statement = compile(this);
      const request = createStream(executor, statement);
      this.#options?.signal?.throwIfAborted();
      request.maxRows = batch;
      trace(request, this.#options?.label);
      if (this.#options?.pipeline === false) request.alone = true;
      let source: BatchSource | undefined = undefined as BatchSource | undefined;
      const { signal, timeout } = this.#options ?? {};
      let failure: Failure | undefined;
      if (this.#options !== undefined) {
        watch(executor, request, this.#options, () => {
          failure = request.failure!;
          source?.abort();
        });
      }
      source = executor.openStream(request, this.#site);
      if (signal !== undefined || timeout) {
        // The signal counts until the last row is taken, which may be long after the request has settled.
        source.givenUp = () => failure ?? (signal?.aborted ? () => signal.reason as Error : undefined);
      }
      return source;
    });
  }

  /** Streams the rows: ``for await (const row of conn.sql`…`)``. See {@linkcode stream}. */
  [Symbol.asyncIterator](): RowStream<T> {
    return this.stream();
  }

  /** Asks the server for the types of parameters and columns; nothing is executed. */
  async describe(): Promise<Description> {
    const executor = this.#executor;
    const statement = compile(this);
    const request = await execute(executor, DESCRIBE, statement, executor.types.objects, this.#options);
    throwIfFailed(request, this.#site);
    return { parameters: request.statement!.parameterTypes ?? [], fields: request.statement!.fields ?? [] };
  }

  /** For `Object.prototype.toString`. */
  get [Symbol.toStringTag](): string {
    return "Query";
  }

  #rows(): Promise<T[]> {
    return this.#settled("object", rowsOf<T>);
  }

  #settled<R>(shape: RowShape, pick: (request: Request) => R): Promise<R> {
    const run = this.#run;
    if (run !== undefined) return run.shape === shape ? run.again(pick) : Promise.reject(this.#failShape());
    try {
      const executor = executorFor(this.#executor, this.#options);
      const started = new Run(executor, compile(this), shape, this.#options, this.#site);
      const result = started.start(pick);
      this.#run = started;
      return result;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #failShape(): Error {
    return withSite(
      new ValueError("Cannot give the rows in another shape: a query runs once, and its rows have been made"),
      this.#site,
    );
  }
}

function rowsOf<T>({ rows }: Request): T[] {
  return rows as T[];
}

function failCount(wanted: string, received: number): ValueError {
  return new ValueError(`Expected ${wanted}, received ${received}`);
}

keepShape(new Query({ keepsStacks: false } as Executor, [], []));
