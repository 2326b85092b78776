/** Requests that their caller may give up: by a signal, or by a time limit. */

import type { Failure, Request } from "../engine/request.ts";
import { TimeoutError } from "../errors.ts";
import { startTimer } from "./timer.ts";

/** What timers can count; a longer limit, 24 days, is none. */
const MAX_TIMER = 0x7fff_ffff;

/** When to give up a request. */
export interface AbortOptions {
  /** Gives up when it aborts; the query rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds; 0 or absent: no limit. */
  readonly timeout?: number | undefined;
  /** The query's name, for the TimeoutError. */
  readonly label?: string | undefined;
}

/**
 * Watches a request that is about to be submitted. `onAborted` is called at most once, with the request failed; it is
 * then to be withdrawn or cancelled.
 *
 * @returns ends the watch; to be called when the request settles
 */
export function watchAbort(request: Request, options: AbortOptions, onAborted: () => void): () => void {
  const { signal, timeout = 0, label } = options;
  let timer: ReturnType<typeof setTimeout> | undefined = undefined;
  const stop = () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  };
  const abort = (failure: Failure) => {
    stop();
    if (request.settled || request.failure !== null) return;
    request.aborted = true;
    request.fail(failure);
    onAborted();
  };
  const onAbort = () => abort(() => signal!.reason as Error);
  signal?.addEventListener("abort", onAbort, { once: true });
  if (timeout > 0 && timeout <= MAX_TIMER) {
    timer = startTimer(() => abort(() => timeoutError(timeout, label)), timeout);
  }
  return stop;
}

function timeoutError(timeout: number, label: string | undefined): TimeoutError {
  return new TimeoutError(`Query${label === undefined ? "" : ` "${label}"`} took longer than ${timeout} ms`);
}
