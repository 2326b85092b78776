/** What a pool says when it cannot do what was asked. */

import type { Request } from "../engine/request.ts";
import { ConfigurationError, ConnectionError, PoolError, PostgresError } from "../errors.ts";

/** How full a pool is, for messages. */
export interface Fullness {
  readonly total: number;
  readonly max: number;
  readonly busy: number;
  readonly opening: number;
  readonly waiting: number;
}

/** More want to wait than `maxWaiters` allows. */
export function tooManyWaiters(fullness: Fullness, maxWaiters: number): PoolError {
  return new PoolError(`Pool has too many waiters: ${describe(fullness)}, maxWaiters ${maxWaiters}`);
}

/** Nobody could be served in time. @param cause what the last attempt to connect failed with, if it failed */
export function waitedTooLong(fullness: Fullness, acquireTimeout: number, cause: unknown): PoolError {
  const hint = fullness.opening > 0 ? "" : ". Does a transaction use the pool's methods in place of its own?";
  const reason = cause === undefined
    ? hint
    : `, and the last attempt to connect failed: ${cause instanceof Error ? cause.message : String(cause)}`;
  return new PoolError(
    `No connection within ${acquireTimeout} ms (acquireTimeout): ${describe(fullness)}${reason}`,
    cause === undefined ? {} : { cause },
  );
}

function describe({ total, max, busy, opening, waiting }: Fullness): string {
  const connecting = opening > 0 ? `, connecting ${opening}` : "";
  return `size ${total} of ${max}, busy ${busy}${connecting}, waiting ${waiting}`;
}

/** Whether trying to connect again soon cannot help: the server, or the configuration, says no. */
export function isLasting(error: unknown): boolean {
  if (error instanceof ConfigurationError) return true;
  // Without a password, or with one that must not be sent.
  if (error instanceof ConnectionError) return error.code === "AUTHENTICATION_FAILED";
  // 53300 too_many_connections and class 57P (starting up, shutting down) pass; a wrong password does not.
  return error instanceof PostgresError && !error.code.startsWith("57P") && !error.code.startsWith("53");
}

export function returned(): PoolError {
  return new PoolError("Connection was given back to the pool");
}

export function leftOpen(): PoolError {
  return new PoolError("Script left a transaction block open: it was rolled back");
}

/** For those whose query was pipelined behind a statement that opened a block. */
export function blockOpened(sent: boolean | "unknown"): ConnectionError {
  return new ConnectionError(
    "Connection given up: another statement on it opened a transaction block through the pool",
    { code: "CONNECTION_LOST", sent },
  );
}

export function poolClosed(): PoolError {
  return new PoolError("Pool is closed");
}

/** Fails a request, and the others of its batch. */
export function fail(request: Request, failure: () => unknown): void {
  for (let each: Request | null = request; each !== null; each = each.next) {
    each.fail(failure as () => Error);
    each.settle();
  }
}
