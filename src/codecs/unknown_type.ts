/** A value that needs to know a type which the registry does not know yet. */

import { ValueError } from "../errors.ts";
import type { Oid } from "./codec.ts";

/** Thrown before anything is sent; once the type has been looked up, the value may be encoded. */
export class UnknownTypeError extends ValueError {
  /** OID of the type to look up. */
  readonly oid: Oid;

  constructor(message: string, oid: Oid) {
    super(message);
    this.oid = oid;
  }
}
