/** Connection URIs (PostgreSQL manual, 32.1.1.2). */

import { ConfigurationError } from "../errors.ts";

/** A keyword and its value, in the order of the text. */
export type ConninfoPair = readonly [keyword: string, value: string];

/** Whether `text` starts as a connection URI does. */
export function isConninfoUri(text: string): boolean {
  return prefixLength(text) > 0;
}

function prefixLength(text: string): number {
  if (text.startsWith("postgresql://")) return 13;
  return text.startsWith("postgres://") ? 11 : 0;
}

/**
 * Splits `postgres[ql]://[user[:password]@][host][:port][,...][/dbname][?keyword=value[&...]]`.
 *
 * The keywords are not checked. Messages name the part that is wrong and quote nothing of it: a password with a
 * character that should have been percent-encoded may end up in any part.
 *
 * @throws {ConfigurationError} when the text cannot be split or decoded
 */
export function parseConninfoUri(text: string): ConninfoPair[] {
  const pairs: ConninfoPair[] = [];
  let at = readCredentials(text, prefixLength(text), pairs);
  at = readHosts(text, at, pairs);
  if (text[at] === "/") {
    const end = endOfPart(text, at + 1, "?");
    if (end > at + 1) pairs.push(["dbname", decodePart(text.slice(at + 1, end), "database name")]);
    at = end;
  }
  if (text[at] === "?") readQuery(text.slice(at + 1), pairs);
  return pairs;
}

/** Where the first of `stops` is from `start` on, or the end. */
function endOfPart(text: string, start: number, stops: string): number {
  let at = start;
  while (at < text.length && !stops.includes(text[at]!)) at++;
  return at;
}

/** Reads what is before the first `@`, unless a `/` comes first. Returns where the hosts start. */
function readCredentials(text: string, start: number, pairs: ConninfoPair[]): number {
  const end = endOfPart(text, start, "@/");
  if (text[end] !== "@") return start;
  const credentials = text.slice(start, end);
  const colon = credentials.indexOf(":");
  const user = colon < 0 ? credentials : credentials.slice(0, colon);
  if (user !== "") pairs.push(["user", decodePart(user, "user name")]);
  if (colon >= 0 && colon + 1 < credentials.length) {
    pairs.push(["password", decodePart(credentials.slice(colon + 1), "password")]);
  }
  return end + 1;
}

/** Reads `host[:port][,...]` into comma-separated lists of the same length. Returns where they end. */
function readHosts(text: string, start: number, pairs: ConninfoPair[]): number {
  const hosts: string[] = [];
  const ports: string[] = [];
  let at = start;
  while (true) {
    let end: number;
    if (text[at] === "[") {
      end = endOfPart(text, at, "]");
      if (end === text.length) fail('the "[" of an IPv6 address has no "]"');
      if (end === at + 1) fail("the IPv6 address between [ and ] is empty");
      hosts.push(text.slice(at + 1, end));
      end++;
      if (end < text.length && !":/?,".includes(text[end]!)) {
        fail('an IPv6 address in brackets is followed by something else than ":", "/", "?" or ","');
      }
    } else {
      end = endOfPart(text, at, ":/?,");
      hosts.push(text.slice(at, end));
    }
    at = end;
    if (text[at] === ":") {
      end = endOfPart(text, at + 1, "/?,");
      ports.push(text.slice(at + 1, end));
      at = end;
    } else {
      ports.push("");
    }
    if (text[at] !== ",") break;
    at++;
  }
  if (hosts.join(",") !== "") pairs.push(["host", decodePart(hosts.join(","), "host")]);
  if (ports.join(",") !== "") pairs.push(["port", decodePart(ports.join(","), "port")]);
  return at;
}

function readQuery(query: string, pairs: ConninfoPair[]): void {
  if (query === "") return;
  const parameters = query.split("&");
  // One & at the end is harmless, as in libpq.
  if (parameters.at(-1) === "") parameters.pop();
  for (const parameter of parameters) {
    const equals = parameter.indexOf("=");
    if (equals < 0) fail('a query parameter has no "="');
    if (parameter.includes("=", equals + 1)) fail('a query parameter has more than one "="');
    const keyword = decodePart(parameter.slice(0, equals), "name of a query parameter");
    const value = decodePart(parameter.slice(equals + 1), "value of a query parameter");
    // JDBC's spelling, which libpq takes too.
    if (keyword === "ssl" && value === "true") pairs.push(["sslmode", "require"]);
    else pairs.push([keyword, value]);
  }
}

/** Undoes percent-encoding; `+` stays. Blanks around are dropped and blanks inside refused, as libpq does. */
function decodePart(raw: string, part: string): string {
  const trimmed = raw.replace(/^ +/, "");
  const text = trimEnd(trimmed);
  if (text.includes(" ")) fail(`the ${part} holds a space, which must be written as %20`);
  if (text.includes("\0")) fail(`the ${part} holds a NUL character`);
  if (!text.includes("%")) return text;
  for (let at = text.indexOf("%"); at >= 0; at = text.indexOf("%", at + 3)) {
    const code = text.slice(at + 1, at + 3);
    if (!/^[0-9A-Fa-f]{2}$/.test(code)) {
      fail(`the ${part} holds a "%" that is not followed by two hexadecimal digits`);
    }
    if (code === "00") fail(`the ${part} holds %00`);
  }
  try {
    return decodeURIComponent(text);
  } catch {
    // Not chained: the runtime's error may quote the text.
    return fail(`the ${part} is not UTF-8 once percent-decoded`);
  }
}

/** Without the spaces at the end; a loop, since a regular expression would try at each space. */
function trimEnd(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === " ") end--;
  return text.slice(0, end);
}

function fail(reason: string): never {
  throw new ConfigurationError(
    `Cannot parse the connection URI: ${reason} (a character such as % / ? # @ : [ or a space in a user name, ` +
      "password or database name must be percent-encoded)",
  );
}
