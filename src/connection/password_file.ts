/** The password file (PostgreSQL manual, 32.16). */

/** What a line of the file is looked up by. */
export interface PasswordFileKey {
  /** Host name as given, or the socket directory; its default directories and none count as `localhost`. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
}

/** Where servers and libpq of the usual packages put their socket when nobody says otherwise. */
const DEFAULT_SOCKET_DIRECTORIES = ["/tmp", "/run/postgresql", "/var/run/postgresql"];

/** Why a password file must not be used, or `undefined` when it may. Only its owner may read it, where modes exist. */
export function passwordFileProblem(path: string, mode: number | undefined): string | undefined {
  if (mode === undefined || (mode & 0o077) === 0) return undefined;
  return `Password file "${path}" is ignored: it has group or world access, its permissions should be 0600 or less`;
}

/**
 * The password of the first line that matches, or `undefined`.
 *
 * Lines are `host:port:database:user:password`; `*` matches anything, a backslash escapes `:` and `\`, and `#` starts
 * a comment.
 */
export function findPassword(text: string, key: PasswordFileKey): string | undefined {
  const host = key.host === "" || DEFAULT_SOCKET_DIRECTORIES.includes(key.host) ? "localhost" : key.host;
  const fields = [host, String(key.port), key.database, key.user];
  for (const rawLine of text.split("\n")) {
    if (rawLine.startsWith("#")) continue;
    const line = rawLine.endsWith("\r") ? rawLine.slice(0, -1) : rawLine;
    let at = 0;
    for (const field of fields) if (at >= 0) at = matchField(line, at, field);
    if (at >= 0) return readPassword(line, at);
  }
  return undefined;
}

/** Matches the field that starts at `start`. Returns where the next one starts, or -1. */
function matchField(line: string, start: number, wanted: string): number {
  if (line.startsWith("*:", start)) return start + 2;
  let at = start;
  for (let i = 0; at < line.length; i++, at++) {
    if (i === wanted.length) return line[at] === ":" ? at + 1 : -1;
    if (line[at] === "\\") at++;
    if (line[at] !== wanted[i]) return -1;
  }
  return -1;
}

function readPassword(line: string, start: number): string {
  let password = "";
  for (let at = start; at < line.length && line[at] !== ":"; at++) {
    if (line[at] === "\\" && at + 1 < line.length) at++;
    password += line[at];
  }
  return password;
}
