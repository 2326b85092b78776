/** From options to an established session: transport, hosts in order, a time limit on each. */

import {
  ConfigurationError,
  ConnectionError,
  PostgresError,
  ProtocolError,
  TimeoutError,
} from "../errors.ts";
import { selectTransport } from "../transport/select.ts";
import type { TransportFactory } from "../transport/transport.ts";
import { useUnfilled } from "../wire/own_buffer.ts";
import { useUtf8Slice } from "../wire/utf8.ts";
import { openLink, type Route, TlsFailure } from "./open_link.ts";
import { recallOptions } from "./option_memo.ts";
import type { ConnectOptions, ResolvedHost, ResolvedOptions, TargetSessionAttrs } from "./options.ts";
import { ServerConnection } from "./server_connection.ts";
import { sessionMismatch } from "./session_attributes.ts";
import { startTimer } from "./timer.ts";
import { channels, type ConnectTrace, loadTracing, traceWork } from "./tracing.ts";

/** Options with everything filled in, and the transport they lead to. */
export interface Target {
  readonly options: ResolvedOptions;
  readonly factory: TransportFactory;
}

/** Resolves options and loads the transport; nothing is connected. */
export async function resolveTarget(
  target: string | URL | ConnectOptions | undefined,
  options: ConnectOptions | undefined,
): Promise<Target> {
  const resolved = await recallOptions(target, options);
  const factory = await loadTransport(resolved);
  await loadTracing();
  return { options: resolved, factory };
}

/** Opens a session with the first host that can be reached. */
export function openTarget(
  { options, factory }: Target,
  signal: AbortSignal | undefined,
): Promise<ServerConnection> {
  const createTrace = (): ConnectTrace => ({
    hosts: options.hosts.map(describeHost),
    user: options.user,
    database: options.database,
    startedAt: performance.now(),
    endedAt: undefined,
    error: undefined,
  });
  return traceWork(channels.connect, createTrace, () => openFirst(factory, options, signal));
}

async function loadTransport(options: ResolvedOptions): Promise<TransportFactory> {
  const factory = options.transport ?? await selectTransport();
  if (factory.utf8Slice !== undefined) useUtf8Slice(factory.utf8Slice, factory.utf8LoopLimit);
  if (factory.unfilled !== undefined) useUnfilled(factory.unfilled);
  return factory;
}

/** An attempt that failed. */
interface Failure {
  readonly host: ResolvedHost;
  readonly error: unknown;
}

/** One attempt to reach a session: everything but the host. */
interface Search {
  readonly factory: TransportFactory;
  readonly options: ResolvedOptions;
  readonly attributes: TargetSessionAttrs;
  readonly signal: AbortSignal | undefined;
  readonly failures: Failure[];
}

/**
 * Tries the hosts in order, or in random order for `load_balance_hosts=random`. As in libpq a server that answers and
 * refuses ends the search. Not so one that is not ready (class 57P) or full (53300), breaks off, or has not the TLS that
 * is demanded: libpq goes on for 57P03 alone, but another host of the list may do.
 */
async function openFirst(
  factory: TransportFactory,
  options: ResolvedOptions,
  signal: AbortSignal | undefined,
): Promise<ServerConnection> {
  const hosts = options.loadBalanceHosts === "random" ? shuffle(options.hosts) : options.hosts;
  const failures: Failure[] = [];
  const { targetSessionAttrs } = options;
  // prefer-standby takes any server once no standby was found.
  const passes = targetSessionAttrs === "prefer-standby"
    ? [targetSessionAttrs, "any" as const]
    : [targetSessionAttrs];
  for (const attributes of passes) {
    for (const host of hosts) {
      const connection = await openHost({ factory, options, attributes, signal, failures }, host);
      if (connection !== undefined) return connection;
    }
  }
  throw everyHostFailed(failures);
}

/** Tries all addresses of a host, each within the time limit. */
async function openHost(search: Search, host: ResolvedHost): Promise<ServerConnection | undefined> {
  const { factory, options, failures, signal } = search;
  let addresses: readonly ResolvedHost[] | undefined;
  for (let i = 0; addresses === undefined ? i === 0 : i < addresses.length; i++) {
    try {
      return await within(addresses?.[i] ?? host, options.connectTimeout, signal, async (limit) => {
        addresses ??= await addressesOf(factory, options, host, limit);
        return await openAddress(search, addresses[i]!, limit);
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      failures.push({ host: addresses?.[i] ?? host, error });
      if (isFinal(error)) throw everyHostFailed(failures);
      // The server that has answered is there on its other addresses, too.
      if (error instanceof PostgresError || codeOf(error) === SESSION_ATTRIBUTES) return undefined;
    }
  }
  return undefined;
}

/** Whether no other host is to be tried. */
function isFinal(error: unknown): boolean {
  if (error instanceof PostgresError) return !isPassing(error);
  return error instanceof ConfigurationError || codeOf(error) === "AUTHENTICATION_FAILED";
}

async function addressesOf(
  factory: TransportFactory,
  options: ResolvedOptions,
  host: ResolvedHost,
  limit: AbortSignal,
): Promise<readonly ResolvedHost[]> {
  if (host.path !== undefined || factory.lookup === undefined) return [host];
  const looked = factory.lookup(host.host, host.port);
  const found = looked instanceof Promise ? await abortable(looked, limit) : looked;
  const addresses = options.loadBalanceHosts === "random" ? shuffle(found) : found;
  return addresses.map((address) => ({ ...host, host: address }));
}

async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Runs `work` with a signal that aborts with the caller's, or when the time is over. */
async function within<T>(
  host: ResolvedHost,
  milliseconds: number,
  signal: AbortSignal | undefined,
  work: (limit: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const forward = () => controller.abort(signal!.reason);
  signal?.addEventListener("abort", forward, { once: true });
  if (signal?.aborted) forward();
  const timer = milliseconds > 0
    ? startTimer(() => {
      controller.abort(
        new TimeoutError(
          `Cannot connect to ${describeHost(host)} within ${milliseconds} ms (connectTimeout)`,
        ),
      );
    }, milliseconds)
    : undefined;
  try {
    controller.signal.throwIfAborted();
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", forward);
  }
}

/** The ways to an address that `sslmode` allows, the first one first. */
function routesTo({ factory, options }: Search, host: ResolvedHost): readonly Route[] {
  const ways = (...tls: Route["tls"][]) => tls.map((each) => ({ factory, options, host, tls: each }));
  // TLS is never spoken on a Unix-domain socket.
  if (host.path !== undefined) return ways("none");
  switch (options.sslmode) {
    case "disable":
      return ways("none");
    case "allow":
      return ways("none", "demand");
    case "prefer":
      return ways("offer", "none");
    default:
      return ways("demand");
  }
}

/**
 * Opens a session, for `allow` and `prefer` the other way when the first fails: where TLS could not be established, or
 * the server refused the session. Never where TLS was not tried, was not offered, or the user's options forbade something.
 */
async function openAddress(
  search: Search,
  host: ResolvedHost,
  limit: AbortSignal,
): Promise<ServerConnection> {
  let first: unknown;
  for (const route of routesTo(search, host)) {
    let encrypted = route.tls === "offer";
    try {
      const link = await openLink(route, limit);
      encrypted = link.tls !== undefined;
      const connection = await ServerConnection.open(link, limit);
      return search.attributes === "any"
        ? connection
        : await checkAttributes(connection, search.attributes, limit);
    } catch (error) {
      if (limit.aborted) throw error;
      if (first !== undefined) throw bothFailed(first, error);
      const refused = error instanceof TlsFailure || error instanceof PostgresError && !isPassing(error);
      const other = search.options.sslmode === "prefer" ? encrypted : search.options.sslmode === "allow";
      if (!refused || !other || host.path !== undefined) throw error;
      first = error;
    }
  }
  throw first;
}

/**
 * One error of two. Of two refusals the one that says more: a server that lets nobody in this way (28000) has looked
 * less closely than one that says something else.
 */
function bothFailed(first: unknown, second: unknown): unknown {
  const [plain, encrypted] = second instanceof TlsFailure ? [first, second] : [second, first];
  if (encrypted instanceof TlsFailure && plain instanceof PostgresError && plain.code === "28000") {
    return new ConnectionError(`${encrypted.message}; without TLS: ${plain.message}`, {
      code: encrypted.code,
      cause: new AggregateError([encrypted, plain], "With and without TLS"),
    });
  }
  if (!(second instanceof PostgresError)) return first instanceof PostgresError ? first : second;
  const swapped = first instanceof PostgresError && (first.code !== "28000" || second.code === "28000");
  const [told, other] = swapped ? [first, second] : [second, first];
  return Object.defineProperty(told as Error, "cause", {
    value: other,
    enumerable: false,
    configurable: true,
  });
}

/** Whether another host, or the same one later, may do. */
function isPassing(error: PostgresError): boolean {
  return error.code.startsWith("57P") || error.code === "53300";
}

/** Whether an error needs no place in front of it. */
function tellsItself(error: unknown): boolean {
  return error instanceof PostgresError || error instanceof TimeoutError ||
    error instanceof ProtocolError || error instanceof ConfigurationError;
}

function everyHostFailed(failures: readonly Failure[]): unknown {
  const last = failures[failures.length - 1]!.error;
  if (failures.length === 1 && tellsItself(last)) return last;
  const tried = failures.map(({ host, error }) => `${describeHost(host)}: ${messageOf(error)}`);
  return new ConnectionError(`Cannot connect to ${tried.join("; ")}`, {
    code: codeOf(last),
    cause: failures.length === 1
      ? last
      : new AggregateError(failures.map(({ error }) => error), "Every host failed"),
  });
}

function shuffle<T>(items: readonly T[]): T[] {
  const shuffled = [...items];
  for (let i = shuffled.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [shuffled[i], shuffled[j]] = [shuffled[j]!, shuffled[i]!];
  }
  return shuffled;
}

const SESSION_ATTRIBUTES = "SESSION_ATTRIBUTES";

/** Closes what is not looked for. */
async function checkAttributes(
  connection: ServerConnection,
  attributes: TargetSessionAttrs,
  signal: AbortSignal,
): Promise<ServerConnection> {
  const give = () =>
    connection.destroy(() => new ConnectionError("Connection given up", { code: "CONNECTION_CLOSED" }));
  signal.addEventListener("abort", give, { once: true });
  try {
    const mismatch = await sessionMismatch(connection, attributes);
    signal.throwIfAborted();
    if (mismatch === undefined) return connection;
    throw new ConnectionError(`${mismatch}, wanted target_session_attrs=${attributes}`, {
      code: SESSION_ATTRIBUTES,
    });
  } catch (error) {
    connection.close(0);
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener("abort", give);
  }
}

function describeHost(host: ResolvedHost): string {
  if (host.path !== undefined) return host.path;
  const place = host.name.includes(":") ? `[${host.name}]:${host.port}` : `${host.name}:${host.port}`;
  return host.name === host.host ? place : `${place} (${host.host})`;
}

/** What an attempt failed with; the transport names the place, which is said already. */
function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof TimeoutError) {
    return message.replace(/^Cannot connect to .*? within/, "not connected within");
  }
  return error instanceof ConnectionError ? message.replace(/^Cannot connect to .*?: /, "") : message;
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown }).code;
  return typeof code === "string" ? code : "CONNECTION_FAILED";
}
