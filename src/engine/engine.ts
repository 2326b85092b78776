// size: one class, whose halves share the queue; what can stand alone is in request_writer, pipeline and failures.
/**
 * The protocol's steady state, without I/O: bytes in, bytes out, requests settled.
 *
 * What must not be here: sockets, promises, clocks, values. After any call the owner takes the output. `receive`
 * never throws for what the server reports (that settles requests); it throws a ProtocolError only when the peer
 * breaks the protocol, after every request has failed, and the connection must then be closed.
 */

import {
  ConnectionError,
  createNotice,
  type Notice,
  PostgresError,
  ProtocolError,
  type ResponseFields,
} from "../errors.ts";
import * as backend from "../wire/backend.ts";
import { type Framer, HEADER } from "../wire/framer.ts";
import * as types from "../wire/message_types.ts";
import type { Writer } from "../wire/writer.ts";
import {
  asError,
  copyRefused,
  expectPhase,
  failSegment,
  failUnexpected,
  neverRan,
  readEmpty,
} from "./failures.ts";
import * as phase from "./phase.ts";
import { Pipeline } from "./pipeline.ts";
import {
  DESCRIBE,
  EXTENDED,
  type Failure,
  type Request,
  type RowDecoder,
  SIMPLE,
  STREAM,
  SYNC_EACH,
  SYNC_SHARED,
} from "./request.ts";
import { RequestWriter } from "./request_writer.ts";
import { link, mayRepeat, Retries } from "./retries.ts";
import type { Session } from "./session.ts";
import { COMMAND_COMPLETE, COMMAND_COMPLETE_AND_READY, endOfOnlyRow, ONE_ROW_TAG } from "./short_reply.ts";
import { isDefinition } from "./session_names.ts";
import { StatementCache } from "./statement_cache.ts";

/** What the engine tells its owner besides settling requests. */
export interface EngineEvents {
  onNotice(notice: Notice): void;
  onNotification(notification: backend.Notification): void;
  /** What LISTEN did may be undone: `by` this request, or else by the end of a transaction block. */
  onListenUndone(by?: Request): void;
  onParameterStatus(name: string, value: string): void;
}

/** Limits and names that the engine cannot make up itself. */
export interface EngineOptions {
  /** Requests in flight at most. */
  readonly maxQueries: number;
  /** Bytes of requests in flight at most; one request may always be in flight. */
  readonly maxBytes: number;
  /** Prepared statements kept; 0 uses the unnamed statement only. */
  readonly statementCache: number;
  /** Makes statement names unique among all sessions of a server. */
  readonly statementPrefix: string;
}

const DATE_STYLE = "DateStyle";
const SEARCH_PATH = "search_path";

/** Drives one session that establishing has brought to its first ReadyForQuery. */
export class Engine {
  readonly session: Session;
  readonly #framer: Framer;
  readonly #writer: RequestWriter;
  readonly #events: EngineEvents;
  readonly #options: EngineOptions;
  readonly #pipeline: Pipeline = new Pipeline();
  readonly #retries: Retries = new Retries();
  /** The request behind which nothing may be written until it has settled. */
  #gate: Request | null = null;
  /** How many reasons there are to write no request at all. */
  #blocks: number = 0;
  /** The request that an ErrorResponse came for: only ReadyForQuery may follow. */
  #culprit: Request | null = null;
  /** A request that starts again when its segment ends: what it asked for was refused. */
  #again: Request | null = null;
  #bytesInFlight: number = 0;
  /** Why nothing works any more. */
  #ended: Failure | null = null;
  /** The last command tag: the next one is mostly the same. */
  #tag: string = "";
  /** The last one that changes nothing but data. */
  #harmless: string = "";
  /** Whether the block that is open, or the segment, has altered what statements may refer to. */
  #altered: boolean = false;
  /** A FATAL error that the server gave before it closed. */
  #fatal: ResponseFields | null = null;

  constructor(
    session: Session,
    framer: Framer,
    writer: Writer,
    events: EngineEvents,
    options: EngineOptions,
  ) {
    this.session = session;
    this.#framer = framer;
    const { statementCache, statementPrefix } = options;
    this.#writer = new RequestWriter(writer, new StatementCache(statementCache, statementPrefix));
    this.#events = events;
    this.#options = options;
    this.#noteDateStyle();
  }

  #noteDateStyle(): void {
    const dateStyle = this.session.parameters.get(DATE_STYLE);
    this.#writer.describesFirst = dateStyle !== undefined && !dateStyle.startsWith("ISO");
  }

  /** Requests in flight and segments waiting. */
  get load(): number {
    return this.#pipeline.inFlight + this.#pipeline.waiting + this.#retries.count;
  }

  /** Whether the server has said that it ends the session. */
  get doomed(): boolean {
    return this.#fatal !== null;
  }

  /** Whether the server owes an answer: something is in flight, and it does not wait for a consumer or for copy data. */
  get awaitsServer(): boolean {
    const current = this.#pipeline.current?.phase;
    return this.#pipeline.inFlight > 0 && current !== phase.SUSPENDED && current !== phase.COPY_IN;
  }

  /** Whether requests wait for what is up to the caller: the end of a stream, of a COPY, of a transaction block. */
  get waitsForCaller(): boolean {
    if (this.#retries.count > 0 && !this.#retriesFirst) return true;
    const gate = this.#gate;
    return gate !== null && this.#pipeline.waiting + this.#retries.count > 0 &&
      (gate.kind === STREAM || gate.copy !== null);
  }

  /** Fails the requests that wait for that: nothing of them has been done. */
  refuseWaiting(failure: (cause?: Error) => Error): void {
    const gated = this.#gate !== null;
    for (const { segment, lost } of this.#retries.takeAll()) {
      failAll(segment, () => failure(new PostgresError(lost, segment.text)));
    }
    if (gated) { for (const segment of this.#pipeline.takePending()) failAll(segment, () => failure()); }
  }

  /** Whether every request has settled. */
  get idle(): boolean {
    return this.load === 0;
  }

  /** Adds a request, or the first of a batch linked by `next`, to the queue; writes it if nothing is before it. */
  submit(segment: Request): void {
    if (this.#ended !== null) return this.#refuse(segment, this.#ended);
    if (this.#pipeline.waiting === 0 && !this.#retriesFirst && this.#mayWrite(segment)) {
      this.#write(segment);
      if (this.#pipeline.waiting > 0) this.#pump();
      return;
    }
    takeSnapshots(segment);
    this.#pipeline.enqueue(segment);
    if (segment.names !== null) this.#askNames();
  }

  /** Takes a request that has not been written out of the queue; false when it is too late. */
  withdraw(segment: Request): boolean {
    return this.#pipeline.removePending(segment) || this.#retries.remove(segment);
  }

  /** Whether the server is answering this request now, or one behind it in its batch, as far as can be known. */
  isAnswering(request: Request): boolean {
    const { current } = this.#pipeline;
    for (let each: Request | null = request; each !== null; each = each.next) {
      if (each === current || (current !== undefined && current.asksFor === each)) {
        return this.#culprit === null;
      }
    }
    return false;
  }

  /** Whether a request with SYNC_SHARED, submitted now, joins the segment of the one submitted last. */
  joins(request: Request): boolean {
    if (!this.#writer.sharing || this.#pipeline.waiting > 0 || !this.#hasRoom) return false;
    if (this.#retriesFirst || this.#blocks > 0) return false;
    if (request.names !== null && this.#writer.names.unresolved(request) !== null) return false;
    return !this.#writer.mustHold(request);
  }

  /** Writes no request until {@linkcode unblock} is called as often. */
  block(): void {
    this.#blocks++;
  }

  /** Takes one {@linkcode block} back. */
  unblock(): void {
    this.#blocks--;
    this.#pump();
  }

  /** Asks for the next batch of a stream that is suspended. */
  fetch(request: Request): void {
    if (request.phase !== phase.SUSPENDED) return;
    this.#writer.writeFetch(request);
  }

  /** Ends a stream that is suspended: its portal is closed. */
  finish(request: Request): void {
    if (request.phase !== phase.SUSPENDED) return;
    this.#writer.writeFinish(request);
  }

  /** Data for a COPY FROM STDIN that waits for it; false when it does not any more. */
  copyData(request: Request, data: Uint8Array | string): boolean {
    if (request.phase !== phase.COPY_IN || this.#culprit !== null) return false;
    this.#writer.writeCopyData(data);
    return true;
  }

  /** Ends the data of a COPY FROM STDIN; with a reason, so that nothing is stored. */
  copyEnd(request: Request, reason?: string): void {
    if (request.phase !== phase.COPY_IN || this.#culprit !== null) return;
    if (reason !== undefined) return this.#writer.writeCopyAbort(reason);
    this.#writer.writeCopyDone();
    request.phase = phase.SIMPLE;
  }

  /** Bytes that wait to be taken. */
  get outputLength(): number {
    return this.#writer.length;
  }

  /** The bytes to send now, or `null`. They are given away for good. */
  takeOutput(): Uint8Array | null {
    const output = this.#writer.take();
    if (output !== null) this.#pipeline.markTaken();
    return output;
  }

  /**
   * Takes bytes from the server; they are borrowed until the call returns.
   *
   * @throws {ProtocolError} when the peer broke the protocol; every request has failed then
   */
  receive(chunk: Uint8Array): void {
    const framer = this.#framer;
    framer.feed(chunk);
    try {
      let more = framer.next();
      while (more) {
        if (framer.type === 0x44 /* 'D' DataRow */) more = this.#onDataRows();
        else {
          if (framer.type !== types.BIND_COMPLETE || !this.#takesAtOnce()) {
            this.#onMessage(framer.type, framer.bytes, framer.start, framer.end);
          }
          more = framer.next();
        }
      }
    } catch (error) {
      const cause = error instanceof ProtocolError
        ? error
        : new ProtocolError("Cannot go on", { cause: error });
      this.#end(() => new ProtocolError(cause.message, { cause }));
      throw cause;
    }
    if (this.#pipeline.waiting > 0 || this.#retries.count > 0) this.#pump();
  }

  /**
   * The stream has ended: everything that has not settled fails.
   *
   * @param cause what the transport said, if anything
   */
  receiveEnd(cause?: Error): void {
    const fatal = this.#fatal;
    this.#end((sent) => {
      const reason = fatal !== null ? new PostgresError(fatal) : cause ??
        (this.#framer.midMessage ? new ProtocolError("The stream ended inside a message") : undefined);
      const why = reason === undefined ? "the server closed it" : reason.message;
      return new ConnectionError(`Connection lost: ${why}`, { code: "CONNECTION_LOST", sent, cause: reason });
    });
  }

  /** Ends by our own will: everything that has not settled fails with what `failure` makes. */
  abandon(failure: (sent: boolean | "unknown") => Error): void {
    this.#end(failure);
  }

  // Writing.

  #mayWrite(segment: Request): boolean {
    if (this.#writer.held !== null || this.#gate !== null || this.#blocks > 0) return false;
    if (segment.names !== null && this.#writer.names.unresolved(segment) !== null) return false;
    if (this.#pipeline.inFlight === 0) return true;
    if (segment.alone || !this.#hasRoom) return false;
    return this.#options.statementCache > 0 || !(this.#writer.describesFirst || needsFlush(segment));
  }

  get #hasRoom(): boolean {
    return this.#pipeline.inFlight < this.#options.maxQueries &&
      this.#bytesInFlight < this.#options.maxBytes;
  }

  /** Whether what runs again goes before all that has not been written. */
  get #retriesFirst(): boolean {
    return this.#retries.count > 0 &&
      (this.#retries.begun || this.session.transactionStatus === types.IDLE);
  }

  #pump(): void {
    while (this.#retriesFirst) {
      // What is in flight may open a block.
      if (!this.#retries.begun && this.#pipeline.inFlight > 0) return;
      if (!this.#mayWrite(this.#retries.first!)) return;
      const { segment, lost, vain } = this.#retries.take();
      if (!vain) this.#write(segment);
      else this.#unwrite(segment, segment, new PostgresError(lost, segment.text));
    }
    for (;;) {
      const segment = this.#pipeline.firstPending;
      if (segment === undefined) return;
      if (!this.#mayWrite(segment)) return segment.names === null ? undefined : this.#askNames();
      this.#pipeline.dequeue();
      this.#write(segment);
    }
  }

  /** Asks what the names of the first segment that waits stand for, once it is known whether a block is open. */
  #askNames(): void {
    const segment = this.#pipeline.firstPending;
    if (segment?.names == null || this.#pipeline.inFlight > 0) return;
    if (this.#writer.held !== null || this.#gate !== null || this.#blocks > 0) return;
    const names = this.#writer.names.missing(segment.names);
    if (names.length === 0) return;
    this.#blocks++;
    const inBlock = this.session.transactionStatus !== types.IDLE;
    const { learner } = segment;
    const question = learner!.askNames(names, inBlock, (oids, failed) => {
      this.#blocks--;
      names.forEach((name, i) => {
        if (oids !== null && oids[i] !== 0) this.#writer.names.set(name, oids[i]!);
      });
      const undo = failed === null ? null : learner!.undo();
      if (undo !== null && this.#ended === null) this.#write(undo);
      this.#refuseNames(segment, failed);
    });
    this.#write(question);
  }

  /** Fails a segment whose names stand for nothing. */
  #refuseNames(segment: Request, failed: Request | null): void {
    const culprit = this.#writer.names.unresolved(segment);
    if (culprit === null || !this.#pipeline.removePending(segment)) return;
    // The server may know the name, but was not to be asked.
    const inVain = failed !== null && (failed.serverError === null || failed.serverError["C"] === "25P02");
    const failure = inVain ? failed.failure!() : this.#writer.names.errorOf(culprit);
    this.#unwrite(segment, culprit, failure);
  }

  /** Writes a whole segment, up to where a description must come first; on an unfit value, nothing. */
  #write(segment: Request): void {
    // The server could skip the description up to the shared Sync, and the queue would wait for it in vain.
    if (segment.sync !== SYNC_SHARED || this.#writer.mustHold(segment)) this.#writer.payOwedSync();
    const mark = this.#writer.mark();
    const inFlight = this.#pipeline.inFlight;
    if (segment.alone || segment.last || segment.kind === STREAM) this.#gate = segment;
    let request: Request | null = segment;
    let before = mark;
    // A codec may submit a request itself, in the midst of a message.
    this.#blocks++;
    try {
      for (; request !== null; request = request.next) {
        before = this.#writer.mark();
        this.#writer.writeRequest(request);
        request.size = this.#writer.mark() - before;
        this.#bytesInFlight += request.size;
        this.#pipeline.push(request);
        if (request.trace !== null) request.trace.onWritten();
        if (this.#writer.held !== null) return takeSnapshots(request);
      }
    } catch (error) {
      if (this.#writeAnew(request!, before)) return takeSnapshots(request!);
      this.#writer.rewind(mark);
      this.#pipeline.truncate(inFlight);
      this.#gate = null;
      this.#unwrite(segment, request!, error);
    } finally {
      this.#blocks--;
    }
  }

  /**
   * A value does not fit what is known of its parameter: that may be little, or not true any more. Has the statement
   * described anew before the value is refused; false when that cannot help, or when nothing of a batch may run first.
   *
   * @param before where the request's bytes begin
   */
  #writeAnew(request: Request, before: number): boolean {
    const { statement, parameters } = request;
    if (statement === null || !statement.described || request.parses) return false;
    if (statement.parameterTypes?.length !== parameters.values.length) return false;
    const lacks = request.learner?.lacks(statement) === true;
    if (request.inBatch && !lacks) {
      this.#writer.forget(statement);
      return false;
    }
    this.#writer.rewind(before);
    if (!parameters.ambiguous && !lacks && !this.#writer.takesAsText(parameters)) return false;
    // Should what is before it in a shared segment fail, it must not run either.
    this.#writer.syncOwedBy = null;
    this.#writer.writeAnew(request);
    request.size = this.#writer.mark() - before;
    this.#bytesInFlight += request.size;
    this.#pipeline.push(request);
    if (request.trace !== null) request.trace.onWritten();
    return true;
  }

  /** Fails a segment of which nothing is left in the output. */
  #unwrite(segment: Request, culprit: Request, error: unknown): void {
    const settled: Request[] = [];
    for (let request: Request | null = segment; request !== null; request = request.next) {
      this.#bytesInFlight -= request.size;
      this.#writer.forgetUnprepared(request);
      request.reset();
      request.fail(request === culprit ? () => asError(error) : () => neverRan(error));
      settled.push(request);
    }
    for (const request of settled) request.settle();
  }

  /** The held request's description has come: write its execution and the rest of its batch. */
  #resume(request: Request): void {
    if (this.#ask(request)) return;
    this.#writer.held = null;
    const mark = this.#writer.mark();
    const inFlight = this.#pipeline.inFlight;
    let culprit = request;
    let before = mark;
    this.#blocks++;
    try {
      if (request.aborted) throw request.failure!();
      this.#writer.writeExecution(request, request.statement!);
      for (let next = request.next; next !== null; next = next.next) {
        culprit = next;
        before = this.#writer.mark();
        this.#writer.writeRequest(next);
        this.#pipeline.push(next);
        if (this.#writer.held !== null) break;
      }
    } catch (error) {
      if (culprit === request || !this.#writeAnew(culprit, before)) {
        this.#writer.rewind(mark);
        this.#pipeline.truncate(inFlight);
        this.#abortSegment(request, culprit, error);
      }
    } finally {
      this.#blocks--;
    }
    const size = this.#writer.mark() - mark;
    request.size += size;
    this.#bytesInFlight += size;
  }

  /**
   * Asks for what the held request has to know of types; false when that is nothing. The questions stand in front of it
   * in its own segment, so that nothing changes its place in the order, or the session that answers.
   */
  #ask(held: Request): boolean {
    if (held.learner === null || held.aborted) return false;
    const inBlock = this.session.transactionStatus !== types.IDLE || this.#pipeline.hasAnswered("BEGIN") ||
      this.#pipeline.hasAnswered("START TRANSACTION");
    const first = held.learner.ask(held, inBlock && !held.inBatch);
    for (let each = first; each !== null; each = each.next) {
      each.asksFor = held;
      this.#writer.writeQuestion(each);
      this.#pipeline.pushBeforeLast(each);
    }
    return first !== null;
  }

  /** A question for a held request is answered. */
  #onAnswered(question: Request, held: Request): void {
    this.#pipeline.removeAnswered();
    question.settle();
    if (question.next !== null) return;
    if (held.statement!.name === "") this.#writer.writeAgain(held);
    else this.#resume(held);
  }

  /** The server does not answer a question: the held request has to do without, once what the error undid is mended. */
  #onAskedInVain(held: Request): void {
    const undo = held.learner!.undo();
    held.learner = null;
    this.#culprit = held;
    if (held.inBatch) {
      const refusal = this.#writer.refusalOf(held);
      held.fail(() => asError(refusal));
    } else {
      this.#again = held;
      this.#blocks++;
    }
    this.#writer.writeSync();
    this.#pushRest(held).segmentEnd = true;
    if (undo === null) return;
    this.#writer.writeRequest(undo);
    this.#pipeline.push(undo);
  }

  /** A held request whose question was not answered starts again; its segment's others have settled. */
  #startAgain(request: Request): void {
    this.#again = null;
    this.#blocks--;
    if (request.failure !== null) return this.#settle(request);
    this.#bytesInFlight -= request.size;
    if (this.#gate === request) this.#gate = null;
    request.reset();
    this.#pipeline.enqueueFirst(request);
  }

  /** A value does not fit, and a part of the segment is with the server already: ends the segment. */
  #abortSegment(request: Request, culprit: Request, error: unknown): void {
    request.fail(request === culprit ? () => asError(error) : () => neverRan(error));
    // The Sync must not commit what came before it in a batch.
    if (request.inBatch) this.#writer.writeFailingBind();
    else {
      request.phase = phase.DONE;
      this.#pipeline.advance();
    }
    this.#writer.writeSync();
    let last = request;
    for (let next = request.next; next !== null; next = next.next) {
      next.fail(next === culprit ? () => asError(error) : () => neverRan(error));
      this.#pipeline.push(next);
      last = next;
    }
    last.segmentEnd = true;
  }

  // Reading.

  /** A BindComplete has come: works off the reply when one row is all that comes, and has. Else nothing has happened. */
  #takesAtOnce(): boolean {
    const request = this.#pipeline.single;
    if (request === undefined) return this.#answersAtOnce();
    // A segment by itself, whose end changes nothing but its own state.
    if (!isPlanned(request) || this.#altered || this.#retries.count > 0) return false;
    if (this.#culprit !== null || this.#writer.describesFirst) return false;
    const framer = this.#framer;
    const end = endOfOnlyRow(framer, COMMAND_COMPLETE_AND_READY);
    const status = this.session.transactionStatus;
    if (end === 0 || framer.bytes[end + COMMAND_COMPLETE_AND_READY.length] !== status) return false;
    this.#decodeOnly(request, framer.end + HEADER, end);
    framer.skipTo(end + COMMAND_COMPLETE_AND_READY.length + 1);
    if (this.#ended !== null) return true;
    request.tag = ONE_ROW_TAG;
    request.phase = phase.DONE;
    if (status === types.IDLE) this.#writer.names.onIdle();
    this.#settle(this.#pipeline.takeSingle()!);
    return true;
  }

  /** One of several of a segment. */
  #answersAtOnce(): boolean {
    const request = this.#pipeline.current;
    if (request === undefined || !isPlanned(request) || request.asksFor !== null) return false;
    if (this.#culprit !== null || this.#writer.describesFirst) return false;
    const framer = this.#framer;
    const end = endOfOnlyRow(framer, COMMAND_COMPLETE);
    if (end === 0) return false;
    this.#decodeOnly(request, framer.end + HEADER, end);
    framer.skipTo(end + COMMAND_COMPLETE.length);
    if (this.#ended !== null) return true;
    request.tag = ONE_ROW_TAG;
    request.phase = phase.DONE;
    this.#pipeline.advance();
    return true;
  }

  #decodeOnly(request: Request, start: number, end: number): void {
    const plan = request.plan!;
    request.fields = plan.fields;
    request.phase = phase.ROWS;
    try {
      const row = plan.decoder!(this.#framer.bytes, start, end);
      // A codec may lead to an abort, or to the end.
      if (request.failure === null) request.rows = [row];
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      request.fail(() => asError(error));
    }
  }

  /** Takes the DataRows at hand; true when the framer then shows another message. */
  #onDataRows(): boolean {
    const framer = this.#framer;
    const request = this.#pipeline.current;
    if (
      request === undefined || this.#culprit !== null || request.fields === null ||
      (request.phase !== phase.ROWS && request.phase !== phase.SIMPLE_ROWS)
    ) failUnexpected("D", request, this.#culprit !== null);
    if (request.trace !== null) request.trace.onFirstRow();
    const decoder = request.decoder;
    if (decoder !== null) {
      let more: boolean | undefined = undefined;
      try {
        more = this.#decodeRows(request, decoder);
        if (decoder.deferred !== undefined && more !== undefined) decoder.deferred.flush();
      } catch (error) {
        decoder.deferred?.discard();
        if (error instanceof ProtocolError) throw error;
        request.fail(() => asError(error));
      }
      if (more !== undefined) {
        if (request.failure !== null) request.rows.length = 0;
        return more;
      }
      decoder.deferred?.discard();
    }
    // Nobody wants these rows any more.
    request.rows.length = 0;
    do {
      if (!framer.next()) return false;
    } while (framer.type === 0x44 /* 'D' DataRow */);
    return true;
  }

  /** False when there is no more message, true when there is another one, `undefined` when the rows are not wanted. */
  #decodeRows(request: Request, decoder: RowDecoder): boolean | undefined {
    const framer = this.#framer;
    let rows = request.someRows;
    // A codec may lead to an abort.
    while (request.decoder !== null) {
      const row = decoder(framer.bytes, framer.start, framer.end);
      // The first of many, or the only one: push() would make room for 17.
      if (rows === null || rows.length === 0) rows = request.rows = [row];
      else rows.push(row);
      if (!framer.next()) return false;
      if (framer.type !== 0x44 /* 'D' DataRow */) return true;
    }
    return undefined;
  }

  // size: the one switch over backend messages, in the order of asynchronous ones, frequent ones, the rest.
  #onMessage(type: number, bytes: Uint8Array, start: number, end: number): void {
    switch (type) {
      case types.NOTICE_RESPONSE:
        return this.#onNotice(bytes, start, end);
      case types.PARAMETER_STATUS: {
        const { name, value } = backend.readParameterStatus(bytes, start, end);
        this.session.parameters.set(name, value);
        if (name === DATE_STYLE) this.#noteDateStyle();
        else if (name === SEARCH_PATH) this.#writer.names.forget();
        return this.#events.onParameterStatus(name, value);
      }
      case types.NOTIFICATION_RESPONSE:
        return this.#events.onNotification(backend.readNotificationResponse(bytes, start, end));
      case types.READY_FOR_QUERY:
        return this.#onReadyForQuery(backend.readReadyForQuery(bytes, start, end));
      case types.ERROR_RESPONSE:
        return this.#onErrorResponse(backend.readResponseFields("ErrorResponse", bytes, start, end));
    }
    const request = this.#pipeline.current;
    if (request === undefined || this.#culprit !== null) {
      failUnexpected(String.fromCharCode(type), request, this.#culprit !== null);
    }
    switch (type) {
      case types.BIND_COMPLETE:
        readEmpty("BindComplete", request, phase.BIND, start, end);
        return this.#onBindComplete(request);
      case types.COMMAND_COMPLETE:
        this.#tag = backend.readCommandComplete(bytes, start, end, this.#tag);
        return this.#onCommandComplete(request, this.#tag);
      case types.PARSE_COMPLETE:
        readEmpty("ParseComplete", request, phase.PARSE, start, end);
        request.phase = phase.PARAMETERS;
        return;
      case types.PARAMETER_DESCRIPTION:
        expectPhase("t", request, phase.PARAMETERS);
        request.statement!.parameterTypes = backend.readParameterDescription(bytes, start, end);
        request.phase = phase.FIELDS;
        return;
      case types.ROW_DESCRIPTION:
        return this.#onRowDescription(request, backend.readRowDescription(bytes, start, end));
      case types.NO_DATA:
        readEmpty("NoData", request, phase.FIELDS, start, end);
        return this.#onDescribed(request, null);
      case types.CLOSE_COMPLETE:
        return this.#onCloseComplete(request, start, end);
      case types.PORTAL_SUSPENDED:
        readEmpty("PortalSuspended", request, phase.ROWS, start, end);
        return this.#onPortalSuspended(request);
      case types.EMPTY_QUERY_RESPONSE:
        backend.readEmpty("EmptyQueryResponse", start, end);
        if (request.phase !== phase.ROWS && request.phase !== phase.SIMPLE) {
          failUnexpected("I", request, false);
        }
        return this.#onCommandComplete(request, "");
      case types.COPY_IN_RESPONSE:
      case types.COPY_OUT_RESPONSE:
      case types.COPY_DATA:
      case types.COPY_DONE:
        return this.#onCopy(request, type, bytes, start, end);
    }
    failUnexpected(String.fromCharCode(type), request, false);
  }

  #onNotice(bytes: Uint8Array, start: number, end: number): void {
    const notice = createNotice(backend.readResponseFields("NoticeResponse", bytes, start, end));
    const request = this.#pipeline.current;
    if (request !== undefined) (request.notices ??= []).push(notice);
    this.#events.onNotice(notice);
  }

  #onRowDescription(request: Request, fields: readonly backend.Field[]): void {
    if (request.phase === phase.FIELDS) return this.#onDescribed(request, fields);
    expectPhase("T", request, phase.SIMPLE);
    request.phase = phase.SIMPLE_ROWS;
    request.fields = fields;
    if (request.failure === null) this.#planRows(request, fields);
  }

  #planRows(request: Request, fields: readonly backend.Field[]): void {
    try {
      request.decoder = request.planner.plan(
        fields,
        this.#writer.describesFirst ? this.#dateStyle(request) : undefined,
      );
    } catch (error) {
      request.fail(() => asError(error));
    }
  }

  /** DateStyle and TimeZone of a request's dates, unless something in its own segment may have changed the style. */
  #dateStyle(request: Request): string | undefined {
    const isFirst = request.kind === SIMPLE
      ? request.results === null && !/datestyle/i.test(request.text)
      : !request.inBatch && request.sync === SYNC_EACH;
    if (!isFirst) return undefined;
    const mayChangeZone = request.kind === SIMPLE && /time\s*zone/i.test(request.text);
    return mayChangeZone ? this.session.parameters.get(DATE_STYLE) : this.session.dateSettings;
  }

  #onDescribed(request: Request, fields: readonly backend.Field[] | null): void {
    const statement = request.statement!;
    statement.fields = fields;
    statement.described = true;
    if (request.kind === DESCRIBE) {
      request.fields = fields;
      request.phase = phase.DONE;
      return this.#pipeline.advance();
    }
    request.phase = phase.BIND;
    if (this.#writer.held === request) this.#resume(request);
  }

  #onBindComplete(request: Request): void {
    request.phase = phase.ROWS;
    const plan = request.plan;
    // A plan does not know the style of dates in text format.
    if (plan !== null && !this.#writer.describesFirst) {
      request.fields = plan.fields;
      if (request.failure === null) request.decoder = plan.decoder;
      return;
    }
    // First use: text everywhere, as described.
    const fields = plan === null ? request.statement!.fields : plan.fields;
    request.fields = fields;
    if (fields !== null && request.failure === null) this.#planRows(request, fields);
  }

  /** What a command that has ended did to statements, and to LISTEN. */
  #noteTag(request: Request, tag: string): void {
    switch (tag.charCodeAt(0)) {
      case 0x41 /* 'A' */:
      case 0x43 /* 'C' */:
      case 0x44 /* 'D' */:
      case 0x52 /* 'R' */:
        this.#writer.names.onEnded(tag);
        if (tag === "DISCARD ALL" || tag === "DEALLOCATE ALL") this.#writer.forgetAll();
        if (tag === "DISCARD ALL") this.#events.onListenUndone(request);
        if (tag === "COMMIT") this.#altered = false;
        else if (isDefinition(tag)) this.#onAltered();
        else if (tag === "ROLLBACK" && this.#altered) this.#writer.forgetParameters();
        else if (tag.startsWith("DELETE")) break;
        return;
      case 0x53 /* 'S' */:
        if (tag !== "SET") break;
        return this.#writer.names.onEnded(tag);
      case 0x55 /* 'U' */:
        if (tag !== "UNLISTEN") break;
        return this.#events.onListenUndone(request);
    }
    this.#harmless = tag;
  }

  /** The server looks again at what its statements mean, but never gives their parameters other types. */
  #onAltered(): void {
    this.#altered = true;
    this.#writer.forgetParameters();
  }

  #onCommandComplete(request: Request, tag: string): void {
    if (tag !== this.#harmless) this.#noteTag(request, tag);
    request.tag = tag;
    if (request.kind === SIMPLE) {
      if (request.phase !== phase.SIMPLE && request.phase !== phase.SIMPLE_ROWS) {
        failUnexpected("C", request, false);
      }
      (request.results ??= []).push({ fields: request.fields, rows: request.rows, tag });
      request.fields = null;
      request.decoder = null;
      request.rows = [];
      request.phase = phase.SIMPLE;
      return;
    }
    expectPhase("C", request, phase.ROWS);
    request.suspended = false;
    request.phase = phase.DONE;
    if (request.kind === STREAM) {
      this.#writer.writeSync();
      request.segmentEnd = true;
    }
    this.#pipeline.advance();
    if (request.asksFor !== null) this.#onAnswered(request, request.asksFor);
  }

  #onCloseComplete(request: Request, start: number, end: number): void {
    if (request.phase === phase.CLOSE_TARGET) {
      backend.readEmpty("CloseComplete", start, end);
      request.phase = phase.DONE;
      return this.#pipeline.advance();
    }
    readEmpty("CloseComplete", request, phase.CLOSE, start, end);
    request.closing!.pop();
    if (request.closing!.length === 0) request.phase = phase.PARSE;
  }

  #onPortalSuspended(request: Request): void {
    request.suspended = true;
    if (request.kind !== STREAM) {
      if (request.maxRows === 0) failUnexpected("s", request, false);
      request.phase = phase.DONE;
      return this.#pipeline.advance();
    }
    request.phase = phase.SUSPENDED;
    if (request.failure === null) request.onSuspended!(request);
    else this.#writer.writeFinish(request);
  }

  #onCopy(request: Request, type: number, bytes: Uint8Array, start: number, end: number): void {
    const simple = request.kind === SIMPLE;
    switch (type) {
      case types.COPY_IN_RESPONSE:
      case types.COPY_OUT_RESPONSE:
        expectPhase(String.fromCharCode(type), request, simple ? phase.SIMPLE : phase.ROWS);
        return this.#onCopyResponse(request, type, backend.readCopyResponse(bytes, start, end));
      case types.COPY_DONE:
        readEmpty("CopyDone", request, phase.COPY_OUT, start, end);
        request.phase = simple ? phase.SIMPLE : phase.ROWS;
        return;
      default:
        expectPhase("d", request, phase.COPY_OUT);
        if (request.failure === null) request.copy!.onCopyData(bytes, start, end);
    }
  }

  /** Where nobody gives or takes the data, as through a plain query, COPY is refused or passed over. */
  #onCopyResponse(request: Request, type: number, response: backend.CopyResponse): void {
    const copiesIn = type === types.COPY_IN_RESPONSE;
    request.phase = copiesIn ? phase.COPY_IN : phase.COPY_OUT;
    const sink = request.copy;
    const suits = sink !== null && (sink.direction === "in") === copiesIn && request.results === null;
    if (suits && request.failure === null) return sink.onCopyResponse(response);
    request.fail(() =>
      copiesIn ? copyRefused("COPY FROM STDIN", "copyFrom") : copyRefused("COPY TO STDOUT", "copyTo")
    );
    if (copiesIn) this.#writer.writeCopyFail(request);
  }

  #onErrorResponse(fields: ResponseFields): void {
    const severity = fields["V"] ?? fields["S"];
    if (severity === "FATAL" || severity === "PANIC") {
      // It ends the session, whatever was being answered: all that is unsettled fails alike at the end, which follows.
      this.#fatal = fields;
      return;
    }
    // Behind the last answer of a segment it comes from the commit that its Sync asks for.
    const answered = this.#pipeline.answered;
    const request = answered?.segmentEnd ? answered : this.#pipeline.current;
    if (request === undefined || this.#culprit !== null) {
      failUnexpected("E", request, this.#culprit !== null);
    }
    request.serverError = fields;
    request.fail(() => new PostgresError(fields, request.text));
    if (request.asksFor !== null) return this.#onAskedInVain(request.asksFor);
    this.#culprit = request;
    this.#writer.noteLostStatement(request, fields);
    const held = this.#writer.held;
    if (held === null || !this.#pipeline.isAnswering(held)) {
      if (request.kind === STREAM && !request.segmentEnd) {
        this.#writer.writeSync();
        request.segmentEnd = true;
      }
      return;
    }
    // The server skips all up to the Sync: the description will not come.
    this.#writer.writeSync();
    this.#pushRest(held).segmentEnd = true;
  }

  /** The rest of a held batch was never written; it settles with the segment. Returns its last request. */
  #pushRest(held: Request): Request {
    this.#writer.held = null;
    let last = held;
    for (let next = held.next; next !== null; next = next.next) {
      this.#pipeline.push(next);
      last = next;
    }
    return last;
  }

  #onReadyForQuery(status: number): void {
    const before = this.session.transactionStatus;
    this.session.transactionStatus = status;
    const culprit = this.#culprit;
    if (culprit === null && !this.#isAnsweredToSync()) failUnexpected("Z", this.#pipeline.current, false);
    this.#culprit = null;
    if (before !== types.IDLE && status === types.IDLE) this.#events.onListenUndone();
    if (status === types.IDLE) this.#writer.names.onIdle();
    if (this.#altered && status === types.IDLE) this.#onAlteredEnd(culprit !== null);
    const single = this.#pipeline.takeSingle();
    if (single !== undefined) {
      if (culprit !== null && this.#heal([single], culprit, before, status)) return;
      if (this.#retries.count > 0) this.#retries.overtake();
      return this.#settle(single);
    }
    const segment = this.#pipeline.takeSegment();
    if (segment === undefined) failUnexpected("Z", undefined, false);
    const again = this.#again;
    if (culprit !== null && again === null) {
      if (this.#heal(segment, culprit, before, status)) return;
      failSegment(segment, culprit, status);
    }
    if (this.#retries.count > 0) this.#retries.overtake();
    for (const request of segment) if (request !== again) this.#settle(request);
    if (again !== null) this.#startAgain(again);
  }

  /** What altered something has been committed, or undone. */
  #onAlteredEnd(undone: boolean): void {
    this.#altered = false;
    if (undone) this.#writer.forgetParameters();
  }

  /** Whether ReadyForQuery may come: a segment is answered to its end, or a simple query has no more to say. */
  #isAnsweredToSync(): boolean {
    const current = this.#pipeline.current;
    if (current?.kind === SIMPLE && this.#pipeline.answered === undefined) {
      return current.phase === phase.SIMPLE;
    }
    return this.#pipeline.answered?.segmentEnd === true;
  }

  #settle(request: Request): void {
    this.#bytesInFlight -= request.size;
    if (this.#gate === request) this.#gate = null;
    if (request.failure !== null) this.#writer.forgetUnprepared(request);
    request.settle();
  }

  /** Prepares again and executes once more what lost a statement, outside a transaction block only. */
  #heal(segment: Request[], culprit: Request, before: number, after: number): boolean {
    if (before !== types.IDLE || after !== types.IDLE || !mayRepeat(segment, culprit)) return false;
    const lost = culprit.serverError!;
    for (const request of segment) {
      this.#bytesInFlight -= request.size;
      if (this.#gate === request) this.#gate = null;
      this.#writer.forgetUnprepared(request);
      request.reset();
      request.retried = true;
    }
    link(segment);
    takeSnapshots(segment[0]!);
    this.#retries.add({ segment: segment[0]!, lost });
    return true;
  }

  // Ending.

  #refuse(segment: Request, failure: Failure): void {
    if (segment.owner !== null && segment.owner.reroute(segment)) return;
    failAll(segment, failure);
  }

  #end(failure: (sent: boolean | "unknown") => Error): void {
    if (this.#ended !== null) return;
    this.#ended = () => failure(false);
    const taken = this.#pipeline.taken;
    if (this.#writer.held !== null) this.#pushRest(this.#writer.held);
    this.#writer.syncOwedBy = this.#gate = null;
    const inFlight = this.#pipeline.takeInFlight();
    const failed = inFlight.filter((request, i) => i < taken || !goesElsewhere(request));
    failed.forEach((request, i) => request.fail(() => failure(i < taken ? "unknown" : false)));
    const retries = this.#retries.takeAll().map(({ segment }) => segment);
    const pending = [...retries, ...this.#pipeline.takePending()];
    for (const request of failed) request.settle();
    for (const segment of pending) this.#refuse(segment, this.#ended);
  }
}

/** Whether the server is to bind and execute what is planned already, and nobody watches how. */
function isPlanned(request: Request): boolean {
  if (request.phase !== phase.BIND || request.kind !== EXTENDED) return false;
  const { plan } = request;
  if (plan === null || request.failure !== null || request.trace !== null) return false;
  return plan.decoder !== null && plan.decoder.deferred === undefined;
}

/** Fails a segment of which nothing is with the server. */
function failAll(segment: Request, failure: Failure): void {
  for (let request: Request | null = segment; request !== null; request = request.next) {
    request.fail(failure);
    request.settle();
  }
}

/** Whether a request of which nothing was sent is taken care of elsewhere. */
function goesElsewhere(request: Request): boolean {
  if (request.owner === null || request.next !== null || request.inBatch) return false;
  request.reset();
  return request.owner.reroute(request);
}

/**
 * Whether the server is to answer before a Sync. Behind a Sync of others a pooler could take the session away in
 * between, for it only counts Syncs.
 */
function needsFlush(segment: Request): boolean {
  if (segment.kind === STREAM) return true;
  for (let each: Request | null = segment; each !== null; each = each.next) {
    if (each.parameters.ambiguous) return true;
  }
  return false;
}

/** The values of this request and of those behind it in its segment wait to be written. */
function takeSnapshots(segment: Request): void {
  for (let request: Request | null = segment; request !== null; request = request.next) {
    request.parameters.snapshot();
  }
}
