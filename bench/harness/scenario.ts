/** What a scenario is: one question, asked of any driver. */

import type { Answer } from "./answers.ts";
import type { Capability, Driver, Execute, Rows, Session, Target, Values } from "./driver.ts";

/** What a scenario works with. */
export interface Context {
  readonly driver: Driver;
  readonly target: Target;
  /** The session opened for it: a pool where the scenario says so, none where `needs` is empty. */
  readonly session: Session;
  /** The point of a scale run; 0 elsewhere. */
  readonly point: number;
}

/** One question. `State` is what `setup` makes and the others get. */
export interface Scenario<State = unknown> {
  /** Short name for options and tables. */
  readonly name: string;
  /** What is asked, as one line for the report. */
  readonly title: string;
  /** What one operation is: `connection`, `query`, `50 queries` … */
  readonly unit: string;
  /** Queries in one operation, for queries per second. */
  readonly queries: number;
  /** Capabilities it needs. A driver without one of them is unsupported. */
  readonly needs: readonly Capability[];
  /** Whether the operation uses values, so that drivers that only count cannot take part. */
  readonly needsValues?: boolean;
  /** Connections of the pool it runs on; default: one connection, no pool. */
  readonly pool?: number;
  /** What a right answer has; every driver is held against it. */
  readonly expect: { readonly rows: number; readonly columns: readonly string[] };
  /** Points of a scale run. */
  readonly points?: readonly number[];
  /** Whether the point is a latency: milliseconds that a proxy adds to a round trip. */
  readonly addsLatency?: boolean;
  /** Prepares what is not measured. */
  setup(context: Context): State | Promise<State>;
  /** The operation that is measured. */
  run(state: State): Promise<unknown>;
  /** What an operation gave, in a form that can be compared. Not measured. */
  check(result: unknown, state: State): Answer | Promise<Answer>;
  /** Undoes `setup`. */
  teardown?(state: State): void | Promise<void>;
}

/** The same execution once for each of the values, all issued at once. */
export function executeAll(execute: Execute, list: readonly Values[]): Promise<readonly Rows[]> {
  return Promise.all(list.map((values) => execute(values)));
}

/** The same query once for each of the values, all issued at once. */
export async function extendedAll(
  session: Session,
  text: string,
  list: readonly Values[],
): Promise<readonly Rows[]> {
  if (session.burst) return [await session.burst.extended(text, list)];
  return await Promise.all(list.map((values) => session.extended!(text, values)));
}

/** As `extendedAll`, with a statement that is prepared. */
export async function preparedAll(
  session: Session,
  execute: Execute,
  text: string,
  list: readonly Values[],
): Promise<readonly Rows[]> {
  if (session.burst) return [await session.burst.extended(text, list)];
  return await executeAll(execute, list);
}

/** All queries at once. */
export async function simpleAll(session: Session, texts: readonly string[]): Promise<readonly Rows[]> {
  if (session.burst) return [await session.burst.simple(texts)];
  return await Promise.all(texts.map((text) => session.simple!(text)));
}

/** `count` sets of values, made by `make` once, so that making them is not measured. */
export function valuesList(count: number, make: (index: number) => Values): readonly Values[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
