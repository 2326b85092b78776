/** Values inside arrays, ranges and composites, on their way to the server. */

import type { Writer } from "../wire/writer.ts";
import type { Codec } from "./codec.ts";
import { Json } from "./parameter.ts";
import { textForm } from "./text_form.ts";

/** The text of one element that is not null: a string as it is, as a parameter of its own would be sent. */
export function elementText(value: unknown, element: Codec): string {
  if (value instanceof Json) return value.text();
  if (typeof value === "object") return element.encodeText(value);
  return textForm(value) ?? element.encodeText(value);
}

/** Writes length and bytes of one element that is not null; false, and nothing written, where it has no binary form. */
export function elementBinary(value: unknown, element: Codec, writer: Writer): boolean {
  if (value instanceof Json) return false;
  const start = writer.mark();
  writer.int32(0);
  if (element.encodeBinary === undefined || !element.encodeBinary(value, writer)) {
    writer.rewind(start);
    return false;
  }
  writer.patchInt32(start, writer.mark() - start - 4);
  return true;
}
