/** A pool of connections, as users hold it. */

import { LeaseLine } from "../connection/lease.ts";
import { resolveTarget } from "../connection/open.ts";
import type { ConnectOptions } from "../connection/options.ts";
import { mergeOptions } from "../connection/settings.ts";
import type { ServerConnection } from "../connection/server_connection.ts";
import { beginsBlock } from "../engine/begins_block.ts";
import { EXTENDED, type Request, SIMPLE } from "../engine/request.ts";
import { ConfigurationError, PoolError } from "../errors.ts";
import { NotificationHub } from "../pool/notification_hub.ts";
import { fail, leftOpen, poolClosed, returned } from "../pool/pool_errors.ts";
import { ConnectionPool, type OwnedConnection, type PoolBehaviour, type PoolStats } from "../pool/pool.ts";
import { IDLE } from "../wire/message_types.ts";
import { losesStacks } from "../transport/select.ts";
import { attachTo, Connection, createTypes } from "./connection.ts";
import { type Attachment, chainObserver, type Executor, throwIfFailed } from "./executor.ts";
import {
  listenOn,
  type NotificationEvent,
  type NotificationStream,
  PROBE_INTERVAL,
  type Subscription,
} from "./notifications.ts";
import { OpenCopies } from "./open_copies.ts";
import { type BatchSource, FlushSource } from "./row_stream.ts";
import { beginText, TransactionExecutor, type TransactionOptions } from "./transaction.ts";
import { Transaction } from "./transaction_block.ts";
import { Transactional } from "./transactional.ts";

/** Options of a pool, besides those of its connections. */
export interface PoolOptions extends ConnectOptions {
  /** Connections at most. Default 10. */
  readonly max?: number | undefined;
  /** Idle connections that are kept open however long they are idle. Default 0. */
  readonly minIdle?: number | undefined;
  /** Milliseconds that a connection may stay idle before it is closed. 0: no limit. Default 30_000. */
  readonly idleTimeout?: number | undefined;
  /**
   * Milliseconds after which a connection is closed once it is idle, less up to a tenth by chance. 0: no limit. Default
   * 3_600_000.
   */
  readonly maxLifetime?: number | undefined;
  /** Milliseconds that a query, a transaction or `acquire` waits for a connection. 0: no limit. Default 10_000. */
  readonly acquireTimeout?: number | undefined;
  /**
   * How many may wait for a connection besides those for whom one is being opened; one more is rejected at once.
   * Default: no limit.
   */
  readonly maxWaiters?: number | undefined;
  /**
   * Milliseconds between two questions to a silent connection that listens, whether it is still there; it has as long to
   * answer, 10_000 at most, or is replaced. 0: none. Default 30_000.
   */
  readonly listenProbeInterval?: number | undefined;
  /** Whether the process may end while all connections are idle. Default `false`. */
  readonly allowExitOnIdle?: boolean | undefined;
  /**
   * Called with each new connection before it is used, and again when an owner changed its session, since all that was
   * set is undone then. What it rejects with closes the connection. It may take `connectTimeout`. What it has begun to
   * listen to ends with the connection, with the pool, and when it is called again.
   */
  readonly onConnect?: ((connection: Connection) => void | Promise<void>) | undefined;
}

/** How a pool's transaction runs. */
export type PoolTransactionOptions = TransactionOptions;

/**
 * Connections that are shared. Queries go to an idle connection, or a new one, or are pipelined on the least loaded
 * one; transactions, sessions and streams have a connection to themselves.
 */
export class Pool extends Transactional<PoolTransactionOptions> implements AsyncDisposable {
  readonly #pool: ConnectionPool;
  readonly #executor: Executor;
  readonly #hub: NotificationHub;
  readonly #sessions: PreparedSessions;

  /** Not for use from outside: see {@linkcode createPool}. */
  constructor(pool: ConnectionPool, executor: Executor, probeInterval: number, sessions: PreparedSessions) {
    super(executor);
    this.#pool = pool;
    this.#sessions = sessions;
    this.#executor = executor;
    this.#hub = new NotificationHub({
      open: (signal) => pool.openOutside(signal),
      owned: true,
      probeInterval,
      closedError: poolClosed,
    });
  }

  /**
   * Opens a transaction on a connection of its own.
   *
   * @throws {PoolError} when no connection is to be had in time
   */
  override async begin(options: PoolTransactionOptions = {}): Promise<Transaction> {
    const begin = beginText(options);
    const { connection, lease } = await this.#pool.acquire(options.signal);
    return Transaction.open(new TransactionExecutor(connection, lease, begin, this.#executor), options);
  }

  /**
   * Takes a connection of one's own. Closing it gives it back, cleaned: an open transaction block is rolled back, and
   * settings, LISTEN, advisory locks and temporary tables are undone.
   *
   * @param options.signal ends the wait
   * @throws {PoolError} when no connection is to be had in time
   */
  async acquire(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<Connection> {
    return new PooledConnection(await this.#pool.acquire(options.signal), this.#executor);
  }

  /**
   * Listens to a channel, until the loop or the stream ends. All channels of a pool share one connection of their own;
   * when it is lost it is opened again, and each channel gets one `gap` event, since what was notified meanwhile is lost.
   *
   * @param channel its name as it is, quoted here; at most 63 bytes
   * @param options.signal ends listening; the iterator then throws its reason
   * @throws {ValueError} when the channel's name is empty, too long, or holds NUL or a lone surrogate
   *
   * @example
   * ```ts ignore
   * for await (const event of db.listen("jobs")) {
   *   if (event.type === "notify") console.log(event.payload);
   * }
   * ```
   */
  listen(channel: string, options?: { readonly signal?: AbortSignal | undefined }): NotificationStream;
  /** The same with a callback; resolves when the server listens. */
  listen(
    channel: string,
    callback: (event: NotificationEvent) => void,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<Subscription>;
  listen(channel: string, ...args: readonly unknown[]): NotificationStream | Promise<Subscription> {
    return listenOn(this.#hub, channel, args);
  }

  /** How many connections there are, and how many wait for one. */
  stats(): PoolStats {
    return this.#pool.stats();
  }

  /**
   * Lets work finish, then closes every connection. Idempotent. Work issued afterwards rejects.
   *
   * @param options.timeout milliseconds until unfinished work is given up and rejects; 0 gives it up at once. Of several
   * calls the shortest one counts. Default 5_000
   * @throws {ConfigurationError} when the timeout is not a number from 0 on: nothing is closed then. It never rejects else
   */
  async close(options: { readonly timeout?: number } = {}): Promise<void> {
    const timeout = options.timeout ?? 5_000;
    checkNumber("timeout", timeout);
    this.#hub.close();
    this.#sessions.endListening();
    await this.#pool.close(timeout);
  }

  /** Same as {@linkcode close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** A connection as `onConnect` has it. */
class PreparedConnection extends Connection {
  override endListening(): void {
    super.endListening();
  }
}

/** Sessions that `onConnect` has prepared, and may have begun to listen in. */
class PreparedSessions {
  readonly #sessions: Map<ServerConnection, PreparedConnection> = new Map();

  /** A session to be prepared, perhaps again: who listened in it before is to do so once more. */
  open(connection: ServerConnection, executor: Executor): Connection {
    const last = this.#sessions.get(connection);
    last?.endListening();
    if (last === undefined) {
      const before = connection.onEnded;
      connection.onEnded = () => {
        this.#sessions.delete(connection);
        before?.();
      };
    }
    const session = new PreparedConnection(connection, executor);
    this.#sessions.set(connection, session);
    return session;
  }

  /** The pool is being closed: nobody is to hear of lost connections. */
  endListening(): void {
    for (const session of this.#sessions.values()) session.endListening();
  }
}

/** A connection that goes back to its pool when it is closed. */
class PooledConnection extends Connection {
  readonly #owned: OwnedConnection;
  readonly #line: LeaseLine;
  readonly #copies: OpenCopies;
  readonly #streams: Set<FlushSource>;
  #returned: boolean = false;

  constructor(owned: OwnedConnection, executor: Executor) {
    const { connection, lease } = owned;
    const line = new LeaseLine((request) => lease.submit(request), WAIT_TIMEOUT);
    const queue = {
      submit: (request: Request): void => line.submit(request),
      giveUp(request: Request): void {
        if (line.withdraw(request)) request.settle();
        else connection.giveUp(request);
      },
    };
    const copies = new OpenCopies();
    const streams = new Set<FlushSource>();
    super(connection, {
      types: executor.types,
      keepsStacks: executor.keepsStacks,
      ...queue,
      openStream(request, site): BatchSource {
        const source = new FlushSource(connection, request, site, queue);
        streams.add(source);
        chainObserver(request, () => streams.delete(source));
        return source;
      },
      attach: () => Promise.resolve(copies.watch(attachTo(connection, queue))),
      inBlock: () => connection.session.transactionStatus !== IDLE,
    }, async (signal) => {
      const lease = await line.acquire(signal);
      if (this.#returned) throw returned();
      return lease;
    });
    this.#copies = copies;
    this.#streams = streams;
    this.#owned = owned;
    this.#line = line;
  }

  override get closed(): boolean {
    return this.#returned || super.closed;
  }

  override close(): Promise<void> {
    this.#returned = true;
    this.endListening();
    this.#copies.giveUp(() => new PoolError("COPY was given up: its session went back to the pool"));
    for (const stream of this.#streams) {
      stream.giveUp(() => new PoolError("Stream was given up: its session went back to the pool"));
    }
    this.#owned.lease.release();
    // Who still waits for a transaction of this connection learns that it is gone.
    this.#line.dissolve();
    return Promise.resolve();
  }
}

/** Milliseconds that a query waits for a transaction on the same acquired connection. */
const WAIT_TIMEOUT = 10_000;

/**
 * Makes a pool. Nothing is connected before it is used.
 *
 * @param target a connection URI, a conninfo string, or options
 * @param options options that go before those of `target`, and the pool's own
 * @throws {ConfigurationError} when an option of the pool cannot be used; those of connections show when one is opened
 *
 * @example
 * ```ts ignore
 * await using db = createPool("postgres://app@localhost/app", { max: 10 });
 * const users = await db.sql`select * from users where id = any(${[1, 2, 3]})`;
 * ```
 */
export function createPool(target?: string | URL | PoolOptions, options: PoolOptions = {}): Pool {
  const ofTarget = typeof target === "object" && !(target instanceof URL) ? target : {};
  const {
    max = 10,
    minIdle = 0,
    idleTimeout = 30_000,
    maxLifetime = 3_600_000,
    acquireTimeout = 10_000,
    maxWaiters = Infinity,
    listenProbeInterval = PROBE_INTERVAL,
    allowExitOnIdle = false,
    onConnect,
    ...overrides
  } = { ...ofTarget, ...definedOf(options) };
  // What is misspelt shows at once, not at the first query.
  mergeOptions(overrides);
  checkWhole("max", max, 1);
  checkWhole("minIdle", minIdle, 0);
  const limits = { idleTimeout, maxLifetime, acquireTimeout, maxWaiters, listenProbeInterval };
  for (const [name, value] of Object.entries(limits)) checkNumber(name, value);
  const types = createTypes(overrides);
  const keepsStacks = losesStacks();
  const sessions = new PreparedSessions();
  const behaviour: PoolBehaviour = {
    max,
    minIdle,
    idleTimeout,
    maxLifetime,
    acquireTimeout,
    maxWaiters,
    allowExitOnIdle,
    pipelined: overrides.pipeline !== false,
    onConnect: onConnect === undefined ? undefined : async (connection: ServerConnection) => {
      await onConnect(sessions.open(connection, executorOf(connection)));
    },
  };
  const conninfo = typeof target === "string" || target instanceof URL ? target : undefined;
  const pool = new ConnectionPool(() => resolveTarget(conninfo, overrides), behaviour);
  const executorOf = (connection: ServerConnection): Executor => ({
    types,
    keepsStacks,
    submit: (request) => connection.submit(request),
    giveUp: (request) => connection.giveUp(request),
    openStream: (request, site) => new FlushSource(connection, request, site),
    attach: () => Promise.resolve(attachTo(connection, connection)),
  });
  return new Pool(
    pool,
    {
      types,
      keepsStacks,
      submit: (request) => submitShared(pool, request),
      giveUp: (request) => pool.giveUp(request),
      openStream: (request, site) => new PooledSource(pool, request, site),
      attach: () => attachOwned(pool),
    },
    listenProbeInterval,
    sessions,
  );
}

async function attachOwned(pool: ConnectionPool): Promise<Attachment> {
  const { connection, lease } = await pool.acquire();
  return {
    connection,
    submit(request): void {
      // A script around COPY may open a block, which is rolled back with what was copied.
      chainObserver(request, () => {
        if (!connection.closed && connection.session.transactionStatus !== IDLE) request.fail(leftOpen);
      });
      lease.submit(request);
    },
    giveUp: (request) => connection.giveUp(request),
    release: () => lease.release(),
  };
}

function submitShared(pool: ConnectionPool, request: Request): void {
  for (let each: Request | null = request; each !== null; each = each.next) {
    if (each.kind === EXTENDED && beginsBlock(each.text)) return fail(request, cannotBegin);
  }
  // A script may open a block of its own, or change the session in between.
  if (request.kind === SIMPLE) request.alone = true;
  pool.submit(request);
}

function cannotBegin(): PoolError {
  return new PoolError(
    "Cannot begin a transaction block through the pool: use transaction(), begin() or acquire()",
  );
}

/** Rows from a connection that is taken for the stream and given back behind it. */
class PooledSource implements BatchSource {
  readonly #pool: ConnectionPool;
  readonly #request: Request;
  readonly #site: Error | undefined;
  readonly #givingUp: AbortController = new AbortController();
  #owned: OwnedConnection | undefined = undefined;
  #source: FlushSource | undefined = undefined;
  #leaving: boolean = false;

  constructor(pool: ConnectionPool, request: Request, site: Error | undefined) {
    this.#pool = pool;
    this.#request = request;
    this.#site = site;
  }

  async next(): Promise<unknown[] | undefined> {
    try {
      if (this.#source === undefined) {
        if (beginsBlock(this.#request.text)) throw cannotBegin();
        const owned = await this.#pool.acquire(this.#givingUp.signal);
        this.#owned = owned;
        throwIfFailed(this.#request, this.#site); // given up meanwhile
        const { connection, lease } = owned;
        this.#source = new FlushSource(connection, this.#request, this.#site, {
          submit: (each) => lease.submit(each),
          giveUp: (each) => connection.giveUp(each),
        });
        if (this.#leaving) this.#source.leave();
      }
      const rows = await this.#source.next();
      if (rows === undefined || this.#request.settled) this.#release();
      return rows;
    } catch (error) {
      if (this.#source === undefined) this.#settle(error);
      // A stream that was given up holds its connection until the server has answered the cancel.
      void this.close();
      throwIfFailed(this.#request, this.#site);
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#source?.close();
    this.#release();
  }

  leave(): void {
    this.#leaving = true;
    this.#source?.leave();
  }

  abort(): void {
    this.#givingUp.abort();
    this.#source?.abort();
    this.#owned?.connection.giveUp(this.#request);
  }

  /** It had no connection at all: nobody else tells those who watch it. */
  #settle(error: unknown): void {
    this.#request.fail(() => error as Error);
    if (!this.#request.settled) this.#request.settle();
  }

  #release(): void {
    this.#owned?.lease.release();
    this.#owned = undefined;
  }
}

function checkWhole(name: string, value: number, least: number): void {
  if (Number.isInteger(value) && value >= least) return;
  throw new ConfigurationError(`Cannot use ${name} ${value}: wanted a whole number from ${least} on`);
}

function checkNumber(name: string, value: number): void {
  if (value >= 0) return;
  throw new ConfigurationError(`Cannot use ${name} ${value}: wanted a number from 0 on`);
}

/** Without what is `undefined`, which stands for "as it is". */
function definedOf<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T;
}
