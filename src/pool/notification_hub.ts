/**
 * One connection that listens for everybody: LISTEN for each channel once, again after each reconnect.
 *
 * What was notified while it was down is lost to PostgreSQL itself; each channel hears of that by one `gap`.
 */

import type { ServerConnection } from "../connection/server_connection.ts";
import { startTimer } from "../connection/timer.ts";
import { NO_PARAMETERS, Request, SIMPLE } from "../engine/request.ts";
import { ConnectionError, PostgresError } from "../errors.ts";
import { unrefTimer } from "../transport/timers.ts";
import { IDLE } from "../wire/message_types.ts";

/** Something happened on a channel. */
export type NotificationEvent =
  | {
    readonly type: "notify";
    readonly channel: string;
    /** Empty when none was given. */
    readonly payload: string;
    /** Process ID of the notifying backend. */
    readonly processId: number;
  }
  /** The connection was lost and is back: what was notified in between did not arrive. */
  | { readonly type: "gap"; readonly channel: string };

/** Who listens to a channel. */
export interface Listener {
  onEvent(event: NotificationEvent): void;
  /** Nothing more will come; `error` unless it was the owner's wish. */
  onEnd(error?: unknown): void;
}

/** How the hub gets and keeps its connection; times in milliseconds. */
export interface HubOptions {
  /** Opens, or gives, the connection. */
  readonly open: (signal: AbortSignal) => Promise<ServerConnection>;
  /** Whether the connection is the hub's own: opened again when it is lost, closed when nobody listens. */
  readonly owned: boolean;
  /** How often a silent connection is asked whether it is still there; 0: never. */
  readonly probeInterval: number;
  /** Writes on a connection that is not the hub's own. Default: as everybody does. */
  readonly submit?: (request: Request) => void;
  /** What those are told who come after {@linkcode NotificationHub.close}. Default: that the connection is closed. */
  readonly closedError?: () => Error;
}

const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 5_000;
const PROBE_TIMEOUT = 10_000;

/** Rows that nobody looks at; also the mark of a hub's own requests. */
const UNREAD = { plan: () => () => undefined, formats: () => [] } as const;

/** A channel that somebody listens to, and whether the server does already. */
interface Channel {
  readonly listeners: Set<Listener>;
  /** Resolves when the server has taken LISTEN; rejects when it does not. */
  listening: Promise<void>;
  /** Whether the server has taken LISTEN once. */
  taken: boolean;
  /** Why it does not, where the connection was opened for several channels. */
  refusal: PostgresError | undefined;
}

/** The channels of a pool, or of a connection. */
export class NotificationHub {
  readonly #options: HubOptions;
  readonly #channels: Map<string, Channel> = new Map();
  readonly #closing: AbortController = new AbortController();
  #connection: ServerConnection | undefined = undefined;
  /** Whether LISTEN may have been undone, or will be by the end of the transaction block it was sent in. */
  #doubtful: boolean = false;
  /** The attempt to connect that is under way, for the first time or again: there is one at most. */
  #opening: Promise<void> | undefined = undefined;
  #probe: ReturnType<typeof setTimeout> | undefined = undefined;
  /** Takes back what was hooked into the connection. */
  #unhook: () => void = ignore;
  /** Wakes the pause between two attempts to connect. */
  #wake: (() => void) | undefined = undefined;

  constructor(options: HubOptions) {
    this.#options = options;
  }

  /**
   * Listens to a channel; resolves when the server has taken it. While a connection that was lost is opened again, that
   * may take long.
   *
   * @param name the channel's name as it is, quoted here
   * @throws what the first attempt to connect, or LISTEN, fails with
   */
  async listen(name: string, listener: Listener): Promise<void> {
    if (this.#closing.signal.aborted) throw this.#closedError();
    let channel = this.#channels.get(name);
    if (channel === undefined) {
      channel = { listeners: new Set(), listening: Promise.resolve(), taken: false, refusal: undefined };
      this.#channels.set(name, channel);
      channel.listening = this.#listen(name, channel);
    }
    channel.listeners.add(listener);
    try {
      await channel.listening;
    } catch (error) {
      this.#drop(name, channel);
      throw error;
    }
  }

  async #listen(name: string, channel: Channel): Promise<void> {
    const connection = this.#connection;
    if (connection !== undefined) {
      try {
        return await this.#take(connection, name, channel);
      } catch (error) {
        // Lost meanwhile: the next connection listens to it.
        if (this.#connection === connection || this.#opening === undefined) throw error;
      }
    }
    await (this.#opening ??= this.#openFirst());
    if (channel.refusal !== undefined) throw channel.refusal;
  }

  async #take(connection: ServerConnection, name: string, channel: Channel): Promise<void> {
    await this.#run(connection, `listen ${quote(name)}`);
    channel.taken = true;
  }

  /** Listens no more. */
  unlisten(name: string, listener: Listener): void {
    const channel = this.#channels.get(name);
    if (channel === undefined || !channel.listeners.delete(listener) || channel.listeners.size > 0) return;
    this.#drop(name, channel);
  }

  #drop(name: string, channel: Channel): void {
    if (this.#channels.get(name) !== channel) return;
    this.#channels.delete(name);
    if (this.#channels.size === 0) return this.#disconnect(name);
    // Should it fail, the connection is lost, and the next one does not listen to it.
    if (this.#connection !== undefined) {
      this.#run(this.#connection, `unlisten ${quote(name)}`).catch(ignore);
    }
  }

  /** Ends all listening. */
  close(): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(this.#closedError());
    this.#wake?.();
    this.#end(undefined);
    this.#disconnect(undefined);
  }

  #disconnect(name: string | undefined): void {
    // Nobody waits for a connection any more.
    this.#wake?.();
    const connection = this.#connection;
    if (connection === undefined) return;
    if (!this.#options.owned && name !== undefined) {
      this.#run(connection, `unlisten ${quote(name)}`).catch(ignore);
      return;
    }
    clearTimeout(this.#probe);
    this.#connection = undefined;
    // A connection that is not the hub's own goes on without it.
    if (this.#options.owned) connection.close(0);
    else this.#unhook();
  }

  async #openFirst(): Promise<void> {
    try {
      await this.#open();
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }

  /** Connects and listens to every channel. */
  async #open(): Promise<void> {
    const connection = await this.#options.open(this.#closing.signal);
    try {
      // Again for those who come meanwhile.
      const done = new Set<Channel>();
      for (let missing = [...this.#channels]; missing.length > 0;) {
        await this.#takeAll(connection, missing);
        for (const [, channel] of missing) done.add(channel);
        missing = [...this.#channels].filter(([, channel]) => !done.has(channel));
      }
    } catch (error) {
      if (this.#options.owned) connection.close(0);
      throw error;
    }
    // Who comes from here on finds the connection, or opens the next one.
    this.#opening = undefined;
    this.#use(connection);
  }

  /** What the server refuses fails alone, unless it took it before: then the attempt to connect is of no use. */
  async #takeAll(connection: ServerConnection, channels: readonly [string, Channel][]): Promise<void> {
    const refused: [string, Channel, PostgresError][] = [];
    await Promise.all(channels.map(async ([name, channel]) => {
      try {
        await this.#take(connection, name, channel);
      } catch (error) {
        if (channel.taken || !(error instanceof PostgresError)) throw error;
        refused.push([name, channel, error]);
      }
    }));
    for (const [name, channel, error] of refused) {
      channel.refusal = error;
      if (this.#channels.get(name) === channel) this.#channels.delete(name);
    }
  }

  #use(connection: ServerConnection): void {
    if (!this.#isWanted) {
      if (this.#options.owned) connection.close(0);
      return;
    }
    this.#connection = connection;
    connection.onNotification = ({ channel, payload, processId }) => {
      this.#tell(channel, { type: "notify", channel, payload, processId });
    };
    const before = connection.onEnded;
    const onEnded = () => {
      before?.();
      this.#onLost(connection);
    };
    connection.onEnded = onEnded;
    connection.onListenUndone = (by) => {
      // The hub's own UNLISTEN is meant to.
      if (by?.planner === UNREAD) return;
      if (by !== undefined) this.#doubtful = true;
      // Behind all that the server has just said.
      queueMicrotask(() => this.#listenAgain(connection));
    };
    this.#unhook = () => {
      connection.onNotification = connection.onListenUndone = undefined;
      if (connection.onEnded === onEnded) connection.onEnded = before;
    };
    if (connection.closed) return this.#onLost(connection);
    this.#scheduleProbe();
    // A block may have ended already.
    this.#listenAgain(connection);
  }

  /** Repeats LISTEN where it may have been undone, behind the block if there is one; it does no harm if it was not. */
  #listenAgain(connection: ServerConnection): void {
    if (!this.#doubtful || this.#connection !== connection || isInBlock(connection)) return;
    this.#doubtful = false;
    for (const [name, channel] of this.#channels) {
      channel.listening = new Promise((resolve, reject) => {
        this.#submit(connection, `listen ${quote(name)}`, ({ failure }) => {
          if (failure === null || this.#doubtful || this.#connection !== connection) return resolve();
          const error = failure();
          reject(error);
          for (const listener of [...channel.listeners]) listener.onEnd(error);
        });
      });
      // Those who listened before are told of it as well.
      channel.listening.catch(ignore);
    }
  }

  #onLost(connection: ServerConnection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    clearTimeout(this.#probe);
    if (!this.#isWanted) return;
    if (this.#options.owned) {
      this.#opening = this.#reopen();
      // Whoever waits for it is told by it as well.
      this.#opening.catch(ignore);
    } else this.#end(new ConnectionError("Connection lost: notifications end", { code: "CONNECTION_LOST" }));
  }

  /** Connects again, however long it takes, as long as somebody listens. */
  async #reopen(): Promise<void> {
    const missed = [...this.#channels].map(([name, { listeners }]) => ({ name, listeners: [...listeners] }));
    for (let pause = FIRST_PAUSE;; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      try {
        await this.#open();
        break;
      } catch {
        // The server is away, or will not have us for the moment.
      }
      if (this.#isWanted) await this.#pause(pause * (0.5 + Math.random() / 2));
      if (this.#isWanted) continue;
      this.#opening = undefined;
      throw this.#closedError();
    }
    // Only those who listened before have missed anything.
    for (const { name, listeners } of missed) {
      for (const listener of listeners) {
        if (this.#channels.get(name)?.listeners.has(listener)) {
          listener.onEvent({ type: "gap", channel: name });
        }
      }
    }
  }

  #closedError(): Error {
    return this.#options.closedError?.() ??
      new ConnectionError("Connection closed", { code: "CONNECTION_CLOSED" });
  }

  get #isWanted(): boolean {
    return !this.#closing.signal.aborted && this.#channels.size > 0;
  }

  #pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** A connection can die without a word: a silent one is asked. */
  #scheduleProbe(): void {
    const { probeInterval } = this.#options;
    if (probeInterval === 0) return;
    this.#probe = startTimer(async () => {
      const connection = this.#connection;
      if (connection === undefined) return;
      await connection.probe(Math.min(PROBE_TIMEOUT, probeInterval));
      if (this.#connection === connection) this.#scheduleProbe();
    }, probeInterval);
    if (this.#probe !== undefined) unrefTimer(this.#probe);
  }

  /** Runs a script on the connection, for its effect. */
  async #run(connection: ServerConnection, text: string): Promise<void> {
    const request = await new Promise<Request>((resolve) => this.#submit(connection, text, resolve));
    if (request.failure !== null) throw request.failure();
  }

  #submit(connection: ServerConnection, text: string, onSettled: (request: Request) => void): void {
    const submit = this.#options.submit ?? ((request) => connection.submit(request));
    submit(
      new Request(SIMPLE, text, NO_PARAMETERS, UNREAD, (request) => {
        if (isInBlock(connection)) this.#doubtful = true;
        onSettled(request);
      }),
    );
  }

  #tell(name: string, event: NotificationEvent): void {
    const channel = this.#channels.get(name);
    if (channel === undefined) return;
    for (const listener of [...channel.listeners]) listener.onEvent(event);
  }

  #end(error: unknown): void {
    const channels = [...this.#channels.values()];
    this.#channels.clear();
    for (const { listeners } of channels) for (const listener of [...listeners]) listener.onEnd(error);
  }
}

function isInBlock({ session }: ServerConnection): boolean {
  return session.transactionStatus !== IDLE;
}

function quote(channel: string): string {
  return `"${channel.replaceAll('"', '""')}"`;
}

function ignore(): void {}
