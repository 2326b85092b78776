/**
 * Writes the table of types in README.md, between its two markers: what each type's codec makes of a sample.
 *
 * deno run -A scripts/generate_type_table.ts            rewrites README.md
 * deno run -A scripts/generate_type_table.ts --check    fails when README.md is not what it would write
 *
 * A type that gets a line in default_codecs.ts needs one in SAMPLES.
 */

import { fileURLToPath } from "node:url";
import { DEFAULT_CODECS } from "../src/codecs/default_codecs.ts";
import { BUILTIN_TYPES } from "../src/codecs/oids.gen.ts";
import { createRegistry, type Registry, type TypeDescription } from "../src/codecs/registry.ts";

const README: string = fileURLToPath(new URL("../README.md", import.meta.url));
const BEGIN = "<!-- types: written by scripts/generate_type_table.ts -->";
const END = "<!-- end of types -->";

/** Any OID that no built-in type has. */
const FIRST_USER_OID = 16_384;

/** Values of one representation in their types' text form, and what is to be said of them. */
interface Sample {
  readonly types: readonly string[];
  readonly text: string;
  /** What the column "JavaScript" says; default: the value's own kind. */
  readonly kind?: string;
}

const SAMPLES: readonly Sample[] = [
  { types: ["int2", "int4", "oid", "xid", "cid"], text: "42" },
  { types: ["float4", "float8"], text: "0.1", kind: "`number`; float4 as its shortest decimal" },
  { types: ["int8"], text: "9007199254740991" },
  { types: ["xid8"], text: "42" },
  { types: ["numeric"], text: "1.10", kind: "`string`, scale kept" },
  { types: ["money"], text: "$1.10", kind: "`string`, as `lc_monetary` has it" },
  { types: ["bool"], text: "t" },
  { types: ["text", "varchar", "bpchar", "name", "citext", "char", "unknown", "cstring"], text: "abc" },
  { types: ["xml"], text: "<a/>" },
  { types: ["uuid"], text: "0193a5d4-6f3c-7e1a-9f2b-3c4d5e6f7a8b" },
  { types: ["bytea"], text: "\\xcafe", kind: "`Uint8Array`, a copy" },
  { types: ["json", "jsonb"], text: '{"a": [1, null]}', kind: "the parsed value" },
  { types: ["date"], text: "2024-02-29" },
  { types: ["time"], text: "12:30:00.25" },
  { types: ["timetz"], text: "12:30:00+01" },
  { types: ["timestamp"], text: "2024-02-29 12:30:00", kind: "`Date`, the wall clock read as UTC" },
  { types: ["timestamptz"], text: "2024-02-29 12:30:00+01" },
  { types: ["interval"], text: "1 mon 2 days 00:00:03.5" },
  { types: ["point"], text: "(1,2)" },
  { types: ["line"], text: "{1,2,3}" },
  { types: ["lseg"], text: "[(1,2),(3,4)]" },
  { types: ["box"], text: "(3,4),(1,2)" },
  { types: ["path"], text: "[(1,2),(3,4)]" },
  { types: ["polygon"], text: "((1,2),(3,4))" },
  { types: ["circle"], text: "<(1,2),3>" },
  { types: ["hstore"], text: '"a"=>"1", "b"=>NULL', kind: "object of strings and `null`s" },
  { types: ["vector", "halfvec"], text: "[1,2.5]" },
  { types: ["sparsevec"], text: "{1:1.5,3:2}/3" },
  { types: ["int4[]"], text: "{{1,NULL},{3,4}}", kind: "nested arrays of the element's kind" },
  { types: ["int4range"], text: "[1,5)", kind: "`Range` of the subtype's kind" },
  { types: ["int4multirange"], text: "{[1,5),[7,9)}", kind: "array of `Range`" },
  { types: ["an enum"], text: "open" },
  { types: ["a domain"], text: "42", kind: "as the type it is over" },
  { types: ["a composite"], text: "(1,a)", kind: "object keyed by attribute" },
  { types: ["record"], text: "(1,a)", kind: "array of text, of anonymous records" },
];

/** Types of a database, as pg_type would tell of them: one of each kind, and the extensions'. */
const DATABASE_TYPES: readonly TypeDescription[] = [
  ...[...DEFAULT_CODECS.keys()].filter((name) => !isBuiltin(name)).map((name, i) => (
    { oid: FIRST_USER_OID + i, name, kind: "base" as const }
  )),
  { oid: FIRST_USER_OID + 100, name: "an enum", kind: "enum" },
  { oid: FIRST_USER_OID + 101, name: "a domain", kind: "domain", base: 23 },
  {
    oid: FIRST_USER_OID + 102,
    name: "a composite",
    kind: "composite",
    attributes: [{ name: "id", typeOid: 23 }, { name: "name", typeOid: 25 }],
  },
];

function isBuiltin(name: string): boolean {
  return BUILTIN_TYPES.some((type) => type.name === name);
}

/** What an option changes, by how it is written. */
const OPTIONS: readonly [written: string, registry: Registry][] = [
  ['`int8: "number"`', createRegistry({ int8: "number" })],
  ['`int8: "string"`', createRegistry({ int8: "string" })],
  ["`temporal: true`", createRegistry({ temporal: true })],
];

/** The table, in Markdown. */
export function typeTable(): string {
  const registry = createRegistry().withTypes(DATABASE_TYPES);
  const covered = new Set(SAMPLES.flatMap(({ types }) => types));
  const missing = [...DEFAULT_CODECS.keys()].filter((name) => !covered.has(name));
  if (missing.length > 0) throw new Error(`No sample of ${missing.join(", ")} in ${import.meta.filename}`);
  const rows = SAMPLES.map(({ types, text, kind }) => {
    const values = types.map((type) => decode(registry, type, text));
    const kinds = new Set(values.map(kindOf));
    if (kinds.size > 1) throw new Error(`${types.join(", ")} are not of one kind: ${[...kinds].join(", ")}`);
    const value = values[0];
    const options = OPTIONS.flatMap(([written, other]) => {
      const changed = new Set(types.filter(isBuiltin).map((type) => kindOf(decode(other, type, text))));
      return [...changed].filter((each) => !kinds.has(each)).map((each) => `${written}: ${each}`);
    });
    return [types.join(", "), kind ?? kindOf(value), `\`${written(value)}\``, options.join(", ")];
  });
  rows.push(["anything else", "`string`, PostgreSQL's text form", '`"127.0.0.1/8"` for inet', ""]);
  const head = [["PostgreSQL", "JavaScript", "for example", "by option"], ["---", "---", "---", "---"]];
  return [...head, ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

function decode(registry: Registry, type: string, text: string): unknown {
  const codec = registry.codecFor(registry.oidOf(type) ?? 0);
  if (codec === undefined) throw new Error(`No codec of ${type}`);
  const bytes = new TextEncoder().encode(text);
  return codec.decodeText(bytes, 0, bytes.length);
}

/** `string`, `Date`, `Temporal.Instant`, or the shape of a plain object. */
function kindOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return `\`${typeof value}\``;
  if (Array.isArray(value)) return "array";
  const tag = (value as { [Symbol.toStringTag]?: string })[Symbol.toStringTag];
  const name = tag ?? value.constructor.name;
  return `\`${name === "Object" ? `{ ${Object.keys(value).join(", ")} }` : name}\``;
}

function written(value: unknown): string {
  return value instanceof Date
    ? `${value.toISOString()}`
    : Deno.inspect(value, { colors: false, breakLength: Infinity });
}

/** README.md with the table as it should be. */
export function withTypeTable(readme: string): string {
  const [begin, end] = [readme.indexOf(BEGIN), readme.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`README.md has not the markers ${BEGIN} and ${END}`);
  return `${readme.slice(0, begin + BEGIN.length)}\n\n${typeTable()}\n\n${readme.slice(end)}`;
}

/** As `deno fmt` writes it. */
async function formatted(markdown: string): Promise<string> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--quiet", "--ext", "md", "-"],
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(markdown));
  await writer.close();
  const { success, stdout } = await child.output();
  if (!success) throw new Error("deno fmt failed");
  return new TextDecoder().decode(stdout);
}

if (import.meta.main) {
  const readme = await Deno.readTextFile(README);
  const wanted = await formatted(withTypeTable(readme));
  if (!Deno.args.includes("--check")) await Deno.writeTextFile(README, wanted);
  else if (readme !== wanted) {
    console.error(
      "The table of types in README.md is out of date: deno run -A scripts/generate_type_table.ts",
    );
    Deno.exitCode = 1;
  }
}
