/**
 * Every error this package makes. Two families: {@linkcode PostgresError}, the server said so, and the client's own.
 *
 * Messages start with a capital, have no final period, and never hold a password or a parameter's value.
 */

import { SQLSTATE_CONDITIONS } from "./sqlstates.gen.ts";

/** What all errors of this package extend. */
export class PipegresError extends Error {
  /** `"PipegresError"`. */
  override name: string = "PipegresError";
}

/** The fields of an ErrorResponse or NoticeResponse (PostgreSQL manual, 53.8), by their one-letter codes. */
export type ResponseFields = Readonly<Record<string, string>>;

/** What the server tells with an error or a notice. Absent fields are `undefined`. */
export interface ServerMessage {
  /** SQLSTATE, five characters (`"23505"`). */
  readonly code: string;
  /** The SQLSTATE's condition name (`"unique_violation"`), or `undefined` for a code PostgreSQL does not list. */
  readonly condition: string | undefined;
  /** `ERROR`, `FATAL`, `PANIC`, `WARNING`, `NOTICE`, `DEBUG`, `INFO` or `LOG`; never localised. */
  readonly severity: string;
  /** The primary message as the server wrote it. */
  readonly message: string;
  /** A longer explanation. */
  readonly detail: string | undefined;
  /** What to do about it. */
  readonly hint: string | undefined;
  /** Where in the query text: characters, counted from 1. */
  readonly position: number | undefined;
  /** Where in an internally generated query. */
  readonly internalPosition: number | undefined;
  /** The internally generated query. */
  readonly internalQuery: string | undefined;
  /** The context: a call stack of functions, a line of COPY data. */
  readonly where: string | undefined;
  /** Schema of the object concerned. */
  readonly schema: string | undefined;
  /** Table concerned. */
  readonly table: string | undefined;
  /** Column concerned. */
  readonly column: string | undefined;
  /** Data type concerned. */
  readonly dataType: string | undefined;
  /** Constraint concerned. */
  readonly constraint: string | undefined;
  /** Server source file. */
  readonly file: string | undefined;
  /** Server source line. */
  readonly line: number | undefined;
  /** Server source routine. */
  readonly routine: string | undefined;
}

/** A NoticeResponse. */
export interface Notice extends ServerMessage {}

/** Reads the fields of a NoticeResponse. */
export function createNotice(fields: ResponseFields): Notice {
  return { ...serverMessage(fields), message: fields["M"] ?? "" };
}

function serverMessage(fields: ResponseFields): Omit<ServerMessage, "message"> {
  const code = fields["C"] ?? "";
  return {
    code,
    condition: Object.hasOwn(SQLSTATE_CONDITIONS, code) ? SQLSTATE_CONDITIONS[code] : undefined,
    severity: fields["V"] ?? fields["S"] ?? "",
    detail: fields["D"],
    hint: fields["H"],
    position: wholeNumber(fields["P"]),
    internalPosition: wholeNumber(fields["p"]),
    internalQuery: fields["q"],
    where: fields["W"],
    schema: fields["s"],
    table: fields["t"],
    column: fields["c"],
    dataType: fields["d"],
    constraint: fields["n"],
    file: fields["F"],
    line: wholeNumber(fields["L"]),
    routine: fields["R"],
  };
}

function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/**
 * The server reported an error.
 *
 * `message` is the server's message; where the server pointed into the query, a line with the place and a caret
 * follow it.
 */
export class PostgresError extends PipegresError implements ServerMessage {
  /** `"PostgresError"`. */
  override name: string = "PostgresError";
  declare readonly code: string;
  declare readonly condition: string | undefined;
  declare readonly severity: string;
  declare readonly detail: string | undefined;
  declare readonly hint: string | undefined;
  declare readonly position: number | undefined;
  declare readonly internalPosition: number | undefined;
  declare readonly internalQuery: string | undefined;
  declare readonly where: string | undefined;
  declare readonly schema: string | undefined;
  declare readonly table: string | undefined;
  declare readonly column: string | undefined;
  declare readonly dataType: string | undefined;
  declare readonly constraint: string | undefined;
  declare readonly file: string | undefined;
  declare readonly line: number | undefined;
  declare readonly routine: string | undefined;
  /** The query's text, without parameter values; `undefined` when no query was running. */
  declare readonly query: string | undefined;

  /**
   * Made of an ErrorResponse.
   *
   * @param fields its fields
   * @param query the text that `position` counts in
   */
  constructor(fields: ResponseFields, query?: string) {
    const known = serverMessage(fields);
    super((fields["M"] ?? "The server reported an error") + caret(query, known.position));
    Object.assign(this, known);
    // The text may be long and is not part of what went wrong: kept, but not printed with the error.
    Object.defineProperty(this, "query", { value: query, enumerable: false });
  }
}

const CARET_WIDTH = 100;

/** The line of `query` that holds the 1-based character `position`, and a caret under it. */
function caret(query: string | undefined, position: number | undefined): string {
  if (query === undefined || position === undefined || position < 1) return "";
  // The server counts characters, JavaScript UTF-16 units.
  let at = 0;
  for (let i = 1; i < position && at < query.length; i++) at += query.codePointAt(at)! > 0xffff ? 2 : 1;
  const lineStart = query.lastIndexOf("\n", at - 1) + 1;
  const newline = query.indexOf("\n", at);
  const lineEnd = newline < 0 ? query.length : newline;
  const lineNumber = query.slice(0, lineStart).split("\n").length;
  const from = Math.max(lineStart, at - CARET_WIDTH / 2);
  const to = Math.min(lineEnd, from + CARET_WIDTH);
  const label = `LINE ${lineNumber}: ${from > lineStart ? "..." : ""}`;
  const shown = query.slice(from, to).replaceAll("\t", " ") + (to < lineEnd ? "..." : "");
  const before = [...query.slice(from, at)].length;
  return `\n\n${label}${shown}\n${" ".repeat(label.length + before)}^`;
}

/** Whether the server may have received the work: `"unknown"` is said where it cannot be known. */
export type Sent = boolean | "unknown";

/** Options of {@linkcode ConnectionError}. */
export interface ConnectionErrorOptions {
  /** See {@linkcode ConnectionError.code}. */
  readonly code: string;
  /** See {@linkcode ConnectionError.sent}; default `false`. */
  readonly sent?: Sent | undefined;
  /** What went wrong below. */
  readonly cause?: unknown;
}

/** A connection could not be made, was lost, or is closed. */
export class ConnectionError extends PipegresError {
  /** `"ConnectionError"`. */
  override name: string = "ConnectionError";
  /**
   * The system's error code (`ECONNREFUSED`, `ENOENT`), the server's SQLSTATE where it refused, or one of
   * `CONNECTION_CLOSED`, `CONNECTION_LOST`, `AUTHENTICATION_FAILED`, `UNSUPPORTED`.
   */
  readonly code: string;
  /** Whether the query this error rejects was sent: `false` never, `"unknown"` it may have been executed. */
  readonly sent: Sent;

  /** Made by this package. */
  constructor(message: string, options: ConnectionErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code;
    this.sent = options.sent ?? false;
  }
}

/** A time limit passed. */
export class TimeoutError extends PipegresError {
  /** `"TimeoutError"`. */
  override name: string = "TimeoutError";
}

/** The peer broke the protocol; the connection is closed. */
export class ProtocolError extends PipegresError {
  /** `"ProtocolError"`. */
  override name: string = "ProtocolError";
}

/** A query of a pipeline was not executed, or was rolled back, since another of the same Sync segment failed. */
export class PipelineAbortedError extends PipegresError {
  /** `"PipelineAbortedError"`. */
  override name: string = "PipelineAbortedError";
  /** True when the query was executed and then rolled back, false when it never ran. */
  readonly executed: boolean;

  /** Made by this package. */
  constructor(message: string, options: { readonly executed: boolean; readonly cause?: unknown }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.executed = options.executed;
  }
}

/** The pool cannot serve: exhausted, closed or full of waiters. */
export class PoolError extends PipegresError {
  /** `"PoolError"`. */
  override name: string = "PoolError";
}

/** A parameter or a result value cannot be converted, or a result has not the shape that was asked for. */
export class ValueError extends PipegresError {
  /** `"ValueError"`. */
  override name: string = "ValueError";
}

/** Connection options, conninfo words or environment that cannot be used. */
export class ConfigurationError extends PipegresError {
  /** `"ConfigurationError"`. */
  override name: string = "ConfigurationError";
}
