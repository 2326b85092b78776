/**
 * One unit of work in the pipeline, from submission to settlement.
 *
 * There is one class for every kind, since the row path stays monomorphic that way (four classes at one call site
 * cost three times as much, bench/micro). Engine and codecs meet only through the shapes declared here.
 */

import type { Notice, ResponseFields } from "../errors.ts";
import type { CopyResponse, Field } from "../wire/backend.ts";
import { keepShape } from "../wire/keep_shape.ts";
import type { Writer } from "../wire/writer.ts";
import * as phase from "./phase.ts";
import { Rare } from "./rare.ts";
import type { Statement, StatementPlan } from "./statement_cache.ts";

/** Makes a row of a DataRow's body, `bytes[start, end)`, which is borrowed. */
export interface RowDecoder {
  (bytes: Uint8Array, start: number, end: number): unknown;
  /** What is still missing in the rows made last; the engine asks for it before it reads on. */
  readonly deferred?: DeferredValues | undefined;
}

/** Values that are made for many rows together. */
export interface DeferredValues {
  /** Puts them into their rows. Throws where one cannot be made. */
  flush(): void;
  /** The rows are of no use. */
  discard(): void;
}

/** Gives meaning to columns. One planner object stands for one way of decoding: statements cache by its identity. */
export interface RowPlanner {
  /**
   * A decoder for rows of these fields in these formats.
   *
   * @param dateStyle the session's DateStyle, where it is sure to be that of the rows, and its TimeZone
   */
  plan(fields: readonly Field[], dateStyle?: string): RowDecoder;
  /** The format codes to ask for when the fields are known. */
  formats(fields: readonly Field[]): readonly (0 | 1)[];
}

/** The parameters of one execution. */
export interface Parameters {
  /** The values, or what {@linkcode snapshot} made of them. */
  readonly values: readonly unknown[];
  /** Type OIDs to declare in Parse; 0 or missing leaves a type to the server. */
  readonly declaredTypes: readonly number[];
  /** Whether the values can be written only when the server's types are known, or what their names stand for. */
  readonly ambiguous: boolean;
  /**
   * Appends the middle of a Bind: format codes, then values.
   *
   * @param types the server's parameter types, `null` when not known yet
   * @throws {ValueError} when a value does not fit; the engine takes back what was written
   */
  write(writer: Writer, types: readonly number[] | null): void;
  /**
   * Takes what type names stand for; gives the error where one is missing. Called before the values are written, for
   * requests with names.
   */
  resolve?(oids: ReadonlyMap<string, number>): Error | null;
  /** Called when the values have to wait: takes copies of what the caller might change. */
  snapshot(): void;
}

/** Finds out what has to be known of types before a request's values are written, or before its rows come. */
export interface Learner {
  /** Whether something of a described statement is not known yet. */
  lacks(statement: Pick<Statement, "parameterTypes" | "fields">): boolean;
  /**
   * What to ask the server next: a request, or several linked by `next`, without a Sync. `null` when all is known that
   * can be: the request is then written as it is.
   *
   * @param inBlock whether a failure would fail a transaction block
   */
  ask(request: Request, inBlock: boolean): Request | null;
  /**
   * Asks what names stand for: a segment of its own.
   *
   * @param onAnswer called when it has settled, with what was found; 0 for nothing
   */
  askNames(
    names: readonly string[],
    inBlock: boolean,
    onAnswer: (oids: readonly number[] | null, failed: Request | null) => void,
  ): Request;
  /** What mends the transaction block that a question has failed, if it stood in one. */
  undo(): Request | null;
}

/** What one statement gave. */
export interface StatementResult {
  /** `null` for a statement that returns no rows. */
  readonly fields: readonly Field[] | null;
  readonly rows: unknown[];
  /** Command tag (`INSERT 0 5`); empty for an empty query. */
  readonly tag: string;
}

/** A simple Query: text only, several statements. */
export const SIMPLE = 0;
/** Parse if needed, Bind, Execute. */
export const EXTENDED = 1;
/** Parse and Describe: nothing is executed. */
export const DESCRIBE = 2;
/**
 * Like EXTENDED, a batch of rows at a time, with Flush in place of Sync until the end: holds the connection, and needs
 * no transaction block.
 */
export const STREAM = 3;
/** Execute of a named portal that is open: its next batch of rows. */
export const FETCH = 4;
/** Close of a prepared statement or a portal. */
export const CLOSE = 5;

/** Which Sync follows a request. */
export const SYNC_EACH = 0;
/** None: the next request of the batch is of the same segment. */
export const SYNC_LATER = 1;
/** One may be shared with requests that follow in the same turn: inside a transaction block. */
export const SYNC_SHARED = 2;

/** Makes the error for whoever awaits; called in the caller's own context, so that its stack is the caller's. */
export type Failure = () => Error;

/** Who gives or takes the data of a COPY. */
export interface CopySink {
  /** `in`: the server waits for data; `out`: it is going to send some. */
  readonly direction: "in" | "out";
  /** The server is ready. */
  onCopyResponse(response: CopyResponse): void;
  /** Data has come: `bytes[start, end)`, which is borrowed. */
  onCopyData(bytes: Uint8Array, start: number, end: number): void;
}

/** Who wants to know when things happen; the engine has no clock. */
export interface RequestTrace {
  onWritten(): void;
  onFirstRow(): void;
}

/** A pool: what it gives to a connection may have to go elsewhere. */
export interface RequestOwner {
  /** Told of the settlement, behind the observers and before whoever waits. */
  onSettled(request: Request): void;
  /** Asked before a request of which nothing was sent fails with its connection; true when it goes elsewhere. */
  reroute(request: Request): boolean;
}

/**
 * Told once of a request's settlement, when everything is final. For queries, which are many, it is an object: the code
 * compiled for a closure is thrown away by a full collection that finds none of its closures alive.
 */
export type Listener = ((request: Request) => void) | { onSettled(request: Request): void };

/** Tells a listener of a request. */
export function tell(listener: Listener, request: Request): void {
  if (typeof listener === "function") listener(request);
  else listener.onSettled(request);
}

/** What a request may be or have become, a bit each. */
const ALONE = 1 << 0;
const LAST = 1 << 1;
const NOT_CACHEABLE = 1 << 2;
const IN_BATCH = 1 << 3;
const NAMED = 1 << 4;
const DESCRIBES = 1 << 5;
const PARSES = 1 << 6;
const SUSPENDED = 1 << 7;
const SEGMENT_END = 1 << 8;
const LOST_STATEMENT = 1 << 9;
const RETRIED = 1 << 10;
const SETTLED = 1 << 11;
const ABORTED = 1 << 12;

/**
 * What to do, and what came of it.
 *
 * Many thousands may be under way at once: what few of them have is kept apart, and what is yes or no in bits.
 */
export class Request {
  readonly kind: number;
  readonly text: string;
  readonly parameters: Parameters;
  /** Replaced when types have been learnt before its rows come. */
  planner: RowPlanner;
  readonly #listener: Listener;
  #flags: number = 0;
  #rare: Rare | null = null;

  /** `SYNC_EACH`, `SYNC_LATER` or `SYNC_SHARED`. */
  sync: number = SYNC_EACH;
  trace: RequestTrace | null = null;
  /** Who put it where it is, if anybody has to know what becomes of it. */
  owner: RequestOwner | null = null;
  /** Where its owner has put it. */
  place: unknown = null;
  /** Told of the settlement before whoever waits. */
  observer: ((request: Request) => void) | null = null;
  /** The next request of the same segment. */
  next: Request | null = null;

  phase: number = phase.QUEUED;
  statement: Statement | null = null;
  plan: StatementPlan | null = null;
  /** Bytes written for it. */
  size: number = 0;

  /** Result so far: of the statement being answered. */
  fields: readonly Field[] | null = null;
  decoder: RowDecoder | null = null;
  #rows: unknown[] | null = null;
  tag: string = "";
  /** Set when it failed; the first failure stays. */
  failure: Failure | null = null;

  constructor(
    kind: number,
    text: string,
    parameters: Parameters,
    planner: RowPlanner,
    listener: Listener,
  ) {
    this.kind = kind;
    this.text = text;
    this.parameters = parameters;
    this.planner = planner;
    this.#listener = listener;
  }

  /** Rows so far; `null` when there has been none. */
  get someRows(): unknown[] | null {
    return this.#rows;
  }

  /** The same, an empty list when there has been none. */
  get rows(): unknown[] {
    return this.#rows ??= [];
  }
  set rows(rows: unknown[]) {
    this.#rows = rows;
  }

  /** Whether nothing may be in flight before it or behind it. */
  get alone(): boolean {
    return (this.#flags & ALONE) !== 0;
  }
  set alone(value: boolean) {
    this.#set(ALONE, value);
  }

  /** Whether nothing may be written behind it until it has settled. */
  get last(): boolean {
    return (this.#flags & LAST) !== 0;
  }
  set last(value: boolean) {
    this.#set(LAST, value);
  }

  /** Whether its statement may be kept under a name. */
  get cacheable(): boolean {
    return (this.#flags & NOT_CACHEABLE) === 0;
  }
  set cacheable(value: boolean) {
    this.#set(NOT_CACHEABLE, !value);
  }

  /** Whether it is one of a batch: with the others it is committed or rolled back. */
  get inBatch(): boolean {
    return (this.#flags & IN_BATCH) !== 0;
  }
  set inBatch(value: boolean) {
    this.#set(IN_BATCH, value);
  }

  /** Whether its statement gets a name of its own, outside the cache. */
  get named(): boolean {
    return (this.#flags & NAMED) !== 0;
  }
  set named(value: boolean) {
    this.#set(NAMED, value);
  }

  /** Whether its statement must be described before it is executed. */
  get describes(): boolean {
    return (this.#flags & DESCRIBES) !== 0;
  }
  set describes(value: boolean) {
    this.#set(DESCRIBES, value);
  }

  /** Whether this request sent the Parse of its statement. */
  get parses(): boolean {
    return (this.#flags & PARSES) !== 0;
  }
  set parses(value: boolean) {
    this.#set(PARSES, value);
  }

  /** Whether the portal has more rows to give. */
  get suspended(): boolean {
    return (this.#flags & SUSPENDED) !== 0;
  }
  set suspended(value: boolean) {
    this.#set(SUSPENDED, value);
  }

  /** Whether a Sync, or the Query itself, ends its segment here. */
  get segmentEnd(): boolean {
    return (this.#flags & SEGMENT_END) !== 0;
  }
  set segmentEnd(value: boolean) {
    this.#set(SEGMENT_END, value);
  }

  /** Whether the server lost or outdated its statement before Bind. */
  get lostStatement(): boolean {
    return (this.#flags & LOST_STATEMENT) !== 0;
  }
  set lostStatement(value: boolean) {
    this.#set(LOST_STATEMENT, value);
  }

  /** Whether it has been prepared again after the server lost or outdated its statement. */
  get retried(): boolean {
    return (this.#flags & RETRIED) !== 0;
  }
  set retried(value: boolean) {
    this.#set(RETRIED, value);
  }

  /** Whether nothing will change any more. */
  get settled(): boolean {
    return (this.#flags & SETTLED) !== 0;
  }
  set settled(value: boolean) {
    this.#set(SETTLED, value);
  }

  /** Whether whoever waited has given up: it fails with their reason, whatever the server says. */
  get aborted(): boolean {
    return (this.#flags & ABORTED) !== 0;
  }
  set aborted(value: boolean) {
    this.#set(ABORTED, value);
  }

  /** Rows of one Execute; 0 for all. */
  get maxRows(): number {
    return this.#rare === null ? 0 : this.#rare.maxRows;
  }
  set maxRows(value: number) {
    if (this.#rare !== null || value !== 0) this.#change().maxRows = value;
  }

  /** The portal to make, or to go on with; empty for the unnamed one. */
  get portal(): string {
    return this.#rare === null ? "" : this.#rare.portal;
  }
  set portal(value: string) {
    if (this.#rare !== null || value !== "") this.#change().portal = value;
  }

  /** Called when a STREAM has a batch of rows and waits for `fetch` or `finish`. */
  get onSuspended(): ((request: Request) => void) | null {
    return this.#rare === null ? null : this.#rare.onSuspended;
  }
  set onSuspended(value: ((request: Request) => void) | null) {
    if (this.#rare !== null || value !== null) this.#change().onSuspended = value;
  }

  /** Type names whose meaning the session has to tell first; of the first request of a segment, those of all. */
  get names(): readonly string[] | null {
    return this.#rare === null ? null : this.#rare.names;
  }
  set names(value: readonly string[] | null) {
    if (this.#rare !== null || value !== null) this.#change().names = value;
  }

  /** Asks for types that it needs, where it may need any. */
  get learner(): Learner | null {
    return this.#rare === null ? null : this.#rare.learner;
  }
  set learner(value: Learner | null) {
    if (this.#rare !== null || value !== null) this.#change().learner = value;
  }

  /** The request for which this one asks for types: it stands in front of it, in its segment. */
  get asksFor(): Request | null {
    return this.#rare === null ? null : this.#rare.asksFor;
  }
  set asksFor(value: Request | null) {
    if (this.#rare !== null || value !== null) this.#change().asksFor = value;
  }

  /** For a SIMPLE request that is a COPY; used once. */
  get copy(): CopySink | null {
    return this.#rare === null ? null : this.#rare.copy;
  }
  set copy(value: CopySink | null) {
    if (this.#rare !== null || value !== null) this.#change().copy = value;
  }

  /** CloseCompletes to expect first, with the names. */
  get closing(): string[] | null {
    return this.#rare === null ? null : this.#rare.closing;
  }
  set closing(value: string[] | null) {
    if (this.#rare !== null || value !== null) this.#change().closing = value;
  }

  /** Results of the statements of a simple query. */
  get results(): StatementResult[] | null {
    return this.#rare === null ? null : this.#rare.results;
  }
  set results(value: StatementResult[] | null) {
    if (this.#rare !== null || value !== null) this.#change().results = value;
  }

  get notices(): Notice[] | null {
    return this.#rare === null ? null : this.#rare.notices;
  }
  set notices(value: Notice[] | null) {
    if (this.#rare !== null || value !== null) this.#change().notices = value;
  }

  /** The server's error, where that was the failure. */
  get serverError(): ResponseFields | null {
    return this.#rare === null ? null : this.#rare.serverError;
  }
  set serverError(value: ResponseFields | null) {
    if (this.#rare !== null || value !== null) this.#change().serverError = value;
  }

  #set(flag: number, value: boolean): void {
    this.#flags = value ? this.#flags | flag : this.#flags & ~flag;
  }

  #change(): Rare {
    return this.#rare ??= new Rare();
  }

  /** Everything is final: tells whoever waits. */
  settle(): void {
    this.settled = true;
    if (this.observer !== null) this.observer(this);
    if (this.owner !== null) this.owner.onSettled(this);
    tell(this.#listener, this);
  }

  /** Back to the state before it was written. */
  reset(): void {
    this.phase = phase.QUEUED;
    this.statement =
      this.plan =
      this.failure =
      this.fields =
      this.decoder =
        null;
    this.serverError = this.notices = null;
    this.#flags &= ~(SEGMENT_END | LOST_STATEMENT | PARSES | RETRIED);
    this.size = 0;
    this.#rows = null;
    this.tag = "";
  }

  /** Notes a failure unless there is one already. */
  fail(failure: Failure): void {
    if (this.failure === null) this.failure = failure;
    this.decoder = null;
  }
}

/** No parameters at all. */
export const NO_PARAMETERS: Parameters = {
  values: [],
  declaredTypes: [],
  ambiguous: false,
  write(writer: Writer): void {
    writer.int32(0); // Int16 no format codes, Int16 no values
  },
  snapshot(): void {},
};

keepShape(
  new Request(EXTENDED, "", NO_PARAMETERS, { plan: () => () => undefined, formats: () => [] }, () => {}),
);
