/** From options to an established session: transport, hosts in order, a time limit on each. */

import { ConnectionError, PostgresError, TimeoutError } from "../errors.ts";
import { selectTransport } from "../transport/select.ts";
import type { TransportFactory } from "../transport/transport.ts";
import { useUtf8Slice } from "../wire/utf8.ts";
import { type ConnectOptions, type ResolvedHost, type ResolvedOptions, resolveOptions } from "./options.ts";
import { ServerConnection } from "./server_connection.ts";
import { channels, type ConnectTrace, loadTracing, traceWork } from "./tracing.ts";

/** An established session with what it was made from. */
export interface Opened {
  readonly connection: ServerConnection;
  readonly resolved: ResolvedOptions;
  /** Whether stacks must be kept where queries are written. */
  readonly keepsStacks: boolean;
}

/** Resolves the options and opens a session with the first host that can be reached. */
export async function openConnection(
  target: string | URL | ConnectOptions | undefined,
  options: ConnectOptions | undefined,
  signal: AbortSignal | undefined,
): Promise<Opened> {
  signal?.throwIfAborted();
  const resolved = await resolveOptions(target, options);
  const factory = await loadTransport(resolved);
  await loadTracing();
  const createTrace = (): ConnectTrace => ({
    hosts: resolved.hosts.map(describeHost),
    user: resolved.user,
    database: resolved.database,
    startedAt: performance.now(),
    endedAt: undefined,
    error: undefined,
  });
  const connection = await traceWork(
    channels.connect,
    createTrace,
    () => openFirst(factory, resolved, signal),
  );
  return { connection, resolved, keepsStacks: !factory.asyncStacks };
}

async function loadTransport(options: ResolvedOptions): Promise<TransportFactory> {
  const factory = options.transport ?? await selectTransport();
  if (factory.utf8Slice !== undefined) useUtf8Slice(factory.utf8Slice);
  return factory;
}

/**
 * Tries the hosts in order. As in libpq a server that answers and refuses ends the search, unless it is not ready to
 * take connections (class 57P).
 */
async function openFirst(
  factory: TransportFactory,
  options: ResolvedOptions,
  signal: AbortSignal | undefined,
): Promise<ServerConnection> {
  const failures: { host: ResolvedHost; error: unknown }[] = [];
  for (const host of options.hosts) {
    try {
      return await openWithin(factory, options, host, signal);
    } catch (error) {
      if (signal?.aborted) throw error;
      failures.push({ host, error });
      if (error instanceof PostgresError && !error.code.startsWith("57P")) break;
    }
  }
  const last = failures[failures.length - 1]!.error;
  if (failures.length === 1 && (last instanceof PostgresError || last instanceof TimeoutError)) throw last;
  const tried = failures.map(({ host, error }) => `${describeHost(host)}: ${messageOf(error)}`);
  throw new ConnectionError(`Cannot connect to ${tried.join("; ")}`, {
    code: codeOf(last),
    cause: failures.length === 1
      ? last
      : new AggregateError(failures.map(({ error }) => error), "Every host failed"),
  });
}

async function openWithin(
  factory: TransportFactory,
  options: ResolvedOptions,
  host: ResolvedHost,
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
    return await ServerConnection.open(factory, options, host, controller.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", forward);
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
