/** One form for the errors of three runtimes: a `code` as Node.js names it, a text that says where, the original as cause. */

import { ConnectionError } from "../errors.ts";
import type { ConnectTarget } from "./transport.ts";

/** Deno's error classes, for versions that set no `code`. */
const CODES: Readonly<Record<string, string>> = {
  AddrNotAvailable: "EADDRNOTAVAIL",
  BrokenPipe: "EPIPE",
  ConnectionAborted: "ECONNABORTED",
  ConnectionRefused: "ECONNREFUSED",
  ConnectionReset: "ECONNRESET",
  NotCapable: "EACCES",
  NotConnected: "ENOTCONN",
  NotFound: "ENOENT",
  PermissionDenied: "EACCES",
  TimedOut: "ETIMEDOUT",
};

/** A system error as Node.js and Bun describe it, or an AggregateError of several. */
interface SystemError {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  readonly address?: unknown;
  readonly port?: unknown;
  readonly errors?: unknown;
}

/** Whatever was thrown, as an Error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error
    ? thrown
    : new Error(`A value that is no Error was thrown: ${String(thrown)}`);
}

/**
 * The error that a failed `connect` rejects with. Its message names what was tried and is never empty.
 *
 * @returns a {@linkcode ConnectionError} with the system's code (`ECONNREFUSED`, `ENOENT`, `ENOTFOUND` …), or
 * `CONNECT_FAILED` where the runtime gave none
 */
export function connectError(target: ConnectTarget, cause: unknown): ConnectionError {
  const place = target.path === undefined
    ? `host ${JSON.stringify(target.host)} port ${target.port}`
    : `Unix-domain socket ${JSON.stringify(target.path)}`;
  const code = codeOf(cause) ?? "CONNECT_FAILED";
  let reason = attempts(cause) || String((cause as SystemError | undefined)?.message || "no reason given");
  if (!reason.includes(code)) reason += ` (${code})`;
  return new ConnectionError(`Cannot connect to ${place}: ${reason}`, { code, cause });
}

/** The error of a connection that broke, with a `code`. */
export function lostError(cause: unknown): Error {
  const error = asError(cause);
  if (typeof (error as SystemError).code === "string") return error;
  return new ConnectionError(`Connection lost: ${error.message || "no reason given"}`, {
    code: codeOf(error) ?? "CONNECTION_LOST",
    cause: error,
  });
}

/**
 * The error of a TLS handshake that failed.
 *
 * @returns a {@linkcode ConnectionError} with the runtime's code (`CERT_HAS_EXPIRED`), or `TLS_FAILED`
 */
export function tlsError(cause: unknown): ConnectionError {
  const error = asError(cause);
  const code = codeOf(error) ?? "TLS_FAILED";
  const reason = error.message || "no reason given";
  return new ConnectionError(
    `Cannot establish TLS: ${reason}${code === "TLS_FAILED" || reason.includes(code) ? "" : ` (${code})`}`,
    { code, cause: error },
  );
}

function codeOf(error: unknown): string | undefined {
  const { code, errors, name, message } = (error ?? {}) as SystemError;
  if (typeof code === "string" && code !== "") return code;
  if (Array.isArray(errors)) {
    for (const each of errors) {
      const nested = codeOf(each);
      if (nested !== undefined) return nested;
    }
  }
  if (typeof name === "string" && Object.hasOwn(CODES, name)) return CODES[name];
  return typeof message === "string" && message.startsWith("failed to lookup address")
    ? "ENOTFOUND"
    : undefined;
}

/** `127.0.0.1:5432 ECONNREFUSED, [::1]:5432 ECONNREFUSED` of an AggregateError; empty for any other error. */
function attempts(error: unknown): string {
  const errors = (error as SystemError | undefined)?.errors;
  if (!Array.isArray(errors)) return "";
  return errors.map((each: SystemError) => {
    const code = codeOf(each) ?? "failed";
    if (typeof each.address !== "string") return `${String(each.message)}`;
    const address = each.address.includes(":") ? `[${each.address}]` : each.address;
    return `${address}:${String(each.port)} ${code}`;
  }).join(", ");
}
