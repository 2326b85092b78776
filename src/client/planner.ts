/** Where engine and codecs meet: rows of one shape, made with one registry. */

import type { Registry } from "../codecs/registry.ts";
import { createRowDecoder, resultFormats } from "../codecs/row_decoder.ts";
import type { RowDecoder, RowPlanner } from "../engine/request.ts";
import type { Field } from "../wire/backend.ts";

/** Objects keyed by column name, or arrays in column order. */
export type RowShape = "object" | "array";

class ShapePlanner implements RowPlanner {
  readonly #registry: Registry;
  readonly #shape: RowShape;

  constructor(registry: Registry, shape: RowShape) {
    this.#registry = registry;
    this.#shape = shape;
  }

  plan(fields: readonly Field[]): RowDecoder {
    return createRowDecoder(fields, this.#registry, this.#shape);
  }

  formats(fields: readonly Field[]): readonly (0 | 1)[] {
    return resultFormats(fields, this.#registry);
  }
}

/** A registry and its planners, one for each shape: statements cache plans by a planner's identity. */
export class Types {
  readonly registry: Registry;
  readonly objects: RowPlanner;
  readonly arrays: RowPlanner;

  constructor(registry: Registry) {
    this.registry = registry;
    this.objects = new ShapePlanner(registry, "object");
    this.arrays = new ShapePlanner(registry, "array");
  }
}
