/**
 * Which codec a type has: the defaults, what the user put in their place, and what follows from a type's structure.
 *
 * A registry never changes: `extend` and `withTypes` make another. Codecs are derived when first asked for, so that a
 * replaced element type reaches its arrays, domains, ranges and composites.
 */

import { ConfigurationError } from "../errors.ts";
import { utf8Slice } from "../wire/utf8.ts";
import { createArrayCodec } from "./array.ts";
import type { Codec, Oid } from "./codec.ts";
import { createCompositeCodec } from "./composite.ts";
import { createDateCodec } from "./date.ts";
import type { DateOrder } from "./date_style.ts";
import { DEFAULT_CODECS } from "./default_codecs.ts";
import { int8NumberCodec, int8StringCodec } from "./int8.ts";
import { BUILTIN_TYPES } from "./oids.gen.ts";
import { createMultirangeCodec, createRangeCodec } from "./range.ts";
import { createTemporalCodecs } from "./temporal.ts";
import { createTimestampCodec } from "./timestamp.ts";
import { opaqueCodec, textCodec } from "./text.ts";
import { ALIASES, parseTypeName, type TypeName } from "./type_names.ts";

/** What a type is made of (`pg_type.typtype`; arrays apart). */
export type TypeKind = "base" | "array" | "composite" | "domain" | "enum" | "range" | "multirange" | "pseudo";

/** An attribute of a composite type. */
export interface AttributeDescription {
  /** `pg_attribute.attname`. */
  readonly name: string;
  /** `pg_attribute.atttypid`. */
  readonly typeOid: Oid;
}

/** A type as `pg_type` and its companions tell it. */
export interface TypeDescription {
  /** Type OID. */
  readonly oid: Oid;
  /** `pg_type.typname`. */
  readonly name: string;
  /** Its schema; default `pg_catalog`. */
  readonly schema?: string | undefined;
  /** What it is made of. */
  readonly kind: TypeKind;
  /** An array's element type. */
  readonly element?: Oid | undefined;
  /** `pg_type.typdelim` of an array's element type; default a comma. */
  readonly delimiter?: string | undefined;
  /** A composite type's attributes in order, dropped ones left out. */
  readonly attributes?: readonly AttributeDescription[] | undefined;
  /** The type a domain is over. */
  readonly base?: Oid | undefined;
  /** A range type's subtype. */
  readonly subtype?: Oid | undefined;
  /** A multirange type's range type. */
  readonly range?: Oid | undefined;
}

/**
 * What to change about a type's codec. What is left out stays as it is, except that a new `decodeBinary` needs a new
 * `decodeText`, which reads the same, that a new `decodeText` without a `decodeBinary` makes the column be asked for as text, and a new `encodeText` without an `encodeBinary` makes it be
 * sent as text.
 */
export type TypeOverride = Partial<Omit<Codec, "name">>;

/**
 * Overrides by a type's name (`"int8"`, `"mood[]"`, `"schema.mood"`, `'schema."Mood"'`) or OID; or `"text"`: every value
 * is read as its text, parameters are written as ever.
 *
 * A column of a domain comes as one of the type below it: only inside of arrays and composites, and as a parameter, has
 * it the domain's override.
 */
export type TypeOverrides = Readonly<Record<string | Oid, TypeOverride>> | "text";

/** How types are represented. */
export interface RegistryOptions {
  /** JavaScript type of int8; default `"bigint"`. */
  readonly int8?: "bigint" | "number" | "string";
  /** Dates and times as Temporal objects; default `false`. */
  readonly temporal?: boolean;
  /** Every value is read as its text; default `false`. */
  readonly text?: boolean;
  /** Which number of a date comes first where its text does not say so; default: such a text is a ValueError. */
  readonly dateOrder?: DateOrder | undefined;
}

let builtinTypes: ReadonlyMap<Oid, TypeDescription> | undefined;

/** The types every database has, arrays included, by OID. */
function builtins(): ReadonlyMap<Oid, TypeDescription> {
  if (builtinTypes !== undefined) return builtinTypes;
  const types = new Map<Oid, TypeDescription>();
  for (const { name, oid, array, delimiter, subtype, multirange } of BUILTIN_TYPES) {
    if (!types.has(oid)) {
      types.set(oid, { oid, name, kind: subtype === undefined ? "base" : "range", subtype });
    }
    if (multirange !== undefined) {
      types.set(multirange, {
        oid: multirange,
        name: name.replace("range", "multirange"),
        kind: "multirange",
        range: oid,
      });
    }
    if (array !== 0) {
      types.set(array, { oid: array, name: "_" + name, kind: "array", element: oid, delimiter });
    }
  }
  builtinTypes = types;
  return types;
}

/** An immutable set of codecs. */
export class Registry {
  /** How types are represented. */
  readonly options: Required<RegistryOptions>;
  readonly #dated: ReadonlyMap<string, Codec>;
  readonly #temporal: ReadonlyMap<string, Codec> | undefined;
  /** Types beyond the built-in ones, by OID. */
  readonly #types: ReadonlyMap<Oid, TypeDescription>;
  /** By OID, or what {@linkcode overrideKey} makes of a name. */
  readonly #overrides: ReadonlyMap<string | Oid, TypeOverride>;
  /** Derived codecs; `null` for a type that is not known, or is being derived. */
  readonly #codecs: Map<Oid, Codec | null> = new Map();
  /** Codecs of whole lists of types: a statement's list is always the same one. */
  readonly #found: WeakMap<readonly Oid[], readonly (Codec | undefined)[]> = new WeakMap();
  /** Names as the server resolved them; without, those of the types themselves. */
  readonly #names: ReadonlyMap<string, Oid> | undefined;
  #oidsByName: Map<string, Oid> | undefined;

  /** Use {@linkcode createRegistry}, `extend` and `withTypes`. */
  constructor(
    options: RegistryOptions = {},
    types: ReadonlyMap<Oid, TypeDescription> = new Map(),
    overrides: ReadonlyMap<string | Oid, TypeOverride> = new Map(),
    names?: ReadonlyMap<string, Oid>,
  ) {
    const { int8 = "bigint", temporal = false, text = false, dateOrder } = options;
    this.options = { int8, temporal, text, dateOrder };
    this.#temporal = temporal ? createTemporalCodecs(dateOrder) : undefined;
    this.#dated = dateOrder === undefined ? NO_CODECS : datedCodecs(dateOrder);
    this.#types = types;
    this.#overrides = overrides;
    this.#names = names;
  }

  /** The codec of a type; `undefined` when the type is not known: its values are strings in text format. */
  codecFor(oid: Oid): Codec | undefined {
    let codec = this.#codecs.get(oid);
    if (codec === undefined) {
      // A type that contains itself, which no sound catalogue has, ends here.
      this.#codecs.set(oid, null);
      codec = this.#resolve(oid) ?? null;
      this.#codecs.set(oid, codec);
    }
    return codec ?? undefined;
  }

  /** The codecs of types, in their order, as {@linkcode codecFor} gives them; none for 0, a type that nobody has said. */
  codecsFor(oids: readonly Oid[]): readonly (Codec | undefined)[] {
    return this.#found.get(oids) ?? this.#findCodecs(oids);
  }

  #findCodecs(oids: readonly Oid[]): readonly (Codec | undefined)[] {
    const codecs = oids.map((oid) => oid === 0 ? undefined : this.codecFor(oid));
    this.#found.set(oids, codecs);
    return codecs;
  }

  /** What is known of a type's structure. */
  typeFor(oid: Oid): TypeDescription | undefined {
    return this.#types.get(oid) ?? builtins().get(oid);
  }

  /** The OID of a type by its name in `pg_type` or SQL, arrays as `int4[]`; `undefined` when it is not known. */
  oidOf(name: string): Oid | undefined {
    if (this.#oidsByName === undefined) {
      this.#oidsByName = new Map();
      // Which schema a name stands for is the server's to say.
      const own = this.#names === undefined ? this.#types.values() : [];
      for (const type of [...own, ...builtins().values()]) {
        if (!this.#oidsByName.has(type.name)) this.#oidsByName.set(type.name, type.oid);
      }
      for (const [alias, of] of ALIASES) this.#oidsByName.set(alias, this.#oidsByName.get(of)!);
    }
    return this.#oidsByName.get(name) ?? this.#oidOfParsed(parseTypeName(name)) ?? this.#names?.get(name);
  }

  #oidOfParsed(parsed: TypeName | undefined): Oid | undefined {
    // Which schemas there are is the server's to say.
    if (parsed === undefined || parsed.schema !== undefined && parsed.schema !== "pg_catalog") {
      return undefined;
    }
    const { name, isArray } = parsed;
    if (isArray) return this.#oidsByName!.get("_" + name);
    // Written in quotes: an alias would have been replaced.
    if (ALIASES.has(name)) return name === "char" ? CHAR : undefined;
    return this.#oidsByName!.get(name);
  }

  /** The OID of the array type over an element type; `undefined` when it is not known. */
  arrayOf(element: Oid): Oid | undefined {
    for (const types of [this.#types, builtins()]) {
      for (const type of types.values()) {
        if (type.kind === "array" && type.element === element) return type.oid;
      }
    }
    return undefined;
  }

  /**
   * A registry with other codecs or options.
   *
   * @param overrides by type name (`"int8"`, `"int4[]"`) or OID; a later one of a type replaces an earlier one
   * @throws {ConfigurationError} for overrides that are none
   */
  extend(overrides: TypeOverrides, options: RegistryOptions = {}): Registry {
    if (overrides === "text") return this.extend({}, { ...options, text: true });
    if (typeof overrides !== "object" || overrides === null) failOverrides("types", 'an object or "text"');
    const merged = new Map(this.#overrides);
    for (const [key, override] of Object.entries(overrides)) {
      checkOverride(key, override);
      if (/^\d+$/.test(key)) {
        merged.set(Number(key), override);
        continue;
      }
      const name = parseTypeName(key) ??
        failOverrides(
          `types[${JSON.stringify(key)}]`,
          "a type's name, in double quotes where SQL needs them, or its OID",
        );
      merged.set(overrideKey(name), override);
    }
    return new Registry({ ...this.options, ...options }, this.#types, merged, this.#names);
  }

  /**
   * A registry that knows these types too; one of a known OID replaces what was known of it.
   *
   * @param names what names stand for, as the server says; default: what the types are called
   */
  withTypes(descriptions: Iterable<TypeDescription>, names?: ReadonlyMap<string, Oid>): Registry {
    const types = new Map(this.#types);
    for (const description of descriptions) types.set(description.oid, description);
    return new Registry(this.options, types, this.#overrides, names ?? this.#names);
  }

  #resolve(oid: Oid): Codec | undefined {
    const type = this.typeFor(oid);
    let override = this.#overrides.get(oid) ?? (type === undefined ? undefined : this.#overrideOf(type));
    const codec = type === undefined ? undefined : this.#derive(type);
    if (this.options.text) override = { ...encodersOf(override), decodeText: utf8Slice };
    if (override === undefined) return codec;
    return applyOverride(codec ?? opaqueCodec(type?.name ?? String(oid)), override);
  }

  #overrideOf(type: TypeDescription): TypeOverride | undefined {
    if (this.#overrides.size === 0) return undefined;
    // An array's own name is not told from that of another type which begins with an underscore.
    const element = type.kind === "array" ? this.typeFor(type.element ?? 0) : undefined;
    for (const isQualified of [true, false]) {
      for (const each of [element, type]) {
        if (each === undefined) continue;
        const schema = isQualified ? each.schema ?? "pg_catalog" : undefined;
        const override = this.#overrides.get(
          overrideKey({ schema, name: each.name, isArray: each === element }),
        );
        if (override !== undefined) return override;
      }
    }
    return undefined;
  }

  /** The codec that follows from what a type is made of. */
  #derive(type: TypeDescription): Codec | undefined {
    switch (type.kind) {
      case "array":
        return createArrayCodec(this.#part(type.element), type.element ?? 0, type.delimiter ?? ",");
      case "domain":
        return this.#part(type.base);
      case "enum":
        return textCodec(type.name);
      case "range":
        return createRangeCodec(type.name, this.#part(type.subtype));
      case "multirange":
        return createMultirangeCodec(type.name, this.#part(this.typeFor(type.range ?? 0)?.subtype));
      case "composite":
        return createCompositeCodec(
          type.name,
          (type.attributes ?? []).map(({ name, typeOid }) => ({ name, typeOid, codec: this.#part(typeOid) })),
        );
      case "base":
      case "pseudo":
        return this.#base(type.name);
    }
  }

  /** The codec of a type that another is made of. */
  #part(oid: Oid | undefined): Codec {
    return (oid === undefined ? undefined : this.codecFor(oid)) ?? opaqueCodec("unknown");
  }

  #base(name: string): Codec {
    if (name === "int8" && this.options.int8 === "number") return int8NumberCodec;
    if (name === "int8" && this.options.int8 === "string") return int8StringCodec;
    return this.#temporal?.get(name) ?? this.#dated.get(name) ?? DEFAULT_CODECS.get(name) ??
      opaqueCodec(name);
  }
}

/** OID of "char". */
const CHAR = 18;

function overrideKey({ schema = "", name, isArray }: TypeName): string {
  return `${schema}\0${name}\0${isArray ? "[]" : ""}`;
}

const NO_CODECS: ReadonlyMap<string, Codec> = new Map();

/** The codecs whose text depends on DateStyle. */
function datedCodecs(order: DateOrder): ReadonlyMap<string, Codec> {
  const codecs = [
    createDateCodec(order),
    createTimestampCodec("timestamp", order),
    createTimestampCodec("timestamptz", order),
  ];
  return new Map(codecs.map((codec) => [codec.name, codec]));
}

function failOverrides(name: string, wanted: string): never {
  throw new ConfigurationError(`Cannot use the option ${name}: wanted ${wanted}`);
}

/** A misspelt method would leave the codec as it was. */
function checkOverride(key: string, override: unknown): void {
  if (typeof override !== "object" || override === null) failOverrides(`types["${key}"]`, "an object");
  for (const method of ["decodeText", "decodeBinary", "encodeText", "encodeBinary"]) {
    const given = (override as Record<string, unknown>)[method];
    if (given !== undefined && typeof given !== "function") {
      failOverrides(`types["${key}"].${method}`, "a function");
    }
  }
  const { decodeText, decodeBinary } = override as TypeOverride;
  if (decodeBinary !== undefined && decodeText === undefined) {
    failOverrides(`types["${key}"]`, "decodeText beside decodeBinary, since the first rows may come as text");
  }
}

/** The half of an override that has to do with parameters. */
function encodersOf(override: TypeOverride = {}): TypeOverride {
  return {
    ...(override.encodeText === undefined ? {} : { encodeText: override.encodeText.bind(override) }),
    ...(override.encodeBinary === undefined ? {} : { encodeBinary: override.encodeBinary.bind(override) }),
    ...(override.takesArrays === undefined ? {} : { takesArrays: override.takesArrays }),
  };
}

function applyOverride(codec: Codec, override: TypeOverride): Codec {
  // Methods of a class are not enumerable: each is fetched by name, and keeps its `this`.
  const decodes = override.decodeText === undefined ? codec : override;
  const encodes = override.encodeText === undefined ? codec : override;
  const decodeBinary = override.decodeBinary?.bind(override) ?? decodes.decodeBinary?.bind(decodes);
  const encodeBinary = override.encodeBinary?.bind(override) ?? encodes.encodeBinary?.bind(encodes);
  const preferred = override.preferredFormat ??
    (override.decodeText && override.decodeBinary ? 1 : codec.preferredFormat);
  const takesArrays = override.takesArrays ?? codec.takesArrays;
  return {
    name: codec.name,
    preferredFormat: decodeBinary === undefined ? 0 : preferred,
    decodeText: decodes.decodeText!.bind(decodes),
    encodeText: encodes.encodeText!.bind(encodes),
    ...(decodeBinary === undefined ? {} : { decodeBinary }),
    ...(encodeBinary === undefined ? {} : { encodeBinary }),
    ...(takesArrays === undefined ? {} : { takesArrays }),
  };
}

/**
 * The defaults, with options.
 *
 * @throws {ConfigurationError} for `temporal` where the runtime has no Temporal
 */
export function createRegistry(options: RegistryOptions = {}): Registry {
  return new Registry(options);
}
