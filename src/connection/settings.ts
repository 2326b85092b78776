/** Collects the settings of a connection from all their sources, the higher one first. */

import { ConfigurationError } from "../errors.ts";
import type { ConnectOptions } from "./connect_options.ts";
import { isConninfo, parseConninfo, type Setting, type Settings } from "./conninfo.ts";
import type { Environment } from "./environment.ts";
import { KEYWORDS, refusal } from "./keywords.ts";
import { readService } from "./service_file.ts";

/** Every option, with the libpq keyword that it sets, or `undefined` where it has none of its form. */
const OPTION_KEYWORDS: { readonly [name in keyof Required<ConnectOptions>]: string | undefined } = {
  host: "host",
  hostaddr: "hostaddr",
  port: "port",
  user: "user",
  password: "password",
  passfile: "passfile",
  database: "dbname",
  service: "service",
  sslmode: "sslmode",
  sslnegotiation: "sslnegotiation",
  sslrootcert: "sslrootcert",
  sslcrl: "sslcrl",
  sslcert: "sslcert",
  sslkey: "sslkey",
  sslpassword: "sslpassword",
  sslcertmode: "sslcertmode",
  sslsni: "sslsni",
  sslMinProtocolVersion: "ssl_min_protocol_version",
  sslMaxProtocolVersion: "ssl_max_protocol_version",
  requireAuth: "require_auth",
  oauthToken: undefined,
  channelBinding: "channel_binding",
  allowCleartextPassword: undefined,
  scramMaxIterations: undefined,
  targetSessionAttrs: "target_session_attrs",
  loadBalanceHosts: "load_balance_hosts",
  // Milliseconds here, seconds there.
  connectTimeout: undefined,
  keepalives: "keepalives",
  keepalivesIdle: undefined,
  keepalivesInterval: undefined,
  keepalivesCount: "keepalives_count",
  tcpUserTimeout: "tcp_user_timeout",
  minProtocolVersion: "min_protocol_version",
  maxProtocolVersion: "max_protocol_version",
  applicationName: "application_name",
  fallbackApplicationName: "fallback_application_name",
  options: "options",
  replication: "replication",
  parameters: undefined,
  queryTimeout: undefined,
  pipeline: undefined,
  statementCache: undefined,
  maxMessageBytes: undefined,
  int8: undefined,
  temporal: undefined,
  types: undefined,
  transport: undefined,
  onNotice: undefined,
  onParameterStatus: undefined,
};

/** The names of all options of a connection, to tell them from those of a pool. */
export const CONNECT_OPTION_NAMES: ReadonlySet<string> = new Set(Object.keys(OPTION_KEYWORDS));

/** What other drivers or libpq call an option. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  dbname: "database",
  username: "user",
  hostname: "host",
  ssl: "sslmode",
  tls: "sslmode",
  ...Object.fromEntries(
    Object.entries(OPTION_KEYWORDS).flatMap(([name, keyword]) =>
      keyword !== undefined && keyword !== name ? [[keyword, name]] : []
    ),
  ),
};

/**
 * One set of options, `overrides` winning; `undefined` values are left out.
 *
 * @throws {ConfigurationError} when an option is unknown
 */
export function mergeOptions(options?: ConnectOptions, overrides?: ConnectOptions): ConnectOptions {
  const merged: Record<string, unknown> = {};
  for (const source of [options, overrides]) {
    if (source === undefined) continue;
    if (typeof source !== "object" || source === null) {
      throw new ConfigurationError(
        `Cannot use the connection options: wanted a string, a URL or an object, received ${typeof source}`,
      );
    }
    for (const [name, value] of Object.entries(source)) {
      if (value === undefined) continue;
      if (!CONNECT_OPTION_NAMES.has(name)) failUnknown(name);
      merged[name] = value;
    }
  }
  return merged as ConnectOptions;
}

function failUnknown(name: string): never {
  const other = Object.hasOwn(OTHER_NAMES, name) ? OTHER_NAMES[name] : undefined;
  throw new ConfigurationError(
    `Unknown option "${name}"${other === undefined ? "" : `: use ${other}`}`,
  );
}

/**
 * All settings: options, then the connection string, the service file and the environment.
 *
 * @throws {ConfigurationError} when a source is malformed, refused, or contradicts another in `sslmode`
 */
export async function gatherSettings(
  given: ConnectOptions,
  conninfo: string | undefined,
  environment: Environment,
): Promise<Settings> {
  const settings = optionSettings(given);
  const database = settings.get("dbname");
  if (database !== undefined && isConninfo(database.value)) {
    settings.delete("dbname");
    fillFrom(settings, parseConninfo(database.value));
  }
  if (conninfo !== undefined) fillFrom(settings, parseConninfo(conninfo));
  const service = settings.get("service")?.value ?? environment.variable("PGSERVICE");
  if (service) fill(settings, await readService(service, environment));
  fill(settings, environmentSettings(environment));
  return settings;
}

function fill(settings: Settings, lower: Settings): void {
  for (const [keyword, setting] of lower) if (!settings.has(keyword)) settings.set(keyword, setting);
}

/** Like {@linkcode fill}; but what the caller wrote twice, differently, about encryption is a mistake. */
function fillFrom(settings: Settings, conninfo: Settings): void {
  const [option, word] = [settings.get("sslmode"), conninfo.get("sslmode")];
  if (option !== undefined && word?.value && option.value !== word.value) {
    throw new ConfigurationError(`Cannot use ${option.from} with another value than ${word.from}`);
  }
  fill(settings, conninfo);
}

function optionSettings(given: ConnectOptions): Settings {
  const settings: Settings = new Map();
  for (const [name, value] of Object.entries(given) as [keyof ConnectOptions, unknown][]) {
    const keyword = OPTION_KEYWORDS[name];
    if (keyword === undefined || value === undefined || name === "password" && typeof value === "function") {
      continue;
    }
    const text = optionText(name, value);
    if (text !== "") settings.set(keyword, { value: text, from: `option "${name}"` });
  }
  return settings;
}

/** Options that may be lists. */
const LISTS: readonly string[] = ["host", "hostaddr", "port", "requireAuth"];
/** Options that may be numbers. */
const NUMBERS: readonly string[] = ["port", "keepalivesCount", "tcpUserTimeout"];
/** Options that may be booleans. */
const BOOLEANS: readonly string[] = ["keepalives", "sslsni"];

function optionText(name: string, value: unknown): string {
  if (typeof value === "string" && !BOOLEANS.includes(name)) return value;
  if (typeof value === "number" && NUMBERS.includes(name)) return String(value);
  if (typeof value === "boolean" && BOOLEANS.includes(name)) return value ? "1" : "0";
  if (Array.isArray(value) && LISTS.includes(name)) {
    const elements = value.map((element) => optionText(name, element));
    if (elements.some((element) => element.includes(","))) {
      throw new ConfigurationError(`Cannot use option "${name}": an element of the list holds a comma`);
    }
    return elements.join(",");
  }
  throw new ConfigurationError(
    `Cannot use option "${name}": wanted a ${wantedType(name)}, received ${
      Array.isArray(value) ? "an array" : typeof value
    }`,
  );
}

function wantedType(name: string): string {
  return BOOLEANS.includes(name) ? "boolean" : NUMBERS.includes(name) ? "number" : "string";
}

function environmentSettings(environment: Environment): Settings {
  const settings: Settings = new Map();
  for (const [keyword, { variable }] of KEYWORDS) {
    const value = variable === undefined ? undefined : environment.variable(variable);
    if (variable === undefined || value === undefined) continue;
    const reason = refusal(keyword, value);
    if (reason !== undefined) {
      throw new ConfigurationError(`Cannot use ${variable} of the environment: ${reason}`);
    }
    settings.set(keyword, environmentSetting(variable, value));
  }
  // As old as requiressl, and still read by libpq.
  if (!settings.has("sslmode") && environment.variable("PGREQUIRESSL")?.startsWith("1")) {
    settings.set("sslmode", environmentSetting("PGREQUIRESSL", "require"));
  }
  return settings;
}

function environmentSetting(variable: string, value: string): Setting {
  return { value, from: `${variable} of the environment` };
}
