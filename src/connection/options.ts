/**
 * From what a user gives to what a connection needs: options, connection string, service file, environment, password
 * file and defaults, in libpq's order of precedence.
 */

import type { ChannelBindingMode } from "../auth/authenticator.ts";
import { MAX_ITERATIONS } from "../auth/scram_sha256.ts";
import type { TypeOverrides } from "../codecs/registry.ts";
import { ConfigurationError, type Notice } from "../errors.ts";
import type { TlsCredentials, TransportFactory } from "../transport/transport.ts";
import type {
  ConnectOptions,
  OAuthRequest,
  SslMode,
  TargetSessionAttrs,
  TlsVersion,
} from "./connect_options.ts";
import { type Environment, processEnvironment } from "./environment.ts";
import { type ResolvedHost, resolveHosts } from "./hosts.ts";
import {
  type AuthMethod,
  authMethodsOf,
  choiceOf,
  flagOf,
  integerOf,
  limitOf,
  textOf,
} from "./option_values.ts";
import { findPassword, passwordFileProblem } from "./password_file.ts";
import { gatherSettings, mergeOptions } from "./settings.ts";
import { loadTlsCredentials } from "./tls_files.ts";
import type { Settings } from "./conninfo.ts";

export type {
  ConnectOptions,
  OAuthRequest,
  PipelineOptions,
  SslMode,
  TargetSessionAttrs,
  TlsVersion,
} from "./connect_options.ts";
export type { ResolvedHost } from "./hosts.ts";
export { CONNECT_OPTION_NAMES } from "./settings.ts";

const SSL_MODES = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] as const;
const SESSION_ATTRS = ["any", "read-write", "read-only", "primary", "standby", "prefer-standby"] as const;
const TLS_VERSIONS = ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"] as const;

const DEFAULT_CONNECT_TIMEOUT = 10_000;
const DEFAULT_STATEMENT_CACHE = 256;
const DEFAULT_MAX_QUERIES = 1000;
const DEFAULT_MAX_BYTES = 1_048_576;
/** PostgreSQL builds no message longer than this. */
const DEFAULT_MAX_MESSAGE_BYTES = 1_073_741_824;

/** What TLS needs. Absent files are the defaults in `~/.postgresql`. */
export interface ResolvedTls {
  /** `sslnegotiation`. */
  readonly negotiation: "postgres" | "direct";
  /** `sslrootcert`: a file, or `system`. */
  readonly rootCertificate: string | undefined;
  /** `sslcrl`: a file. */
  readonly revocationList: string | undefined;
  /** `sslcert`: a file. */
  readonly certificate: string | undefined;
  /** `sslkey`: a file. */
  readonly key: string | undefined;
  /** `sslcertmode`. */
  readonly certificateMode: "disable" | "allow";
  /** `sslsni`. */
  readonly serverName: boolean;
  /** `ssl_min_protocol_version`. */
  readonly minVersion: TlsVersion;
  /** `ssl_max_protocol_version`; `undefined`: the newest. */
  readonly maxVersion: TlsVersion | undefined;
}

/** TCP's own timers, in milliseconds; 0: the system's default. */
export interface ResolvedKeepalive {
  /** Whether keepalives are sent. */
  readonly enabled: boolean;
  /** Quiet time before the first. */
  readonly idle: number;
  /** Time between them. */
  readonly interval: number;
  /** How many may be lost; a number, no time. */
  readonly count: number;
  /** `tcp_user_timeout`. */
  readonly userTimeout: number;
}

/** What is secret, out of reach of inspection. */
interface Secrets {
  readonly password: string | (() => string | Promise<string>) | undefined;
  readonly sslpassword: string | undefined;
  readonly passfile: string | undefined;
  readonly oauthToken: ConnectOptions["oauthToken"];
  readonly oauth: Pick<OAuthRequest, "issuer" | "clientId" | "clientSecret" | "scope">;
  readonly environment: Environment;
}

/** Everything but the secrets. */
export interface ResolvedSettings {
  /** To be tried in order; never empty. */
  readonly hosts: readonly ResolvedHost[];
  readonly user: string;
  readonly database: string;
  /** Parameters of the StartupMessage, `user` and `database` included. */
  readonly startupParameters: Readonly<Record<string, string>>;
  readonly sslmode: SslMode;
  readonly tls: ResolvedTls;
  readonly keepalive: ResolvedKeepalive;
  /** Acceptable methods, or `undefined`: any. */
  readonly requireAuth: readonly AuthMethod[] | undefined;
  readonly channelBinding: ChannelBindingMode;
  readonly allowCleartextPassword: boolean;
  readonly scramMaxIterations: number;
  readonly targetSessionAttrs: TargetSessionAttrs;
  readonly loadBalanceHosts: "disable" | "random";
  /** Milliseconds for each host; 0: no limit. */
  readonly connectTimeout: number;
  /** Milliseconds; 0: no limit. */
  readonly queryTimeout: number;
  /** As in the StartupMessage: 0x30000 or 0x30002. */
  readonly minProtocolVersion: number;
  readonly maxProtocolVersion: number;
  readonly pipeline: false | { readonly maxQueries: number; readonly maxBytes: number };
  readonly statementCache: number;
  readonly maxMessageBytes: number;
  readonly int8: "bigint" | "number" | "string";
  readonly temporal: boolean;
  readonly types: TypeOverrides;
  readonly transport: TransportFactory | undefined;
  readonly onNotice: (notice: Notice) => void;
  readonly onParameterStatus: (name: string, value: string) => void;
}

/** Options with everything filled in. The password is not among its properties. */
export interface ResolvedOptions extends ResolvedSettings {}

/** Options with everything filled in. */
export class ResolvedOptions {
  readonly #secrets: Secrets;
  #passwordFileProblem: string | undefined = undefined;
  #credentials: TlsCredentials | undefined = undefined;

  constructor(resolved: ResolvedSettings, secrets: Secrets) {
    Object.assign(this, resolved);
    this.#secrets = secrets;
  }

  /** What `console.log` prints under Node.js and Bun. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `ResolvedOptions ${JSON.stringify(this)}`;
  }

  /** What `console.log` prints under Deno. */
  [Symbol.for("Deno.customInspect")](): string {
    return `ResolvedOptions ${JSON.stringify(this)}`;
  }

  /**
   * The password for a host: the given one, what the given function returns, or the password file's.
   *
   * @returns `undefined` when there is none; the file is read at each call
   * @throws {ConfigurationError} when the function returns something else than a string
   */
  async password(host: ResolvedHost): Promise<string | undefined> {
    const { password } = this.#secrets;
    if (typeof password !== "function") return password ?? await this.#passwordFromFile(host);
    const made: unknown = await password();
    if (typeof made !== "string") {
      throw new ConfigurationError(
        `Cannot use the password function: wanted a string, it gave ${typeof made}`,
      );
    }
    return made === "" ? undefined : made;
  }

  async #passwordFromFile(host: ResolvedHost): Promise<string | undefined> {
    const { environment, passfile } = this.#secrets;
    const path = passfile ?? defaultPasswordFile(environment);
    const file = path === undefined ? undefined : await environment.readFile(path);
    if (path === undefined || file === undefined) return undefined;
    this.#passwordFileProblem = passwordFileProblem(path, file.mode);
    if (this.#passwordFileProblem !== undefined) return undefined;
    const { database, user } = this;
    return findPassword(file.text, { host: host.name, port: host.port, database, user }) || undefined;
  }

  /** Why {@linkcode password} did not use a password file that is there; for the message when a password is missing. */
  get passwordFileProblem(): string | undefined {
    return this.#passwordFileProblem;
  }

  /**
   * Certificates and keys, read anew at each call: the same object as before while the files stay the same.
   *
   * @throws {ConfigurationError} when a file that is needed is missing, or must not be used
   */
  async tlsCredentials(): Promise<TlsCredentials> {
    const { environment, sslpassword } = this.#secrets;
    const credentials = await loadTlsCredentials(this, environment, sslpassword);
    if (JSON.stringify(credentials) !== JSON.stringify(this.#credentials)) this.#credentials = credentials;
    return this.#credentials!;
  }

  /**
   * The OAuth token for a host.
   *
   * @returns `undefined` when no option gives one; empty to ask the server what it wants
   * @throws {ConfigurationError} when the function returns something that is no token
   */
  async oauthToken(host: ResolvedHost): Promise<string | undefined> {
    const { oauthToken, oauth } = this.#secrets;
    if (oauthToken === undefined) return undefined;
    const { database, user } = this;
    const made: unknown = typeof oauthToken === "function"
      ? await oauthToken({ host: host.name, port: host.port, user, database, ...oauth })
      : oauthToken;
    if (made === undefined) return "";
    if (typeof made === "string" && /^[\w.~+/-]*=*$/.test(made)) return made;
    throw new ConfigurationError(
      `Cannot use the OAuth token: wanted letters, digits and -._~+/ with = at the end only, received ${
        typeof made === "string" ? "other characters" : typeof made
      }`,
    );
  }

  /** Where this leads to. Run-time settings are left out: they may hold what is nobody's business. */
  toJSON(): object {
    const { hosts, user, database, sslmode } = this;
    return { hosts, user, database, sslmode };
  }
}

/**
 * Fills in everything a connection needs.
 *
 * @param input a connection URI, a keyword/value string, or options
 * @param overrides options that win over `input`
 * @param environment for tests; default: the running process's
 * @throws {ConfigurationError} when something cannot be parsed, is unknown, or is refused; no message holds a password
 */
export async function resolveOptions(
  input?: string | URL | ConnectOptions,
  overrides?: ConnectOptions,
  environment: Environment = processEnvironment(),
): Promise<ResolvedOptions> {
  const conninfo = typeof input === "string" || input instanceof URL ? String(input) : undefined;
  const given = mergeOptions(
    conninfo === undefined ? input as ConnectOptions | undefined : undefined,
    overrides,
  );
  const settings = await gatherSettings(given, conninfo, environment);
  const user = resolveUser(settings, environment);
  const database = textOf(settings, "dbname") ?? user;
  const sslmode = resolveSslMode(settings);
  const resolved: ResolvedSettings = {
    hosts: resolveHosts(settings),
    user,
    database,
    startupParameters: startupParameters(settings, given, environment, { user, database }),
    sslmode,
    tls: resolveTls(settings, sslmode),
    keepalive: resolveKeepalive(settings, given),
    requireAuth: authMethodsOf(settings),
    channelBinding: choiceOf(settings, "channel_binding", ["disable", "prefer", "require"]) ?? "prefer",
    allowCleartextPassword: booleanOption(given, "allowCleartextPassword", false),
    scramMaxIterations: limitOf(given, "scramMaxIterations", { least: 1, fallback: MAX_ITERATIONS }),
    targetSessionAttrs: choiceOf(settings, "target_session_attrs", SESSION_ATTRS) ?? "any",
    loadBalanceHosts: choiceOf(settings, "load_balance_hosts", ["disable", "random"]) ?? "disable",
    connectTimeout: connectTimeout(settings, given),
    queryTimeout: limitOf(given, "queryTimeout", { least: 0, fallback: 0 }),
    ...protocolVersions(settings),
    pipeline: pipelineLimits(given),
    statementCache: limitOf(given, "statementCache", { least: 0, fallback: DEFAULT_STATEMENT_CACHE }),
    maxMessageBytes: limitOf(given, "maxMessageBytes", { least: 1024, fallback: DEFAULT_MAX_MESSAGE_BYTES }),
    int8: oneOf(given, "int8", ["bigint", "number", "string"], "bigint"),
    temporal: booleanOption(given, "temporal", false),
    types: given.types ?? {},
    transport: given.transport,
    onNotice: given.onNotice ?? ignore,
    onParameterStatus: given.onParameterStatus ?? ignore,
  };
  return new ResolvedOptions(resolved, {
    password: typeof given.password === "function" ? given.password : textOf(settings, "password"),
    sslpassword: textOf(settings, "sslpassword"),
    passfile: textOf(settings, "passfile"),
    oauthToken: oauthTokenOption(given),
    oauth: {
      issuer: textOf(settings, "oauth_issuer"),
      clientId: textOf(settings, "oauth_client_id"),
      clientSecret: textOf(settings, "oauth_client_secret"),
      scope: textOf(settings, "oauth_scope"),
    },
    environment,
  });
}

function ignore(): void {}

function resolveUser(settings: Settings, environment: Environment): string {
  const user = textOf(settings, "user") ?? environment.userName();
  if (user === undefined) {
    throw new ConfigurationError(
      "Cannot choose a user: none is given, and the name of the operating system's user is not available",
    );
  }
  return user;
}

function resolveSslMode(settings: Settings): SslMode {
  const system = textOf(settings, "sslrootcert") === "system";
  const sslmode = choiceOf(settings, "sslmode", SSL_MODES) ?? (system ? "verify-full" : "prefer");
  if (system && sslmode !== "verify-full") {
    throw new ConfigurationError(`Cannot use sslmode=${sslmode} with sslrootcert=system: wanted verify-full`);
  }
  return sslmode;
}

function resolveTls(settings: Settings, sslmode: SslMode): ResolvedTls {
  const negotiation = choiceOf(settings, "sslnegotiation", ["postgres", "direct"]) ?? "postgres";
  if (negotiation === "direct" && SSL_MODES.indexOf(sslmode) < SSL_MODES.indexOf("require")) {
    throw new ConfigurationError(
      `Cannot use sslmode=${sslmode} with sslnegotiation=direct: wanted require, verify-ca or verify-full`,
    );
  }
  const minVersion = choiceOf(settings, "ssl_min_protocol_version", TLS_VERSIONS, true) ?? "TLSv1.2";
  const maxVersion = choiceOf(settings, "ssl_max_protocol_version", TLS_VERSIONS, true);
  if (maxVersion !== undefined && TLS_VERSIONS.indexOf(minVersion) > TLS_VERSIONS.indexOf(maxVersion)) {
    throw new ConfigurationError(
      `Cannot use TLS versions from ${minVersion} to ${maxVersion}: the range is empty`,
    );
  }
  return {
    negotiation,
    rootCertificate: textOf(settings, "sslrootcert"),
    revocationList: textOf(settings, "sslcrl"),
    certificate: textOf(settings, "sslcert"),
    key: textOf(settings, "sslkey"),
    certificateMode: choiceOf(settings, "sslcertmode", ["disable", "allow"]) ?? "allow",
    serverName: flagOf(settings, "sslsni") ?? true,
    minVersion,
    maxVersion,
  };
}

function resolveKeepalive(settings: Settings, given: ConnectOptions): ResolvedKeepalive {
  // libpq's words are in seconds, and anything below 1 is the system's default.
  const seconds = (keyword: string) => Math.max(0, integerOf(settings, keyword) ?? 0) * 1000;
  return {
    enabled: flagOf(settings, "keepalives") ?? true,
    idle: limitOf(given, "keepalivesIdle", { least: 0, fallback: seconds("keepalives_idle") }),
    interval: limitOf(given, "keepalivesInterval", { least: 0, fallback: seconds("keepalives_interval") }),
    count: Math.max(0, integerOf(settings, "keepalives_count") ?? 0),
    userTimeout: Math.max(0, integerOf(settings, "tcp_user_timeout") ?? 0),
  };
}

function connectTimeout(settings: Settings, given: ConnectOptions): number {
  const seconds = integerOf(settings, "connect_timeout");
  const fallback = seconds === undefined ? DEFAULT_CONNECT_TIMEOUT : Math.max(0, seconds) * 1000;
  return limitOf(given, "connectTimeout", { least: 0, fallback });
}

function protocolVersions(settings: Settings): { minProtocolVersion: number; maxProtocolVersion: number } {
  const versionOf = (keyword: string) => {
    const version = choiceOf(settings, keyword, ["3.0", "3.2", "latest"]);
    return version === undefined ? undefined : version === "3.0" ? 0x0003_0000 : 0x0003_0002;
  };
  const minProtocolVersion = versionOf("min_protocol_version") ?? 0x0003_0000;
  // A minimum alone raises what is asked for.
  const maxProtocolVersion = versionOf("max_protocol_version") ?? minProtocolVersion;
  if (minProtocolVersion > maxProtocolVersion) {
    throw new ConfigurationError("Cannot use min_protocol_version: it is newer than max_protocol_version");
  }
  return { minProtocolVersion, maxProtocolVersion };
}

function pipelineLimits(given: ConnectOptions): ResolvedSettings["pipeline"] {
  const pipeline: unknown = given.pipeline ?? true;
  if (pipeline === false) return false;
  if (pipeline !== true && (typeof pipeline !== "object" || pipeline === null)) {
    throw new ConfigurationError(
      `Cannot use option "pipeline": wanted false or limits, received ${typeof pipeline}`,
    );
  }
  const limits = pipeline === true ? {} : pipeline;
  return {
    maxQueries: limitOf(limits, "maxQueries", { least: 1, fallback: DEFAULT_MAX_QUERIES }),
    maxBytes: limitOf(limits, "maxBytes", { least: 1, fallback: DEFAULT_MAX_BYTES }),
  };
}

function oauthTokenOption({ oauthToken }: ConnectOptions): ConnectOptions["oauthToken"] {
  if (oauthToken === undefined || typeof oauthToken === "string" || typeof oauthToken === "function") {
    return oauthToken || undefined;
  }
  throw new ConfigurationError(
    `Cannot use option "oauthToken": wanted a string or a function, received ${typeof oauthToken}`,
  );
}

function booleanOption(given: ConnectOptions, name: keyof ConnectOptions, fallback: boolean): boolean {
  const value: unknown = given[name] ?? fallback;
  if (typeof value === "boolean") return value;
  throw new ConfigurationError(`Cannot use option "${name}": wanted true or false, received ${typeof value}`);
}

function oneOf<T extends string>(
  given: ConnectOptions,
  name: keyof ConnectOptions,
  choices: readonly T[],
  fallback: T,
): T {
  const value: unknown = given[name] ?? fallback;
  const found = choices.find((choice) => choice === value);
  if (found !== undefined) return found;
  throw new ConfigurationError(
    `Cannot use option "${name}": wanted ${choices.map((choice) => `"${choice}"`).join(", ")}`,
  );
}

/** Names of StartupMessage parameters that are not run-time settings, and the options that set them. */
const RESERVED_PARAMETERS: Readonly<Record<string, string>> = {
  user: "option user",
  database: "option database",
  options: "option options",
  replication: "option replication",
  client_encoding: "nothing else than UTF8",
};

/** libpq's variables for run-time settings (PostgreSQL manual, 32.15). */
const SETTING_VARIABLES: Readonly<Record<string, string>> = {
  // PGDATESTYLE is not read: what a value decodes to must not depend on the process's environment.
  PGTZ: "timezone",
  PGGEQO: "geqo",
};

function startupParameters(
  settings: Settings,
  given: ConnectOptions,
  environment: Environment,
  names: { readonly user: string; readonly database: string },
): Record<string, string> {
  const parameters: Record<string, string> = Object.assign(Object.create(null), names);
  const add = (name: string, value: string | undefined) => {
    if (value !== undefined && value !== "") parameters[name] = value;
  };
  add("replication", textOf(settings, "replication"));
  add("options", textOf(settings, "options"));
  add(
    "application_name",
    textOf(settings, "application_name") ?? textOf(settings, "fallback_application_name"),
  );
  add("client_encoding", "UTF8");
  // The server ends what takes too long; the client only watches that the server still does.
  const queryTimeout = limitOf(given, "queryTimeout", { least: 0, fallback: 0 });
  if (queryTimeout > 0) add("statement_timeout", String(Math.ceil(queryTimeout)));
  for (const [variable, name] of Object.entries(SETTING_VARIABLES)) {
    const value = environment.variable(variable);
    if (value?.toLowerCase() !== "default") add(name, value);
  }
  for (const [name, value] of Object.entries(given.parameters ?? {})) {
    if (value === undefined) continue;
    const lower = name.toLowerCase();
    if (Object.hasOwn(RESERVED_PARAMETERS, lower)) {
      throw new ConfigurationError(`Cannot use parameter "${name}": wanted ${RESERVED_PARAMETERS[lower]}`);
    }
    if (name === "" || lower.startsWith("_pq_.")) {
      throw new ConfigurationError(`Cannot use parameter "${name}": it is no run-time setting`);
    }
    // Setting names do not depend on case: the user's word replaces what was collected under another spelling.
    for (const known of Object.keys(parameters)) if (known.toLowerCase() === lower) delete parameters[known];
    parameters[name] = String(value);
  }
  for (const [name, value] of Object.entries(parameters)) {
    if ((name + value).includes("\0")) {
      throw new ConfigurationError(
        `Cannot use parameter "${name.replaceAll("\0", "?")}": it holds a NUL character`,
      );
    }
  }
  return parameters;
}

function defaultPasswordFile(environment: Environment): string | undefined {
  if (environment.windows) {
    const directory = environment.variable("APPDATA");
    return directory && `${directory}\\postgresql\\pgpass.conf`;
  }
  const home = environment.homeDirectory();
  return home && `${home}/.pgpass`;
}
