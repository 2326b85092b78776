/** hstore (PostgreSQL manual, F.18): a record of strings and nulls. */

import { ValueError } from "../errors.ts";
import { utf8Slice } from "../wire/utf8.ts";
import type { Codec } from "./codec.ts";
import { readInt32 } from "./numbers.ts";
import { describeValue, encodeSimple } from "./text_form.ts";

/** A value of hstore. */
export type Hstore = Record<string, string | null>;

/** hstore as a record; written from a record or a Map. */
export const hstoreCodec: Codec<Hstore> = {
  name: "hstore",
  preferredFormat: 1,
  decodeText(bytes, start, end): Hstore {
    return parseHstore(utf8Slice(bytes, start, end));
  },
  decodeBinary(bytes, start, end): Hstore {
    let at = start;
    const length = (): number => {
      if (end - at < 4) failHstore();
      at += 4;
      const value = readInt32(bytes, at - 4);
      return value < -1 || value > end - at ? failHstore() : value;
    };
    const string = (size: number): string => {
      at += size;
      return utf8Slice(bytes, at - size, at);
    };
    const record: Hstore = {};
    if (end - at < 4) failHstore();
    const count = readInt32(bytes, at);
    if (count < 0) failHstore();
    at += 4;
    for (let i = 0; i < count; i++) {
      const keySize = length();
      if (keySize < 0) failHstore();
      const key = string(keySize);
      const valueSize = length();
      setOwn(record, key, valueSize < 0 ? null : string(valueSize));
    }
    return at === end ? record : failHstore();
  },
  encodeText(value): string {
    const entries = value instanceof Map ? [...value] : isRecord(value) ? Object.entries(value) : undefined;
    if (entries === undefined) return encodeSimple(value, "a record of strings");
    return entries.map(([key, text]) => `${quote(key)}=>${text === null ? "NULL" : quote(text)}`).join(", ");
  },
};

function isRecord(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** `"key"=>"value", "other"=>NULL`: quotes are always there, and escaped inside. */
function parseHstore(text: string): Hstore {
  const record: Hstore = {};
  for (let at = 0; at < text.length;) {
    const keyEnd = quotedEnd(text, at);
    if (!text.startsWith("=>", keyEnd)) return failHstore();
    const start = keyEnd + 2;
    const isNull = text.startsWith("NULL", start);
    const end = isNull ? start + 4 : quotedEnd(text, start);
    setOwn(record, unquote(text, at, keyEnd), isNull ? null : unquote(text, start, end));
    at = end;
    if (at === text.length) break;
    if (!text.startsWith(", ", at)) return failHstore();
    at += 2;
  }
  return record;
}

/** Where the quoted string that begins at `start` ends. A loop: expressions go as deep as the string is long. */
function quotedEnd(text: string, start: number): number {
  if (text.charCodeAt(start) !== 0x22) return failHstore();
  for (let at = start + 1; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x22) return at + 1;
    if (unit === 0x5c) at++;
  }
  return failHstore();
}

function unquote(text: string, start: number, end: number): string {
  return unescape(text.slice(start + 1, end - 1));
}

function setOwn(record: Hstore, key: string, value: string | null): void {
  if (key === "__proto__") {
    Object.defineProperty(record, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    record[key] = value;
  }
}

function unescape(text: string): string {
  return text.includes("\\") ? text.replace(/\\(.)/gsu, "$1") : text;
}

function quote(value: unknown): string {
  if (typeof value !== "string") {
    throw new ValueError(`Expected a record of strings and nulls, received one with ${describeValue(value)}`);
  }
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}

function failHstore(): never {
  throw new ValueError("Expected an hstore, received something else");
}
