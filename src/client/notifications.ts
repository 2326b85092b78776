/** Notifications as users receive them: an async iterator, or a callback. */

import { ValueError } from "../errors.ts";
import type { Listener, NotificationEvent, NotificationHub } from "../pool/notification_hub.ts";

export type { NotificationEvent };

/** PostgreSQL's identifiers have at most 63 bytes; LISTEN would cut a longer name off. */
const MAX_CHANNEL_BYTES = 63;

/**
 * Checks a channel's name.
 *
 * @throws {ValueError} when it is empty, too long, or holds NUL
 */
export function checkChannel(channel: string): void {
  if (channel === "") throw new ValueError("Cannot use the channel: its name is empty");
  if (channel.includes("\0")) throw new ValueError("Cannot use the channel: its name holds a NUL character");
  const length = new TextEncoder().encode(channel).length;
  if (length > MAX_CHANNEL_BYTES) {
    throw new ValueError(
      `Cannot use the channel: its name has ${length} bytes, the limit is ${MAX_CHANNEL_BYTES}`,
    );
  }
}

/** Listening to one channel; ends with `return`, at the end of a loop, by its signal, or by disposal. */
export class NotificationStream
  implements AsyncIterableIterator<NotificationEvent, undefined, undefined>, AsyncDisposable {
  readonly #hub: NotificationHub;
  readonly #channel: string;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort: () => void = () => this.#end({ error: this.#signal!.reason });
  readonly #listener: Listener = {
    onEvent: (event) => {
      this.#events.push(event);
      this.#waiting.shift()?.();
    },
    onEnd: (error) => this.#end(error === undefined ? {} : { error }),
  };
  #events: NotificationEvent[] = [];
  #waiting: (() => void)[] = [];
  #ended: { readonly error?: unknown } | undefined = undefined;
  /** Resolves when the server listens. */
  readonly #listening: Promise<void>;

  /** Use `listen()` of a connection or a pool. */
  constructor(hub: NotificationHub, channel: string, signal: AbortSignal | undefined) {
    checkChannel(channel);
    this.#hub = hub;
    this.#channel = channel;
    this.#signal = signal;
    if (signal?.aborted) {
      this.#ended = { error: signal.reason };
      this.#listening = Promise.resolve();
      return;
    }
    signal?.addEventListener("abort", this.#onAbort, { once: true });
    this.#listening = hub.listen(channel, this.#listener);
    this.#listening.catch((error) => this.#end({ error }));
  }

  /** Resolves when the server has begun to listen: what is notified from then on arrives. */
  get listening(): Promise<void> {
    return this.#listening;
  }

  /** The next event. */
  async next(): Promise<IteratorResult<NotificationEvent, undefined>> {
    for (;;) {
      const event = this.#events.shift();
      if (event !== undefined) return { done: false, value: event };
      const ended = this.#ended;
      if (ended !== undefined) {
        this.#ended = {};
        if ("error" in ended && ended.error !== undefined) throw ended.error;
        return { done: true, value: undefined };
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Listens no more. */
  return(): Promise<IteratorResult<NotificationEvent, undefined>> {
    this.#events = [];
    this.#end({});
    return Promise.resolve({ done: true, value: undefined });
  }

  /** The stream itself. */
  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Same as {@linkcode return}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  #end(ended: { readonly error?: unknown }): void {
    if (this.#ended !== undefined) return;
    this.#ended = ended;
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#hub.unlisten(this.#channel, this.#listener);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}

/** Listening by a callback. */
export interface Subscription extends AsyncDisposable {
  /** Listens no more. */
  close(): Promise<void>;
}

/** Calls back for each event until it is closed or aborted. */
export async function subscribe(
  stream: NotificationStream,
  callback: (event: NotificationEvent) => void,
): Promise<Subscription> {
  await stream.listening;
  const pump = async () => {
    for await (const event of stream) callback(event);
  };
  // An end by abort or by a lost connection is no unhandled rejection; the iterator tells of it.
  pump().catch(() => {});
  const close = async () => {
    await stream.return();
  };
  return { close, [Symbol.asyncDispose]: close };
}

/** Milliseconds between two probes of a connection that listens. */
export const PROBE_INTERVAL = 30_000;

/** The two forms of `listen`: with options it gives a stream, with a callback a subscription. */
export function listenOn(
  hub: NotificationHub,
  channel: string,
  args: readonly unknown[],
): NotificationStream | Promise<Subscription> {
  const callback = typeof args[0] === "function" ? args[0] as (event: NotificationEvent) => void : undefined;
  const options = (callback === undefined ? args[0] : args[1]) as { signal?: AbortSignal } | undefined;
  const stream = new NotificationStream(hub, channel, options?.signal);
  return callback === undefined ? stream : subscribe(stream, callback);
}
