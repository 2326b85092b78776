/**
 * Prepared statements of one session, by text and declared parameter types; least recently used leave first.
 *
 * A statement enters when its Parse is written and is usable from its description on; until then the same text is
 * prepared without a name, so that a failing Parse fails each of its users with the server's own words.
 */

import type { Field } from "../wire/backend.ts";
import { type BindEnd, bindEnd, bindHead } from "../wire/frontend.ts";
import type { RowDecoder, RowPlanner } from "./request.ts";

/** How one planner reads one statement's rows. */
export interface StatementPlan {
  readonly planner: RowPlanner;
  /** Fields with the formats asked for; `null` when no rows are returned. */
  readonly fields: readonly Field[] | null;
  readonly decoder: RowDecoder | null;
  /** The end of a Bind: result format codes with their count. */
  readonly resultFormats: Uint8Array;
  /** The same with what mostly follows it. */
  readonly bindEnd: BindEnd;
}

/** Result format codes that ask for text everywhere. */
export const ALL_TEXT: Uint8Array = new Uint8Array(2);
/** The end of a Bind that asks for them. */
export const ALL_TEXT_END: BindEnd = bindEnd(ALL_TEXT);

const UNNAMED_HEAD: Uint8Array = bindHead("");

/** A statement that the server knows, or is being told of. */
export class Statement {
  readonly key: string;
  /** Its name on the server; empty for the unnamed statement. */
  readonly name: string;
  /** Whether its description has come. */
  described: boolean = false;
  /** Whether the server has lost or outdated it. */
  lost: boolean = false;
  parameterTypes: readonly number[] | null = null;
  /** Fields as described, `null` when no rows are returned. */
  fields: readonly Field[] | null = null;
  #plans: StatementPlan[] = [];
  #bindHead: Uint8Array | null;

  constructor(key: string, name: string) {
    this.key = key;
    this.name = name;
    this.#bindHead = name === "" ? UNNAMED_HEAD : null;
  }

  /** What its Binds begin with, made on first use. */
  get bindHead(): Uint8Array {
    return this.#bindHead ??= bindHead(this.name);
  }

  /** The plan for a planner, made on first use. */
  planFor(planner: RowPlanner): StatementPlan {
    for (const plan of this.#plans) if (plan.planner === planner) return plan;
    const plan = createPlan(this.fields, planner);
    // Planners are few: one for each shape of rows. A caller with ever new ones must not fill the list.
    if (this.#plans.length >= 8) this.#plans.shift();
    this.#plans.push(plan);
    return plan;
  }
}

function createPlan(described: readonly Field[] | null, planner: RowPlanner): StatementPlan {
  if (described === null) {
    return { planner, fields: null, decoder: null, resultFormats: ALL_TEXT, bindEnd: ALL_TEXT_END };
  }
  const formats = planner.formats(described);
  const fields = described.map((field, i) => ({ ...field, format: formats[i] ?? 0 }));
  const resultFormats = encodeFormats(formats);
  return {
    planner,
    fields,
    decoder: planner.plan(fields),
    resultFormats,
    bindEnd: resultFormats === ALL_TEXT ? ALL_TEXT_END : bindEnd(resultFormats),
  };
}

function encodeFormats(formats: readonly (0 | 1)[]): Uint8Array {
  const first = formats[0] ?? 0;
  // One code stands for all columns.
  if (formats.every((format) => format === first)) return first === 0 ? ALL_TEXT : Uint8Array.of(0, 1, 0, 1);
  const bytes = new Uint8Array(2 + 2 * formats.length);
  bytes[0] = formats.length >> 8;
  bytes[1] = formats.length;
  formats.forEach((format, i) => bytes[3 + 2 * i] = format);
  return bytes;
}

// A text that long is rarely sent twice, and would be kept here and by the server.
const MAX_TEXT = 65_536;

/** Names and keeps statements. */
export class StatementCache {
  readonly #capacity: number;
  readonly #prefix: string;
  readonly #statements: Map<string, Statement> = new Map();
  #counter: number = 0;

  /**
   * @param capacity statements kept; 0 keeps none
   * @param prefix makes names unique among all clients of a server, so that a pooler which swaps backends can
   * answer "does not exist" but never run another client's statement
   */
  constructor(capacity: number, prefix: string) {
    this.#capacity = capacity;
    this.#prefix = prefix;
  }

  /** Number of statements kept. */
  get size(): number {
    return this.#statements.size;
  }

  /** Whether a text may be kept at all. */
  accepts(text: string): boolean {
    return this.#capacity > 0 && text.length <= MAX_TEXT;
  }

  /** The statement of this key, now the most recently used one. */
  get(key: string): Statement | undefined {
    const statement = this.#statements.get(key);
    // While there is room, order does not matter.
    if (statement !== undefined && this.#statements.size * 2 > this.#capacity) {
      this.#statements.delete(key);
      this.#statements.set(key, statement);
    }
    return statement;
  }

  /** A name that this session has never used. */
  newName(): string {
    return this.#prefix + (++this.#counter).toString(36);
  }

  /** Keeps a statement. Returns the one that had to leave, if any. */
  add(statement: Statement): Statement | undefined {
    this.#statements.set(statement.key, statement);
    if (this.#statements.size <= this.#capacity) return undefined;
    const oldest: Statement = this.#statements.values().next().value!;
    this.#statements.delete(oldest.key);
    return oldest;
  }

  /** Forgets a statement, unless its key belongs to another one by now. */
  forget(statement: Statement): void {
    if (this.#statements.get(statement.key) === statement) this.#statements.delete(statement.key);
  }

  /** Takes out those that are described and have parameters. */
  takeWithParameters(): Statement[] {
    const taken = [...this.#statements.values()].filter(({ parameterTypes, described }) =>
      described && parameterTypes !== null && parameterTypes.length > 0
    );
    for (const statement of taken) this.forget(statement);
    return taken;
  }

  /** Forgets all that are described: the server has. The others' Parse comes behind what made it forget. */
  clear(): void {
    for (const statement of this.#statements.values()) if (statement.described) this.forget(statement);
  }
}
