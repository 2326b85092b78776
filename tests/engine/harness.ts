/** An engine between arrays of bytes: requests in, messages out, messages in, settled requests out. */

import assert from "node:assert/strict";
import { Engine, type EngineOptions } from "../../src/engine/engine.ts";
import {
  EXTENDED,
  NO_PARAMETERS,
  type Parameters,
  Request,
  type RowPlanner,
  SIMPLE,
  SYNC_EACH,
  SYNC_LATER,
} from "../../src/engine/request.ts";
import { Session } from "../../src/engine/session.ts";
import { ProtocolError } from "../../src/errors.ts";
import { Framer } from "../../src/wire/framer.ts";
import { IDLE } from "../../src/wire/message_types.ts";
import { Writer } from "../../src/wire/writer.ts";
import { concat } from "../_support/backend_writer.ts";
import { type FrontendMessage, FrontendReader } from "../_support/frontend_reader.ts";

/** Rows as arrays of texts; a binary column is shown as `0x…`. Asks for binary where the type is int4. */
export function createPlanner(): RowPlanner {
  return {
    plan: (fields) => (bytes, start, end) => {
      const view = new DataView(bytes.buffer, bytes.byteOffset + start, end - start);
      if (end - start < 2 || view.getUint16(0) !== fields.length) {
        throw new ProtocolError("Cannot read DataRow");
      }
      let at = 2;
      return fields.map(({ format }) => {
        const length = view.getInt32(at);
        at += 4;
        if (length < 0) return null;
        const value = bytes.slice(start + at, start + at + length);
        at += length;
        if (format === 0) return new TextDecoder().decode(value);
        return `0x${Array.from(value, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
      });
    },
    formats: (fields) => fields.map(({ typeOid }) => typeOid === 23 ? 1 : 0),
  };
}

/** Texts as parameters; an Error is a value that cannot be written. */
export function createParameters(
  values: readonly (string | Error)[],
  { ambiguous = false, declared = [] as readonly number[], log = [] as unknown[] } = {},
): Parameters {
  let copied = values;
  return {
    get values(): readonly unknown[] {
      return copied;
    },
    declaredTypes: declared,
    ambiguous,
    write(writer, types) {
      log.push(types);
      writer.int16(0);
      writer.int16(copied.length);
      for (const value of copied) {
        if (value instanceof Error) throw value;
        const mark = writer.mark();
        writer.int32(0);
        writer.utf8(value);
        writer.patchInt32(mark, writer.mark() - mark - 4);
      }
    },
    snapshot() {
      copied = values.slice();
    },
  };
}

/** What to submit. */
export interface Submission {
  readonly kind?: number;
  readonly text?: string;
  readonly parameters?: Parameters;
  readonly planner?: RowPlanner;
  readonly set?: Partial<
    Pick<Request, "sync" | "alone" | "last" | "maxRows" | "portal" | "inBatch" | "cacheable">
  >;
}

/** A request and how often it has settled. */
export interface Outcome {
  readonly request: Request;
  settled: number;
}

const PLANNER = createPlanner();

export class Harness {
  readonly engine: Engine;
  readonly session: Session = new Session();
  /** Texts of requests in the order in which they settled. */
  readonly order: string[] = [];
  readonly notices: string[] = [];
  readonly notifications: string[] = [];
  readonly statuses: string[] = [];
  /** Texts of the requests that may have undone LISTEN; `end` for the end of a block. */
  readonly undone: string[] = [];
  #sent: FrontendReader = new FrontendReader(true);

  constructor(options: Partial<EngineOptions> = {}, status: number = IDLE) {
    this.session.transactionStatus = status;
    this.engine = new Engine(this.session, new Framer(1 << 20), new Writer(), {
      onNotice: ({ message }) => void this.notices.push(message),
      onNotification: ({ channel, payload }) => void this.notifications.push(`${channel}: ${payload}`),
      onListenUndone: (by) => void this.undone.push(by?.text ?? "end"),
      onParameterStatus: (name, value) => void this.statuses.push(`${name}=${value}`),
    }, { maxQueries: 1000, maxBytes: 1 << 20, statementCache: 256, statementPrefix: "s", ...options });
  }

  /** Makes a request that counts its settlements. */
  create({ kind = EXTENDED, text = "select", parameters, planner, set }: Submission = {}): Outcome {
    const request = new Request(kind, text, parameters ?? NO_PARAMETERS, planner ?? PLANNER, () => {
      outcome.settled++;
      this.order.push(text);
    });
    Object.assign(request, set);
    const outcome: Outcome = { request, settled: 0 };
    return outcome;
  }

  submit(submission: Submission = {}): Outcome {
    const outcome = this.create(submission);
    this.engine.submit(outcome.request);
    return outcome;
  }

  simple(text: string): Outcome {
    return this.submit({ kind: SIMPLE, text });
  }

  extended(text: string, ...values: (string | Error)[]): Outcome {
    return this.submit({ text, parameters: createParameters(values) });
  }

  /** Submits requests that share one Sync. */
  batch(...submissions: Submission[]): Outcome[] {
    const outcomes = submissions.map((submission) => this.create(submission));
    outcomes.forEach(({ request }, i) => {
      request.inBatch = true;
      request.sync = i === outcomes.length - 1 ? SYNC_EACH : SYNC_LATER;
      request.next = outcomes[i + 1]?.request ?? null;
    });
    this.engine.submit(outcomes[0]!.request);
    return outcomes;
  }

  /** The messages written since the last call. */
  output(): FrontendMessage[] {
    const bytes = this.engine.takeOutput();
    return bytes === null ? [] : this.#sent.push(bytes);
  }

  /** The types of {@linkcode output}, in one line. */
  sent(): string {
    return this.output().map(({ type }) => type).join(" ");
  }

  /** Gives messages to the engine in one chunk, which is overwritten afterwards. */
  receive(...messages: readonly Uint8Array[]): void {
    const chunk = concat(...messages);
    try {
      this.engine.receive(chunk);
    } finally {
      chunk.fill(0xdb);
    }
  }
}

/** `ErrorName: message`, or undefined while a request has not failed. */
export function failureOf({ request }: Outcome): string | undefined {
  const error = request.failure?.();
  return error && `${error.name}: ${error.message}`;
}

/** Fails unless every request has settled exactly once. */
export function assertSettled(outcomes: readonly Outcome[]): void {
  for (const [i, { request, settled }] of outcomes.entries()) {
    assert.equal(settled, 1, `request ${i} (${request.text}) settled ${settled} times`);
  }
}
