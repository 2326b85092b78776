/** How requests get to a server, whoever issues them. */

import { type AbortOptions, watchAbort } from "../connection/abortable.ts";
import type { ServerConnection } from "../connection/server_connection.ts";
import { channels, isTraced, traceRequest } from "../connection/tracing.ts";
import type { TypeOverrides } from "../codecs/registry.ts";
import {
  EXTENDED,
  type Listener,
  Request,
  type RowPlanner,
  STREAM,
  SYNC_LATER,
  tell,
} from "../engine/request.ts";
import type { Statement as Prepared } from "../engine/statement_cache.ts";
import { keepShape } from "../wire/keep_shape.ts";
import { resolveLate } from "./order.ts";
import { bindParameters, BoundParameters } from "./parameters.ts";
import { TypeLearner } from "./type_query.ts";
import type { Types } from "./types.ts";
import type { BatchSource } from "./row_stream.ts";
import type { Statement } from "./sql.ts";

/** What runs requests: a connection, a pool, a transaction. */
export interface Executor {
  /** How values are represented. */
  readonly types: Types;
  /** Whether stacks must be kept from where a query was written: the runtime loses them at an await. */
  readonly keepsStacks: boolean;
  /** Takes a request, or the first of a batch; it settles in any case. */
  submit(request: Request): void;
  /** The caller of a request has given up: it is withdrawn or cancelled. */
  giveUp(request: Request): void;
  /** Rows a batch at a time. */
  openStream(request: Request, site: Error | undefined): BatchSource;
  /** A connection for one long operation. */
  attach(): Promise<Attachment>;
  /** Whether a request goes into a transaction block, which it would break by failing. Default: none does. */
  inBlock?(): boolean;
  /** Who can be asked about types once this has ended. */
  afterwards?(): Executor | undefined;
}

/** A connection for one operation that takes its time. */
export interface Attachment {
  readonly connection: ServerConnection;
  /** Takes the operation's requests. */
  submit(request: Request): void;
  /** The operation is given up: its request is withdrawn or cancelled. */
  giveUp(request: Request): void;
  /** The operation is over. Idempotent. */
  release(): void;
}

/** How one query is to be run. */
export interface QueryOptions {
  /** Gives the query up when it aborts: it rejects with the signal's reason, and is cancelled on the server. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds after which the query is given up with a TimeoutError, and cancelled. 0: no limit. Default 0. */
  readonly timeout?: number | undefined;
  /** A name for traces and time-outs. */
  readonly label?: string | undefined;
  /** `false` sends nothing behind this query until it is answered, nor it behind others. Default `true`. */
  readonly pipeline?: boolean | undefined;
  /**
   * What to change about the codecs of types for this query, by type name or OID; `"text"`: every value is read as its
   * text. Give the same object each time: rows are planned once for each.
   */
  readonly types?: TypeOverrides | undefined;
}

/** The executor that represents values as a query's options say. */
export function executorFor(executor: Executor, options: Pick<QueryOptions, "types"> | undefined): Executor {
  return options?.types === undefined ? executor : withTypes(executor, options.types);
}

// A function of its own: engines allocate for its closures' variables when it is entered.
function withTypes(executor: Executor, types: TypeOverrides): Executor {
  return {
    types: executor.types.with(types),
    keepsStacks: executor.keepsStacks,
    submit: (request) => executor.submit(request),
    giveUp: (request) => executor.giveUp(request),
    openStream: (request, site) => executor.openStream(request, site),
    attach: () => executor.attach(),
    inBlock: () => executor.inBlock?.() ?? false,
    afterwards: () => executor.afterwards?.(),
  };
}

/** Makes the request of a statement. */
export function createRequest(
  executor: Executor,
  kind: number,
  { text, values }: Statement,
  planner: RowPlanner,
  listener: Listener,
): Request {
  const request = new Request(kind, text, bindParameters(values, executor.types.registry), planner, listener);
  request.alone = mayCopyIn(text);
  if (request.parameters.ambiguous) letLearn(executor, request);
  return request;
}

function letLearn({ types }: Executor, request: Request): void {
  const parameters = request.parameters as BoundParameters;
  request.learner = new TypeLearner(types, parameters);
  request.names = parameters.names;
}

/** Makes the request of a statement whose rows are given away as they come: all of their types must be known before. */
export function createStream(executor: Executor, statement: Statement): Request {
  const { types } = executor;
  const request = createRequest(executor, STREAM, statement, types.streamed, () => {});
  const { parameters } = request;
  const bound = parameters instanceof BoundParameters ? parameters : undefined;
  request.learner = new TypeLearner(types, bound, true);
  request.describes = true;
  return request;
}

/** Tells subscribers of `pipegres:query`, if there are any, of a request that is about to be submitted. */
export function trace(request: Request, label: string | undefined): void {
  if (isTraced(channels.query)) chainObserver(request, traceRequest(channels.query, request, label));
}

/**
 * Runs statements under one Sync; resolves with all of their requests settled, or as soon as they are given up.
 *
 * @param labels names for traces
 */
export function executeBatch(
  executor: Executor,
  statements: readonly Statement[],
  planner: RowPlanner,
  options?: AbortOptions,
  labels?: readonly (string | undefined)[],
): Promise<Request[]> {
  return new Promise((resolve) => {
    const batch = new Batch(executor, statements, planner, resolve);
    batch.submit(options, labels);
  });
}

/** Requests of one segment, and who waits for all of them. No closures, as {@linkcode Listener} says. */
class Batch {
  readonly #executor: Executor;
  readonly #requests: Request[] = [];
  readonly #resolve: (requests: Request[]) => void;
  #unsettled: number;

  constructor(
    executor: Executor,
    statements: readonly Statement[],
    planner: RowPlanner,
    resolve: (requests: Request[]) => void,
  ) {
    this.#executor = executor;
    this.#resolve = resolve;
    this.#unsettled = statements.length;
    for (const statement of statements) {
      const request = createRequest(executor, EXTENDED, statement, planner, this);
      request.inBatch = true;
      this.#requests.push(request);
    }
  }

  submit(options: AbortOptions | undefined, labels: readonly (string | undefined)[] | undefined): void {
    const requests = this.#requests;
    const first = requests[0]!;
    for (let i = 0; i < requests.length; i++) {
      const request = requests[i]!;
      if (request.names !== null && request !== first) {
        first.learner ??= request.learner;
        first.names = [...new Set([...first.names ?? [], ...request.names])];
      }
      trace(request, labels?.[i]);
      if (i === requests.length - 1) break;
      request.next = requests[i + 1]!;
      request.sync = SYNC_LATER;
    }
    if (options?.signal !== undefined || options?.timeout) {
      watchBatch(this.#executor, requests, options, () => this.#tell());
    }
    this.#executor.submit(first);
  }

  onSettled(): void {
    if (--this.#unsettled === 0) this.#tell();
  }

  #tell(): void {
    // As in execute().
    if (this.#executor.keepsStacks) this.#resolve(this.#requests);
    else void resolveLate(this.#resolve, this.#requests);
  }
}

/** Gives a batch up as a whole when the options say so; `onAborted` is told at once. */
function watchBatch(
  executor: Executor,
  requests: readonly Request[],
  options: AbortOptions,
  onAborted: () => void,
): void {
  const [first, ...others] = requests as [Request, ...Request[]];
  first.last = true;
  const stop = watchAbort(first, options, () => {
    for (const each of others) {
      each.aborted = true;
      each.fail(first.failure!);
    }
    onAborted();
    executor.giveUp(first);
    // Those of a batch that was still waiting are settled by nobody else.
    if (first.settled) { for (const each of others) if (!each.settled) each.settle(); }
  });
  chainObserver(first, stop);
}

/** Runs a statement; resolves, never rejects, with the settled request. */
export function execute(
  executor: Executor,
  kind: number,
  statement: Statement,
  planner: RowPlanner,
  options?: QueryOptions,
): Promise<Request> {
  return new Promise((resolve) => {
    // Where the runtime loses stacks no query is told at once.
    const listener = executor.keepsStacks
      ? resolve
      : (request: Request) => void resolveLate(resolve, request);
    start(executor, kind, statement, planner, listener, options);
  });
}

/**
 * Starts a statement.
 *
 * @param listener told when its request has settled, and before that when its caller gives up: twice then
 * @param prepared the statement on the server, where it is there already
 * @throws {ValueError} when there are more parameters than the protocol has room for
 */
export function start(
  executor: Executor,
  kind: number,
  { text, values }: Statement,
  planner: RowPlanner,
  listener: Listener,
  options?: QueryOptions,
  prepared: Prepared | null = null,
): void {
  const parameters = bindParameters(values, executor.types.registry);
  const request = new Request(kind, text, parameters, planner, listener);
  request.alone = mayCopyIn(text);
  request.statement = prepared;
  if (parameters.ambiguous) letLearn(executor, request);
  trace(request, options?.label);
  if (options === undefined) executor.submit(request);
  else submitWith(executor, request, options, listener);
}

/** Submits a request that its caller may give up; `listener` is told when they do. */
function submitWith(
  executor: Executor,
  request: Request,
  options: QueryOptions,
  listener: Listener,
): void {
  if (options.pipeline === false) request.alone = true;
  if (options.signal?.aborted) {
    request.aborted = true;
    request.fail(() => options.signal!.reason as Error);
    return request.settle();
  }
  watch(executor, request, options, () => tell(listener, request));
  executor.submit(request);
}

/** Gives the request up when the options say so; `onAborted` is told at once. */
export function watch(
  executor: Executor,
  request: Request,
  options: AbortOptions,
  onAborted: () => void,
): void {
  if (options.signal === undefined && !options.timeout) return;
  // Nothing may be behind it that a cancel could hit.
  request.last = true;
  const stop = watchAbort(request, options, () => {
    onAborted();
    executor.giveUp(request);
  });
  chainObserver(request, stop);
}

/** Tells one more of a request's settlement. */
export function chainObserver(request: Request, observer: (request: Request) => void): void {
  const before = request.observer;
  request.observer = before === null ? observer : (settled) => {
    before(settled);
    observer(settled);
  };
}

/**
 * Whether a text might start COPY FROM STDIN: the server would read what is pipelined behind it as copy data.
 * Rather too often than too seldom: it only costs the pipelining.
 */
export function mayCopyIn(text: string): boolean {
  if (text === lastHarmless) return false;
  if (/\bstdin\b/i.test(text)) return true;
  lastHarmless = text;
  return false;
}

// Queries come in bursts of one text.
let lastHarmless = "";

/** Throws a settled request's failure. Called in an async function, so that the stack shows who awaits it. */
export function throwIfFailed(request: Request, site: Error | undefined): void {
  if (request.failure === null) return;
  const error = request.failure();
  // A signal's reason is the caller's own and stays as it is.
  throw request.aborted ? error : withSite(error, site);
}

/** Adds the frames of where the query was written, where the runtime cannot follow the await. */
export function withSite(error: Error, site: Error | undefined): Error {
  if (site?.stack === undefined) return error;
  const frames = site.stack.slice(site.stack.indexOf("\n") + 1);
  error.stack = `${error.stack ?? error}\n${frames}`;
  return error;
}

keepShape(new Batch({} as Executor, [], {} as RowPlanner, () => {}));
