/** json and jsonb (PostgreSQL manual, 8.14): the parsed value. */

import { ValueError } from "../errors.ts";
import { utf8Slice } from "../wire/utf8.ts";
import { byteView } from "./bytea.ts";
import type { Codec } from "./codec.ts";
import { describeValue, failType, isTime, textForm } from "./text_form.ts";

// jsonb_send puts a version number before the text.
const JSONB_VERSION = 1;

/** json as its parsed value. */
export const jsonCodec: Codec = {
  name: "json",
  preferredFormat: 0,
  takesArrays: true,
  decodeText: parseJson,
  decodeBinary: parseJson,
  encodeText: encodeJson,
  encodeBinary(value, writer): boolean {
    writer.utf8(jsonText(value));
    return true;
  },
};

/** jsonb as its parsed value. */
export const jsonbCodec: Codec = {
  name: "jsonb",
  preferredFormat: 0,
  takesArrays: true,
  decodeText: parseJson,
  decodeBinary(bytes, start, end): unknown {
    if (bytes[start] !== JSONB_VERSION || end === start) {
      throw new ValueError(`Expected jsonb of version ${JSONB_VERSION}, received another`);
    }
    return parseJson(bytes, start + 1, end);
  },
  encodeText: encodeJson,
  encodeBinary(value, writer): boolean {
    const text = jsonText(value);
    writer.uint8(JSONB_VERSION);
    writer.utf8(text);
    return true;
  },
};

/** Whether `codec` writes JSON text, so that an array is JSON for it. */
export function isJsonCodec(codec: Codec): boolean {
  return codec.name === "json" || codec.name === "jsonb";
}

function parseJson(bytes: Uint8Array, start: number, end: number): unknown {
  return JSON.parse(utf8Slice(bytes, start, end));
}

function jsonText(value: unknown): string {
  return typeof value === "string" ? value : encodeJson(value);
}

/** JSON text of a value that is not a string; a string on its own is JSON text already. */
function encodeJson(value: unknown): string {
  // On first use a Date is sent before anyone knows that the type is JSON: refused here, so that no later use differs.
  if (isTime(value)) return failType(value, "a value for JSON (wrap it in sql.json)");
  return textForm(value) ?? toJson(value);
}

/**
 * JSON text of any value, strings included.
 *
 * @throws {ValueError} for what JSON cannot say: undefined, functions, byte views, cycles, bigints inside, and objects
 * that keep their content elsewhere, as a Map does, wherever they are
 */
export function toJson(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number" && !Number.isFinite(value)) {
    return failType(value, "a finite number for JSON");
  }
  if (byteView(value) !== undefined) return failType(value, "a value for JSON");
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw new ValueError(
      `Expected a value for JSON, received ${describeValue(value)} that cannot be serialized`,
      { cause },
    );
  }
  // An invalid Date says null.
  if (text === undefined || text === "null" && value instanceof Date) {
    return failType(value, "a value for JSON");
  }
  // They become `{}`: only then is it worth looking.
  if (text.includes("{}")) refuseOpaque(value);
  return text;
}

/** Refuses a Map, a Set, a RegExp and their like anywhere in `root`, which JSON.stringify makes `{}` of. */
function refuseOpaque(root: unknown): void {
  const open: unknown[] = [root];
  while (open.length > 0) {
    const value = open.pop();
    // What has a JSON of its own is not looked into.
    if (typeof value !== "object" || value === null || hasOwnJson(value)) continue;
    const parts = Object.values(value);
    if (parts.length > 0 || Array.isArray(value)) {
      for (const part of parts) open.push(part);
    } else if (!PLAIN.has(Object.prototype.toString.call(value))) {
      if (value === root) failType(value, "a value for JSON");
      throw new ValueError(
        `Expected a value for JSON, received ${describeValue(root)} with ${describeValue(value)} inside`,
      );
    }
  }
}

/** Objects without properties that are nothing more, and boxed values. */
const PLAIN: ReadonlySet<string> = new Set(
  ["Object", "Number", "String", "Boolean"].map((name) => `[object ${name}]`),
);

function hasOwnJson(value: object): boolean {
  return typeof (value as { readonly toJSON?: unknown }).toJSON === "function";
}
