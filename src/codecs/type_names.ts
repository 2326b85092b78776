/** Type names as SQL spells them, by the names of `pg_type` (PostgreSQL manual, table 8.1). */

import { BUILTIN_TYPES } from "./oids.gen.ts";

/** SQL's own spellings; those of serial columns are not types, but say which one is meant. */
export const ALIASES: ReadonlyMap<string, string> = new Map([
  ["bigint", "int8"],
  ["bigserial", "int8"],
  ["bit varying", "varbit"],
  ["boolean", "bool"],
  // The type of `pg_type` by this name is written "char", with its quotes.
  ["char", "bpchar"],
  ["char varying", "varchar"],
  ["character", "bpchar"],
  ["character varying", "varchar"],
  ["dec", "numeric"],
  ["decimal", "numeric"],
  ["double precision", "float8"],
  ["float", "float8"],
  ["int", "int4"],
  ["integer", "int4"],
  ["national char", "bpchar"],
  ["national char varying", "varchar"],
  ["national character", "bpchar"],
  ["national character varying", "varchar"],
  ["nchar", "bpchar"],
  ["nchar varying", "varchar"],
  ["real", "float4"],
  ["serial", "int4"],
  ["serial2", "int2"],
  ["serial4", "int4"],
  ["serial8", "int8"],
  ["smallint", "int2"],
  ["smallserial", "int2"],
  ["time with time zone", "timetz"],
  ["time without time zone", "time"],
  ["timestamp with time zone", "timestamptz"],
  ["timestamp without time zone", "timestamp"],
]);

/** What a type's name says. */
export interface TypeName {
  readonly schema: string | undefined;
  /** The name in `pg_type`, of the element where it is an array. */
  readonly name: string;
  readonly isArray: boolean;
}

const DIMENSIONS = /\s*(?:\barray\s*(?:\[\d*\])?|(?:\[\d*\]\s*)+)$/i;
const PART = '"(?:[^"]|"")+"|[^\\s".,()[\\]]+';
const QUALIFIED = new RegExp(`^(?:(${PART})\\s*\\.\\s*)?(${PART})$`);
/** A length, a precision, or a precision and a scale. */
const MODIFIER = /\s*\(([\d\s,-]*)\)/;
const INTERVAL = /^interval(?: (?:year|month|day|hour|minute|second)(?: to (?:month|hour|minute|second))?)?$/;
/** The most bits of a float(n) that is a float4. */
const FLOAT4_BITS = 24;

/**
 * Reads a type's name: `Integer[]`, `numeric(10, 2)`, `app."Mood"`; `undefined` for what is none.
 *
 * Lengths and precisions are dropped, dimensions are one. Names without quotes that PostgreSQL brings along may have
 * capitals; others are taken as they are, since `pg_type` has them so.
 */
export function parseTypeName(text: string): TypeName | undefined {
  const trimmed = text.trim();
  const plain = trimmed.replace(DIMENSIONS, "");
  const isArray = plain !== trimmed;
  const element = plain.replace(MODIFIER, "");
  const common = element.toLowerCase().replace(/\s+/g, " ");
  const own = INTERVAL.test(common)
    ? "interval"
    : ALIASES.get(common) ?? (BUILTINS.has(common) ? common : undefined);
  if (own !== undefined) return { schema: undefined, name: ofBits(own, common, plain), isArray };
  const match = QUALIFIED.exec(element);
  if (match === null) return undefined;
  const [, schema, name] = match;
  return { schema: schema === undefined ? undefined : unquote(schema), name: unquote(name!), isArray };
}

const BUILTINS: ReadonlySet<string> = new Set(BUILTIN_TYPES.map(({ name }) => name));

/** A float of few bits is a float4. */
function ofBits(name: string, spelling: string, text: string): string {
  const bits = spelling === "float" ? MODIFIER.exec(text)?.[1] : undefined;
  return bits !== undefined && Number(bits) <= FLOAT4_BITS ? "float4" : name;
}

function unquote(part: string): string {
  return part.startsWith('"') ? part.slice(1, -1).replaceAll('""', '"') : part;
}
