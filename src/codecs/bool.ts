/** bool (PostgreSQL manual, 8.6): boolean. */

import type { Codec } from "./codec.ts";
import { checkLength } from "./length.ts";
import { failText } from "./numbers.ts";
import { encodeSimple } from "./text_form.ts";

/** bool as boolean. */
export const boolCodec: Codec<boolean> = {
  name: "bool",
  preferredFormat: 1,
  decodeText(bytes, start, end): boolean {
    if (end - start === 1) {
      if (bytes[start] === 0x74) return true; // 't'
      if (bytes[start] === 0x66) return false; // 'f'
    }
    return failText("bool");
  },
  decodeBinary(bytes, start, end): boolean {
    checkLength(1, start, end);
    return bytes[start] !== 0;
  },
  encodeText(value): string {
    return encodeSimple(value, "a boolean");
  },
  encodeBinary(value, writer): boolean {
    if (typeof value !== "boolean") return false;
    writer.uint8(value ? 1 : 0);
    return true;
  },
};
