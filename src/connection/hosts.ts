/** The hosts of a connection. */

import { ConfigurationError } from "../errors.ts";
import type { Settings } from "./conninfo.ts";
import { parseInteger, textOf } from "./option_values.ts";

/** One place to try. */
export interface ResolvedHost {
  /** What to connect to: a host name, or an address. For a socket: its directory. */
  readonly host: string;
  /** TCP port; part of a socket's name too. */
  readonly port: number;
  /** Path of a Unix-domain socket; starts with `@` for one in Linux's abstract namespace. */
  readonly path?: string | undefined;
  /** The host as it was given, for certificates, the password file and messages; differs from `host` by `hostaddr`. */
  readonly name: string;
}

const DEFAULT_HOST = "localhost";
const DEFAULT_PORT = 5432;
/** The room for a path in a socket address, less its terminator (Linux). */
const MAX_SOCKET_PATH = 107;

/**
 * Expands `host`, `hostaddr` and `port`, lists separated by commas.
 *
 * @throws {ConfigurationError} when their lengths do not match, or an element cannot be used
 */
export function resolveHosts(settings: Settings): readonly ResolvedHost[] {
  const names = textOf(settings, "host")?.split(",");
  const addresses = textOf(settings, "hostaddr")?.split(",");
  const ports = textOf(settings, "port")?.split(",") ?? [""];
  if (names !== undefined && addresses !== undefined && names.length !== addresses.length) {
    throw new ConfigurationError(
      `Cannot match ${names.length} hosts to ${addresses.length} addresses: host and hostaddr must be of one length`,
    );
  }
  const count = (addresses ?? names ?? [""]).length;
  if (ports.length !== 1 && ports.length !== count) {
    throw new ConfigurationError(
      `Cannot match ${ports.length} ports to ${count} hosts: wanted one port, or one for each host`,
    );
  }
  return Array.from({ length: count }, (_, i) => {
    const port = parsePort(ports.length === 1 ? ports[0]! : ports[i]!, settings);
    const name = names?.[i] || addresses?.[i] || DEFAULT_HOST;
    return resolveHost(name, addresses?.[i] || undefined, port, settings);
  });
}

function resolveHost(
  name: string,
  address: string | undefined,
  port: number,
  settings: Settings,
): ResolvedHost {
  if (address !== undefined) {
    const host = numericAddress(address);
    if (host === undefined) {
      throw new ConfigurationError(
        `Cannot use ${settings.get("hostaddr")!.from}: wanted a numeric IPv4 or IPv6 address`,
      );
    }
    return { host, port, name };
  }
  const from = settings.get("host")?.from ?? "host";
  if (name.includes("\0")) throw new ConfigurationError(`Cannot use ${from}: it holds a NUL character`);
  if (name.startsWith("/") || name.startsWith("@")) {
    const path = `${name}/.s.PGSQL.${port}`;
    const length = new TextEncoder().encode(path).length;
    if (length > MAX_SOCKET_PATH) {
      throw new ConfigurationError(
        `Cannot use ${from}: a socket path has at most ${MAX_SOCKET_PATH} bytes, this one has ${length}`,
      );
    }
    return { host: name, port, path, name };
  }
  // It would be shown as a host that cannot be found, and may be the rest of a password.
  if (name.includes("@")) {
    throw new ConfigurationError(
      `Cannot use ${from}: no host name holds "@" (in a URI, write it as %40 in the user name and the password)`,
    );
  }
  return { host: name, port, name };
}

/** An address as `getaddrinfo` reads one that must be numeric, IPv4 in its usual form; `undefined` for anything else. */
function numericAddress(text: string): string | undefined {
  if (/^[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(?:%[\w.-]+)?$/.test(text)) return text;
  if (!/^[0-9A-FXa-fx]+(?:\.[0-9A-FXa-fx]+){0,3}$/.test(text)) return undefined;
  const numbers = text.split(".").map(parseUnsigned);
  const last = numbers.pop()!;
  const bytes: number[] = [];
  for (const number of numbers) if (number < 256) bytes.push(number);
  // The last number stands for all the bytes that are left: 127.1 is 127.0.0.1.
  const left = 4 - bytes.length;
  if (bytes.length < numbers.length || !(last < 256 ** left)) return undefined;
  for (let i = left - 1; i >= 0; i--) bytes.push(Math.floor(last / 256 ** i) % 256);
  return bytes.join(".");
}

/** As C writes numbers: decimal, octal behind 0, hexadecimal behind 0x; NaN for anything else. */
function parseUnsigned(text: string): number {
  if (/^0[Xx][0-9A-Fa-f]+$/.test(text)) return parseInt(text.slice(2), 16);
  if (/^0[0-7]*$/.test(text)) return parseInt(text, 8);
  return /^[1-9][0-9]*$/.test(text) ? Number(text) : NaN;
}

function parsePort(text: string, settings: Settings): number {
  if (text === "") return DEFAULT_PORT;
  const port = parseInteger(text);
  if (port === undefined || port < 1 || port > 65_535) {
    throw new ConfigurationError(`Cannot use ${settings.get("port")!.from}: wanted a number from 1 to 65535`);
  }
  return port;
}
