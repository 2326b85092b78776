import assert from "node:assert/strict";
import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { limit, until } from "./limit.ts";
import { chunksOf, cutsAt, type Proxy, type ProxyOptions, randomChunks, startProxy, whole } from "./proxy.ts";

const CHUNKINGS = {
  whole,
  "one byte": chunksOf(1),
  "seven bytes": chunksOf(7),
  "offsets": cutsAt(0, 3, 5, 1_000),
  "random": randomChunks(42, 20),
};

for (const [name, chunking] of Object.entries(CHUNKINGS)) {
  test(`chunking by ${name} keeps all bytes in order, and no chunk is empty`, () => {
    const bytes = Uint8Array.from({ length: 100 }, (_, i) => i);
    for (const offset of [0, 4, 990]) {
      const chunks = chunking(bytes, offset);
      assert.deepEqual(chunks.flatMap((chunk) => [...chunk]), [...bytes]);
      assert.ok(chunks.every((chunk) => chunk.length > 0));
    }
  });
}

test("cutsAt() counts from the stream's beginning", () => {
  const lengths = (offset: number) => cutsAt(3, 5)(new Uint8Array(6), offset).map((chunk) => chunk.length);
  assert.deepEqual(lengths(0), [3, 2, 1]);
  assert.deepEqual(lengths(4), [1, 5]);
  assert.deepEqual(lengths(5), [6]);
});

test("randomChunks() gives the same chunks for the same seed", () => {
  const lengths = (seed: number) => randomChunks(seed)(new Uint8Array(2_000), 0).map((chunk) => chunk.length);
  assert.deepEqual(lengths(7), lengths(7));
  assert.notDeepEqual(lengths(7), lengths(8));
});

interface Echo {
  readonly proxy: Proxy;
  readonly client: Socket;
  /** What the server has received and the client has got back. */
  received(): number;
  echoed(): Uint8Array;
  readonly closed: Promise<boolean>;
  close(): Promise<void>;
}

/** An echo server behind a proxy, and one connected client. */
async function startEcho(options: Partial<ProxyOptions>): Promise<Echo> {
  let received = 0;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (chunk: Uint8Array) => {
      received += chunk.length;
      socket.write(new Uint8Array(chunk));
    });
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const proxy = await startProxy({
    target: { host: "127.0.0.1", port: (server.address() as AddressInfo).port },
    ...options,
  });
  const chunks: Uint8Array[] = [];
  const client = createConnection(proxy.port, proxy.host);
  let reset = false;
  client.on("error", () => reset = true);
  client.on("data", (chunk: Uint8Array) => void chunks.push(new Uint8Array(chunk)));
  const closed = new Promise<boolean>((resolve) => client.on("close", () => resolve(reset)));
  await new Promise<void>((resolve) => client.once("connect", () => resolve()));
  return {
    proxy,
    client,
    received: () => received,
    echoed: () => Uint8Array.from(chunks.flatMap((chunk) => [...chunk])),
    closed,
    async close() {
      client.destroy();
      await proxy.close();
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

const SAMPLE = Uint8Array.from({ length: 1_000 }, (_, i) => i % 251);

for (const [name, chunking] of Object.entries(CHUNKINGS)) {
  test(`bytes pass both ways, cut by ${name}`, async () => {
    const echo = await limit(startEcho({ frontend: chunking, backend: chunking }));
    echo.client.write(SAMPLE);
    await limit(until(() => echo.echoed().length === SAMPLE.length));
    assert.deepEqual(echo.echoed(), SAMPLE);
    await limit(echo.close());
    assert.equal(echo.proxy.open(), 0);
  });
}

test("an end is passed on behind the bytes before it", async () => {
  const echo = await limit(startEcho({ frontend: chunksOf(100), backend: chunksOf(100) }));
  echo.client.end(SAMPLE);
  assert.equal(await limit(echo.closed), false);
  assert.deepEqual(echo.echoed(), SAMPLE);
  await limit(echo.close());
});

for (const how of ["end", "reset"] as const) {
  test(`a cut by ${how} passes the bytes before it on, and no more`, async () => {
    const echo = await limit(startEcho({ cut: { direction: "frontend", after: 400, how } }));
    echo.client.write(SAMPLE);
    const reset = await limit(echo.closed);
    if (how === "end") assert.equal(reset, false);
    await limit(until(() => echo.proxy.open() === 0));
    assert.ok(echo.received() <= 400);
    if (how === "end") assert.equal(echo.received(), 400);
    await limit(echo.close());
  });

  test(`a cut by ${how} in the backend's direction stops the answers`, async () => {
    const echo = await limit(
      startEcho({ backend: chunksOf(50), cut: { direction: "backend", after: 130, how } }),
    );
    echo.client.write(SAMPLE);
    await limit(echo.closed);
    assert.ok(echo.echoed().length <= 130);
    if (how === "end") assert.equal(echo.echoed().length, 130);
    await limit(echo.close());
  });
}

test("a cut may be set while connections are open", async () => {
  const echo = await limit(startEcho({}));
  echo.client.write(SAMPLE);
  await limit(until(() => echo.echoed().length === SAMPLE.length));
  echo.proxy.cut({ direction: "backend", after: 0, how: "end" });
  await limit(echo.closed);
  await limit(echo.close());
});

test("what is held comes after release, in order", async () => {
  const echo = await limit(startEcho({ frontend: chunksOf(10) }));
  echo.proxy.hold("backend");
  echo.client.write(SAMPLE);
  await limit(until(() => echo.received() === SAMPLE.length));
  assert.equal(echo.echoed().length, 0);
  echo.proxy.release("backend");
  await limit(until(() => echo.echoed().length === SAMPLE.length));
  assert.deepEqual(echo.echoed(), SAMPLE);
  await limit(echo.close());
});

test("both directions are recorded", async () => {
  const echo = await limit(startEcho({ record: true, backend: chunksOf(3) }));
  echo.client.write(SAMPLE);
  await limit(until(() => echo.echoed().length === SAMPLE.length));
  for (const from of ["frontend", "backend"] as const) {
    const own = echo.proxy.recorded.filter((entry) => entry.from === from && entry.connection === 0);
    assert.deepEqual(Uint8Array.from(own.flatMap((entry) => [...entry.bytes])), SAMPLE);
  }
  await limit(echo.close());
});

test("a server that refuses ends the client's connection", async () => {
  const proxy = await limit(startProxy({ target: { host: "127.0.0.1", port: 1 } }));
  const client = createConnection(proxy.port, proxy.host);
  client.on("error", () => {});
  await limit(new Promise<void>((resolve) => client.on("close", () => resolve())));
  await limit(until(() => proxy.open() === 0));
  assert.equal(proxy.connections(), 1);
  await limit(proxy.close());
});

test("close() ends open connections", async () => {
  const echo = await limit(startEcho({}));
  await limit(echo.proxy.close());
  await limit(echo.closed);
  await limit(echo.close());
});
