/** Options that a query was given by its `with`, as others see them who make it a part of something. */

import type { QueryOptions } from "./executor.ts";

type ReadOptions = (fragment: object) => QueryOptions | undefined;

let readOptions: ReadOptions = () => undefined;

/** Says how to read them; `sql.ts` cannot know what a query is. */
export function setReadOptions(read: ReadOptions): void {
  readOptions = read;
}

/** What a query's `with` said; `undefined` for a fragment. */
export function optionsOf(fragment: object): QueryOptions | undefined {
  return readOptions(fragment);
}

/** The first option that says how to run a query by itself, if any; a label says nothing of that. */
export function ownOption({ signal, timeout, types, pipeline }: QueryOptions): string | undefined {
  return signal !== undefined
    ? "signal"
    : timeout
    ? "timeout"
    : types !== undefined
    ? "types"
    : pipeline === false
    ? "pipeline: false"
    : undefined;
}
