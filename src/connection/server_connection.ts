/**
 * Joins one engine to one transport: bytes in, output out once a turn, timers, close.
 *
 * - Requests of one turn share one write: `submit` asks for a flush in a microtask.
 * - Reading never waits for writing: while the socket is congested output stays in the engine, replies go on.
 * - A transport that ends settles everything; nothing here throws into the event loop.
 */

import { Engine, type EngineEvents } from "../engine/engine.ts";
import { CLOSE_TARGET, COPY_IN, SUSPENDED } from "../engine/phase.ts";
import { NO_PARAMETERS, Request, SIMPLE } from "../engine/request.ts";
import type { Session } from "../engine/session.ts";
import { type Notice, TimeoutError } from "../errors.ts";
import type { Transport } from "../transport/transport.ts";
import { nextTurn, unrefTimer } from "../transport/timers.ts";
import type { Notification } from "../wire/backend.ts";
import { Framer } from "../wire/framer.ts";
import { writeTerminate } from "../wire/frontend.ts";
import { Writer } from "../wire/writer.ts";
import { CallerWatch } from "./caller_watch.ts";
import { sendCancelRequest } from "./cancel.ts";
import { cancelUnanswered, closedError, refuse, silent } from "./connection_errors.ts";
import { establish } from "./establish.ts";
import { type Lease, LeaseLine } from "./lease.ts";
import type { Link } from "./open_link.ts";
import type { ResolvedHost, ResolvedOptions } from "./options.ts";
import { sessionName } from "./session_name.ts";
import { StartupReader } from "./startup_reader.ts";
import { startTimer } from "./timer.ts";

/** Bytes of copy data that are written at once. */
const COPY_FLUSH = 65_536;

/** Bytes, or units of a string, of copy data after which the event loop gets a turn. */
const COPY_TURN = 1 << 20;

/** Milliseconds for a server to take a CancelRequest and to answer what it cancelled. */
const CANCEL_TIMEOUT = 5_000;

/** Milliseconds after which a cancel without effect is sent again; doubled each time. */
const CANCEL_PAUSE = 100;

/** Milliseconds that a server may take to report its own time-out. */
const GRACE = 5_000;

/** Milliseconds that a request waits for a transaction of somebody else, or an idle stream, on the same connection. */
const WAIT_TIMEOUT = 10_000;

/** One session with a server, from its first ReadyForQuery on. */
export class ServerConnection {
  readonly host: ResolvedHost;
  /** Called once, when the connection has ended or is given up. */
  onEnded: (() => void) | undefined = undefined;
  /** Called with each notification; must not throw. */
  onNotification: ((notification: Notification) => void) | undefined = undefined;
  /** Called when LISTEN may have been undone: by a request, or by the end of a block; must not throw. */
  onListenUndone: ((by?: Request) => void) | undefined = undefined;
  readonly #link: Link;
  readonly #transport: Transport;
  readonly #options: ResolvedOptions;
  readonly #line: LeaseLine = new LeaseLine((request) => this.#submit(request), WAIT_TIMEOUT);
  #engine: Engine | undefined = undefined;
  #reader: StartupReader | undefined = new StartupReader();
  #flushScheduled: boolean = false;
  #congested: boolean = false;
  /** Copy data sent since the event loop had a turn. */
  #copied: number = 0;
  /** Whether bytes are taken: not while nobody takes what they say. */
  #reading: boolean = true;
  #closing: boolean = false;
  #ended: boolean = false;
  #whenIdle: (() => void) | undefined = undefined;
  #whenEnded: (() => void)[] = [];
  /** Called when replies have been worked off, and at the end. */
  #watchers: Set<() => void> = new Set();
  /** Refuses what waits behind a stream that its consumer has left alone. */
  readonly #callers: CallerWatch = new CallerWatch({
    waitsForCaller: () => !this.#ended && this.#engine!.waitsForCaller,
    awaitsServer: () => this.#reading && this.#engine!.awaitsServer,
    refuse: (failure) => {
      this.#engine!.refuseWaiting(failure);
      this.#tellIdle();
    },
  }, WAIT_TIMEOUT);
  /** Looks whether the server still ends what takes longer than `queryTimeout`. */
  #watchdog: ReturnType<typeof setTimeout> | undefined = undefined;
  /** Whether bytes have come since it looked last. */
  #heard: boolean = false;

  private constructor(link: Link) {
    this.#link = link;
    this.#transport = link.transport;
    this.#options = link.again.options;
    this.host = link.again.host;
  }

  /**
   * Brings the session to its first ReadyForQuery.
   *
   * @param signal ends the attempt: the promise rejects with its reason and nothing stays open
   */
  static async open(link: Link, signal: AbortSignal): Promise<ServerConnection> {
    const connection = new ServerConnection(link);
    let onAbort = () => {};
    const aborted = new Promise<never>((_, reject) => onAbort = () => reject(signal.reason));
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      signal.throwIfAborted();
      // Not only the server is waited for: a password function takes its time too.
      await Promise.race([connection.#establish(), aborted]);
      signal.throwIfAborted();
      return connection;
    } catch (error) {
      link.transport.close();
      throw error;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Parameters, transaction status and key data of the session. */
  get session(): Session {
    return this.#engine!.session;
  }

  /** Whether nothing can be sent any more. */
  get closed(): boolean {
    return this.#closing || this.#ended || this.#engine?.doomed === true;
  }

  /** Requests in flight and waiting. */
  get load(): number {
    return this.#engine!.load + this.#line.waiting;
  }

  /** Adds a request, or the first of a batch, to the queue. */
  submit(request: Request): void {
    if (this.#closing) return refuse(request);
    if (this.#line.isEmpty) this.#submit(request);
    else this.#line.submit(request);
  }

  /** Whether a request with SYNC_SHARED, submitted now, joins the segment of the one submitted last. */
  joins(request: Request): boolean {
    return this.#engine!.joins(request);
  }

  /**
   * Waits until the connection can be owned: nobody else writes on it until the lease is released.
   *
   * @throws {ConnectionError} when it is being closed
   */
  acquire(signal?: AbortSignal): Promise<Lease> {
    if (this.#closing) return Promise.reject(closedError());
    return this.#line.acquire(signal);
  }

  /**
   * Finds out whether a silent server is still there: one that says nothing at all is lost. Does nothing while it has
   * work, which tells as well. Resolves when that is known; never rejects.
   *
   * @param timeout milliseconds that the server has
   */
  async probe(timeout: number): Promise<void> {
    if (this.closed || !this.#engine!.idle || !this.#reading) return;
    this.#heard = false;
    let timer: ReturnType<typeof setTimeout> | undefined = undefined;
    await new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        resolve();
        if (this.#heard || this.closed) return;
        this.destroy((sent) => silent(sent, timeout));
      }, timeout);
      // An empty query may stand anywhere, inside a transaction as well: it does not wait for who owns the connection.
      this.#submit(new Request(SIMPLE, "", NO_PARAMETERS, NO_ROWS, () => resolve()));
    });
    clearTimeout(timer);
  }

  #submit(request: Request): void {
    this.#engine!.submit(request);
    this.#scheduleFlush();
    if (this.#options.queryTimeout > 0 && this.#watchdog === undefined) this.#watch();
    this.#callers.look();
  }

  /**
   * `statement_timeout` ends what takes longer than `queryTimeout`. A server that says nothing at all for that long and
   * a grace period is lost. One timer for the connection, none for each query.
   */
  #watch(): void {
    this.#heard = false;
    this.#watchdog = startTimer(() => {
      this.#watchdog = undefined;
      if (this.#ended || this.#engine!.idle) return;
      if (this.#heard || !this.#reading || !this.#engine!.awaitsServer) return this.#watch();
      this.destroy(() =>
        new TimeoutError(
          `Connection given up: no answer within queryTimeout ${this.#options.queryTimeout} ms and ${GRACE} ms of grace`,
        )
      );
    }, this.#options.queryTimeout + GRACE);
    // While something is under way the socket keeps the process alive.
    if (this.#watchdog !== undefined) unrefTimer(this.#watchdog);
  }

  /** Asks for the next batch of a stream that is suspended. */
  fetch(request: Request): void {
    this.#callers.step();
    this.#engine!.fetch(request);
    this.#scheduleFlush();
  }

  /** Whether the server is at this request, as far as can be known. */
  isAnswering(request: Request): boolean {
    return this.#engine!.isAnswering(request);
  }

  /** Ends a stream that is suspended. */
  finish(request: Request): void {
    this.#engine!.finish(request);
    this.#scheduleFlush();
  }

  /**
   * Sends data for a COPY FROM STDIN.
   *
   * @returns a promise when the socket takes no more for the moment, or has taken so much without a pause that the
   * server's errors, aborts and timers have to get their turn; else `undefined`
   */
  copyData(request: Request, data: Uint8Array | string): Promise<void> | undefined {
    if (!this.#engine!.copyData(request, data)) return undefined;
    // Small pieces of one turn share a write.
    if (this.#engine!.outputLength < COPY_FLUSH) this.#scheduleFlush();
    else this.#flush();
    this.#callers.step();
    this.#copied += data.length;
    const accepted = this.#congested
      ? this.#until(() => !this.#congested || this.#ended || request.settled)
      : undefined;
    if (this.#copied < COPY_TURN) return accepted;
    // A socket that is congested for a moment only is no turn: Deno's writes may be done in a microtask.
    this.#copied = 0;
    return accepted === undefined ? nextTurn() : accepted.then(nextTurn);
  }

  /** Ends the data of a COPY FROM STDIN; with a reason, so that nothing is stored. */
  copyEnd(request: Request, reason?: string): void {
    this.#engine!.copyEnd(request, reason);
    this.#scheduleFlush();
  }

  /** Reads no more bytes, since nobody takes what they say, or goes on. */
  setReading(reading: boolean): void {
    if (reading) this.#callers.step();
    this.#reading = reading;
    if (reading) this.#transport.resumeReading();
    else this.#transport.pauseReading();
  }

  /**
   * Gives up a request that has failed for its caller: one that waits is removed, one that runs is cancelled. Until the
   * server has taken the cancel and answered the request nothing is written, so that the cancel hits nobody else.
   */
  giveUp(request: Request): void {
    if (request.settled) return;
    if (this.#line.withdraw(request) || this.#engine!.withdraw(request)) {
      request.settle();
      return this.#tellIdle();
    }
    // The server waits for the consumer of a stream: it has to be told of its end.
    if (request.phase === SUSPENDED) this.finish(request);
    // While it waits for copy data it takes no notice of a cancel; what it takes notice of mostly makes one needless.
    const copiesIn = request.phase === COPY_IN;
    if (copiesIn) this.copyEnd(request, "the client has given up");
    this.#cancel(request, copiesIn ? CANCEL_PAUSE : 0);
  }

  /** @param pause milliseconds to wait before the cancel is sent */
  async #cancel(request: Request, pause: number): Promise<void> {
    const engine = this.#engine!;
    engine.block();
    if (pause > 0) await this.#until(() => request.settled, pause);
    await this.#until(() => request.settled || engine.isAnswering(request));
    const limit = new AbortController();
    const timer = setTimeout(() => {
      limit.abort();
      this.#tellWatchers();
    }, CANCEL_TIMEOUT);
    // A cancel that meets the server between two messages is lost: it is sent again.
    for (let pause = CANCEL_PAUSE; !request.settled && !limit.signal.aborted; pause *= 2) {
      if (request.phase !== CLOSE_TARGET) await this.#sendCancel(limit.signal);
      await this.#until(() => request.settled || limit.signal.aborted, pause);
    }
    clearTimeout(timer);
    // A cancel that is still on its way would hit whoever is next.
    if (!request.settled || limit.signal.aborted) {
      this.destroy((sent) => cancelUnanswered(sent, CANCEL_TIMEOUT));
    }
    engine.unblock();
    this.#flush();
  }

  async #sendCancel(signal: AbortSignal): Promise<void> {
    const { keyData } = this.#engine!.session;
    if (keyData === undefined) return;
    try {
      await sendCancelRequest(this.#link.again, keyData, signal);
    } catch {
      // Whether it was taken shows in the answer, or in none.
    }
  }

  #tellWatchers(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }

  /** Resolves when the condition holds, or after that many milliseconds. */
  async #until(condition: () => boolean, milliseconds?: number): Promise<void> {
    if (condition()) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#watchers.delete(watcher);
        resolve();
      };
      const watcher = () => {
        if (condition()) done();
      };
      const timer = milliseconds === undefined ? undefined : setTimeout(done, milliseconds);
      this.#watchers.add(watcher);
    });
  }

  /**
   * Lets requests in the queue finish, says Terminate and closes. Idempotent; never rejects.
   *
   * @param timeout milliseconds until what is unfinished is given up; 0 gives it up at once
   */
  async close(timeout: number): Promise<void> {
    if (!this.#closing) {
      this.#closing = true;
      if (!this.#ended && this.load > 0 && timeout > 0) await this.#idleWithin(timeout);
      if (!this.#ended) this.#terminate();
    }
    if (!this.#ended) await new Promise<void>((resolve) => this.#whenEnded.push(resolve));
  }

  /** Closes at once; everything unfinished fails with what `failure` makes. */
  destroy(failure: (sent: boolean | "unknown") => Error): void {
    this.#closing = true;
    this.#tellEnded();
    this.#engine!.abandon(failure);
    this.#line.dissolve();
    this.#transport.close();
  }

  /** Keeps the process alive while it is open (`true`, the default) or not. */
  setKeepAlive(keepProcessAlive: boolean): void {
    this.#transport.setKeepAlive(keepProcessAlive);
  }

  #tellEnded(): void {
    const tell = this.onEnded;
    this.onEnded = undefined;
    tell?.();
  }

  async #establish(): Promise<void> {
    const reader = this.#reader!;
    this.#transport.start({
      onBytes: (chunk) => this.#onBytes(chunk),
      onEnd: (cause) => this.#onEnd(cause),
    });
    const { session, writer } = await establish({
      transport: this.#transport,
      reader,
      options: this.#options,
      host: this.host,
      tls: this.#link.tls,
    });
    const options = this.#options;
    const pipeline = options.pipeline;
    this.#engine = new Engine(session, new Framer(options.maxMessageBytes), writer, this.#events(), {
      maxQueries: pipeline === false ? 1 : pipeline.maxQueries,
      maxBytes: pipeline === false ? 1 : pipeline.maxBytes,
      statementCache: options.statementCache,
      statementPrefix: `p${sessionName()}_`,
    });
    this.#reader = undefined;
    const rest = reader.rest();
    if (rest.length > 0) this.#onBytes(rest);
    // The end may have come with the last bytes.
    if (this.#ended) this.#engine.receiveEnd(reader.endedBy);
  }

  #events(): EngineEvents {
    const { onNotice, onParameterStatus } = this.#options;
    return {
      onNotice: (notice: Notice) => guard(() => onNotice(notice)),
      onParameterStatus: (name: string, value: string) => guard(() => onParameterStatus(name, value)),
      onNotification: (notification: Notification) => this.onNotification?.(notification),
      onListenUndone: (by?: Request) => this.onListenUndone?.(by),
    };
  }

  #onBytes(chunk: Uint8Array): void {
    if (this.#reader !== undefined) return this.#reader.push(chunk);
    this.#heard = true;
    try {
      this.#engine!.receive(chunk);
    } catch {
      // Every request knows why by now.
      return this.#transport.close();
    }
    if (this.#engine!.doomed) return this.#transport.close();
    this.#flush();
    this.#callers.look();
    if (this.#watchers.size > 0) this.#tellWatchers();
    this.#tellIdle();
  }

  #tellIdle(): void {
    if (this.#whenIdle !== undefined && this.load === 0) this.#whenIdle();
  }

  #onEnd(cause: Error | undefined): void {
    this.#ended = true;
    clearTimeout(this.#watchdog);
    this.#callers.stop();
    this.#tellEnded();
    if (this.#reader !== undefined) this.#reader.end(cause);
    else if (this.#closing) this.#engine!.abandon(closedError);
    else this.#engine!.receiveEnd(cause);
    if (this.#engine !== undefined) this.#line.dissolve();
    this.#tellWatchers();
    this.#whenIdle?.();
    for (const resolve of this.#whenEnded) resolve();
    this.#whenEnded = [];
  }

  #scheduleFlush(): void {
    if (this.#flushScheduled) return;
    this.#flushScheduled = true;
    queueMicrotask(this.#flush);
  }

  readonly #flush = (): void => {
    this.#flushScheduled = false;
    if (this.#congested || this.#ended) return;
    const output = this.#engine!.takeOutput();
    if (output === null) return;
    const accepted = this.#transport.write(output);
    if (accepted === undefined) return;
    this.#congested = true;
    accepted.then(() => {
      this.#congested = false;
      this.#flush();
      for (const watcher of [...this.#watchers]) watcher();
    });
  };

  async #idleWithin(timeout: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined = undefined;
    await new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
      timer = startTimer(resolve, timeout);
    });
    clearTimeout(timer);
    this.#whenIdle = undefined;
  }

  #terminate(): void {
    this.#engine!.abandon(closedError);
    this.#line.dissolve();
    const writer = new Writer(16);
    writeTerminate(writer);
    // A farewell that the socket does not take at once is not worth a wait.
    this.#transport.write(writer.take());
    this.#transport.close();
  }
}

/** Rows that do not come. */
const NO_ROWS = { plan: () => () => undefined, formats: () => [] } as const;

/** What a user's callback throws is the user's: it must not look like a fault of the protocol. */
function guard(callback: () => void): void {
  try {
    callback();
  } catch {
    // Documented: callbacks must not throw, and what they throw is ignored.
  }
}
