/**
 * One run of a statement, from its request to what its caller awaits.
 *
 * A query that goes well costs one promise, resolved as soon as its request settles. What has to be mended, or fails,
 * takes the long way, through an async function: an error's stack shows who awaits it then. So does what settles behind
 * it in the same turn, which must not overtake it.
 */

import { EXTENDED, type Listener, type Request } from "../engine/request.ts";
import type { Statement as Prepared } from "../engine/statement_cache.ts";
import { type Executor, type QueryOptions, start, throwIfFailed } from "./executor.ts";
import { beginLate, endLate, isAnyLate } from "./order.ts";
import type { Statement } from "./sql.ts";
import { keepShape } from "../wire/keep_shape.ts";
import { isWell, mend } from "./type_loader.ts";
import type { RowShape } from "./types.ts";

/** Makes a result of a request that went well. */
type Reading<R> = (request: Request) => R;

/** A statement that runs once; what it gave can be asked for again, in the same shape. */
export class Run {
  readonly shape: RowShape;
  readonly #executor: Executor;
  readonly #statement: Statement;
  readonly #options: QueryOptions | undefined;
  readonly #prepared: Prepared | undefined;
  /** Where the query was written, for runtimes that lose it. */
  readonly #site: Error | undefined;
  #pick: Reading<unknown> | undefined = undefined;
  #resolve: ((result: never) => void) | undefined = undefined;
  #request: Request | undefined = undefined;
  /** Settles with the first result. */
  #first: Promise<unknown> | undefined = undefined;

  /** @param prepared the statement on the server, where it is there already */
  constructor(
    executor: Executor,
    statement: Statement,
    shape: RowShape,
    options: QueryOptions | undefined,
    site?: Error,
    prepared?: Prepared,
  ) {
    this.shape = shape;
    this.#executor = executor;
    this.#statement = statement;
    this.#options = options;
    this.#site = site;
    this.#prepared = prepared;
  }

  /**
   * Runs it; to be called once.
   *
   * @throws what its parameters are refused with: nothing has been sent then
   */
  start<R>(pick: Reading<R>): Promise<R> {
    const settled = new Promise<never>(keepResolve);
    this.#pick = pick;
    this.#resolve = lastResolve;
    this.#send(this);
    // Where the runtime loses stacks, the caller's own await has to be found; all then take as many steps as that needs.
    const first = this.#executor.keepsStacks ? finishInContext<R>(settled) : settled;
    this.#first = first;
    return first;
  }

  /** Its request has settled, or its caller has given up. Not for use from outside. */
  onSettled(request: Request): void {
    // An aborted request ends for its caller first, and settles later.
    if (this.#request !== undefined) return;
    this.#request = request;
    const resolve = this.#resolve as (result: unknown) => void;
    if (this.#executor.keepsStacks) return resolve(this);
    if (request.failure === null && !isAnyLate() && isWell(this.#executor, request)) {
      try {
        return resolve(this.#pick!(request));
      } catch {
        // It is thrown again, where its stack tells more.
      }
    }
    resolve(this.#finishLater(request, this.#pick!));
  }

  /** What it gives, once it has settled. Not for use from outside. */
  finish(): unknown {
    const request = this.#request!;
    const pick = this.#pick!;
    return isWell(this.#executor, request) ? this.#resultOf(pick) : this.#mend(request, pick);
  }

  #send(listener: Listener, values?: readonly unknown[]): void {
    const executor = this.#executor;
    const statement = values === undefined ? this.#statement : { text: this.#statement.text, values };
    // Not kept: when types have been learnt there is another one.
    const planner = executor.types.planner(this.shape);
    start(executor, EXTENDED, statement, planner, listener, this.#options, this.#prepared);
  }

  /** Another result of the same run. */
  async again<R>(pick: Reading<R>): Promise<R> {
    try {
      await this.#first;
    } catch {
      // Told below.
    }
    return this.#resultOf(pick);
  }

  async #finishLater<R>(request: Request, pick: Reading<R>): Promise<R> {
    beginLate();
    // By then whoever awaits the first promise awaits this one.
    await undefined;
    await undefined;
    endLate();
    return isWell(this.#executor, request) ? this.#resultOf(pick) : await this.#mend(request, pick);
  }

  async #mend<R>(request: Request, pick: Reading<R>): Promise<R> {
    this.#request = await mend(
      this.#executor,
      request,
      (values) => new Promise((resolve) => this.#send(resolve, values)),
    );
    return this.#resultOf(pick);
  }

  #resultOf<R>(pick: Reading<R>): R {
    throwIfFailed(this.#request!, this.#site);
    return pick(this.#request!);
  }
}

/** As little as can be lives on across the await: JavaScriptCore keeps that in an object of its own for each query. */
async function finishInContext<R>(settled: Promise<Run>): Promise<R> {
  const run = await settled;
  const result = run.finish() as R | Promise<R>;
  // What has to be mended is awaited here, so that its error shows the caller; all else takes no more steps.
  return result instanceof Promise ? await result : result;
}

// One function for all promises: a closure for each, and the variables it keeps, would be a tenth of a query's memory.
function keepResolve(resolve: (result: never) => void): void {
  lastResolve = resolve;
}

let lastResolve: (result: never) => void;

keepShape(new Run({ keepsStacks: false } as Executor, { text: "", values: [] }, "object", undefined));
