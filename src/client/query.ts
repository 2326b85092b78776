/**
 * A query that has not run yet.
 *
 * It runs once, when it is awaited or one of its methods asks for the result; until then it can become part of
 * another query.
 */

import type { Types } from "./planner.ts";
import { bindParameters } from "./parameters.ts";
import { type Field, type Result, resultOf, type Row } from "./result.ts";
import { compile, Fragment, type Statement } from "./sql.ts";
import { DESCRIBE, EXTENDED, Request, type RowPlanner } from "../engine/request.ts";
import { ValueError } from "../errors.ts";

/** What runs requests: a connection, a pool, a transaction. */
export interface Executor {
  /** How values are represented. */
  readonly types: Types;
  /** Whether stacks must be kept from where a query was written: the runtime loses them at an await. */
  readonly keepsStacks: boolean;
  /** Takes a request; it settles in any case. */
  submit(request: Request): void;
}

/** A query's parameters and columns as the server describes them. */
export interface Description {
  /** Type OIDs of `$1`, `$2` …. */
  readonly parameters: readonly number[];
  /** The columns; empty for a statement that returns no rows. */
  readonly fields: readonly Field[];
}

/** Runs a request; resolves, never rejects, with the settled request. */
export function execute(
  executor: Executor,
  kind: number,
  { text, values }: Statement,
  planner: RowPlanner,
): Promise<Request> {
  return new Promise((resolve) => {
    const request = new Request(
      kind,
      text,
      bindParameters(values, executor.types.registry),
      planner,
      resolve,
    );
    request.alone = mayCopyIn(text);
    executor.submit(request);
  });
}

/**
 * Whether a text might start COPY FROM STDIN: the server would read what is pipelined behind it as copy data.
 * Rather too often than too seldom: it only costs the pipelining.
 */
export function mayCopyIn(text: string): boolean {
  return /\bstdin\b/i.test(text);
}

/** Throws a settled request's failure. Called in an async function, so that the stack shows who awaits it. */
export function throwIfFailed(request: Request, site: Error | undefined): void {
  if (request.failure !== null) throw withSite(request.failure(), site);
}

/** Adds the frames of where the query was written, where the runtime cannot follow the await. */
export function withSite(error: Error, site: Error | undefined): Error {
  if (site?.stack === undefined) return error;
  const frames = site.stack.slice(site.stack.indexOf("\n") + 1);
  error.stack = `${error.stack ?? error}\n${frames}`;
  return error;
}

/** A lazy query. Await it for all rows as objects, or call one of its methods; it runs once. */
export class Query<T = Row> extends Fragment implements PromiseLike<T[]> {
  readonly #executor: Executor;
  readonly #site: Error | undefined;
  #ran: { readonly planner: RowPlanner; readonly request: Promise<Request> } | undefined = undefined;

  /** @param executor what runs it */
  constructor(executor: Executor, strings: readonly string[], values: readonly unknown[]) {
    super(strings, values);
    this.#executor = executor;
    this.#site = executor.keepsStacks ? new Error() : undefined;
  }

  /** Runs the query; resolves with its rows as objects keyed by column name. */
  then<A = T[], B = never>(
    onFulfilled?: ((rows: T[]) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#rows().then(onFulfilled, onRejected);
  }

  /** Runs the query; see `Promise.prototype.catch`. */
  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T[] | B> {
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
  async one(): Promise<T> {
    const { rows } = await this.#settled(this.#executor.types.objects);
    if (rows.length !== 1) throw withSite(failCount("exactly one row", rows.length), this.#site);
    return rows[0] as T;
  }

  /**
   * Runs the query; resolves with its only row, or `undefined` when there is none.
   *
   * @throws {ValueError} when there is more than one row
   */
  async maybeOne(): Promise<T | undefined> {
    const { rows } = await this.#settled(this.#executor.types.objects);
    if (rows.length > 1) throw withSite(failCount("at most one row", rows.length), this.#site);
    return rows[0] as T | undefined;
  }

  /**
   * Runs the query; resolves with the first column of its only row.
   *
   * @throws {ValueError} when there is no row or more than one, or no column
   */
  async scalar(): Promise<T> {
    const { rows } = await this.#settled(this.#executor.types.arrays);
    if (rows.length !== 1) throw withSite(failCount("exactly one row", rows.length), this.#site);
    const row = rows[0] as unknown[];
    if (row.length === 0) throw withSite(new ValueError("Expected a column, received none"), this.#site);
    return row[0] as T;
  }

  /** Runs the query; resolves with rows, count, command, fields and notices. */
  async result(): Promise<Result<T>> {
    return resultOf(await this.#settled(this.#executor.types.objects));
  }

  /** Runs the query; resolves with rows as arrays in column order, columns of one name all kept. */
  async arrays<A extends unknown[] = unknown[]>(): Promise<A[]> {
    const { rows } = await this.#settled(this.#executor.types.arrays);
    return rows as A[];
  }

  /** Asks the server for the types of parameters and columns; nothing is executed. */
  async describe(): Promise<Description> {
    const executor = this.#executor;
    const { text, values } = compile(this);
    const request = await execute(executor, DESCRIBE, { text, values }, executor.types.objects);
    throwIfFailed(request, this.#site);
    return { parameters: request.statement!.parameterTypes ?? [], fields: request.statement!.fields ?? [] };
  }

  /** For `Object.prototype.toString`. */
  get [Symbol.toStringTag](): string {
    return "Query";
  }

  async #rows(): Promise<T[]> {
    const { rows } = await this.#settled(this.#executor.types.objects);
    return rows as T[];
  }

  async #settled(planner: RowPlanner): Promise<Request> {
    this.#ran ??= { planner, request: execute(this.#executor, EXTENDED, compile(this), planner) };
    if (this.#ran.planner !== planner) {
      throw withSite(
        new ValueError(
          "Cannot give the rows in another shape: a query runs once, and its rows have been made",
        ),
        this.#site,
      );
    }
    const request = await this.#ran.request;
    throwIfFailed(request, this.#site);
    return request;
  }
}

function failCount(wanted: string, received: number): ValueError {
  return new ValueError(`Expected ${wanted}, received ${received}`);
}
