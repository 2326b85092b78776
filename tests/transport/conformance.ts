/**
 * What every transport must do. A new transport is done when these pass on each runtime that it is for.
 *
 * `conform` runs over sockets and memory, `conformSockets` holds what only a system's sockets can do.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Transport } from "../../src/transport/transport.ts";
import type { Listen, Listener, Peer } from "./peers.ts";
import { record, type Recorder, turn, within } from "./recorder.ts";

const encoder = new TextEncoder();
const MEGABYTE = 1_048_576;

/** What a case works with. */
interface Scene {
  readonly transport: Transport;
  readonly recorder: Recorder;
  readonly peer: Peer;
  readonly listener: Listener;
}

/** Connects once, runs `body`, and sees to it that both sides are gone. */
async function scene(listen: Listen, body: (scene: Scene) => Promise<void>): Promise<void> {
  let accept: (peer: Peer) => void = () => {};
  const accepted = new Promise<Peer>((resolve) => accept = resolve);
  const listener = await listen((peer) => accept(peer));
  try {
    const transport = await within(listener.factory.connect(listener.target), "connect");
    const recorder = record(transport);
    try {
      const peer = await within(accepted, "accept");
      await body({ transport, recorder, peer, listener });
      transport.close();
      await recorder.ended();
      peer.resume();
      await within(peer.closed, "the peer's end");
      await turn(); // a second onEnd would come now
      assert.equal(recorder.ends, 1, "onEnd must be called exactly once");
      assert.equal(recorder.reentered, false, "the handler was called re-entrantly");
    } finally {
      transport.close();
    }
  } finally {
    await listener.close();
  }
}

/** Bytes that tell their offset, so that loss, doubling and disorder show. */
export function pattern(length: number, from = 0): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) {
    const offset = from + i;
    bytes[i] = (offset ^ (offset >>> 8) ^ (offset >>> 16)) & 0xff;
  }
  return bytes;
}

/** Returns a sink that checks a stream made by `pattern` and says how far it is. */
function patternChecker(): { check(chunk: Uint8Array): void; wrongAt: number } {
  let offset = 0;
  const checker = {
    wrongAt: -1,
    check(chunk: Uint8Array) {
      for (let i = 0; i < chunk.length; i++, offset++) {
        const wanted = (offset ^ (offset >>> 8) ^ (offset >>> 16)) & 0xff;
        if (chunk[i] !== wanted && checker.wrongAt < 0) checker.wrongAt = offset;
      }
    },
  };
  return checker;
}

/**
 * Runs the cases that hold for any transport.
 *
 * @param knowsResets false for Unix-domain sockets, which have no reset while nothing is unread
 */
export function conform(name: string, listen: Listen, knowsResets = true): void {
  const each = (title: string, body: (scene: Scene) => Promise<void>): void => {
    test(`${name}: ${title}`, () => scene(listen, body));
  };
  conformBytes(each);
  conformCongestion(each);
  conformPausing(each);
  conformEnds(each);
  if (knowsResets) conformReset(each);
  conformAbort(name, listen);
}

type Each = (title: string, body: (scene: Scene) => Promise<void>) => void;

function conformBytes(each: Each): void {
  each("echoes", async ({ transport, recorder, peer }) => {
    peer.onData = (chunk) => peer.write(new Uint8Array(chunk));
    assert.equal(recorder.call(() => transport.write(encoder.encode("ping"))), undefined);
    await recorder.until(() => recorder.received === 4, "the echo");
    assert.equal(recorder.text(), "ping");
  });

  each("keeps the order of writes of one turn", async ({ transport, recorder, peer }) => {
    const checker = patternChecker();
    peer.onData = checker.check;
    let offset = 0;
    for (let i = 0; i < 300; i++) {
      const length = (i * 37) % 211;
      recorder.call(() => transport.write(pattern(length, offset)));
      offset += length;
    }
    peer.onData = (chunk) => {
      checker.check(chunk);
      if (peer.received() === offset) peer.write(encoder.encode("!"));
    };
    await recorder.until(() => recorder.received === 1, "the peer to have read all");
    assert.equal(checker.wrongAt, -1);
  });

  each("reads a message sent byte by byte", async ({ recorder, peer }) => {
    for (const byte of encoder.encode("split")) {
      peer.write(Uint8Array.of(byte));
      await turn();
    }
    await recorder.until(() => recorder.received === 5, "all five bytes");
    assert.equal(recorder.text(), "split");
  });

  each("reads messages sent at once", async ({ recorder, peer }) => {
    for (let i = 0; i < 200; i++) peer.write(pattern(100, i * 100));
    await recorder.until(() => recorder.received === 20_000, "all messages");
    assert.deepEqual(recorder.bytes(), pattern(20_000));
  });

  each("takes an empty write", async ({ transport, recorder, peer }) => {
    peer.onData = (chunk) => peer.write(new Uint8Array(chunk));
    assert.equal(recorder.call(() => transport.write(new Uint8Array(0))), undefined);
    assert.equal(recorder.call(() => transport.write(encoder.encode("x"))), undefined);
    await recorder.until(() => recorder.received === 1, "the echo");
  });

  each("leaves the bytes given to write as they are", async ({ transport, recorder, peer }) => {
    const bytes = pattern(MEGABYTE);
    const before = new Uint8Array(bytes);
    peer.onData = () => peer.received() === bytes.length && peer.write(encoder.encode("!"));
    recorder.call(() => transport.write(bytes));
    await recorder.until(() => recorder.received === 1, "the peer to have read all");
    assert.deepEqual(bytes, before);
  });
}

function conformCongestion(each: Each): void {
  each(
    "moves 8 MB in both directions at once, the peer reading late",
    async ({ transport, recorder, peer }) => {
      const total = 8 * MEGABYTE;
      const incoming = patternChecker();
      const outgoing = patternChecker();
      recorder.keep = false;
      recorder.onChunk = incoming.check;
      peer.onData = outgoing.check;
      peer.pause();
      for (let offset = 0; offset < total; offset += MEGABYTE) peer.write(pattern(MEGABYTE, offset));

      let written = 0;
      let waits = 0;
      const send = async (): Promise<void> => {
        while (written < total) {
          const length = 200_000 + (written % 7_919);
          const bytes = pattern(Math.min(length, total - written), written);
          written += bytes.length;
          const congestion = recorder.call(() => transport.write(bytes));
          if (congestion === undefined) continue;
          waits++;
          await congestion;
        }
      };
      const sent = send();
      await recorder.until(() => recorder.received === total, "8 MB while the peer reads nothing");
      peer.resume();
      await within(sent, "the writer");
      await within(waitFor(() => peer.received() === total), "8 MB at the peer");
      assert.ok(waits > 0, "write must return a promise when the socket is full");
      assert.equal(incoming.wrongAt, -1);
      assert.equal(outgoing.wrongAt, -1);
    },
  );

  each("takes writes while congested, in order", async ({ transport, recorder, peer }) => {
    const outgoing = patternChecker();
    peer.onData = outgoing.check;
    peer.pause();
    const stalled = await stall(transport, recorder);
    let { written } = stalled;
    const promises = [stalled.congestion];
    for (let i = 0; i < 100; i++) {
      const bytes = pattern((i * 997) % 40_000 + 1, written);
      written += bytes.length;
      const congestion = recorder.call(() => transport.write(bytes));
      assert.ok(congestion !== undefined, "a congested transport must say so");
      promises.push(congestion);
    }
    peer.resume();
    await within(Promise.all(promises), "every write's promise");
    await within(waitFor(() => peer.received() === written), "all bytes at the peer");
    assert.equal(outgoing.wrongAt, -1);
  });

  each(
    "waits while the peer reads nothing, and goes on when it does",
    async ({ transport, recorder, peer }) => {
      peer.pause();
      const { congestion } = await stall(transport, recorder);
      peer.resume();
      await within(congestion, "the write's promise");
    },
  );

  each("resolves a pending write when it is closed", async ({ transport, recorder, peer }) => {
    peer.pause();
    const { congestion } = await stall(transport, recorder);
    recorder.call(() => transport.close());
    await within(congestion, "the write's promise");
    await recorder.ended();
    assert.equal(recorder.cause, undefined);
  });

  each("resolves a pending write when the peer breaks off", async ({ transport, recorder, peer }) => {
    peer.pause();
    const { congestion } = await stall(transport, recorder);
    peer.breakOff();
    await within(congestion, "the write's promise");
    await recorder.ended();
    const { code } = recorder.cause as Error & { code?: unknown };
    assert.ok(code === "ECONNRESET" || code === "EPIPE", String(recorder.cause));
  });
}

/** Writes until a write's promise stays pending: the buffers of both sides are full then. */
async function stall(
  transport: Transport,
  recorder: Recorder,
): Promise<{ congestion: Promise<void>; written: number }> {
  for (let i = 0; i < 64; i++) {
    const bytes = pattern(MEGABYTE, i * MEGABYTE);
    const congestion = recorder.call(() => transport.write(bytes));
    if (congestion === undefined) continue;
    let pending = true;
    congestion.then(() => pending = false);
    for (let wait = 0; wait < 10 && pending; wait++) await turn(10); // buffers may grow for a while
    if (pending) return { congestion, written: (i + 1) * MEGABYTE };
  }
  throw new Error("64 MB were accepted by a peer that reads nothing");
}

async function waitFor(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}

function conformPausing(each: Each): void {
  each("delivers at most one more chunk after pauseReading", async ({ transport, recorder, peer }) => {
    const total = 4 * MEGABYTE;
    let paused = false;
    let late = 0;
    recorder.onChunk = () => {
      if (paused) late++;
      else {
        transport.pauseReading();
        paused = true;
      }
    };
    for (let offset = 0; offset < total; offset += 65_536) peer.write(pattern(65_536, offset));
    for (let round = 0; round < 4; round++) {
      await recorder.until(() => paused, "a chunk");
      await turn(20); // time for chunks that must not come
      assert.ok(late <= 1, `${late} chunks came after pauseReading`);
      paused = false;
      late = 0;
      recorder.call(() => transport.resumeReading());
    }
    recorder.onChunk = () => {};
    recorder.call(() => transport.resumeReading());
    await recorder.until(() => recorder.received === total, "the rest");
    assert.deepEqual(recorder.bytes(), pattern(total));
  });

  each(
    "takes pauseReading and resumeReading twice, and in one turn",
    async ({ transport, recorder, peer }) => {
      recorder.call(() => {
        transport.resumeReading();
        transport.pauseReading();
        transport.pauseReading();
        transport.resumeReading();
        transport.pauseReading();
        transport.resumeReading();
        transport.resumeReading();
      });
      peer.write(encoder.encode("once"));
      await recorder.until(() => recorder.received >= 4, "the bytes");
      await turn();
      assert.equal(recorder.text(), "once");
    },
  );

  each("loses nothing that came before the end while paused", async ({ transport, recorder, peer }) => {
    recorder.call(() => transport.pauseReading());
    peer.write(pattern(300_000));
    peer.end();
    await turn(30); // the end is at the socket by now
    recorder.call(() => transport.resumeReading());
    await recorder.ended();
    assert.equal(recorder.cause, undefined);
    assert.deepEqual(recorder.bytes(), pattern(300_000));
  });
}

function conformEnds(each: Each): void {
  each("ends without a cause when the peer closes at once", async ({ recorder, peer }) => {
    peer.end();
    await recorder.ended();
    assert.equal(recorder.cause, undefined);
    assert.equal(recorder.received, 0);
  });

  each("delivers a message's beginning before the end", async ({ recorder, peer }) => {
    peer.write(Uint8Array.of(0x44, 0, 0, 1));
    peer.end();
    await recorder.ended();
    assert.deepEqual([...recorder.bytes()], [0x44, 0, 0, 1]);
    assert.equal(recorder.cause, undefined);
  });

  each("closes twice, and takes every call afterwards", async ({ transport, recorder }) => {
    recorder.call(() => {
      transport.close();
      transport.close();
      assert.equal(transport.write(encoder.encode("late")), undefined);
      transport.pauseReading();
      transport.resumeReading();
      transport.setKeepAlive(false);
      transport.setKeepAlive(true);
    });
    assert.equal(recorder.ends, 0, "onEnd must come in a later turn");
    await recorder.ended();
    recorder.call(() => transport.close());
    assert.equal(recorder.cause, undefined);
  });

  each("sends what was written right before close", async ({ transport, recorder, peer }) => {
    recorder.call(() => {
      transport.write(encoder.encode("bye"));
      transport.close();
    });
    await within(peer.closed, "the peer's end");
    assert.equal(peer.received(), 3);
  });

  each("delivers nothing after close in onBytes", async ({ transport, recorder, peer }) => {
    recorder.onChunk = () => transport.close();
    for (let i = 0; i < 40; i++) peer.write(pattern(65_536));
    await recorder.ended();
    await turn();
    assert.equal(recorder.deliveries, 1);
    assert.equal(recorder.cause, undefined);
  });

  each("closes when onBytes throws, and tells what was thrown", async ({ recorder, peer }) => {
    const fault = new Error("from onBytes");
    recorder.onChunk = () => {
      throw fault;
    };
    peer.write(encoder.encode("x"));
    await recorder.ended();
    assert.equal(recorder.cause, fault);
    await within(peer.closed, "the peer's end");
  });

  each("makes an Error of what onBytes throws", async ({ recorder, peer }) => {
    recorder.onChunk = () => {
      throw "a string";
    };
    peer.write(encoder.encode("x"));
    await recorder.ended();
    assert.match(String(recorder.cause), /a string/);
  });

  each("may be written to and closed from onBytes", async ({ transport, recorder, peer }) => {
    recorder.onChunk = () => {
      transport.write(encoder.encode("answer"));
      transport.close();
    };
    peer.write(encoder.encode("x"));
    await within(peer.closed, "the peer's end");
    assert.equal(peer.received(), 6);
  });
}

function conformReset(each: Each): void {
  each("ends with a coded cause when the peer resets", async ({ transport, recorder, peer }) => {
    peer.write(encoder.encode("x"));
    await recorder.until(() => recorder.received === 1, "a byte");
    peer.breakOff();
    await recorder.ended();
    assert.ok(recorder.cause instanceof Error);
    assert.equal((recorder.cause as Error & { code?: unknown }).code, "ECONNRESET");
    assert.equal(recorder.call(() => transport.write(encoder.encode("late"))), undefined);
  });
}

function conformAbort(name: string, listen: Listen): void {
  test(`${name}: does not connect with an aborted signal`, async () => {
    let accepted = 0;
    const listener = await listen(() => accepted++);
    try {
      const reason = new Error("not wanted");
      const attempt = listener.factory.connect({ ...listener.target, signal: AbortSignal.abort(reason) });
      await assert.rejects(within(attempt, "connect"), (error) => error === reason);
      await turn(10); // a connection made nevertheless would be accepted by now
      assert.equal(accepted, 0);
    } finally {
      await listener.close();
    }
  });

  test(`${name}: leaves nothing open when aborted while connecting`, async () => {
    const listener = await listen(() => {});
    try {
      const controller = new AbortController();
      const attempt = listener.factory.connect({ ...listener.target, signal: controller.signal });
      const reason = { neither: "an Error" };
      controller.abort(reason);
      await assert.rejects(within(attempt, "connect"), (error) => error === reason);
      await turn(10); // the late connection is accepted and closed by now
      await within(waitFor(() => listener.open() === 0), "the late connection's end");
    } finally {
      await listener.close();
    }
  });

  test(`${name}: heeds no signal once it is connected`, async () => {
    const listener = await listen((peer) => peer.onData = (chunk) => peer.write(new Uint8Array(chunk)));
    try {
      const controller = new AbortController();
      const target = { ...listener.target, signal: controller.signal };
      const transport = await within(listener.factory.connect(target), "connect");
      controller.abort();
      const recorder = record(transport);
      transport.write(encoder.encode("still here"));
      await recorder.until(() => recorder.received === 10, "the echo");
      transport.close();
      await recorder.ended();
    } finally {
      await listener.close();
    }
  });

  test(`${name}: delivers at start what came before, and the end`, async () => {
    const listener = await listen((peer) => {
      peer.write(encoder.encode("early"));
      peer.end();
    });
    try {
      const transport = await within(listener.factory.connect(listener.target), "connect");
      await turn(20); // bytes and end are at the socket by now
      const recorder = record(transport);
      await recorder.ended();
      assert.equal(recorder.text(), "early");
      assert.equal(recorder.reentered, false);
    } finally {
      await listener.close();
    }
  });

  test(`${name}: tells the end to a handler given after close`, async () => {
    const listener = await listen(() => {});
    try {
      const transport = await within(listener.factory.connect(listener.target), "connect");
      transport.close();
      const recorder = record(transport);
      assert.equal(recorder.ends, 0);
      await recorder.ended();
      assert.equal(recorder.cause, undefined);
      assert.throws(() => transport.start(recorder), /started before/);
    } finally {
      await listener.close();
    }
  });
}
