/** uuid (PostgreSQL manual, 8.12): string, lower case with hyphens. */

import { utf8Slice } from "../wire/utf8.ts";
import type { Codec } from "./codec.ts";
import { HEX, HEX_VALUES } from "./hex.ts";
import { checkLength } from "./length.ts";
import { failText } from "./numbers.ts";
import { encodeSimple } from "./text_form.ts";

/** uuid as string. */
export const uuidCodec: Codec<string> = {
  name: "uuid",
  preferredFormat: 0,
  decodeText(bytes, start, end): string {
    if (
      end - start !== 36 || bytes[start + 8] !== 0x2d || bytes[start + 13] !== 0x2d ||
      bytes[start + 18] !== 0x2d || bytes[start + 23] !== 0x2d
    ) failText("uuid");
    return utf8Slice(bytes, start, end);
  },
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
  encodeBinary(value, writer): boolean {
    // The server takes braces and other groups too: that is for its text form.
    if (typeof value !== "string" || !UUID.test(value)) return false;
    for (let i = 0; i < 36; i += 2) {
      if (i === 8 || i === 13 || i === 18 || i === 23) i++;
      writer.uint8((HEX_VALUES[value.charCodeAt(i)]! << 4) | HEX_VALUES[value.charCodeAt(i + 1)]!);
    }
    return true;
  },
};

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
