/**
 * Where engine and codecs meet: how rows of one shape are made, and what is known of types so far.
 *
 * What a connection or a pool knows of types grows: rows with a column of an unknown type are made with its text
 * first, and mended once the type has been looked up (type_loader.ts). The same befalls rows that do not fit what was
 * known of their types, which were altered meanwhile.
 */

import { type DateOrder, dateOrderOf } from "../codecs/date_style.ts";
import {
  createRegistry,
  type Registry,
  type TypeDescription,
  type TypeOverrides,
} from "../codecs/registry.ts";
import { createJsonRowDecoder } from "../codecs/json_rows.ts";
import { createRowDecoder, resultFormats } from "../codecs/row_decoder.ts";
import type { Request, RowDecoder, RowPlanner } from "../engine/request.ts";
import { ProtocolError } from "../errors.ts";
import type { Field } from "../wire/backend.ts";

/** Objects keyed by column name, arrays in column order, or JSON text of objects. */
export type RowShape = "object" | "array" | "json";

/** A row that did not fit what was known of its types: the body of its DataRow. */
export class UndecodedRow {
  /** The body. */
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
}

/** Makes rows of one shape, with what is known of types when it is made. */
export class ShapePlanner implements RowPlanner {
  readonly #types: Types;
  readonly #registry: Registry;
  readonly #shape: RowShape;
  /** Whether rows that cannot be decoded are kept for later: those of a stream are consumed at once. */
  readonly #keeps: boolean;

  constructor(types: Types, registry: Registry, shape: RowShape, keeps: boolean) {
    this.#types = types;
    this.#registry = registry;
    this.#shape = shape;
    this.#keeps = keeps;
  }

  plan(fields: readonly Field[], dateStyle?: string): RowDecoder {
    const order = dateStyle === undefined ? undefined : dateOrderOf(dateStyle);
    const lacks = this.#types.notice(fields, this.#registry, this.#shape, order);
    // JSON has no place for what is learnt later: the rows are kept.
    if (lacks && this.#shape === "json") return keepRow;
    const registry = this.#types.dated(this.#registry, order);
    const decode = this.#shape === "json"
      ? createJsonRowDecoder(fields, registry)
      : createRowDecoder(fields, registry, this.#shape, true);
    return fields.some(({ typeOid }) => this.#types.mayBeAltered(typeOid))
      ? this.#patient(fields, decode, order)
      : decode;
  }

  /** The one that does the same with what is known now. */
  get current(): RowPlanner {
    return this.#keeps ? this.#types.planner(this.#shape) : this.#types.streamed;
  }

  formats(fields: readonly Field[]): readonly (0 | 1)[] {
    // JSON is made of the values' text.
    if (this.#shape === "json") return [];
    return resultFormats(fields, this.#registry);
  }

  #patient(fields: readonly Field[], decode: RowDecoder, order: DateOrder | undefined): RowDecoder {
    const patient: RowDecoder = (bytes, start, end) => {
      try {
        return decode(bytes, start, end);
      } catch (error) {
        if (error instanceof ProtocolError) throw error;
        this.#types.noteAltered(fields, this.#shape, order);
        if (!this.#keeps) throw error;
        return keepRow(bytes, start, end);
      }
    };
    return Object.assign(patient, { deferred: decode.deferred });
  }
}

function keepRow(bytes: Uint8Array, start: number, end: number): UndecodedRow {
  return new UndecodedRow(new Uint8Array(bytes.subarray(start, end)));
}

/** A decoder of rows of a shape. */
export function createDecoder(fields: readonly Field[], registry: Registry, shape: RowShape): RowDecoder {
  return shape === "json"
    ? createJsonRowDecoder(fields, registry)
    : createRowDecoder(fields, registry, shape);
}

/** Rows that were made without knowing all of their types. */
export interface UnknownColumns {
  readonly shape: RowShape;
  /** Columns whose values are still text. */
  readonly columns: readonly number[];
  /** Whether some rows are not decoded at all. */
  readonly altered: boolean;
  /** The order of day and month in their text, where it is known. */
  readonly order: DateOrder | undefined;
}

/** Which of the types of one name is meant is each session's to say. */
const NO_NAMES: ReadonlyMap<string, number> = new Map();

/** What is known of a database's types, whoever reads them in whatever representation. */
class Catalogue {
  readonly types: Map<number, TypeDescription> = new Map();
  /** Look-ups under way, by what is looked up. */
  readonly loading: Map<string, Promise<Request | undefined>> = new Map();
  /** The view without options. */
  plain: Types | undefined = undefined;
  /** Grows with every change. */
  version: number = 0;
}

/** What is known of a database's types, shared by all who use it, and how their values are represented. */
export class Types {
  readonly #catalogue: Catalogue;
  /** Options and overrides alone. */
  readonly #base: Registry;
  #registry: Registry;
  #version: number;
  #planners: Readonly<Record<RowShape | "stream", RowPlanner>>;
  #dated: Map<DateOrder, Registry> = new Map();
  /** Plans made with unknown types in them, by their fields. */
  readonly #unknown: WeakMap<readonly Field[], UnknownColumns> = new WeakMap();
  /** Whether there ever was an unknown type: most programs never pay for more than this check. */
  #anyUnknown: boolean = false;
  /** Those with other overrides. */
  readonly #views: WeakMap<object, Types> = new WeakMap();
  #textView: Types | undefined = undefined;

  constructor(registry: Registry, catalogue: Catalogue = new Catalogue()) {
    this.#base = registry;
    this.#catalogue = catalogue;
    this.#version = catalogue.version;
    this.#registry = registry.withTypes(catalogue.types.values(), NO_NAMES);
    this.#planners = this.#createPlanners();
  }

  /** The same types in other representations: those of `overrides`, else those of this. */
  with(overrides: TypeOverrides | undefined): Types {
    if (overrides === undefined) return this;
    const create = () => new Types(this.#base.extend(overrides), this.#catalogue);
    if (overrides === "text") return this.#textView ??= create();
    // One object means one thing: statements keep a plan for each view.
    let view = this.#views.get(overrides);
    if (view === undefined) this.#views.set(overrides, view = create());
    return view;
  }

  /** The same types as they are without options. */
  get plain(): Types {
    return this.#catalogue.plain ??= new Types(createRegistry(), this.#catalogue);
  }

  /** The codecs known so far. */
  get registry(): Registry {
    this.#refresh();
    return this.#registry;
  }

  /** Makes rows of a shape. Another planner takes its place when types have been learnt. */
  planner(shape: RowShape): RowPlanner {
    this.#refresh();
    return this.#planners[shape];
  }

  /** Makes rows as objects. */
  get objects(): RowPlanner {
    return this.planner("object");
  }

  /** Makes rows as arrays. */
  get arrays(): RowPlanner {
    return this.planner("array");
  }

  /** Makes rows as objects that cannot be mended later. */
  get streamed(): RowPlanner {
    this.#refresh();
    return this.#planners.stream;
  }

  /** Look-ups under way. */
  get loading(): Map<string, Promise<Request | undefined>> {
    return this.#catalogue.loading;
  }

  /** Remembers which columns of a plan have types that may still be learnt; false for none. */
  notice(
    fields: readonly Field[],
    registry: Registry,
    shape: RowShape,
    order: DateOrder | undefined,
  ): boolean {
    const columns: number[] = [];
    fields.forEach(({ typeOid }, i) => {
      // It may be known by now, but not to this plan.
      if (typeOid !== 0 && registry.typeFor(typeOid) === undefined) columns.push(i);
    });
    if (columns.length === 0) return false;
    this.#anyUnknown = true;
    const isJson = shape === "json";
    this.#unknown.set(fields, { shape, columns: isJson ? [] : columns, altered: isJson, order });
    return true;
  }

  /** Remembers that rows did not fit what was known of their types. */
  noteAltered(fields: readonly Field[], shape: RowShape, order: DateOrder | undefined): void {
    this.#anyUnknown = true;
    const columns = this.#unknown.get(fields)?.columns ?? [];
    this.#unknown.set(fields, { shape, columns, altered: true, order });
    this.forgetAltered();
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

  /** Whether a type is not known. */
  isUnknown(oid: number): boolean {
    return oid !== 0 && this.registry.typeFor(oid) === undefined;
  }

  /** Whether a type has parts that may change while its OID stays. */
  mayBeAltered(oid: number): boolean {
    const type = this.#catalogue.types.get(oid);
    if (type === undefined) return false;
    return type.kind === "composite" ||
      [type.element, type.base, type.subtype, type.range].some((part) =>
        part !== undefined && this.mayBeAltered(part)
      );
  }

  /** The codecs for a session whose order of day and month is known. */
  dated(registry: Registry, order: DateOrder | undefined): Registry {
    if (order === undefined || registry !== this.#registry) return registry;
    let dated = this.#dated.get(order);
    if (dated === undefined) this.#dated.set(order, dated = registry.extend({}, { dateOrder: order }));
    return dated;
  }

  /** Adds what a look-up told. */
  learn(descriptions: readonly TypeDescription[]): void {
    if (descriptions.length === 0) return;
    for (const description of descriptions) this.#catalogue.types.set(description.oid, description);
    this.#catalogue.version++;
  }

  /** Forgets types whose parts may have changed. */
  forgetAltered(): void {
    const { types } = this.#catalogue;
    const altered = [...types.keys()].filter((oid) => this.mayBeAltered(oid));
    if (altered.length === 0) return;
    for (const oid of altered) types.delete(oid);
    this.#catalogue.version++;
  }

  #refresh(): void {
    const { version, types } = this.#catalogue;
    if (this.#version === version) return;
    this.#version = version;
    this.#registry = this.#base.withTypes(types.values(), NO_NAMES);
    this.#dated = new Map();
    this.#planners = this.#createPlanners();
  }

  #createPlanners(): Readonly<Record<RowShape | "stream", RowPlanner>> {
    const create = (shape: RowShape, keeps = true) => new ShapePlanner(this, this.#registry, shape, keeps);
    return {
      object: create("object"),
      array: create("array"),
      json: create("json"),
      stream: create("object", false),
    };
  }
}
