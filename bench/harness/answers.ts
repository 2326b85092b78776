/**
 * Answers of different drivers in one form, so that they can be compared.
 *
 * Drivers represent values differently (a bigint, a string, a number); equal values must come out equal, and different
 * ones different.
 */

import { type Row, type Rows, takeRows } from "./driver.ts";

/** An answer as it travels from a child. */
export interface Answer {
  readonly rows: number;
  /** Empty when the driver only counts, or when the operation returns no rows. */
  readonly columns: readonly string[];
  /** Hash of all values; empty when the driver only counts. */
  readonly digest: string;
  /** The first row, normalised, for messages. */
  readonly sample: readonly string[];
}

/** The answer that rows are. */
export function answerOf(parts: readonly Rows[]): Answer {
  let [rows, counted] = [0, false];
  let columns: readonly string[] = [];
  let sample: readonly string[] = [];
  const hash = new Hash();
  for (const part of parts) {
    if ("counted" in part) {
      rows += part.counted;
      counted = true;
      continue;
    }
    for (const row of takeRows(part)) {
      const values = Object.values(row).map(normalise);
      if (rows++ === 0) {
        columns = Object.keys(row);
        sample = values;
      }
      for (const value of values) hash.add(value);
      hash.add("\n");
    }
  }
  return { rows, columns, digest: counted ? "" : hash.value, sample };
}

/** The answer of an operation that gives a number of rows and no values. */
export function answerOfCount(rows: number): Answer {
  return { rows, columns: [], digest: "", sample: [] };
}

/** The answer that is JSON text of an array of rows; texts that differ in spaces or the order of keys are equal. */
export function answerOfJson(text: string): Answer {
  return answerOf([JSON.parse(text) as Row[]]);
}

const INTEGER = /^[+-]?\d+$/;
const DECIMAL = /^[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i;
const TIMESTAMP = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|\+00(?::?00)?)?$/;

/** One text for each value, whatever type a driver gives it. Zone-less times are read as UTC. */
export function normalise(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return normaliseText(value);
  if (typeof value === "number") return normaliseNumber(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "boolean") return String(value);
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return normaliseBytes(value);
  if (Array.isArray(value)) return `[${value.map(normalise).join()}]`;
  if (ArrayBuffer.isView(value)) return `[${Array.from(value as unknown as number[], normalise).join()}]`;
  const entries = Object.entries(value as Row).sort(([a], [b]) => a < b ? -1 : 1);
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${normalise(item)}`).join()}}`;
}

function normaliseText(text: string): string {
  if (INTEGER.test(text)) return BigInt(text).toString();
  if (DECIMAL.test(text)) return normaliseNumber(Number(text));
  const time = TIMESTAMP.exec(text);
  if (time) return `${time[1]}T${time[2]}.${(time[3] ?? "").padEnd(3, "0").slice(0, 3)}Z`;
  return text;
}

/** A float4 that was widened differs from its decimal from the eighth digit on. */
function normaliseNumber(value: number): string {
  return Number.isInteger(value) ? BigInt(value).toString() : String(Number(value.toPrecision(7)));
}

/** Bytes that are shown in full; of longer ones the beginning, the length and a hash. */
const SHOWN_BYTES = 32;

function normaliseBytes(bytes: Uint8Array): string {
  let text = "\\x";
  for (let i = 0; i < Math.min(bytes.length, SHOWN_BYTES); i++) text += HEX[bytes[i]!];
  if (bytes.length <= SHOWN_BYTES) return text;
  let hash = 0x811c9dc5;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
  return `${text}... of ${bytes.length}, ${hash >>> 0}`;
}

const HEX: readonly string[] = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, "0"));

/** Two FNV-1a hashes of 32 bits: against mistakes, not against malice. */
class Hash {
  #a: number = 0x811c9dc5;
  #b: number = 0x01000193;

  add(text: string): void {
    let [a, b] = [this.#a, this.#b];
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      a = Math.imul(a ^ unit, 0x01000193);
      b = Math.imul(b ^ unit, 0x5bd1e995) + 1 | 0;
    }
    // So that ["ab", "c"] and ["a", "bc"] differ.
    this.#a = Math.imul(a ^ 0x10000, 0x01000193);
    this.#b = Math.imul(b ^ 0x10000, 0x5bd1e995);
  }

  get value(): string {
    return [this.#a, this.#b].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
  }
}
