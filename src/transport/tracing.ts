/** The runtime's diagnostics channels, as far as tracing needs them. All three runtimes have `node:diagnostics_channel`. */

/** One channel. */
export interface Channel {
  /** Whether anybody listens. */
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

/** The five channels of one traced operation. */
export interface TracingChannel {
  readonly start: Channel;
  readonly end: Channel;
  readonly asyncStart: Channel;
  readonly asyncEnd: Channel;
  readonly error: Channel;
}

/** Makes tracing channels by name; `undefined` where the runtime has none. */
export async function loadTracingChannels(): Promise<((name: string) => TracingChannel) | undefined> {
  try {
    const { tracingChannel } = await import("node:diagnostics_channel");
    return tracingChannel as unknown as (name: string) => TracingChannel;
  } catch {
    return undefined;
  }
}
