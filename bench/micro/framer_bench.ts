/**
 * What cutting the byte stream into messages costs, for chunks of many small messages, cut messages and large ones.
 *
 * node bench/micro/framer_bench.ts   (or deno run -A, bun run)
 */

import { Framer } from "../../src/wire/framer.ts";
import { loadMitata } from "./mitata.ts";

const MAX_MESSAGE = 1 << 30;
const MESSAGES = 1000;

/** DataRow messages with bodies of `size` bytes. */
function stream(size: number, count: number): Uint8Array {
  const bytes = new Uint8Array((5 + size) * count);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < count; i++) {
    bytes[i * (5 + size)] = 0x44; // 'D' DataRow
    view.setInt32(i * (5 + size) + 1, size + 4);
  }
  return bytes;
}

/** The same bytes in chunks of `length`. */
function split(bytes: Uint8Array, length: number): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += length) chunks.push(bytes.subarray(at, at + length));
  return chunks;
}

function count(chunks: readonly Uint8Array[]): number {
  const framer = new Framer(MAX_MESSAGE);
  let seen = 0;
  for (const chunk of chunks) {
    framer.feed(chunk);
    while (framer.next()) seen += framer.end - framer.start;
  }
  return seen;
}

const mitata = await loadMitata();
mitata.group(`${MESSAGES} messages`, () => {
  for (const size of [16, 200]) {
    const bytes = stream(size, MESSAGES);
    for (const length of [65_536, 1_448, 100]) {
      const chunks = split(bytes, length);
      if (count(chunks) !== size * MESSAGES) throw new Error("The framer lost bytes");
      mitata.bench(
        `bodies of ${size} bytes, reads of ${length}`,
        () => mitata.do_not_optimize(count(chunks)),
      );
    }
  }
});
mitata.group("one message of 1 MB", () => {
  const bytes = stream(1_000_000, 1);
  for (const length of [1_000_005, 65_536, 1_448]) {
    const chunks = split(bytes, length);
    mitata.bench(`reads of ${length}`, () => mitata.do_not_optimize(count(chunks)));
  }
});
await mitata.run();
