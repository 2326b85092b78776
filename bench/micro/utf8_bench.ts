/**
 * Strings from UTF-8 bytes, by their length: a loop over ASCII bytes against the runtime's own makers.
 *
 * node bench/micro/utf8_bench.ts   (or deno run -A, bun run)
 */

import { selectTransport } from "../../src/transport/select.ts";
import { useUtf8Slice, utf8Slice } from "../../src/wire/utf8.ts";
import { loadMitata } from "./mitata.ts";

const OPERATIONS = 1000;
const BYTES = new TextEncoder().encode("constant text with 0123456789 and abcdefghijklmnopqrstuvwxyz");
const decoder = new TextDecoder();

type Slice = (bytes: Uint8Array, start: number, end: number) => string;

const mitata = await loadMitata();
const native = (await selectTransport()).utf8Slice!;

function add(name: string, slice: Slice, length: number, loopLimit?: number): void {
  mitata.bench(name, () => {
    if (loopLimit !== undefined) useUtf8Slice(native, loopLimit);
    for (let i = 0; i < OPERATIONS; i++) {
      const start = i % 16;
      const text = slice(BYTES, start, start + length);
      // Looked into: some engines put off the work until then.
      mitata.do_not_optimize(text.charCodeAt(length - 1));
    }
  });
}

for (const length of [1, 2, 4, 6, 8, 12, 16, 24]) {
  mitata.group(`${OPERATIONS} texts of ${length} bytes`, () => {
    add("loop", utf8Slice, length, Infinity);
    add("native", native, length);
    add("TextDecoder", (bytes, start, end) => decoder.decode(bytes.subarray(start, end)), length);
  });
}
await mitata.run();
