/**
 * What arrays cost: decoding and encoding, text and binary.
 *
 * node bench/micro/array_bench.ts   (or deno run -A, bun run)
 */

import { createRegistry } from "../../src/codecs/registry.ts";
import { Writer } from "../../src/wire/writer.ts";

const ROUNDS = 60;
const registry = createRegistry();
const encoder = new TextEncoder();

const SAMPLES: readonly (readonly [string, readonly unknown[]])[] = [
  ["int4[]", Array.from({ length: 50_000 }, (_, i) => i * 7919 | 0)],
  ["int8[]", Array.from({ length: 10_000 }, (_, i) => BigInt(i) * 7_919_000_000n)],
  ["float8[]", Array.from({ length: 10_000 }, (_, i) => i * 1.1)],
  ["float4[]", Array.from({ length: 10_000 }, (_, i) => Math.fround(i / 1024))],
  ["text[]", Array.from({ length: 10_000 }, (_, i) => `some words ${i}`)],
  ["timestamptz[]", Array.from({ length: 10_000 }, (_, i) => new Date(1.7e12 + i * 123_456))],
];

let sink: unknown;

/** Microseconds of one run: the least of the rounds, since other work on the machine only adds. */
function measure(run: () => unknown): string {
  let least = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    const started = performance.now();
    sink = run();
    least = Math.min(least, performance.now() - started);
  }
  return (least * 1000).toFixed(0).padStart(12);
}

console.log("µs per array          decode text  decode binary  encode text  encode binary");
for (const [name, values] of SAMPLES) {
  const codec = registry.codecFor(registry.oidOf(name)!)!;
  const writer = new Writer();
  codec.encodeBinary!(values, writer);
  const binary = writer.take();
  const text = encoder.encode(codec.encodeText(values).replaceAll("T", " ").replaceAll("Z", "+00"));
  const cells = [
    measure(() => codec.decodeText(text, 0, text.length)),
    measure(() => codec.decodeBinary!(binary, 0, binary.length)),
    measure(() => codec.encodeText(values)),
    measure(() => {
      const out = new Writer();
      codec.encodeBinary!(values, out);
      return out.take();
    }),
  ];
  console.log(`${name} ${values.length}`.padEnd(20), ...cells);
}
if (sink === undefined) console.log("nothing was made");
