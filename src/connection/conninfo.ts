/** Connection strings of both kinds, and where each setting of a connection came from. */

import { ConfigurationError } from "../errors.ts";
import { parseConninfoKeywordValue } from "./conninfo_keyword_value.ts";
import { type ConninfoPair, isConninfoUri, parseConninfoUri } from "./conninfo_uri.ts";
import { KEYWORDS, refusal } from "./keywords.ts";

/** A keyword's value. */
export interface Setting {
  /** Empty where the default is asked for, and a lower source must not fill in. */
  readonly value: string;
  /** Where it is from, for messages: `option "port"`, `PGPORT of the environment`. */
  readonly from: string;
}

/** By libpq keyword. It may hold a password, so it is never kept and never part of a message. */
export type Settings = Map<string, Setting>;

/** Whether libpq takes a `dbname` for a whole connection string. */
export function isConninfo(text: string): boolean {
  return isConninfoUri(text) || text.includes("=");
}

/**
 * Parses a URI or a keyword/value string; later occurrences of a keyword win.
 *
 * @throws {ConfigurationError} when it is malformed, or a keyword is unknown or refused
 */
export function parseConninfo(text: string): Settings {
  const uri = isConninfoUri(text);
  const pairs = uri ? parseConninfoUri(text) : parseConninfoKeywordValue(text);
  const place = uri ? "the connection URI" : "the connection string";
  const settings: Settings = new Map();
  // One before an @ ends there for certain.
  let secrets = uri && /^[^?]*@/.test(text) ? -1 : 0;
  for (const pair of pairs) {
    // Behind a secret with an unescaped blank or & stands the rest of it.
    const [keyword, value] = checkPair(pair, place, secrets > 0);
    settings.set(keyword, { value, from: `${keyword} in ${place}` });
    if (isSecret(keyword)) secrets++;
  }
  return settings;
}

/** Whether the value of a keyword must not be seen. */
export function isSecret(keyword: string): boolean {
  return /password$|secret$|_key$/.test(keyword);
}

/**
 * Checks one keyword.
 *
 * @param place where it stands, for the message
 * @param suspicious whether an unknown keyword may be a piece of a password and must not be shown
 * @returns the pair, or the one that libpq reads an obsolete keyword as
 * @throws {ConfigurationError} when the keyword is unknown or refused
 */
export function checkPair(pair: ConninfoPair, place: string, suspicious: boolean): ConninfoPair {
  const [keyword, value] = pair;
  if (keyword === "requiressl") return ["sslmode", value.startsWith("1") ? "require" : "prefer"];
  if (!KEYWORDS.has(keyword)) {
    if (suspicious || !/^[A-Za-z][A-Za-z0-9_.]{0,62}$/.test(keyword)) {
      throw new ConfigurationError(
        `Cannot use ${place}: it holds a keyword that libpq does not know (not shown, since it may be part of a value)`,
      );
    }
    throw new ConfigurationError(
      `Cannot use ${place}: unknown keyword "${keyword}" (a run-time setting goes into options or parameters)`,
    );
  }
  const reason = refusal(keyword, value);
  if (reason !== undefined) throw new ConfigurationError(`Cannot use ${keyword} in ${place}: ${reason}`);
  return pair;
}
