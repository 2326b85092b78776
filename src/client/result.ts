/** What a statement gave, as users see it. */

import type { Request, StatementResult } from "../engine/request.ts";
import type { Notice } from "../errors.ts";
import type { Field } from "../wire/backend.ts";

export type { Field };

/** The result of one statement. */
export interface Result<T = Row> {
  /** The rows; empty for a statement that returns none. */
  readonly rows: T[];
  /** Rows returned or affected, from the command tag; `null` for commands that do not count (`BEGIN`). */
  readonly rowCount: number | null;
  /** The command (`SELECT`, `INSERT`, `CREATE TABLE`); `null` for an empty query. */
  readonly command: string | null;
  /** The columns; empty for a statement that returns no rows. */
  readonly fields: readonly Field[];
  /** What the server remarked meanwhile. */
  readonly notices: readonly Notice[];
}

/** A row as an object keyed by column name; of columns with one name the last wins. */
export type Row = Record<string, unknown>;

const NO_FIELDS: readonly Field[] = [];
const NO_NOTICES: readonly Notice[] = [];

/** The result of an extended query. */
export function resultOf<T>(request: Request): Result<T> {
  return createResult(request, request.notices ?? NO_NOTICES);
}

/** The results of a simple query, one for each of its statements. */
export function resultsOf<T>(request: Request): Result<T>[] {
  const notices = request.notices ?? NO_NOTICES;
  return (request.results ?? []).map((result) => createResult<T>(result, notices));
}

function createResult<T>({ fields, rows, tag }: StatementResult, notices: readonly Notice[]): Result<T> {
  const { command, rowCount } = readCommandTag(tag);
  return { rows: rows as T[], rowCount, command, fields: fields ?? NO_FIELDS, notices };
}

/**
 * Takes a command tag apart: `INSERT 0 5` is the command `INSERT` and the count 5, `CREATE TABLE` has no count.
 *
 * @see PostgreSQL manual, 53.7, CommandComplete
 */
export function readCommandTag(tag: string): CommandTag {
  if (tag === lastTag) return lastRead;
  lastRead = parseCommandTag(tag);
  lastTag = tag;
  return lastRead;
}

/** What a command tag says. */
interface CommandTag {
  readonly command: string | null;
  readonly rowCount: number | null;
}

// Tags come in runs of one kind.
let lastTag = "";
let lastRead: CommandTag = { command: null, rowCount: null };

function parseCommandTag(tag: string): CommandTag {
  if (tag === "") return { command: null, rowCount: null };
  const match = /^(.*?)(?: \d+)? (\d+)$/.exec(tag);
  if (match === null) return { command: tag, rowCount: null };
  return { command: match[1]!, rowCount: Number(match[2]) };
}
