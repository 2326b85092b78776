/**
 * Writes requests: their prepared statements, Bind, Execute, and the Syncs that end segments.
 *
 * It knows nothing of the queue. A value that does not fit makes a method throw with a part written; the engine takes
 * that back.
 */

import type { ResponseFields } from "../errors.ts";
import * as frontend from "../wire/frontend.ts";
import * as types from "../wire/message_types.ts";
import type { Writer } from "../wire/writer.ts";
import * as phase from "./phase.ts";
import {
  CLOSE,
  DESCRIBE,
  FETCH,
  type Parameters,
  type Request,
  SIMPLE,
  STREAM,
  SYNC_EACH,
  SYNC_SHARED,
} from "./request.ts";
import { SessionNames } from "./session_names.ts";
import { ALL_TEXT, ALL_TEXT_END, Statement, type StatementCache } from "./statement_cache.ts";

/** What the server says where a statement was made with the OID of a type that is no more; never translated. */
export function isTypeLost(message: string | undefined): boolean {
  return message?.startsWith("cache lookup failed for type ") ?? false;
}

/**
 * What a value meets that was written for another type than the parameter's: invalid text or binary representation,
 * out of range, no datetime.
 */
const MISREAD: ReadonlySet<string> = new Set(["22P02", "22P03", "22003", "22007", "22008"]);

/** Class 42 is what a text means: a statement that was good has been outdated. */
function isStale(code: string, message: string | undefined): boolean {
  return code === "26000" || code === "0A000" || code.startsWith("42") ||
    (code === "XX000" && isTypeLost(message));
}

/** The frontend's half of the engine. */
export class RequestWriter {
  /** The request whose description must come before its Bind; nothing may be written behind it. */
  held: Request | null = null;
  /**
   * Whether every statement is described before it is executed for the first time, so that its dates come in binary
   * format: for sessions whose DateStyle is not ISO.
   */
  describesFirst: boolean = false;
  /** The request written last, while it still needs a Sync. */
  syncOwedBy: Request | null = null;
  /** What names of types stand for. */
  readonly names: SessionNames = new SessionNames();
  readonly #writer: Writer;
  readonly #statements: StatementCache;
  /** Statements that are of no use any more: the next Parse closes them. */
  #closeLater: string[] = [];

  constructor(writer: Writer, statements: StatementCache) {
    this.#writer = writer;
    this.#statements = statements;
  }

  /** The bytes written, given away for good; `null` when there are none. */
  take(): Uint8Array | null {
    this.payOwedSync();
    return this.#writer.length === 0 ? null : this.#writer.take();
  }

  /** A position to come back to. */
  mark(): number {
    return this.#writer.mark();
  }

  /** Takes back what was written since `mark`. */
  rewind(mark: number): void {
    this.#writer.rewind(mark);
    this.held = null;
  }

  /** Writes the Sync that the last request shares with nobody after all. */
  payOwedSync(): void {
    if (this.syncOwedBy === null) return;
    frontend.writeSync(this.#writer);
    this.syncOwedBy.segmentEnd = true;
    this.syncOwedBy = null;
  }

  /** Whether a request with SYNC_SHARED would join the segment of the one written last. */
  get sharing(): boolean {
    return this.syncOwedBy !== null && this.held === null;
  }

  /** Ends a segment now. */
  writeSync(): void {
    frontend.writeSync(this.#writer);
    this.syncOwedBy = null;
  }

  /** Bytes written and not taken. */
  get length(): number {
    return this.#writer.length;
  }

  /** Data of a COPY FROM STDIN. */
  writeCopyData(data: Uint8Array | string): void {
    const mark = this.#writer.beginMessage(types.COPY_DATA);
    if (typeof data === "string") this.#writer.utf8(data);
    else this.#writer.bytes(data);
    this.#writer.endMessage(mark);
  }

  /** The end of the data. */
  writeCopyDone(): void {
    frontend.writeCopyDone(this.#writer);
  }

  /** No more data, and what has come shall not be stored. */
  writeCopyAbort(reason: string): void {
    frontend.writeCopyFail(this.#writer, reason);
  }

  /** Gives a server that waits for copy data what makes it give up. */
  writeCopyFail(request: Request): void {
    frontend.writeCopyFail(this.#writer, "no data is given to a plain query");
    // While it copies in, the server ignores the Sync that came behind Execute.
    if (request.kind === SIMPLE) return;
    frontend.writeSync(this.#writer);
    request.segmentEnd = true;
  }

  /** A Bind that cannot succeed: makes the server roll back the implicit transaction of a segment. */
  writeFailingBind(): void {
    const mark = frontend.beginBind(this.#writer, "pipegres_abort");
    this.#writer.int32(0); // Int16 no format codes, Int16 no values
    this.#writer.bytes(ALL_TEXT);
    this.#writer.endMessage(mark);
  }

  /** The server has forgotten every statement. */
  forgetAll(): void {
    this.#statements.clear();
  }

  writeRequest(request: Request): void {
    this.names.onWritten(request.text);
    switch (request.kind) {
      case SIMPLE:
        frontend.writeQuery(this.#writer, request.text);
        request.phase = phase.SIMPLE;
        request.segmentEnd = true;
        return;
      case FETCH:
        frontend.writeExecute(this.#writer, request.portal, request.maxRows);
        request.phase = phase.ROWS;
        return this.#writeSyncAfter(request);
      case CLOSE:
        return this.#writeCloseRequest(request);
    }
    const statement = this.#statementFor(request);
    if (statement.described) {
      if (request.describes && request.learner?.lacks(statement) === true) return this.writeAnew(request);
      request.phase = phase.BIND;
      this.writeExecution(request, statement);
      return;
    }
    request.parses = true;
    const writer = this.#writer;
    request.phase = phase.PARSE;
    if (this.#closeLater.length > 0) {
      request.closing = this.#closeLater;
      this.#closeLater = [];
      for (const name of request.closing) frontend.writeClose(writer, types.STATEMENT, name);
      request.phase = phase.CLOSE;
    }
    frontend.writeParse(writer, statement.name, request.text, request.parameters.declaredTypes);
    frontend.writeDescribe(writer, types.STATEMENT, statement.name);
    if (request.kind === DESCRIBE) this.#writeSyncAfter(request);
    else if (this.mustHold(request)) {
      frontend.writeFlush(writer);
      this.held = request;
    } else this.writeExecution(request, statement);
  }

  /** Whether a request's description must come before it is executed, if it is not known. */
  mustHold(request: Request): boolean {
    return this.describesFirst || request.describes || request.parameters.ambiguous;
  }

  /** Prepares a statement once more, which was described already, and holds the request until it is described again. */
  writeAnew(request: Request): void {
    this.#abandon(request.statement!);
    const { retried } = request;
    request.reset();
    request.retried = retried;
    request.describes = true;
    this.writeRequest(request);
  }

  /** The same for the held request, whose unnamed statement has been replaced by those of questions. */
  writeAgain(request: Request): void {
    request.statement = null;
    this.held = null;
    this.writeRequest(request);
  }

  /** Whether values may be sent as they are to a parameter of a type that is not known. */
  takesAsText(parameters: Parameters): boolean {
    return this.#tryValues(parameters, null) === undefined;
  }

  /** Why a described request cannot be written. */
  refusalOf(request: Request): unknown {
    return this.#tryValues(request.parameters, request.statement!.parameterTypes);
  }

  #tryValues(parameters: Parameters, types: readonly number[] | null): unknown {
    const mark = this.#writer.mark();
    try {
      parameters.write(this.#writer, types);
      return undefined;
    } catch (error) {
      return error;
    } finally {
      this.#writer.rewind(mark);
    }
  }

  /** A question for the held request, whose answer is awaited. */
  writeQuestion(request: Request): void {
    const statement = this.#statementFor(request);
    request.parses = true;
    request.phase = phase.PARSE;
    frontend.writeParse(this.#writer, statement.name, request.text, request.parameters.declaredTypes);
    frontend.writeDescribe(this.#writer, types.STATEMENT, statement.name);
    this.writeExecution(request, statement);
    if (request.next === null) frontend.writeFlush(this.#writer);
  }

  #writeCloseRequest(request: Request): void {
    const { statement, portal } = request;
    if (statement === null) frontend.writeClose(this.#writer, types.PORTAL, portal);
    else frontend.writeClose(this.#writer, types.STATEMENT, statement.name);
    request.phase = phase.CLOSE_TARGET;
    this.#writeSyncAfter(request);
  }

  /** The statement to execute: a described one, or one whose Parse this request is to write. */
  #statementFor(request: Request): Statement {
    const prepared = request.statement;
    if (prepared !== null && prepared.described && !prepared.lost) return prepared;
    const cache = this.#statements;
    let statement: Statement;
    if (request.named) statement = new Statement("", cache.newName());
    else if (request.kind === DESCRIBE || !request.cacheable || !cache.accepts(request.text)) {
      // A kept statement that is described already would only be left to execute.
      statement = new Statement("", "");
    } else {
      const declared = request.parameters.declaredTypes;
      const key = declared.length === 0 ? request.text : `${request.text}\0${declared.join()}`;
      let known = cache.get(key);
      // What was lost was mostly lost with others.
      if (known?.described && request.retried) {
        this.forget(known);
        known = undefined;
      }
      if (known === undefined) {
        statement = new Statement(key, cache.newName());
        const evicted = cache.add(statement);
        if (evicted !== undefined) this.#closeLater.push(evicted.name);
      } else statement = known.described ? known : new Statement("", "");
    }
    request.statement = statement;
    return statement;
  }

  /** Bind, Execute and the Sync that the request asks for. */
  writeExecution(request: Request, statement: Statement): void {
    const writer = this.#writer;
    const plan = statement.described ? statement.planFor(request.planner) : null;
    if (plan !== null) request.plan = plan;
    if (request.maxRows > 0 || request.portal !== "") {
      return this.#writePart(request, statement, plan === null ? ALL_TEXT : plan.resultFormats);
    }
    const mark = writer.beginWith(statement.bindHead);
    request.parameters.write(writer, statement.parameterTypes);
    const { inBind, executed, synced } = plan === null ? ALL_TEXT_END : plan.bindEnd;
    if (request.sync === SYNC_EACH) {
      writer.endWith(mark, synced, inBind);
      request.segmentEnd = true;
    } else {
      writer.endWith(mark, executed, inBind);
      if (request.sync === SYNC_SHARED) this.syncOwedBy = request;
    }
  }

  /** The same for a portal that is named, or gives some rows at a time. */
  #writePart(request: Request, statement: Statement, resultFormats: Uint8Array): void {
    const writer = this.#writer;
    const mark = frontend.beginBind(writer, statement.name, request.portal);
    request.parameters.write(writer, statement.parameterTypes);
    writer.bytes(resultFormats);
    writer.endMessage(mark);
    frontend.writeExecute(writer, request.portal, request.maxRows);
    if (request.kind === STREAM) frontend.writeFlush(writer);
    else this.#writeSyncAfter(request);
  }

  /** The next batch of a stream. */
  writeFetch(request: Request): void {
    frontend.writeExecute(this.#writer, request.portal, request.maxRows);
    frontend.writeFlush(this.#writer);
    request.phase = phase.ROWS;
  }

  /** Ends a stream whose portal has more rows. */
  writeFinish(request: Request): void {
    frontend.writeClose(this.#writer, types.PORTAL, request.portal);
    this.writeSync();
    request.phase = phase.CLOSE_TARGET;
    request.segmentEnd = true;
  }

  #writeSyncAfter(request: Request): void {
    if (request.sync === SYNC_EACH) {
      frontend.writeSync(this.#writer);
      request.segmentEnd = true;
    } else if (request.sync === SYNC_SHARED) this.syncOwedBy = request;
  }

  /** A statement whose description never came is not on the server. */
  forgetUnprepared(request: Request): void {
    if (!request.parses || request.statement!.described) return;
    this.#statements.forget(request.statement!);
    // What the server did not come to close is closed another time.
    if (request.closing !== null) this.#closeLater.push(...request.closing);
    request.closing = null;
  }

  /**
   * An error before BindComplete that may come of the statement's age: it is gone, its rows have changed, a type was
   * dropped, the text means something else by now, or a value has been written for a type that its parameter does not
   * have any more. Nothing ran.
   */
  noteLostStatement(request: Request, { C: code = "", M: message }: ResponseFields): void {
    if (request.names !== null && code === "XX000" && isTypeLost(message)) {
      // A name's type is gone, and perhaps another one has the name.
      this.names.forget();
      request.lostStatement = true;
    }
    if (request.kind === SIMPLE || request.parses || request.phase !== phase.BIND) return;
    const isMisread = MISREAD.has(code);
    if (isMisread ? request.statement!.key === "" : !isStale(code, message)) return;
    this.forget(request.statement!);
    // What has outdated it may have given parameters of others another type without a word.
    if (!isMisread) this.forgetParameters();
    // Mostly it is the value's fault: a whole batch is not made again for that.
    request.lostStatement = !isMisread || !request.inBatch;
  }

  /** Prepares a statement anew when it is used again. */
  forget(statement: Statement): void {
    this.#statements.forget(statement);
    if (!statement.lost && statement.name !== "") this.#closeLater.push(statement.name);
    statement.lost = true;
  }

  /** Prepares anew what has parameters: their types may be others. */
  forgetParameters(): void {
    for (const statement of this.#statements.takeWithParameters()) this.#closeLater.push(statement.name);
  }

  /** A user's own statement stays for the user to close. */
  #abandon(statement: Statement): void {
    if (statement.key !== "") this.forget(statement);
  }
}
