/** Notifications as users receive them: an async iterator, or a callback. */

import { PipegresError, ValueError } from "../errors.ts";
import type { Listener, NotificationEvent, NotificationHub } from "../pool/notification_hub.ts";

export type { NotificationEvent };

/** PostgreSQL's identifiers have at most 63 bytes; LISTEN would cut a longer name off. */
const MAX_CHANNEL_BYTES = 63;

/**
 * Checks a channel's name.
 *
 * @throws {ValueError} when it is empty, too long, or holds NUL or a lone surrogate
 */
export function checkChannel(channel: string): void {
  if (channel === "") throw new ValueError("Cannot use the channel: its name is empty");
  if (channel.includes("\0")) throw new ValueError("Cannot use the channel: its name holds a NUL character");
  // UTF-8 has none: the server would be told of another channel.
  if (/\p{Surrogate}/u.test(channel)) {
    throw new ValueError("Cannot use the channel: its name holds a lone surrogate");
  }
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
  readonly #listening: Listening;
  #events: NotificationEvent[] = [];
  #waiting: (() => void)[] = [];
  #ended: { readonly error?: unknown } | undefined = undefined;

  /** Use `listen()` of a connection or a pool. */
  constructor(hub: NotificationHub, channel: string, signal: AbortSignal | undefined) {
    this.#listening = new Listening(hub, channel, signal, {
      onEvent: (event) => {
        this.#events.push(event);
        this.#waiting.shift()?.();
      },
      onEnd: (error) => {
        this.#ended ??= error === undefined ? {} : { error };
        const waiting = this.#waiting;
        this.#waiting = [];
        for (const wake of waiting) wake();
      },
    });
  }

  /**
   * Resolves when the server has begun to listen: what is notified from then on arrives. Rejects when it does not, or
   * listening ends before.
   */
  get listening(): Promise<void> {
    return this.#listening.started;
  }

  /** The next event. */
  async next(): Promise<IteratorResult<NotificationEvent, undefined>> {
    for (;;) {
      const event = this.#events.shift();
      if (event !== undefined) return { done: false, value: event };
      const ended = this.#ended;
      if (ended !== undefined) {
        this.#ended = {};
        if ("error" in ended) throw ended.error;
        return { done: true, value: undefined };
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Listens no more. */
  return(): Promise<IteratorResult<NotificationEvent, undefined>> {
    this.#listening.end(undefined);
    this.#events = [];
    this.#ended = {};
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
}

/** One who listens to a channel, from the call of `listen` to the end, whatever that is. */
class Listening {
  readonly #hub: NotificationHub;
  readonly #channel: string;
  readonly #signal: AbortSignal | undefined;
  readonly #target: Listener;
  readonly #onAbort: () => void = () => this.end({ error: this.#signal!.reason });
  readonly #listener: Listener = {
    onEvent: (event) => this.#target.onEvent(event),
    onEnd: (error) => this.end(error === undefined ? undefined : { error }),
  };
  #over: boolean = false;
  #refuse: (error: unknown) => void = () => {};
  /** Resolves when the server listens. */
  readonly started: Promise<void>;

  constructor(hub: NotificationHub, channel: string, signal: AbortSignal | undefined, target: Listener) {
    checkChannel(channel);
    this.#hub = hub;
    this.#channel = channel;
    this.#signal = signal;
    this.#target = target;
    this.started = new Promise((resolve, reject) => {
      this.#refuse = reject;
      if (signal?.aborted) return this.#onAbort();
      signal?.addEventListener("abort", this.#onAbort, { once: true });
      hub.listen(channel, this.#listener).then(resolve, (error) => this.end({ error }));
    });
    // The iterator tells of it too; nobody has to look here.
    this.started.catch(() => {});
  }

  /** Listens no more. Idempotent. */
  end(reason: { readonly error: unknown } | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#hub.unlisten(this.#channel, this.#listener);
    this.#refuse(reason === undefined ? new PipegresError("Listening was ended") : reason.error);
    this.#target.onEnd(reason?.error);
  }
}

/** Listening by a callback. */
export interface Subscription extends AsyncDisposable {
  /** Listens no more. */
  close(): Promise<void>;
  /**
   * Resolves when nothing more will come: with `undefined` after `close`, or with what ended it (the signal's reason; on
   * a connection, its loss).
   */
  readonly ended: Promise<unknown>;
}

/** Calls back for each event until it is closed or aborted. What the callback throws is ignored: it must not throw. */
async function subscribe(
  hub: NotificationHub,
  channel: string,
  callback: (event: NotificationEvent) => void,
  signal: AbortSignal | undefined,
): Promise<Subscription> {
  let tellEnd: (error: unknown) => void = () => {};
  const ended = new Promise<unknown>((resolve) => tellEnd = resolve);
  const listening = new Listening(hub, channel, signal, {
    onEvent(event): void {
      try {
        callback(event);
      } catch {
        // The other listeners of the connection are not to suffer from it.
      }
    },
    onEnd: (error) => tellEnd(error),
  });
  await listening.started;
  const close = () => {
    listening.end(undefined);
    return Promise.resolve();
  };
  return { close, ended, [Symbol.asyncDispose]: close };
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
  return callback === undefined
    ? new NotificationStream(hub, channel, options?.signal)
    : subscribe(hub, channel, callback, options?.signal);
}
