/** Keyword/value connection strings (PostgreSQL manual, 32.1.1.1). */

import { ConfigurationError } from "../errors.ts";
import type { ConninfoPair } from "./conninfo_uri.ts";

/** What C's isspace() takes for a blank. */
const BLANKS = " \t\n\v\f\r";

/**
 * Splits `keyword=value keyword='quoted value' …`; backslash escapes one character inside a value.
 *
 * The keywords are not checked. Messages quote nothing of the text: what looks like a keyword may be the rest of a
 * password with a space.
 *
 * @throws {ConfigurationError} when an `=` is missing or a quote is not closed
 */
export function parseConninfoKeywordValue(text: string): ConninfoPair[] {
  if (text.includes("\0")) fail("it holds a NUL character");
  const pairs: ConninfoPair[] = [];
  let at = skipBlanks(text, 0);
  while (at < text.length) {
    const start = at;
    while (at < text.length && text[at] !== "=" && !BLANKS.includes(text[at]!)) at++;
    const keyword = text.slice(start, at);
    at = skipBlanks(text, at);
    if (text[at] !== "=") {
      fail(
        `the word at character ${start + 1} is not followed by "=" (a value with spaces needs single quotes)`,
      );
    }
    const value = readValue(text, skipBlanks(text, at + 1));
    pairs.push([keyword, value.text]);
    at = skipBlanks(text, value.end);
  }
  return pairs;
}

function skipBlanks(text: string, start: number): number {
  let at = start;
  while (at < text.length && BLANKS.includes(text[at]!)) at++;
  return at;
}

function readValue(text: string, start: number): { readonly text: string; readonly end: number } {
  const quoted = text[start] === "'";
  const parts: string[] = [];
  let at = quoted ? start + 1 : start;
  let from = at;
  while (at < text.length && !(quoted ? text[at] === "'" : BLANKS.includes(text[at]!))) {
    if (text[at] === "\\") {
      parts.push(text.slice(from, at));
      from = at + 1;
      at++;
    }
    at++;
  }
  // A backslash may have stepped over the end.
  at = Math.min(at, text.length);
  if (quoted && at === text.length) fail(`the quote at character ${start + 1} is not closed`);
  parts.push(text.slice(from, at));
  return { text: parts.join(""), end: quoted ? at + 1 : at };
}

function fail(reason: string): never {
  throw new ConfigurationError(`Cannot parse the connection string: ${reason}`);
}
