/**
 * Where engine and codecs meet: how rows of one shape are made, and what is known of types so far.
 *
 * What a connection or a pool knows of types grows: rows with a column of an unknown type are made with its text
 * first, and mended once the type has been looked up (type_loader.ts).
 */

import type { Registry, TypeDescription } from "../codecs/registry.ts";
import { createJsonRowDecoder } from "../codecs/json_rows.ts";
import { createRowDecoder, resultFormats } from "../codecs/row_decoder.ts";
import type { Request, RowDecoder, RowPlanner } from "../engine/request.ts";
import type { Field } from "../wire/backend.ts";

/** Objects keyed by column name, arrays in column order, or JSON text of objects. */
export type RowShape = "object" | "array" | "json";

class ShapePlanner implements RowPlanner {
  readonly #types: Types;
  readonly #registry: Registry;
  readonly #shape: RowShape;

  constructor(types: Types, registry: Registry, shape: RowShape) {
    this.#types = types;
    this.#registry = registry;
    this.#shape = shape;
  }

  plan(fields: readonly Field[]): RowDecoder {
    if (this.#shape === "json") return createJsonRowDecoder(fields, this.#registry);
    this.#types.notice(fields, this.#shape);
    return createRowDecoder(fields, this.#registry, this.#shape);
  }

  formats(fields: readonly Field[]): readonly (0 | 1)[] {
    // JSON is made of the values' text.
    if (this.#shape === "json") return [];
    return resultFormats(fields, this.#registry);
  }
}

/** Rows that were made without knowing all of their types. */
export interface UnknownColumns {
  readonly shape: RowShape;
  /** Columns whose values are still text. */
  readonly columns: readonly number[];
}

/** What is known of a database's types, shared by all who use it. */
export class Types {
  #registry: Registry;
  #planners: Readonly<Record<RowShape, RowPlanner>>;
  /** Plans made with unknown types in them, by their fields. */
  readonly #unknown: WeakMap<readonly Field[], UnknownColumns> = new WeakMap();
  /** Types that the database does not have any more. */
  readonly #absent: Set<number> = new Set();
  /** Texts of statements whose types have been looked up before they were streamed. */
  readonly #prepared: Set<string> = new Set();
  /** Whether there ever was an unknown type: most programs never pay for more than this check. */
  #anyUnknown: boolean = false;

  constructor(registry: Registry) {
    this.#registry = registry;
    this.#planners = this.#createPlanners();
  }

  /** The codecs known so far. */
  get registry(): Registry {
    return this.#registry;
  }

  /** Makes rows of a shape. Another planner takes its place when types have been learnt. */
  planner(shape: RowShape): RowPlanner {
    return this.#planners[shape];
  }

  /** Makes rows as objects. */
  get objects(): RowPlanner {
    return this.#planners.object;
  }

  /** Makes rows as arrays. */
  get arrays(): RowPlanner {
    return this.#planners.array;
  }

  /** Whether a column of an unknown type has ever been seen. */
  get anyUnknown(): boolean {
    return this.#anyUnknown;
  }

  /** Texts whose types need no look-up. */
  get prepared(): ReadonlySet<string> {
    return this.#prepared;
  }

  /** Remembers that a text's types are known. */
  notePrepared(text: string): void {
    if (this.#prepared.size >= 1000) this.#prepared.clear();
    this.#prepared.add(text);
  }

  /** Remembers which columns of a plan have types that may still be learnt. */
  notice(fields: readonly Field[], shape: RowShape): void {
    const columns: number[] = [];
    fields.forEach(({ typeOid }, i) => {
      if (this.isUnknown(typeOid)) columns.push(i);
    });
    if (columns.length === 0) return;
    this.#anyUnknown = true;
    this.#unknown.set(fields, { shape, columns });
  }

  /** The columns of rows that were made without knowing their types; `undefined` for none. */
  unknownColumns(fields: readonly Field[] | null): UnknownColumns | undefined {
    return fields === null ? undefined : this.#unknown.get(fields);
  }

  /** Whether a request's rows may have to be mended. */
  concerns(request: Request): boolean {
    if (!this.#anyUnknown) return false;
    if (this.unknownColumns(request.fields) !== undefined) return true;
    return request.results?.some(({ fields }) => this.unknownColumns(fields) !== undefined) ?? false;
  }

  /** Whether a type is not known, and may be looked up. */
  isUnknown(oid: number): boolean {
    return this.#registry.typeFor(oid) === undefined && !this.#absent.has(oid);
  }

  /** Adds what a look-up told; what was asked for and not told does not exist. */
  learn(asked: readonly number[], descriptions: readonly TypeDescription[]): void {
    const found = new Set(descriptions.map(({ oid }) => oid));
    for (const oid of asked) if (!found.has(oid)) this.#absent.add(oid);
    if (descriptions.length === 0) return;
    this.#registry = this.#registry.withTypes(descriptions);
    this.#planners = this.#createPlanners();
  }

  #createPlanners(): Readonly<Record<RowShape, RowPlanner>> {
    const create = (shape: RowShape) => new ShapePlanner(this, this.#registry, shape);
    return { object: create("object"), array: create("array"), json: create("json") };
  }
}
