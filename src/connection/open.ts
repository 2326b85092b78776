/** From options to an established session: transport, hosts in order, a time limit on each. */

import { ConnectionError, PostgresError, TimeoutError } from "../errors.ts";
import { selectTransport } from "../transport/select.ts";
import type { TransportFactory } from "../transport/transport.ts";
import { useUtf8Slice } from "../wire/utf8.ts";
import {
  type ConnectOptions,
  type ResolvedHost,
  type ResolvedOptions,
  resolveOptions,
  type TargetSessionAttrs,
} from "./options.ts";
import { ServerConnection } from "./server_connection.ts";
import { sessionMismatch } from "./session_attributes.ts";
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
  const resolved = await resolveOptions(target, options);
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
  if (factory.utf8Slice !== undefined) useUtf8Slice(factory.utf8Slice);
  return factory;
}

/** An attempt that failed. */
interface Failure {
  readonly host: ResolvedHost;
  readonly error: unknown;
}

/**
 * Tries the hosts in order, or in random order for `load_balance_hosts=random`. As in libpq a server that answers and
 * refuses ends the search, unless it is not ready to take connections (class 57P) or full (53300).
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
      try {
        return await openWithin(factory, options, host, attributes, signal);
      } catch (error) {
        if (signal?.aborted) throw error;
        failures.push({ host, error });
        if (error instanceof PostgresError && !isPassing(error)) throw everyHostFailed(failures);
      }
    }
  }
  throw everyHostFailed(failures);
}

/** Whether another host, or the same one later, may do. */
function isPassing(error: PostgresError): boolean {
  return error.code.startsWith("57P") || error.code === "53300";
}

function everyHostFailed(failures: readonly Failure[]): unknown {
  const last = failures[failures.length - 1]!.error;
  if (failures.length === 1 && (last instanceof PostgresError || last instanceof TimeoutError)) return last;
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

async function openWithin(
  factory: TransportFactory,
  options: ResolvedOptions,
  host: ResolvedHost,
  attributes: TargetSessionAttrs,
  signal: AbortSignal | undefined,
): Promise<ServerConnection> {
  const controller = new AbortController();
  const { connectTimeout } = options;
  const forward = () => controller.abort(signal!.reason);
  signal?.addEventListener("abort", forward, { once: true });
  if (signal?.aborted) forward();
  const timer = connectTimeout > 0
    ? setTimeout(() => {
      controller.abort(
        new TimeoutError(
          `Cannot connect to ${describeHost(host)} within ${connectTimeout} ms (connectTimeout)`,
        ),
      );
    }, connectTimeout)
    : undefined;
  try {
    const connection = await ServerConnection.open(factory, options, host, controller.signal);
    if (attributes === "any") return connection;
    return await checkAttributes(connection, attributes, controller.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", forward);
  }
}

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
      code: "SESSION_ATTRIBUTES",
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
  return host.host.includes(":") ? `[${host.host}]:${host.port}` : `${host.host}:${host.port}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown }).code;
  return typeof code === "string" ? code : "CONNECTION_FAILED";
}
