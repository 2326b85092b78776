/**
 * What decoding costs, by type and format, and for rows of mixed types: generated decoder and loop.
 *
 * node bench/micro/row_decoder_bench.ts   (or deno run -A, bun run)
 */

import { createRegistry } from "../../src/codecs/registry.ts";
import { columnsOf, generateRowDecoder, loopRowDecoder } from "../../src/codecs/row_decoder.ts";
import type { RowDecoder } from "../../src/codecs/row_decoder.ts";
import type { Field } from "../../src/wire/backend.ts";
import { useUtf8Slice } from "../../src/wire/utf8.ts";

const ROWS = 1000;
const ROUNDS = 300;

interface Sample {
  readonly name: string;
  readonly oid: number;
  /** The text form and the binary form, in hex, of row `i`. */
  readonly text: (i: number) => string;
  readonly binary?: (i: number) => string;
}

const view = new DataView(new ArrayBuffer(8));
const encoder = new TextEncoder();

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function hexOfView(size: number): string {
  return hexOf(new Uint8Array(view.buffer, 0, size));
}

function int(size: 2 | 4 | 8): (i: number) => string {
  return (i) => {
    view.setBigInt64(0, BigInt(i) << BigInt(64 - size * 8));
    return hexOfView(size);
  };
}

function float(size: 4 | 8): (i: number) => string {
  return (i) => {
    if (size === 4) view.setFloat32(0, i * 1.1);
    else view.setFloat64(0, i * 1.1);
    return hexOfView(size);
  };
}

function isoOf(i: number): string {
  return new Date(1.7e12 + i * 123_456_789).toISOString().replace("T", " ").replace("Z", "");
}

function microseconds(i: number): string {
  view.setBigInt64(0, BigInt(1.7e12 + i * 123_456_789 - 946_684_800_000) * 1000n);
  return hexOfView(8);
}

const uuid = (i: number): string => "a0eebc99-9c0b-4ef8-bb6d-6bb9" + String(i * 9871 + 1e7).padStart(8, "0");
const json = (i: number): string => `{"id": ${i}, "name": "name ${i}", "tags": ["a", "b"]}`;
const words = (i: number): string => `some words of text ${i}`;

const SAMPLES: readonly Sample[] = [
  { name: "bool", oid: 16, text: (i) => i % 2 ? "t" : "f", binary: (i) => i % 2 ? "01" : "00" },
  { name: "int2", oid: 21, text: (i) => String(i), binary: int(2) },
  { name: "int4", oid: 23, text: (i) => String(i * 1000), binary: (i) => int(4)(i * 1000) },
  { name: "int8 small", oid: 20, text: (i) => String(i * 1000), binary: (i) => int(8)(i * 1000) },
  {
    name: "int8 large",
    oid: 20,
    text: (i) => String(9e15 + i * 1000) + "123",
    binary: (i) => int(8)(9e18 + i * 1_000_000),
  },
  {
    name: "float4",
    oid: 700,
    text: (i) => String(Number(Math.fround(i * 1.1).toPrecision(7))),
    binary: float(4),
  },
  { name: "float8", oid: 701, text: (i) => String(i * 1.1), binary: float(8) },
  {
    name: "numeric",
    oid: 1700,
    text: (i) => `${i}.50`,
    binary: (i) => `000200000000000200${hexOf(Uint8Array.of(0))}`.slice(0, 16) + int(2)(i) + "1388",
  },
  { name: "text 20", oid: 25, text: words, binary: (i) => hexOf(encoder.encode(words(i))) },
  {
    name: "text 6",
    oid: 25,
    text: (i) => `key${i % 900}`,
    binary: (i) => hexOf(encoder.encode(`key${i % 900}`)),
  },
  { name: "uuid", oid: 2950, text: uuid, binary: (i) => uuid(i).replaceAll("-", "") },
  { name: "bytea 32", oid: 17, text: (i) => "\\x" + int(8)(i).repeat(4), binary: (i) => int(8)(i).repeat(4) },
  { name: "jsonb", oid: 3802, text: json, binary: (i) => "01" + hexOf(encoder.encode(json(i))) },
  {
    name: "date",
    oid: 1082,
    text: (i) => isoOf(i * 100).slice(0, 10),
    binary: (i) => int(4)(8000 + i),
  },
  { name: "time", oid: 1083, text: (i) => isoOf(i).slice(11), binary: (i) => int(8)(i * 1_234_567) },
  { name: "timestamp", oid: 1114, text: isoOf, binary: microseconds },
  { name: "timestamptz", oid: 1184, text: (i) => isoOf(i) + "+00", binary: microseconds },
];

function bytesOfHex(hex: string): Uint8Array {
  return Uint8Array.from({ length: hex.length / 2 }, (_, i) => parseInt(hex.slice(i * 2, i * 2 + 2), 16));
}

/** Bodies of rows, and where each starts; the last entry is the end. */
function rowsOf(samples: readonly Sample[], format: 0 | 1): { bytes: Uint8Array; starts: number[] } {
  const bytes: number[] = [];
  const starts: number[] = [];
  for (let i = 0; i < ROWS; i++) {
    starts.push(bytes.length);
    bytes.push(samples.length >> 8, samples.length & 0xff);
    for (const sample of samples) {
      const cell = format === 0 ? encoder.encode(sample.text(i)) : bytesOfHex(sample.binary!(i));
      bytes.push(0, 0, cell.length >> 8, cell.length & 0xff, ...cell);
    }
  }
  starts.push(bytes.length);
  return { bytes: new Uint8Array(bytes), starts };
}

let sink: unknown;

/** Microseconds for all rows: the least of the rounds, since other work on the machine only adds. */
function measure(decode: RowDecoder, bytes: Uint8Array, starts: readonly number[]): number {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const started = performance.now();
    const rows: unknown[] = [];
    for (let i = 0; i < ROWS; i++) rows.push(decode(bytes, starts[i]!, starts[i + 1]!));
    times.push(performance.now() - started);
    sink = rows;
  }

  return Math.min(...times) * 1000;
}

function fieldsOf(samples: readonly Sample[], format: 0 | 1): Field[] {
  return samples.map(({ name, oid }) => ({
    name,
    tableOid: 0,
    columnNumber: 0,
    typeOid: oid,
    typeSize: -1,
    typeModifier: -1,
    format,
  }));
}

interface WithBuffer {
  readonly Buffer?: { readonly prototype: { readonly utf8Slice?: (start: number, end: number) => string } };
  readonly Deno?: unknown;
}
const { Buffer: buffer, Deno: deno } = globalThis as WithBuffer;
const native = deno === undefined ? buffer?.prototype.utf8Slice : undefined;
if (native !== undefined) useUtf8Slice((bytes, start, end) => native.call(bytes, start, end));

const registry = createRegistry();
console.log("µs per 1000 rows         text   binary");
const only = (globalThis as { ONLY_ROWS?: boolean }).ONLY_ROWS === true;
for (const sample of only ? [] : SAMPLES) {
  const cells = ([0, 1] as const).map((format) => {
    const { bytes, starts } = rowsOf([sample], format);
    const decode = generateRowDecoder(columnsOf(fieldsOf([sample], format), registry), "object");
    return measure(decode, bytes, starts).toFixed(0).padStart(8);
  });
  console.log(sample.name.padEnd(20), ...cells);
}
function pick(names: readonly string[]): Sample[] {
  return names.map((name, i) => ({
    ...SAMPLES.find((sample) => sample.name === name)!,
    name: `${name} ${i}`,
  }));
}

const plain = pick([
  "int4",
  "text 20",
  "int4",
  "bool",
  "text 6",
  "float8",
  "int8 small",
  "text 20",
  "int4",
  "timestamptz",
]);
const mixed = pick(
  ["int2", "int4", "float4", "float8", "text 20", "jsonb", "jsonb", "timestamp", "timestamptz", "bytea 32"],
);
const ways = [["generated", generateRowDecoder], ["loop", loopRowDecoder]] as const;
for (const [name, samples] of [["10 plain", plain], ["10 mixed", mixed]] as const) {
  for (const [way, make] of ways) {
    const cells = ([0, 1] as const).map((format) => {
      const { bytes, starts } = rowsOf(samples, format);
      const decode = make(columnsOf(fieldsOf(samples, format), registry), "object");
      return measure(decode, bytes, starts).toFixed(0).padStart(8);
    });
    console.log(`${name}, ${way}`.padEnd(20), ...cells);
  }
}
if (sink === undefined) console.log("nothing was decoded");
