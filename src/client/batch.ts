/** Several statements in one round trip. */

import { copyRefused } from "../engine/failures.ts";
import type { Request } from "../engine/request.ts";
import { PipelineAbortedError, PostgresError, ValueError } from "../errors.ts";
import { startsCopy } from "./begins_block.ts";
import { executeBatch, type Executor, type QueryOptions, throwIfFailed } from "./executor.ts";
import { type Result, resultOf, type Row } from "./result.ts";
import { isWell, mend, runMended } from "./type_loader.ts";
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
  const statements = fragments.map(compile);
  // In the midst of a segment the server would read what follows as copy data.
  if (statements.some(({ text }, i) => text !== statements[i - 1]?.text && startsCopy(text))) {
    throw copyRefused("COPY", "copyFrom() or copyTo");
  }
  const once = (each: readonly Statement[]) => executeBatch(executor, each, executor.types.objects, options);
  let requests = await once(statements);
  // With the values as they were, whatever the caller has made of them meanwhile.
  const again = () =>
    once(statements.map(({ text }, i) => ({ text, values: requests[i]!.parameters.values })));
  if (mayRepeat(executor, requests)) requests = await again();
  for (let i = 0; i < requests.length; i++) {
    const settled = requests[i]!;
    if (isWell(executor, settled)) continue;
    // A value of an unknown type keeps the whole batch from being sent: it is made again as a whole.
    requests[i] = await mend(executor, settled, async () => (requests = await again())[i]!);
  }
  if (requests.some(({ failure }) => failure !== null)) throw batchError(requests);
  return requests.map((request) => resultOf(request));
}

/**
 * Whether a batch failed only because the server had lost or outdated a prepared statement, and nothing of it stands:
 * outside a transaction block, with nothing before that cannot be rolled back.
 */
function mayRepeat(executor: Executor, requests: readonly Request[]): boolean {
  const culprit = requests.findIndex(({ lostStatement }) => lostStatement);
  if (culprit < 0 || executor.inBlock?.()) return false;
  return requests.slice(0, culprit).every(({ tag }) => ROLLED_BACK.test(tag));
}

const ROLLED_BACK = /^(?:SELECT|INSERT|UPDATE|DELETE|MERGE)\b/;

/** Runs statements with a Sync each; resolves with what became of each. */
export async function runSettledBatch(
  executor: Executor,
  fragments: readonly Fragment[],
  { signal, timeout }: BatchOptions,
): Promise<PromiseSettledResult<Result>[]> {
  const options = signal === undefined && !timeout ? undefined : { signal, timeout };
  return await Promise.allSettled(
    fragments.map((fragment) =>
      runMended(executor, compile(fragment), "object", options).then((request) => {
        throwIfFailed(request, undefined);
        return resultOf<Row>(request);
      })
    ),
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
