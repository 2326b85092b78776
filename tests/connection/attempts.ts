/** Attempts to connect to scripted backends, and what must be true of every failure. */

import assert from "node:assert/strict";
import { inspect } from "node:util";
import { connect, type Connection, type ConnectOptions } from "../../mod.ts";
import { limit } from "../_support/limit.ts";
import { createMemoryBackend, type Script } from "../_support/scripted_backend.ts";

/** The password of every attempt: it must be nowhere in what a user sees. */
export const SECRET = "s3cr3t-Wört";

/** Options of an attempt: `host` and the rest as for `connect`. */
export type AttemptOptions = ConnectOptions & { readonly signal?: AbortSignal };

/** Connects to a scripted backend in memory and hands over the connection, which is closed afterwards. */
export async function succeed(
  script: Script,
  options: AttemptOptions = {},
  use: (connection: Connection) => Promise<void> | void = () => {},
): Promise<void> {
  const backend = createMemoryBackend(script);
  const connection = await limit(
    connect({ ...baseOptions(), transport: backend.factory, ...options }),
    10_000,
    "connect",
  );
  try {
    await use(connection);
  } finally {
    await limit(connection.close(), 10_000, "close");
  }
  await backend.close();
}

/**
 * Connects to a scripted backend in memory and returns the error; the script must see the end of the connection.
 *
 * @returns the error itself, or what it was made of when it tells which host failed
 */
export async function fail(script: Script, options: AttemptOptions = {}): Promise<Error> {
  const backend = createMemoryBackend(async (session, index) => {
    await script(session, index);
    await session.drain();
  });
  const error = await failureOf(connect({ ...baseOptions(), transport: backend.factory, ...options }));
  await backend.close();
  return error;
}

/** The error of an attempt, after a look for the password. */
export async function failureOf(attempt: Promise<Connection>): Promise<Error> {
  const outcome = await limit(
    attempt.then((connection) => ({ connection }), (error) => ({ error })),
    10_000,
    "connect",
  );
  if ("connection" in outcome) {
    await outcome.connection.close();
    assert.fail("The attempt succeeded");
  }
  assertNoSecret(outcome.error);
  assert.ok(outcome.error instanceof Error, inspect(outcome.error));
  const { cause } = outcome.error;
  return /^Cannot connect to /.test(outcome.error.message) && cause instanceof Error ? cause : outcome.error;
}

function baseOptions(): ConnectOptions {
  return { host: "localhost", user: "scripted", database: "scripted", password: SECRET, sslmode: "disable" };
}

/** Fails when the password, in whatever form, can be seen in an error, a connection or anything else. */
export function assertNoSecret(value: unknown): void {
  const shown = [
    String(value),
    inspect(value, { depth: 20, showHidden: true, maxStringLength: Infinity }),
    JSON.stringify(value),
    value instanceof Error ? `${value.stack}` : "",
  ].join("\n");
  for (const form of [SECRET, encodeURIComponent(SECRET), btoa(encodeURIComponent(SECRET)), "s3cr3t"]) {
    assert.ok(!shown.includes(form), `the password is shown: ${shown}`);
  }
}
