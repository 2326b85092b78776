import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryFactory, createMemoryPair } from "../../src/transport/memory.ts";
import { conform, pattern } from "./conformance.ts";
import { listenMemory } from "./peers.ts";
import { record, within } from "./recorder.ts";

conform("memory", listenMemory);

test("createMemoryPair() splits chunks at splitAt bytes", async () => {
  const [client, server] = createMemoryPair({ splitAt: 3 });
  const recorder = record(client);
  server.write(pattern(7));
  server.write(pattern(2));
  await recorder.until(() => recorder.received === 9, "all bytes");
  assert.deepEqual(recorder.chunks.map((chunk) => chunk.length), [3, 3, 1, 2]);
});

test("createMemoryPair() merges what waits, and then splits it", async () => {
  const [client, server] = createMemoryPair({ merge: true });
  const recorder = record(client);
  for (let i = 0; i < 5; i++) server.write(pattern(4, i * 4));
  await recorder.until(() => recorder.received === 20, "all bytes");
  assert.deepEqual(recorder.chunks, [pattern(20)]);
  client.cutAt({ merge: true, splitAt: 16 });
  for (let i = 0; i < 5; i++) server.write(pattern(4));
  await recorder.until(() => recorder.received === 40, "all bytes");
  assert.deepEqual(recorder.chunks.map((chunk) => chunk.length), [20, 16, 4]);
});

test("createMemoryPair() overwrites a chunk once it is delivered, and never the writer's bytes", async () => {
  const [client, server] = createMemoryPair();
  const borrowed: Uint8Array[] = [];
  const recorder = record(client);
  recorder.onChunk = (chunk) => borrowed.push(chunk);
  const sent = pattern(5);
  server.write(sent);
  await recorder.until(() => recorder.received === 5, "the bytes");
  await Promise.resolve();
  assert.deepEqual([...borrowed[0]!], [0xdb, 0xdb, 0xdb, 0xdb, 0xdb]);
  assert.deepEqual(sent, pattern(5));
});

test("createMemoryPair() is congested above highWaterMark until the peer has read", async () => {
  const [client, server] = createMemoryPair({ highWaterMark: 10 });
  assert.equal(client.write(pattern(10)), undefined);
  const congestion = client.write(pattern(1));
  assert.ok(congestion);
  record(server);
  await within(congestion, "the peer to read");
});

test("reset() ends the peer with the cause given", async () => {
  const [client, server] = createMemoryPair();
  const recorder = record(client);
  const cause = new Error("the cable");
  server.write(pattern(3));
  server.reset(cause);
  await recorder.ended();
  assert.equal(recorder.cause, cause);
  assert.equal(recorder.received, 0);
});

test("createMemoryFactory() refuses what serve refuses", async () => {
  const factory = createMemoryFactory(() => {
    throw Object.assign(new Error("nobody home"), { code: "ECONNREFUSED" });
  });
  await assert.rejects(factory.connect({ host: "memory", port: 1 }), { code: "ECONNREFUSED" });
});
