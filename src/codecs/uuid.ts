/** uuid (PostgreSQL manual, 8.12): string, lower case with hyphens. */

import { utf8Slice } from "../wire/utf8.ts";
import type { Codec } from "./codec.ts";
import { HEX } from "./hex.ts";
import { checkLength } from "./length.ts";
import { encodeSimple } from "./text_form.ts";

/** uuid as string. */
export const uuidCodec: Codec<string> = {
  name: "uuid",
  preferredFormat: 0,
  decodeText: utf8Slice,
  decodeBinary(bytes, start, end): string {
    checkLength(16, start, end);
    let text = "";
    for (let i = 0; i < 16; i++) {
      if (i === 4 || i === 6 || i === 8 || i === 10) text += "-";
      text += HEX[bytes[start + i]!]!;
    }
    return text;
  },
  encodeText(value): string {
    return encodeSimple(value, "a string");
  },
};
