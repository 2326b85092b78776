/** Several statements in one round trip. */

import { startsCopy } from "../engine/begins_block.ts";
import { copyRefused } from "../engine/failures.ts";
import type { Request } from "../engine/request.ts";
import { ConfigurationError, PipelineAbortedError, PostgresError, ValueError } from "../errors.ts";
import { executeBatch, type Executor, type QueryOptions } from "./executor.ts";
import { optionsOf, ownOption } from "./own_options.ts";
import { type Result, resultOf, type Row } from "./result.ts";
import { Run } from "./run.ts";
import { isWell, mend } from "./type_loader.ts";
import { compile, type Fragment, type Statement } from "./sql.ts";

/** Options of a batch. */
export interface BatchOptions {
  /**
   * `"one"`: one Sync behind all; they succeed or fail together. `"each"`: one behind each; each succeeds or fails
   * alone. Default `"one"`.
   */
  readonly sync?: "one" | "each" | undefined;
  /** As in {@linkcode QueryOptions}: for all results and parameters of the batch. */
  readonly types?: QueryOptions["types"];
  /** Gives the batch up when it aborts: it rejects with the signal's reason, and is cancelled on the server. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds after which the batch is given up with a TimeoutError, and cancelled. 0: no limit. Default 0. */
  readonly timeout?: number | undefined;
}

/** Runs statements under one Sync; rejects when one fails. */
export async function runAtomicBatch(
  executor: Executor,
  fragments: readonly Fragment[],
  options: BatchOptions,
): Promise<Result[]> {
  options.signal?.throwIfAborted();
  if (fragments.length === 0) return [];
  const labels = fragments.map(labelOf);
  const statements = fragments.map(compile);
  // In the midst of a segment the server would read what follows as copy data.
  if (statements.some(beginsCopy)) {
    throw copyRefused("COPY", "copyFrom() or copyTo");
  }
  const once = (each: readonly Statement[]) =>
    executeBatch(executor, each, executor.types.objects, options, labels);
  let requests = await once(statements);
  // With the values as they were, whatever the caller has made of them meanwhile.
  const again = () =>
    once(statements.map(({ text }, i) => ({ text, values: requests[i]!.parameters.values })));
  for (let i = 0; i < requests.length; i++) {
    const settled = requests[i]!;
    if (isWell(executor, settled)) continue;
    // A value of an unknown type keeps the whole batch from being sent: it is made again as a whole.
    requests[i] = await mend(executor, settled, async () => (requests = await again())[i]!);
  }
  if (requests.some(hasFailed)) throw batchError(requests);
  return requests.map(toResult);
}

// No closures where every batch passes: the code compiled for them would not last.
function hasFailed({ failure }: Request): boolean {
  return failure !== null;
}

function toResult(request: Request): Result {
  return resultOf(request);
}

function beginsCopy({ text }: Statement, i: number, statements: readonly Statement[]): boolean {
  return text !== statements[i - 1]?.text && startsCopy(text);
}

/** Runs statements with a Sync each; resolves with what became of each. */
export async function runSettledBatch(
  executor: Executor,
  fragments: readonly Fragment[],
  { signal, timeout }: BatchOptions,
): Promise<PromiseSettledResult<Result>[]> {
  const labels = fragments.map(labelOf);
  const statements = fragments.map(compile);
  return await Promise.allSettled(
    statements.map((statement, i) => {
      const label = labels[i];
      const options = signal === undefined && !timeout && label === undefined
        ? undefined
        : { signal, timeout, label };
      try {
        return new Run(executor, statement, "object", options).start(resultOf<Row>);
      } catch (error) {
        // Others may have been sent.
        return Promise.reject(error);
      }
    }),
  );
}

/**
 * The name of a batch's query.
 *
 * @throws {ConfigurationError} when it has an option of its own that only the batch can have
 */
function labelOf(fragment: Fragment, index: number): string | undefined {
  const options = optionsOf(fragment);
  if (options === undefined) return undefined;
  const own = ownOption(options);
  if (own === undefined) return options.label;
  throw new ConfigurationError(
    `Cannot run query ${
      index + 1
    } of a batch with ${own} of its own: the queries of a batch take only label; ${
      own === "pipeline: false" ? "run it by itself" : "give it to batch()"
    }`,
  );
}

/** The error of the statement that failed, with a word on the others. */
function batchError(requests: readonly Request[]): Error {
  const errors = requests.map(({ failure }) => failure?.());
  const culprit = errors.findIndex((error) =>
    error !== undefined && !(error instanceof PipelineAbortedError)
  );
  if (culprit < 0) return errors.find((error) => error !== undefined)!;
  const error = errors[culprit]!;
  // What befell all alike is no statement's fault.
  if (!(error instanceof PostgresError || error instanceof ValueError)) return error;
  const rolledBack = errors.filter((each) => each instanceof PipelineAbortedError && each.executed).length;
  const neverRan = errors.filter((each) => each instanceof PipelineAbortedError && !each.executed).length;
  const others = [
    ...(rolledBack > 0 ? [`${rolledBack} before it ${rolledBack > 1 ? "were" : "was"} rolled back`] : []),
    ...(neverRan > 0 ? [`${neverRan} never ran`] : []),
  ];
  const note = `\n\nBatch: query ${culprit + 1} of ${requests.length} failed${
    others.map((each) => `, ${each}`).join("")
  }`;
  const stack = error.stack;
  const before = error.message;
  error.message += note;
  if (stack !== undefined) error.stack = stack.replace(before, () => error.message);
  return error;
}
