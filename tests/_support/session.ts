/** Connections of the driver for one test each, and what else tests of sessions share. */

import assert from "node:assert/strict";
import { connect, type Connection } from "../../mod.ts";
import { limit, testUrl } from "./server.ts";

/** Options that {@linkcode connect} takes. */
export type SessionOptions = NonNullable<Parameters<typeof connect>[1]> & {
  /** Connection URI. Default: that of the test server. */
  readonly url?: string;
  /** Milliseconds that the test may take. Default 20_000. */
  readonly within?: number;
};

/** Runs `body` with a connection that is closed afterwards, in bounded time. */
export async function withConnection<T>(
  body: (conn: Connection) => Promise<T>,
  { url = testUrl(), within = 20_000, ...options }: SessionOptions = {},
): Promise<T> {
  const conn = await limit(connect(url, options), 10_000, "connect");
  try {
    return await limit(body(conn), within, "the test's body");
  } finally {
    await limit(conn.close({ timeout: 0 }), 5_000, "close");
  }
}

/** What the promise rejects with; fails when it resolves, or does neither in time. */
export async function rejectionOf(promise: PromiseLike<unknown>, milliseconds?: number): Promise<Failure> {
  const settled = limit(promise, milliseconds, "a promise that has to reject");
  const failure = await settled.then(() => undefined, (error: unknown) => ({ error }));
  assert.ok(failure !== undefined, "Expected a rejection");
  return failure.error as Failure;
}

/** The properties of this package's errors that tests look at. */
export interface Failure extends Error {
  readonly code?: string;
  readonly sent?: boolean | "unknown";
  readonly executed?: boolean;
  readonly rollbackError?: Failure;
  readonly cause?: Failure;
}

/** Resolves after that many milliseconds: for tests about time. */
export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
