/** `target_session_attrs`: whether a server is one that is looked for (PostgreSQL manual, 32.1.2). */

import { NO_PARAMETERS, Request, type RowPlanner, SIMPLE } from "../engine/request.ts";
import type { Session } from "../engine/session.ts";
import { utf8Slice } from "../wire/utf8.ts";
import type { TargetSessionAttrs } from "./options.ts";
import type { ServerConnection } from "./server_connection.ts";

/** Whether the attribute asks for a server that can be written to. */
export function demandsWrites(attributes: TargetSessionAttrs): boolean {
  return attributes === "read-write" || attributes === "primary";
}

/**
 * Whether the session is one that is looked for; `undefined` if so, else what it is instead, for the message.
 *
 * Servers from 14 on report what is needed; older ones are asked.
 */
export async function sessionMismatch(
  connection: ServerConnection,
  attributes: TargetSessionAttrs,
): Promise<string | undefined> {
  switch (attributes) {
    case "any":
      return undefined;
    case "read-write":
      return await isReadOnly(connection) ? "session is read-only" : undefined;
    case "read-only":
      return await isReadOnly(connection) ? undefined : "session is not read-only";
    case "primary":
      return await isStandby(connection) ? "server is in hot standby mode" : undefined;
    case "standby":
    case "prefer-standby":
      return await isStandby(connection) ? undefined : "server is not in hot standby mode";
  }
}

/** Whether new transactions of the session cannot write; `undefined` when the server does not say (before 14). */
export function reportsReadOnly({ parameters }: Session): boolean | undefined {
  const readOnly = parameters.get("default_transaction_read_only");
  const standby = parameters.get("in_hot_standby");
  if (readOnly === undefined || standby === undefined) return undefined;
  return readOnly === "on" || standby === "on";
}

async function isReadOnly(connection: ServerConnection): Promise<boolean> {
  return reportsReadOnly(connection.session) ??
    await ask(connection, "show transaction_read_only") === "on";
}

async function isStandby(connection: ServerConnection): Promise<boolean> {
  const standby = connection.session.parameters.get("in_hot_standby");
  if (standby !== undefined) return standby === "on";
  return await ask(connection, "select pg_catalog.pg_is_in_recovery()") === "t";
}

/** The text of the only value of a result. */
const FIRST_TEXT: RowPlanner = {
  plan: () => (bytes, start, end) => utf8Slice(bytes, start + 6, end),
  formats: () => [0],
};

async function ask(connection: ServerConnection, text: string): Promise<string> {
  const request = await new Promise<Request>((resolve) =>
    connection.submit(new Request(SIMPLE, text, NO_PARAMETERS, FIRST_TEXT, resolve))
  );
  if (request.failure !== null) throw request.failure();
  return String(request.results?.[0]?.rows[0]);
}
