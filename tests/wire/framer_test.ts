import { test } from "node:test";
import assert from "node:assert/strict";
import { ProtocolError } from "../../src/errors.ts";
import { Framer, isGivenAway } from "../../src/wire/framer.ts";
import { assertLinear } from "../_support/linear.ts";
import { concat, message } from "../_support/backend_writer.ts";

const LIMIT = 1 << 30;

interface Seen {
  readonly type: string;
  readonly body: number[];
}

/** Feeds chunks, each overwritten afterwards as a transport may do. */
function frame(framer: Framer, chunks: readonly Uint8Array[]): Seen[] {
  const seen: Seen[] = [];
  for (const chunk of chunks) {
    const lent = new Uint8Array(chunk);
    framer.feed(lent);
    while (framer.next()) {
      seen.push({
        type: String.fromCharCode(framer.type),
        body: Array.from(framer.bytes.subarray(framer.start, framer.end)),
      });
    }
    lent.fill(0xdb);
  }
  return seen;
}

const STREAM = concat(
  message("Z", Uint8Array.of(0x49)),
  message("1"),
  message("D", Uint8Array.from({ length: 40 }, (_, i) => i)),
  message("2"),
  message("C", Uint8Array.of(1, 2, 3)),
);
const WHOLE = frame(new Framer(LIMIT), [STREAM]);

test("Framer cuts a merged stream into its messages", () => {
  assert.deepEqual(WHOLE.map(({ type, body }) => [type, body.length]), [
    ["Z", 1],
    ["1", 0],
    ["D", 40],
    ["2", 0],
    ["C", 3],
  ]);
});

test("Framer gives the same messages for every pair of cuts", () => {
  for (let first = 0; first <= STREAM.length; first++) {
    for (let second = first; second <= STREAM.length; second++) {
      const framer = new Framer(LIMIT);
      const chunks = [STREAM.subarray(0, first), STREAM.subarray(first, second), STREAM.subarray(second)];
      assert.deepEqual(frame(framer, chunks), WHOLE, `cut at ${first} and ${second}`);
      assert.equal(framer.midMessage, false);
    }
  }
});

test("Framer gives the same messages one byte at a time", () => {
  const bytes = Array.from(STREAM, (byte) => Uint8Array.of(byte));
  assert.deepEqual(frame(new Framer(LIMIT), bytes), WHOLE);
});

test("Framer.midMessage tells whether the stream stands inside a message", () => {
  const framer = new Framer(LIMIT);
  const ends = new Set<number>();
  let end = 0;
  for (const { body } of WHOLE) ends.add(end += body.length + 5);
  for (let i = 0; i < STREAM.length; i++) {
    frame(framer, [STREAM.subarray(i, i + 1)]);
    assert.equal(framer.midMessage, !ends.has(i + 1), `after byte ${i + 1}`);
  }
});

test("Framer takes an empty chunk as nothing", () => {
  const framer = new Framer(LIMIT);
  const half = STREAM.subarray(0, 9);
  const seen = [
    frame(framer, [new Uint8Array(0), half, new Uint8Array(0)]),
    frame(framer, [STREAM.subarray(9)]),
  ];
  assert.deepEqual(seen.flat(), WHOLE);
});

test("Framer refuses lengths below 4 and past the limit, wherever the header is cut", () => {
  const lengths = [0, 1, 2, 3, -1, -2_147_483_648, 101, 0x7fff_ffff];
  for (const length of lengths) {
    const bytes = concat(message("Z", Uint8Array.of(0x49)), message("D", new Uint8Array(0), length));
    for (let cut = 6; cut <= bytes.length; cut++) {
      const wanted = length < 4
        ? `its length ${length} is below 4`
        : `its length ${length} is past maxMessageBytes 100`;
      assert.throws(
        () => frame(new Framer(100), [bytes.subarray(0, cut), bytes.subarray(cut)]),
        new ProtocolError(`Cannot read a message of type "D": ${wanted}`),
        `length ${length}, cut at ${cut}`,
      );
    }
  }
});

test("Framer takes a message of exactly the limit", () => {
  const bytes = message("D", new Uint8Array(96).fill(5));
  for (const chunks of [[bytes], [bytes.subarray(0, 50), bytes.subarray(50)]]) {
    assert.equal(frame(new Framer(100), chunks)[0]?.body.length, 96);
  }
});

test("Framer names a type byte that is no letter by its number", () => {
  assert.throws(() => frame(new Framer(100), [Uint8Array.of(0, 0, 0, 0, 0)]), {
    message: "Cannot read a message of type 0x0: its length 0 is below 4",
  });
});

test("Framer reserves no memory for a length that is only announced", () => {
  const framer = new Framer(0x7fff_ffff);
  // Fifty lying gigabytes would not fit in the machine.
  const framers = Array.from({ length: 50 }, () => new Framer(0x7fff_ffff));
  for (const each of [framer, ...framers]) {
    assert.deepEqual(frame(each, [message("D", new Uint8Array(10), 0x7fff_fff0)]), []);
    assert.equal(each.midMessage, true);
  }
});

test("Framer gathers a 64 MB message in time that grows linearly", () =>
  assertLinear((megabytes) => {
    const size = megabytes * 1_048_576;
    const chunk = new Uint8Array(65_536).fill(1);
    const framer = new Framer(LIMIT);
    const began = performance.now();
    framer.feed(message("D", new Uint8Array(0), size + 4));
    let whole = framer.next();
    for (let at = 0; at < size; at += chunk.length) {
      assert.equal(whole, false);
      framer.feed(chunk);
      whole = framer.next();
    }
    const spent = performance.now() - began;
    assert.equal(whole, true);
    assert.equal(framer.end - framer.start, size);
    return spent;
  }, 16));

test("a large message that came in parts may be kept: nothing is written over it", () => {
  const sizes = [200_000, 1_000, 200_000, 131_072, 150_000, 5_000_000, 140_000];
  const stream: number[][] = sizes.map((size, i) => {
    const length = size + 4;
    return [0x44, length >>> 24, (length >> 16) & 255, (length >> 8) & 255, length & 255, i];
  });
  const bytes = new Uint8Array(sizes.reduce((sum, size) => sum + size + 5, 0));
  let at = 0;
  sizes.forEach((size, i) => {
    bytes.set(stream[i]!.slice(0, 5), at);
    bytes.fill(i + 1, at + 5, at + 5 + size);
    at += size + 5;
  });
  for (const chunkSize of [65_536, 100_003, 7_919]) {
    const framer = new Framer(1 << 30);
    const kept: { readonly value: Uint8Array; readonly size: number; readonly filling: number }[] = [];
    let messages = 0;
    for (let from = 0; from < bytes.length; from += chunkSize) {
      // One buffer for all reads, as transports have it.
      framer.feed(bytes.slice(from, from + chunkSize));
      while (framer.next()) {
        const size = framer.end - framer.start;
        assert.equal(size, sizes[messages]);
        if (isGivenAway(framer.bytes)) {
          kept.push({ value: framer.bytes.subarray(framer.start, framer.end), size, filling: messages + 1 });
        }
        messages++;
      }
    }
    assert.equal(messages, sizes.length);
    assert.deepEqual(kept.map(({ size }) => size), sizes.filter((size) => size > 1_000));
    for (const { value, filling } of kept) assert.ok(value.every((byte) => byte === filling));
  }
});
