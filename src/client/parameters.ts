/** The values of one execution, as the engine wants them. */

import { ArrayValue, isAmbiguous, snapshot, Typed } from "../codecs/parameter.ts";
import {
  carriesTypes,
  encodeParameters,
  parameterTypes,
  unknownName,
  unresolvedName,
  withType,
} from "../codecs/parameter_encoder.ts";
import type { Registry } from "../codecs/registry.ts";
import { ValueError } from "../errors.ts";
import { NO_PARAMETERS, type Parameters } from "../engine/request.ts";
import { keepShape } from "../wire/keep_shape.ts";
import type { Writer } from "../wire/writer.ts";

const NONE_DECLARED: readonly number[] = [];
const MOST_PARAMETERS = 65_535;

/** Values, and the codecs that they are written with. */
export class BoundParameters implements Parameters {
  declaredTypes: readonly number[];
  ambiguous: boolean;
  values: readonly unknown[];
  /** Type names that only a session can tell the meaning of. */
  readonly names: readonly string[] | null;
  /** The values with the types that their names stand for. */
  #resolved: readonly unknown[] | undefined = undefined;
  /** Replaced when types have been learnt before the values are written. */
  registry: Registry;

  constructor(values: readonly unknown[], registry: Registry) {
    // Parse has no room for them either, and would be written first.
    if (values.length > MOST_PARAMETERS) {
      throw new ValueError(
        `Cannot encode ${values.length} parameters: the protocol's limit is ${MOST_PARAMETERS}`,
      );
    }
    this.values = values;
    this.registry = registry;
    if (arePrimitive(values)) {
      this.names = null;
      this.declaredTypes = NONE_DECLARED;
      this.ambiguous = false;
      return;
    }
    const carries = carriesTypes(values);
    this.names = carries ? namesOf(values, registry) : null;
    const types = carries && this.names === null ? parameterTypes(values, registry) : NONE_DECLARED;
    this.declaredTypes = types.some(isDeclared) ? types : NONE_DECLARED;
    this.ambiguous = this.names !== null || needsDescription(values, types, registry);
  }

  resolve(oids: ReadonlyMap<string, number>): Error | null {
    const resolved: unknown[] = [];
    for (const [i, value] of this.values.entries()) {
      const name = unresolvedName(value, this.registry);
      const oid = name === undefined ? 0 : oids.get(name);
      if (oid === undefined) return unknownName(i, name!);
      resolved.push(oid === 0 ? value : withType(value, oid));
    }
    this.#resolved = resolved;
    this.declaredTypes = parameterTypes(resolved, this.registry);
    this.ambiguous = needsDescription(resolved, this.declaredTypes, this.registry);
    return null;
  }

  write(writer: Writer, types: readonly number[] | null): void {
    encodeParameters(this.#resolved ?? this.values, types, this.registry, writer);
  }

  snapshot(): void {
    this.values = snapshot(this.values);
    if (this.#resolved !== undefined) this.#resolved = snapshot(this.#resolved);
  }

  /** Of the parameters' types those without which a value cannot be written. */
  needed(types: readonly number[] | null): number[] {
    return types?.filter((_, i) => isAmbiguous(plainValue((this.#resolved ?? this.values)[i]))) ?? [];
  }
}

function namesOf(values: readonly unknown[], registry: Registry): readonly string[] | null {
  const names = values.map((value) => unresolvedName(value, registry)).filter((name) => name !== undefined);
  return names.length === 0 ? null : names;
}

/** Whether there is no object among the values: nothing has to be known of them before they are sent. */
function arePrimitive(values: readonly unknown[]): boolean {
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value === "object" && value !== null) return false;
  }
  return true;
}

function isDeclared(oid: number): boolean {
  return oid !== 0;
}

/** Whether a value has to wait for the server's word. One of a declared type needs none. */
function needsDescription(
  values: readonly unknown[],
  types: readonly number[],
  registry: Registry,
): boolean {
  for (let i = 0; i < values.length; i++) {
    const type = types.length === 0 ? 0 : types[i]!;
    if (
      type === 0
        ? isAmbiguous(values[i])
        : registry.typeFor(type) === undefined && isAmbiguous(plainValue(values[i]))
    ) {
      return true;
    }
  }
  return false;
}

function plainValue(value: unknown): unknown {
  if (value instanceof Typed) return value.value;
  return value instanceof ArrayValue ? value.values : value;
}

/** Parameters for these values; nothing is encoded yet. */
export function bindParameters(values: readonly unknown[], registry: Registry): Parameters {
  return values.length === 0 ? NO_PARAMETERS : new BoundParameters(values, registry);
}

keepShape(new BoundParameters([], {} as Registry));
