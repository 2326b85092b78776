/**
 * SQL text and bind parameters from tagged templates.
 *
 * Values always become parameters, never text. A fragment inside a template becomes part of it, and its parameters
 * are numbered on.
 */

import { ArrayValue, Json, Typed } from "../codecs/parameter.ts";
import { ConfigurationError, ValueError } from "../errors.ts";
import { optionsOf, ownOption } from "./own_options.ts";

/** A piece of SQL: texts, and a value or another fragment between each two of them. */
export class Fragment {
  /** Texts; one more than there are values. */
  readonly strings: readonly string[];
  /** Bind parameters and nested fragments. */
  readonly values: readonly unknown[];

  /** Use the `sql` tag. */
  constructor(strings: readonly string[], values: readonly unknown[]) {
    this.strings = strings;
    this.values = values;
  }
}

/** SQL text with `$1`, `$2` …, and the values they stand for. */
export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

// One text for each template in the source: its statement is found by identity of the text, too.
const texts: WeakMap<readonly string[], string> = new WeakMap();

/** Numbers the parameters of a fragment and of those inside it. */
export function compile(fragment: Fragment): Statement {
  const { strings, values } = fragment;
  for (let i = 0; i < values.length; i++) {
    if (values[i] instanceof Fragment) return compileNested(fragment);
  }
  let text = texts.get(strings);
  if (text === undefined) {
    checkStrings(strings);
    text = strings[0]!;
    for (let i = 1; i < strings.length; i++) text += `$${i}${strings[i]}`;
    checkText(text);
    texts.set(strings, text);
  }
  return { text, values };
}

function compileNested(fragment: Fragment): Statement {
  const values: unknown[] = [];
  const parts: string[] = [];
  appendFragment(fragment, parts, values);
  const text = parts.join("");
  checkText(text);
  return { text, values };
}

function appendFragment(fragment: Fragment, parts: string[], values: unknown[]): void {
  checkStrings(fragment.strings);
  parts.push(fragment.strings[0]!);
  fragment.values.forEach((value, i) => {
    if (value instanceof Fragment) {
      checkOptions(value);
      appendFragment(value, parts, values);
    } else parts.push(`$${values.push(value)}`);
    parts.push(fragment.strings[i + 1]!);
  });
}

/** How a query is run is said of the whole: what was said of a part would be lost. */
function checkOptions(part: Fragment): void {
  const options = optionsOf(part);
  const own = options === undefined ? undefined : ownOption(options);
  if (own === undefined) return;
  throw new ConfigurationError(
    `Cannot make a query with ${own} of its own part of another one: a part takes only label; ` +
      `give ${own} to the query that it becomes part of`,
  );
}

/** A tag called as a function has no texts; a text is `undefined` where a backslash begins an escape that JavaScript does not know. */
function checkStrings(strings: readonly (string | undefined)[]): void {
  if (!Array.isArray(strings)) {
    throw new ValueError(
      "Cannot use sql as a function: it is a template tag, sql`…`; query(text, values) takes a text",
    );
  }
  if (!strings.includes(undefined)) return;
  throw new ValueError("Cannot use the template: it holds an invalid escape; write a backslash twice");
}

/**
 * The protocol's strings end at a zero byte.
 *
 * @throws {ValueError} when the text holds NUL
 */
export function checkText(text: string): void {
  if (text === lastSound) return;
  const at = text.indexOf("\0");
  if (at >= 0) {
    throw new ValueError(`Cannot send the SQL text: it holds a NUL character at position ${at + 1}`);
  }
  lastSound = text;
}

// Queries come in bursts of one text.
let lastSound = "";

/** One row for {@linkcode SqlHelpers.values}. */
export type RowValues = readonly unknown[] | Readonly<Record<string, unknown>>;

/** What `sql` can do besides being a template tag. */
export interface SqlHelpers {
  /**
   * A quoted identifier, each part quoted on its own: `sql.id("schema", "table")` is `"schema"."table"`.
   *
   * @throws {ValueError} for no part, an empty part, or NUL
   */
  id(...parts: string[]): Fragment;
  /** Values with commas between: `in (${sql.list([1, 2])})`. An empty list is `null`, which matches nothing. */
  list(values: readonly unknown[]): Fragment;
  /**
   * Rows for INSERT, or for a VALUES list: arrays give `values ($1, $2), ($3, $4)`; objects put their columns before
   * it, `("a", "b") values ($1, $2), ($3, $4)`.
   *
   * @param columns which properties, in which order; default: those of the first row
   * @throws {ValueError} for no row, no column, rows of different kinds or lengths, or, without `columns`, a property
   * that the first row has not
   */
  values(rows: readonly RowValues[], columns?: readonly string[]): Fragment;
  /**
   * Assignments for UPDATE: `"a" = $1, "b" = $2`. Properties that are `undefined` are left out.
   *
   * @throws {ValueError} when nothing is left
   */
  set(values: Readonly<Record<string, unknown>>): Fragment;
  /** Fragments or values with a separator between; a separator given as a string is SQL text. Default `", "`. */
  join(parts: readonly unknown[], separator?: Fragment | string): Fragment;
  /** Conditions in parentheses with `and` between; `undefined`, `null`, `false` and `sql.empty` are left out, none is `true`. */
  and(...parts: (Fragment | undefined | null | false)[]): Fragment;
  /** A parameter sent as JSON text, whatever the value is; `sql.json(null)` is JSON null. */
  json(value: unknown): Json;
  /** A parameter sent as an array; `type` is the element's or the array's type name or OID. */
  array(values: readonly unknown[], type?: string | number): ArrayValue;
  /** A parameter of a declared type, by name (`"int4[]"`) or OID. */
  typed(value: unknown, type: string | number): Typed;
  /** SQL text as it is. Never give it anything a user wrote. */
  raw(text: string): Fragment;
  /** Nothing. */
  readonly empty: Fragment;
}

/** The tag that builds fragments for any session, and the helpers. */
export interface Sql extends SqlHelpers {
  (strings: TemplateStringsArray, ...values: unknown[]): Fragment;
}

const EMPTY: Fragment = new Fragment([""], []);

/** The helpers, shared by every `sql`. */
export const helpers: SqlHelpers = {
  id: (...parts) => new Fragment([quoteIdentifier(...parts)], []),
  list: (values) => values.length === 0 ? new Fragment(["null"], []) : joinParts(values, ", "),
  values: valuesList,
  set: assignments,
  join: (parts, separator = ", ") => joinParts(parts, separator),
  and: conjunction,
  json: (value) => new Json(value),
  array: (values, type) => new ArrayValue(values, type),
  typed: (value, type) => new Typed(value, type),
  raw: (text) => new Fragment([text], []),
  empty: EMPTY,
};

/** Builds fragments that any session can run: ``conn.batch([sql`select 1`])``. */
export const sql: Sql = Object.assign(
  (strings: TemplateStringsArray, ...values: unknown[]): Fragment => new Fragment(strings, values),
  helpers,
);

/**
 * An identifier as SQL writes it: parts in double quotes, doubled inside, with dots between.
 *
 * @throws {ValueError} for no part, an empty part, or NUL
 */
export function quoteIdentifier(...parts: string[]): string {
  if (parts.length === 0) throw new ValueError("Cannot quote an identifier: no part is given");
  return parts.map((part) => {
    if (typeof part !== "string") {
      throw new ValueError(`Cannot quote an identifier: expected a string, received ${typeof part}`);
    }
    if (part === "") throw new ValueError("Cannot quote an identifier: it is empty");
    if (part.includes("\0")) throw new ValueError("Cannot quote an identifier: it holds a NUL character");
    return `"${part.replaceAll('"', '""')}"`;
  }).join(".");
}

function joinParts(parts: readonly unknown[], separator: Fragment | string): Fragment {
  if (parts.length === 0) return EMPTY;
  if (typeof separator === "string") {
    return new Fragment(["", ...parts.slice(1).map(() => separator), ""], parts);
  }
  const values = parts.flatMap((part, i) => i === 0 ? [part] : [separator, part]);
  return new Fragment(["", ...values.map(() => "")], values);
}

function conjunction(...parts: (Fragment | undefined | null | false)[]): Fragment {
  const conditions = parts.filter((part) =>
    part instanceof Fragment && !(part.values.length === 0 && part.strings.join("").trim() === "")
  );
  if (conditions.length === 0) return new Fragment(["true"], []);
  return new Fragment(["(", ...conditions.slice(1).map(() => ") and ("), ")"], conditions);
}

function assignments(values: Readonly<Record<string, unknown>>): Fragment {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  if (entries.length === 0) {
    throw new ValueError("Cannot build a SET list: the object has no property that is set");
  }
  const strings = entries.map(([name], i) => `${i === 0 ? "" : ", "}${quoteIdentifier(name)} = `);
  return new Fragment([...strings, ""], entries.map(([, value]) => value));
}

function valuesList(rows: readonly RowValues[], columns?: readonly string[]): Fragment {
  const first = rows[0];
  if (first === undefined) throw new ValueError("Cannot build a VALUES list: there is no row");
  const ofArrays = Array.isArray(first);
  const names = columns ?? (ofArrays ? undefined : Object.keys(first));
  const width = names?.length ?? (first as readonly unknown[]).length;
  if (width === 0) throw new ValueError("Cannot build a VALUES list: there is no column");
  const known = columns === undefined && !ofArrays ? new Set(names) : undefined;
  const values: unknown[] = [];
  const strings: string[] = [];
  rows.forEach((row, i) => {
    const rowValues = Array.isArray(row) === ofArrays ? readRow(row, names) : undefined;
    if (rowValues === undefined || rowValues.length !== width) {
      throw new ValueError(`Cannot build a VALUES list: row ${i + 1} has not the shape of the first row`);
    }
    if (known !== undefined) checkNames(row, known, i + 1);
    rowValues.forEach((value, j) => {
      strings.push(j > 0 ? ", " : i > 0 ? "), (" : `${columnList(names)}values (`);
      values.push(value);
    });
  });
  return new Fragment([...strings, ")"], values);
}

/** A property that the first row has not would be lost. */
function checkNames(row: object, known: ReadonlySet<string>, number: number): void {
  const other = Object.keys(row).find((name) => !known.has(name));
  if (other === undefined) return;
  throw new ValueError(
    `Cannot build a VALUES list: row ${number} has a property ${
      JSON.stringify(other)
    } that the first row has not; ` +
      "name the columns",
  );
}

function readRow(row: RowValues, names: readonly string[] | undefined): readonly unknown[] {
  if (Array.isArray(row)) return row;
  const object = row as Readonly<Record<string, unknown>>;
  return names!.map((name) => object[name]);
}

function columnList(names: readonly string[] | undefined): string {
  return names === undefined ? "" : `(${names.map((name) => quoteIdentifier(name)).join(", ")}) `;
}
