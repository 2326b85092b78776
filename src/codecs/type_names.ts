/** Type names as SQL spells them, by the names of `pg_type` (PostgreSQL manual, table 8.1). */

const ALIASES: Readonly<Record<string, string>> = {
  "bigint": "int8",
  "bit varying": "varbit",
  "boolean": "bool",
  "character": "bpchar",
  "character varying": "varchar",
  "decimal": "numeric",
  "double precision": "float8",
  "float": "float8",
  "int": "int4",
  "integer": "int4",
  "real": "float4",
  "smallint": "int2",
  "time with time zone": "timetz",
  "time without time zone": "time",
  "timestamp with time zone": "timestamptz",
  "timestamp without time zone": "timestamp",
};

/** `"Integer[]"` to `"_int4"`; a length or precision in parentheses is dropped, dimensions are one. */
export function catalogueName(name: string): string {
  const element = name.trim().replace(/\s*(?:\[\d*\]\s*)+$/, "");
  const plain = element.replace(/\s*\([\d\s,]*\)/, "").replace(/\s+/g, " ");
  const lower = plain.toLowerCase();
  const known = Object.hasOwn(ALIASES, lower) ? ALIASES[lower]! : plain;
  return name.trim().endsWith("]") ? "_" + known : known;
}
