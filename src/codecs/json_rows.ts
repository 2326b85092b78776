/**
 * Rows as JSON text, straight from their text format: what the server's json_agg makes of the same rows.
 *
 * Digits of int8 and numeric stay as they are, json and jsonb columns are passed through. Overrides of codecs have no
 * part in it. An anonymous record is an object of strings, since its text does not say the types.
 */

import { ProtocolError, ValueError } from "../errors.ts";
import type { Field } from "../wire/backend.ts";
import { utf8Slice } from "../wire/utf8.ts";
import { type ArrayOf, createArrayCodec } from "./array.ts";
import type { Codec, Oid } from "./codec.ts";
import { decodeRecordText } from "./composite.ts";
import { type DateOrder, failDateStyle, isoDate, isoTimestamp } from "./date_style.ts";
import { boolCodec } from "./bool.ts";
import { hstoreCodec } from "./hstore.ts";
import { failText, readInt16, readInt32 } from "./numbers.ts";
import type { Registry } from "./registry.ts";
import { lowerFirst } from "./row_decoder.ts";

/** JSON text of a value in text format. */
type ToJson = (bytes: Uint8Array, start: number, end: number) => string;

/** JSON text of a row: the body of a DataRow in text format, `bytes[start, end)`. */
export type JsonRowDecoder = (bytes: Uint8Array, start: number, end: number) => string;

/**
 * Makes the JSON decoder of a result's rows, all columns of which come in text format.
 *
 * It throws a ProtocolError for a malformed row, and a ValueError that names the column for a value without JSON.
 */
export function createJsonRowDecoder(fields: readonly Field[], registry: Registry): JsonRowDecoder {
  const columns = fields.map(({ name, typeOid }, i) => ({
    name,
    prefix: `${i === 0 ? "{" : ","}${JSON.stringify(name)}:`,
    toJson: jsonOf(typeOid, registry, new Set(), true),
  }));
  return function decodeRow(bytes, start, end): string {
    if (end - start < 2 || (readInt16(bytes, start) & 0xffff) !== columns.length) failRow();
    let text = "";
    let at = start + 2;
    for (const { name, prefix, toJson } of columns) {
      if (end - at < 4) failRow();
      const length = readInt32(bytes, at);
      at += 4;
      text += prefix;
      if (length === -1) {
        text += "null";
        continue;
      }
      if (length < 0 || length > end - at) failRow();
      try {
        text += toJson(bytes, at, at + length);
      } catch (cause) {
        const reason = cause instanceof ValueError ? ": " + lowerFirst(cause.message) : "";
        throw new ValueError(`Cannot make JSON of column "${name}"${reason}`, { cause });
      }
      at += length;
    }
    if (at !== end) failRow();
    return columns.length === 0 ? "{}" : text + "}";
  };
}

function failRow(): never {
  throw new ProtocolError("Cannot read DataRow: its columns are not those of the result, or do not fill it");
}

/**
 * The rules of json_categorize_type in src/backend/utils/adt/json.c.
 *
 * @param above the types that this one is part of
 * @param isCertain false for what a composite is made of, which may have been altered since it was looked up
 */
function jsonOf(oid: Oid, registry: Registry, above: ReadonlySet<Oid>, isCertain: boolean): ToJson {
  const type = registry.typeFor(oid);
  if (type === undefined || above.has(oid)) return quoted;
  const part = (of: Oid | undefined): ToJson =>
    jsonOf(of ?? 0, registry, new Set([...above, oid]), isCertain && type.kind !== "composite");
  switch (type.kind) {
    case "array":
      return arrayJson(part(type.element), type.delimiter ?? ",");
    case "domain":
      return part(type.base);
    case "composite": {
      const attributes = (type.attributes ?? []).map(({ name, typeOid }) => ({
        name,
        toJson: part(typeOid),
      }));
      return recordJson(attributes.map(({ name }) => name), attributes.map(({ toJson }) => toJson));
    }
    case "base":
    case "pseudo": {
      const toJson = datedJson(type.name, registry.options.dateOrder) ?? BY_NAME.get(type.name);
      return toJson === undefined ? quoted : isCertain ? toJson : checked(toJson);
    }
    default:
      return quoted;
  }
}

/** Refuses what is no JSON, instead of putting it between other JSON. */
function checked(toJson: ToJson): ToJson {
  return (bytes, start, end) => {
    const text = toJson(bytes, start, end);
    try {
      JSON.parse(text);
    } catch (cause) {
      throw new ValueError("Expected the text of the attribute's type: the composite type was altered", {
        cause,
      });
    }
    return text;
  };
}

function quoted(bytes: Uint8Array, start: number, end: number): string {
  return JSON.stringify(utf8Slice(bytes, start, end));
}

/** NaN and Infinity are strings for the server. */
function number(bytes: Uint8Array, start: number, end: number): string {
  const first = bytes[start] === 0x2d ? bytes[start + 1]! : bytes[start]!;
  const text = utf8Slice(bytes, start, end);
  if (first >= 0x30 && first <= 0x39) return text;
  return /^(?:NaN|-?Infinity)$/.test(text) ? `"${text}"` : failText("a number");
}

function boolean(bytes: Uint8Array, start: number, end: number): string {
  return boolCodec.decodeText(bytes, start, end) ? "true" : "false";
}

const DATE = /^(?:-?infinity|\d{4,}-\d\d-\d\d(?: BC)?)$/;
const TIMESTAMP = /^(\d{4,}-\d\d-\d\d) ([\d:.]{8,})([+-]\d\d)?((?::\d\d)*)( BC)?$/;

/** Types whose text depends on DateStyle; JSON has them in ISO 8601. */
function datedJson(name: string, order: DateOrder | undefined): ToJson | undefined {
  switch (name) {
    case "date":
      return (bytes, start, end) => dateJson(utf8Slice(bytes, start, end), order);
    case "timestamp":
    case "timestamptz":
      return (bytes, start, end) => timestampJson(name, utf8Slice(bytes, start, end), order);
    default:
      return undefined;
  }
}

function dateJson(text: string, order: DateOrder | undefined): string {
  return `"${DATE.test(text) ? text : isoDate(text, order)}"`;
}

/** XML Schema's format: a T, and an offset with minutes. */
function timestampJson(name: string, text: string, order: DateOrder | undefined): string {
  if (text === "infinity" || text === "-infinity") return `"${text}"`;
  const match = TIMESTAMP.exec(text) ?? TIMESTAMP.exec(isoTimestamp(name, text, order));
  if (match === null) return failDateStyle(name);
  const [, day, clock, hours, minutes, era = ""] = match;
  return `"${day}T${clock}${hours === undefined ? "" : hours + (minutes || ":00")}${era}"`;
}

/** The server takes a vector for the array that it is. */
function vector(element: (text: string) => string): ToJson {
  return (bytes, start, end) => {
    const text = utf8Slice(bytes, start, end);
    return text === "" ? "[]" : `[${text.split(" ").map(element).join(",")}]`;
  };
}

function record(bytes: Uint8Array, start: number, end: number): string {
  const values = decodeRecordText(undefined, bytes, start, end);
  return `{${values.map((value, i) => `"f${i + 1}":${JSON.stringify(value)}`).join(",")}}`;
}

function hstore(bytes: Uint8Array, start: number, end: number): string {
  return JSON.stringify(hstoreCodec.decodeText(bytes, start, end));
}

const BY_NAME: ReadonlyMap<string, ToJson> = new Map<string, ToJson>([
  ["bool", boolean],
  ["int2", number],
  ["int4", number],
  ["int8", number],
  ["float4", number],
  ["float8", number],
  ["numeric", number],
  ["json", utf8Slice],
  ["jsonb", utf8Slice],
  ["int2vector", vector((text) => text)],
  ["oidvector", vector((text) => JSON.stringify(text))],
  ["record", record],
  ["hstore", hstore],
]);

/** A codec whose values are JSON text. */
function jsonCodec(toJson: ToJson): Codec<string> {
  return { name: "json text", preferredFormat: 0, decodeText: toJson, encodeText: () => "" };
}

function arrayJson(element: ToJson, delimiter: string): ToJson {
  const codec = createArrayCodec(jsonCodec(element), 0, delimiter);
  return (bytes, start, end) => listJson(codec.decodeText(bytes, start, end));
}

function listJson(list: ArrayOf<string>): string {
  const parts = list.map((item) => item === null ? "null" : typeof item === "string" ? item : listJson(item));
  return `[${parts.join(",")}]`;
}

function recordJson(names: readonly string[], parts: readonly ToJson[]): ToJson {
  const codecs = parts.map(jsonCodec);
  const prefixes = names.map((name) => `${JSON.stringify(name)}:`);
  return (bytes, start, end) => {
    const values = decodeRecordText(codecs, bytes, start, end);
    return `{${values.map((value, i) => `${prefixes[i]}${value ?? "null"}`).join(",")}}`;
  };
}
