/** What is asked of pg_type: a type and, in further rounds, what it is made of. */

import { Typed } from "../codecs/parameter.ts";
import type { TypeDescription, TypeKind } from "../codecs/registry.ts";
import {
  EXTENDED,
  type Learner,
  NO_PARAMETERS,
  Request,
  SIMPLE,
  SYNC_EACH,
  SYNC_LATER,
} from "../engine/request.ts";
import type { Statement } from "../engine/statement_cache.ts";
import { bindParameters, type BoundParameters } from "./parameters.ts";
import { ShapePlanner, type Types } from "./types.ts";

// typcategory A alone is not enough: a user may give it to any type.
const LOOK_UP = `
select t.oid, t.typname,
  case when t.typelem <> 0 and t.typinput = 'pg_catalog.array_in'::regproc then 'A' else t.typtype end,
  t.typelem, e.typdelim, t.typbasetype, r.rngsubtype,
  (select m.rngtypid from pg_catalog.pg_range m where m.rngmultitypid = t.oid),
  (select pg_catalog.array_agg(a.attname::text order by a.attnum) from pg_catalog.pg_attribute a
    where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped),
  (select pg_catalog.array_agg(a.atttypid order by a.attnum) from pg_catalog.pg_attribute a
    where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped),
  n.nspname
from pg_catalog.pg_type t
left join pg_catalog.pg_namespace n on n.oid = t.typnamespace
left join pg_catalog.pg_type e on e.oid = t.typelem
left join pg_catalog.pg_range r on r.rngtypid = t.oid
where t.oid = any($1::oid[])
  or t.oid in (select a.typarray from pg_catalog.pg_type a where a.oid = any($1::oid[]))`;

type TypeRow = [
  oid: number,
  name: string,
  kind: string,
  element: number,
  delimiter: string | null,
  base: number,
  subtype: number | null,
  range: number | null,
  attributeNames: string[] | null,
  attributeTypes: number[] | null,
  schema: string | null,
];

const KINDS: Readonly<Record<string, TypeKind>> = {
  A: "array",
  b: "base",
  c: "composite",
  d: "domain",
  e: "enum",
  m: "multirange",
  p: "pseudo",
  r: "range",
};

// The array type over a type that is given by its OID, or what a name says by the search path. Asked of functions, for
// a user may be kept from reading pg_type.
const RESOLVE_NAMES = `
select pg_catalog.to_regtype(
  case when n like '#%' then pg_catalog.format_type(pg_catalog.substr(n, 2)::oid, null) || '[]' else n end
)::oid
from pg_catalog.unnest($1) with ordinality as u (n, i) order by i`;

const TEXT_ARRAY = 1009;

/** The savepoint in front of what is asked in a transaction block, which is the user's and must not break. */
export const SAVEPOINT = "pipegres_types";

/** Types that are asked for, a round for each depth of nesting. */
export class TypeQuery {
  readonly #types: Types;
  readonly #asked: Set<number> = new Set();
  readonly #descriptions: TypeDescription[] = [];
  #wanted: readonly number[];

  constructor(types: Types, oids: readonly number[]) {
    this.#types = types;
    this.#wanted = this.#unknown(oids);
  }

  /** The next statement, with rows as arrays; `undefined` when all is known. */
  next(): { readonly text: string; readonly values: readonly string[] } | undefined {
    // Nothing is asked for twice: it ends with the catalogue at the latest.
    if (this.#wanted.length === 0) return undefined;
    // Given as text the array needs no description, and the look-up one round trip.
    return { text: LOOK_UP, values: [`{${this.#wanted.join()}}`] };
  }

  /** Takes the rows of a statement. */
  take(rows: readonly unknown[]): void {
    const found = (rows as readonly TypeRow[]).map(describeType);
    this.#descriptions.push(...found);
    for (const oid of this.#wanted) this.#asked.add(oid);
    for (const { oid } of found) this.#asked.add(oid);
    this.#wanted = this.#unknown(found.flatMap(partsOf));
  }

  /** Makes known what was found. */
  learn(): void {
    this.#types.learn(this.#descriptions);
  }

  #unknown(oids: readonly number[]): number[] {
    return [...new Set(oids)].filter((oid) => this.#types.isUnknown(oid) && !this.#asked.has(oid));
  }
}

function describeType(row: TypeRow): TypeDescription {
  const [oid, name, kind, element, delimiter, base, subtype, range, attributeNames, attributeTypes, schema] =
    row;
  return {
    oid,
    name,
    kind: KINDS[kind] ?? "base",
    ...(schema === null ? {} : { schema }),
    ...(kind === "A" ? { element, delimiter: delimiter ?? "," } : {}),
    ...(kind === "d" ? { base } : {}),
    ...(kind === "r" && subtype !== null ? { subtype } : {}),
    ...(kind === "m" && range !== null ? { range } : {}),
    ...(kind === "c"
      ? {
        attributes: (attributeNames ?? []).map((each, i) => ({ name: each, typeOid: attributeTypes![i]! })),
      }
      : {}),
  };
}

function partsOf(type: TypeDescription): number[] {
  const parts = [
    type.element,
    type.base,
    type.subtype,
    type.range,
    ...(type.attributes ?? []).map((each) => each.typeOid),
  ];
  return parts.filter((oid) => oid !== undefined && oid !== 0) as number[];
}

type Description = Pick<Statement, "parameterTypes" | "fields">;

/** Learns the types of a request's parameters, and of its columns where its rows cannot be mended afterwards. */
export class TypeLearner implements Learner {
  readonly #types: Types;
  readonly #parameters: BoundParameters | undefined;
  /** Whether columns count too. */
  readonly #columns: boolean;
  #query: TypeQuery | undefined = undefined;
  /** Whether the question asked last has been answered. */
  #answered: boolean = true;
  #inBlock: boolean = false;

  constructor(types: Types, parameters: BoundParameters | undefined, columns: boolean = false) {
    this.#types = types;
    this.#parameters = parameters;
    this.#columns = columns;
  }

  lacks(statement: Description): boolean {
    return this.#missing(statement).length > 0;
  }

  ask(request: Request, inBlock: boolean): Request | null {
    // The one before may have been asked on a connection that is lost.
    if (!this.#answered) this.#query = undefined;
    if (this.#query === undefined) {
      const missing = this.#missing(request.statement!);
      if (missing.length > 0) this.#query = new TypeQuery(this.#types, missing);
    }
    const statement = this.#query?.next();
    if (statement === undefined) {
      this.#query?.learn();
      this.#query = undefined;
      this.#answered = true;
      if (this.#parameters !== undefined) this.#parameters.registry = this.#types.registry;
      if (request.planner instanceof ShapePlanner) request.planner = request.planner.current;
      return null;
    }
    this.#answered = false;
    this.#inBlock = inBlock;
    const question = this.#create(statement.text, statement.values, ({ failure, rows }) => {
      if (failure !== null) return;
      this.#answered = true;
      this.#query!.take(rows);
    });
    if (!inBlock) return question;
    const savepoint = this.#create(`savepoint ${SAVEPOINT}`);
    savepoint.next = question;
    question.next = this.#create(`release savepoint ${SAVEPOINT}`);
    return savepoint;
  }

  askNames(
    names: readonly string[],
    inBlock: boolean,
    onAnswer: (oids: readonly number[] | null, failed: Request | null) => void,
  ): Request {
    this.#inBlock = inBlock;
    const asked: Request[] = [];
    const answer = () => {
      const failed = asked.find(({ serverError }) => serverError !== null) ??
        asked.find(({ failure }) => failure !== null);
      if (failed !== undefined) return onAnswer(null, failed);
      onAnswer((question.rows as [number | null][]).map(([oid]) => oid ?? 0), null);
    };
    const values = [new Typed(names, TEXT_ARRAY)];
    const question = this.#create(RESOLVE_NAMES, values, inBlock ? undefined : answer);
    asked.push(question);
    if (!inBlock) {
      question.sync = SYNC_EACH;
      return question;
    }
    const savepoint = this.#create(`savepoint ${SAVEPOINT}`);
    // The last one of the segment tells.
    const release = this.#create(`release savepoint ${SAVEPOINT}`, [], answer);
    asked.push(savepoint, release);
    savepoint.next = question;
    question.next = release;
    release.sync = SYNC_EACH;
    return savepoint;
  }

  undo(): Request | null {
    if (!this.#inBlock) return null;
    const text = `rollback to savepoint ${SAVEPOINT}; release savepoint ${SAVEPOINT}`;
    return new Request(SIMPLE, text, NO_PARAMETERS, this.#types.plain.arrays, () => {});
  }

  #missing({ parameterTypes, fields }: Description): number[] {
    const oids = this.#parameters?.needed(parameterTypes) ?? [];
    if (this.#columns) { for (const { typeOid } of fields ?? []) oids.push(typeOid); }
    return oids.filter((oid) => this.#types.isUnknown(oid));
  }

  #create(text: string, values: readonly unknown[] = [], onSettled = (_: Request) => {}): Request {
    const { plain } = this.#types;
    const parameters = bindParameters(values, plain.registry);
    const request = new Request(EXTENDED, text, parameters, plain.arrays, onSettled);
    request.sync = SYNC_LATER;
    request.cacheable = false;
    return request;
  }
}
