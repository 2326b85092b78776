import assert from "node:assert/strict";
import { createConnection } from "node:net";
import { test } from "node:test";
import {
  commandComplete,
  dataRow,
  errorResponse,
  message,
  readyForQuery,
  rowDescription,
} from "./backend_writer.ts";
import { limit } from "./limit.ts";
import { createMemoryBackend, type Script, startScriptedBackend } from "./scripted_backend.ts";
import { SimpleClient } from "./simple_client.ts";

const target = (port: number) => ({ host: "127.0.0.1", port, user: "u", database: "d" });

const oneQuery: Script = async (session) => {
  const { parameters } = await session.establish();
  assert.equal(parameters["user"], "u");
  await session.expect("Query", { text: "select 1" });
  session.send(rowDescription(["one"]), dataRow(["1"]), commandComplete("SELECT 1"), readyForQuery());
  await session.expectEnd();
};

/** Connects, sends bytes and the end, and waits for the other side's. */
async function endAfter(port: number, bytes: Uint8Array): Promise<void> {
  const socket = createConnection(port, "127.0.0.1", () => socket.end(bytes));
  socket.on("error", () => {});
  socket.resume();
  await limit(new Promise<void>((resolve) => socket.once("close", () => resolve())));
}

test("a client is served as the script says", async () => {
  const backend = await limit(startScriptedBackend(oneQuery));
  const client = await limit(SimpleClient.connect(target(backend.port)));
  assert.deepEqual(await limit(client.query("select 1")), [["1"]]);
  await limit(client.close());
  await limit(backend.close());
  assert.equal(backend.connections(), 1);
});

test("a message that the script does not expect breaks the connection off and fails close()", async () => {
  const backend = await limit(startScriptedBackend(oneQuery));
  const client = await limit(SimpleClient.connect(target(backend.port)));
  await assert.rejects(limit(client.query("select 2")));
  await limit(client.close());
  await assert.rejects(limit(backend.close()), /Query\.text/);
});

test("an early end fails the script that waits for a message", async () => {
  const backend = await limit(startScriptedBackend(oneQuery));
  await endAfter(backend.port, new Uint8Array(0));
  await assert.rejects(limit(backend.close()), /Expected StartupMessage, got the end of the connection/);
});

test("an end within a message fails the script", async () => {
  const backend = await limit(startScriptedBackend((session) => session.drain()));
  await endAfter(backend.port, new Uint8Array([0, 0, 0, 9, 1]));
  await assert.rejects(limit(backend.close()), /ended within a message/);
});

test("each connection runs the script with its number", async () => {
  const numbers: number[] = [];
  const backend = await limit(startScriptedBackend(async (session, index) => {
    numbers.push(index);
    await session.expect("StartupMessage");
    session.send(errorResponse({ C: "53300", M: "no more" }));
    session.end();
    await session.drain();
  }));
  for (let i = 0; i < 3; i++) {
    await assert.rejects(limit(SimpleClient.connect(target(backend.port))), /53300: no more/);
  }
  await limit(backend.close());
  assert.deepEqual(numbers, [0, 1, 2]);
});

test("a reset reaches the client as an error", async () => {
  const backend = await limit(startScriptedBackend(async (session) => {
    await session.establish();
    await session.expect("Query");
    session.reset();
  }));
  const client = await limit(SimpleClient.connect(target(backend.port)));
  await assert.rejects(limit(client.query("select 1")));
  await limit(client.close());
  await limit(backend.close());
});

for (const options of [{}, { splitAt: 1 }, { merge: true }]) {
  test(`in memory the same steps work with ${JSON.stringify(options)}`, async () => {
    const backend = createMemoryBackend(async (session) => {
      await session.expectTypes("StartupMessage", "Sync");
      session.send(readyForQuery("I"), readyForQuery("T"));
      await session.expectEnd();
    }, options);
    const transport = await limit(backend.factory.connect({ host: "memory", port: 1 }));
    const received: number[] = [];
    const twelve = new Promise<void>((resolve) => {
      transport.start({
        onBytes(chunk) {
          received.push(...chunk);
          if (received.length === 12) resolve();
        },
        onEnd() {},
      });
    });
    transport.write(new Uint8Array([0, 0, 0, 9, 0, 3, 0, 0, 0]));
    transport.write(message("S"));
    await limit(twelve);
    transport.close();
    await limit(backend.close());
    assert.deepEqual(received, [...readyForQuery("I"), ...readyForQuery("T")]);
    assert.equal(backend.connections(), 1);
  });
}
