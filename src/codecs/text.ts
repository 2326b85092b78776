/** Types whose value is their text: text, varchar, bpchar, name, citext, enums and many more. */

import { utf8Slice } from "../wire/utf8.ts";
import type { Codec } from "./codec.ts";
import { encodeSimple } from "./text_form.ts";

/** A codec of a type whose binary form is its text in UTF-8. */
export function textCodec(name: string): Codec<string> {
  return {
    name,
    preferredFormat: 0,
    decodeText: utf8Slice,
    decodeBinary: utf8Slice,
    encodeText(value): string {
      return encodeSimple(value, "a string");
    },
    // Inside arrays; a string on its own is always sent as text.
    encodeBinary(value, writer): boolean {
      if (typeof value !== "string") return false;
      writer.utf8(value);
      return true;
    },
  };
}

/** A codec of a type that is read and written as the text of its input and output functions only. */
export function opaqueCodec(name: string): Codec<string> {
  return {
    name,
    preferredFormat: 0,
    decodeText: utf8Slice,
    encodeText(value): string {
      return encodeSimple(value, "a string");
    },
  };
}
