/**
 * Which codec a type has: the defaults, what the user put in their place, and what follows from a type's structure.
 *
 * A registry never changes: `extend` and `withTypes` make another. Codecs are derived when first asked for, so that a
 * replaced element type reaches its arrays, domains, ranges and composites.
 */

import { createArrayCodec } from "./array.ts";
import type { Codec, Oid } from "./codec.ts";
import { createCompositeCodec } from "./composite.ts";
import { DEFAULT_CODECS } from "./default_codecs.ts";
import { int8NumberCodec, int8StringCodec } from "./int8.ts";
import { BUILTIN_TYPES } from "./oids.gen.ts";
import { createMultirangeCodec, createRangeCodec } from "./range.ts";
import { createTemporalCodecs } from "./temporal.ts";
import { opaqueCodec, textCodec } from "./text.ts";
import { catalogueName } from "./type_names.ts";

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
 * What to change about a type's codec. What is left out stays as it is, except that a new `decodeText` without a
 * `decodeBinary` makes the column be asked for as text, and a new `encodeText` without an `encodeBinary` makes it be
 * sent as text.
 */
export type TypeOverride = Partial<Omit<Codec, "name">>;

/** How types are represented. */
export interface RegistryOptions {
  /** JavaScript type of int8; default `"bigint"`. */
  readonly int8?: "bigint" | "number" | "string";
  /** Dates and times as Temporal objects; default `false`. */
  readonly temporal?: boolean;
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
  readonly #temporal: ReadonlyMap<string, Codec> | undefined;
  /** Types beyond the built-in ones, by OID. */
  readonly #types: ReadonlyMap<Oid, TypeDescription>;
  /** By `pg_type` name or OID. */
  readonly #overrides: ReadonlyMap<string | Oid, TypeOverride>;
  /** Derived codecs; `null` for a type that is not known, or is being derived. */
  readonly #codecs: Map<Oid, Codec | null> = new Map();
  #oidsByName: Map<string, Oid> | undefined;

  /** Use {@linkcode createRegistry}, `extend` and `withTypes`. */
  constructor(
    options: RegistryOptions = {},
    types: ReadonlyMap<Oid, TypeDescription> = new Map(),
    overrides: ReadonlyMap<string | Oid, TypeOverride> = new Map(),
  ) {
    this.options = { int8: options.int8 ?? "bigint", temporal: options.temporal ?? false };
    this.#temporal = this.options.temporal ? createTemporalCodecs() : undefined;
    this.#types = types;
    this.#overrides = overrides;
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

  /** What is known of a type's structure. */
  typeFor(oid: Oid): TypeDescription | undefined {
    return this.#types.get(oid) ?? builtins().get(oid);
  }

  /** The OID of a type by its name in `pg_type` or SQL, arrays as `int4[]`; `undefined` when it is not known. */
  oidOf(name: string): Oid | undefined {
    if (this.#oidsByName === undefined) {
      this.#oidsByName = new Map();
      for (const type of [...this.#types.values(), ...builtins().values()]) {
        if (!this.#oidsByName.has(type.name)) this.#oidsByName.set(type.name, type.oid);
      }
    }
    return this.#oidsByName.get(catalogueName(name));
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
   */
  extend(
    overrides: Readonly<Record<string | Oid, TypeOverride>>,
    options: RegistryOptions = {},
  ): Registry {
    const merged = new Map(this.#overrides);
    for (const [key, override] of Object.entries(overrides)) {
      merged.set(/^\d+$/.test(key) ? Number(key) : catalogueName(key), override);
    }
    return new Registry({ ...this.options, ...options }, this.#types, merged);
  }

  /** A registry that knows these types too; one of a known OID replaces what was known of it. */
  withTypes(descriptions: Iterable<TypeDescription>): Registry {
    const types = new Map(this.#types);
    for (const description of descriptions) types.set(description.oid, description);
    return new Registry(this.options, types, this.#overrides);
  }

  #resolve(oid: Oid): Codec | undefined {
    const type = this.typeFor(oid);
    const override = this.#overrides.get(oid) ??
      (type === undefined ? undefined : this.#overrides.get(type.name));
    const codec = type === undefined ? undefined : this.#derive(type);
    if (override === undefined) return codec;
    return applyOverride(codec ?? opaqueCodec(type?.name ?? String(oid)), override);
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
          (type.attributes ?? []).map(({ name, typeOid }) => ({ name, codec: this.#part(typeOid) })),
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
    return this.#temporal?.get(name) ?? DEFAULT_CODECS.get(name) ?? opaqueCodec(name);
  }
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
