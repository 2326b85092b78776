/** A statement that is prepared on one connection, under a name of its own. */

import { CLOSE, DESCRIBE, NO_PARAMETERS, Request } from "../engine/request.ts";
import type { Statement } from "../engine/statement_cache.ts";
import { PipegresError } from "../errors.ts";
import {
  createRequest,
  createStream,
  type Executor,
  executorFor,
  type QueryOptions,
  throwIfFailed,
} from "./executor.ts";
import type { Description } from "./query.ts";
import { type Result, resultOf, type Row } from "./result.ts";
import { checkBatch, RowStream } from "./row_stream.ts";
import { Run } from "./run.ts";
import { checkText } from "./sql.ts";
import { loadFieldTypes } from "./type_loader.ts";

/**
 * Made by the `prepare` of a connection or of a transaction, on which it is executed. Executions issued without waiting
 * are pipelined.
 */
export class PreparedStatement implements AsyncDisposable {
  /** The SQL text. */
  readonly text: string;
  readonly #executor: Executor;
  readonly #statement: Statement;
  #closed: boolean = false;

  /** Not for use from outside. */
  constructor(executor: Executor, text: string, statement: Statement) {
    this.#executor = executor;
    this.text = text;
    this.#statement = statement;
  }

  /**
   * Executes the statement.
   *
   * @param values what `$1`, `$2` … stand for
   * @throws {PipegresError} when the statement is closed
   */
  query<T = Row>(values: readonly unknown[] = [], options?: QueryOptions): Promise<Result<T>> {
    if (this.#closed) return Promise.reject(closedError());
    try {
      const executor = executorFor(this.#executor, options);
      const statement = { text: this.text, values };
      return new Run(executor, statement, "object", options, undefined, this.#statement).start(resultOf<T>);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Executes the statement and gives its rows one by one.
   *
   * @param options.batch rows the server is asked for at a time; default 500
   * @throws {ValueError} for a batch that is no whole number from 1 on
   */
  stream<T = Row>(values: readonly unknown[] = [], options: { readonly batch?: number } = {}): RowStream<T> {
    const site = this.#executor.keepsStacks ? new Error() : undefined;
    const batch = checkBatch(options.batch);
    return new RowStream<T>(async () => {
      await loadFieldTypes(this.#executor, this.#statement);
      if (this.#closed) throw closedError();
      const request = createStream(this.#executor, { text: this.text, values });
      request.statement = this.#statement;
      request.maxRows = batch;
      return this.#executor.openStream(request, site);
    });
  }

  /** The types of parameters and columns. */
  describe(): Description {
    return { parameters: this.#statement.parameterTypes ?? [], fields: this.#statement.fields ?? [] };
  }

  /** Closes the statement on the server. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await new Promise<Request>((resolve) => {
      const request = new Request(CLOSE, "", NO_PARAMETERS, this.#executor.types.objects, resolve);
      request.statement = this.#statement;
      this.#executor.submit(request);
    });
  }

  /** Same as {@linkcode close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Prepares a statement under a name of its own, where its executions are to run. */
export async function prepareOn(executor: Executor, text: string): Promise<PreparedStatement> {
  const site = executor.keepsStacks ? new Error() : undefined;
  checkText(text);
  const request = await new Promise<Request>((resolve) => {
    const made = createRequest(executor, DESCRIBE, { text, values: [] }, executor.types.objects, resolve);
    made.named = true;
    executor.submit(made);
  });
  throwIfFailed(request, site);
  return new PreparedStatement(executor, text, request.statement!);
}

function closedError(): PipegresError {
  return new PipegresError("Prepared statement is closed");
}
