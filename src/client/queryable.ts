/** The query methods that a connection, a pool and a transaction share. */

import { EXTENDED, SIMPLE } from "../engine/request.ts";
import { execute, type Executor, Query, throwIfFailed } from "./query.ts";
import { type Result, resultOf, resultsOf, type Row } from "./result.ts";
import { checkText, helpers, type SqlHelpers } from "./sql.ts";

/** A template tag that makes queries of this session, with the helpers of `sql`. */
export interface BoundSql extends SqlHelpers {
  <T = Row>(strings: TemplateStringsArray, ...values: unknown[]): Query<T>;
}

/** The tag for one executor; it can be taken off its owner. */
export function createBoundSql(executor: Executor): BoundSql {
  return Object.assign(
    <T>(strings: TemplateStringsArray, ...values: unknown[]): Query<T> =>
      new Query<T>(executor, strings, values),
    helpers,
  );
}

/** Runs one statement with parameters by number; node-postgres' shape. */
export async function runQuery<T>(
  executor: Executor,
  text: string,
  values: readonly unknown[],
): Promise<Result<T>> {
  const site = executor.keepsStacks ? new Error() : undefined;
  checkText(text);
  const request = await execute(executor, EXTENDED, { text, values }, executor.types.objects);
  throwIfFailed(request, site);
  return resultOf(request);
}

/** Runs a script in the simple protocol. */
export async function runScript<T>(executor: Executor, text: string): Promise<Result<T>[]> {
  const site = executor.keepsStacks ? new Error() : undefined;
  checkText(text);
  const request = await execute(executor, SIMPLE, { text, values: [] }, executor.types.objects);
  throwIfFailed(request, site);
  return resultsOf(request);
}
