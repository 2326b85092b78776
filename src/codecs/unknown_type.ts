/** A value that needs to know a type which the registry does not know yet. */

import { ValueError } from "../errors.ts";
import type { Oid } from "./codec.ts";

/** Thrown before anything is sent; once the type has been looked up, the value may be encoded. */
export class UnknownTypeError extends ValueError {
  /** The type to look up. */
  readonly type: Oid;

  constructor(message: string, type: Oid) {
    super(message);
    this.type = type;
  }
}
