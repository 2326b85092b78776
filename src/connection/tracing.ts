/**
 * Tracing through the runtime's diagnostics channels `tracing:pipegres:query:start`, `…:asyncEnd` and so on, in the
 * shape of `TracingChannel`: `start` and `end` when the operation is issued, `asyncStart` and `asyncEnd` when it has
 * settled, `error` before those when it failed. One context object goes through all of them.
 *
 * Without subscribers an operation pays one check.
 */

import type { Request } from "../engine/request.ts";
import { loadTracingChannels, type TracingChannel } from "../transport/tracing.ts";

/** What the subscribers of `pipegres:query` get. Times are milliseconds, as `performance.now()` tells them. */
export interface QueryTrace {
  /** SQL text; never a parameter's value. */
  readonly text: string;
  /** The query's name, where `.with({ label })` gave one. */
  readonly label: string | undefined;
  /** When the query was issued. */
  readonly queuedAt: number;
  /** When it was written behind what was before it; `undefined` when it never was. */
  writtenAt: number | undefined;
  /** When its first row came; `undefined` when none did. */
  firstRowAt: number | undefined;
  /** When it settled. */
  endedAt: number | undefined;
  /** What it failed with. */
  error: unknown;
}

/** What the subscribers of `pipegres:connect` get. */
export interface ConnectTrace {
  /** Hosts to be tried, `host:port` or a socket's path. */
  readonly hosts: readonly string[];
  readonly user: string;
  readonly database: string;
  readonly startedAt: number;
  endedAt: number | undefined;
  error: unknown;
}

/** What the subscribers of `pipegres:acquire` get. */
export interface AcquireTrace {
  readonly startedAt: number;
  endedAt: number | undefined;
  error: unknown;
}

/** The channels, once the first connection has been asked for. */
export const channels: { query?: TracingChannel; connect?: TracingChannel; acquire?: TracingChannel } = {};

let loading: Promise<void> | undefined;

/** Makes the channels, once per process. */
export function loadTracing(): Promise<void> {
  return loading ??= loadTracingChannels().then((make) => {
    if (make === undefined) return;
    channels.query = make("pipegres:query");
    channels.connect = make("pipegres:connect");
    channels.acquire = make("pipegres:acquire");
  });
}

/** Whether anybody listens to an operation of this channel. */
export function isTraced(channel: TracingChannel | undefined): channel is TracingChannel {
  // The runtimes differ in whether a whole tracing channel tells of subscribers: its parts do everywhere.
  return channel !== undefined &&
    (channel.start.hasSubscribers || channel.asyncEnd.hasSubscribers || channel.error.hasSubscribers ||
      channel.end.hasSubscribers || channel.asyncStart.hasSubscribers);
}

/** Traces a request that is about to be submitted. */
export function traceRequest(
  channel: TracingChannel,
  request: Request,
  label: string | undefined,
): () => void {
  const trace: QueryTrace = {
    text: request.text,
    label,
    queuedAt: performance.now(),
    writtenAt: undefined,
    firstRowAt: undefined,
    endedAt: undefined,
    error: undefined,
  };
  request.trace = {
    onWritten: () => trace.writtenAt = performance.now(),
    onFirstRow: () => trace.firstRowAt ??= performance.now(),
  };
  channel.start.publish(trace);
  channel.end.publish(trace);
  return () => {
    trace.endedAt = performance.now();
    if (request.failure !== null) trace.error = request.failure();
    endTrace(channel, trace);
  };
}

/** Traces work that has a beginning and an end. */
export async function traceWork<R>(
  channel: TracingChannel | undefined,
  createTrace: () => { endedAt: number | undefined; error: unknown },
  work: () => Promise<R>,
): Promise<R> {
  if (!isTraced(channel)) return await work();
  const trace = createTrace();
  channel.start.publish(trace);
  channel.end.publish(trace);
  try {
    return await work();
  } catch (error) {
    trace.error = error;
    throw error;
  } finally {
    trace.endedAt = performance.now();
    endTrace(channel, trace);
  }
}

function endTrace(channel: TracingChannel, trace: { readonly error: unknown }): void {
  if (trace.error !== undefined) channel.error.publish(trace);
  channel.asyncStart.publish(trace);
  channel.asyncEnd.publish(trace);
}
