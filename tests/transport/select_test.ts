import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigurationError } from "../../src/errors.ts";
import { selectTransport, type TransportName } from "../../src/transport/select.ts";

const runtime = "Bun" in globalThis ? "bun" : "Deno" in globalThis ? "deno" : "node";

test("selectTransport() takes the runtime's own transport", async () => {
  assert.equal((await selectTransport()).name, runtime);
});

test("selectTransport() gives node:net on every runtime", async () => {
  const factory = await selectTransport("node");
  assert.equal(factory.name, "node");
  assert.equal(factory.asyncStacks, runtime !== "bun");
});

test("selectTransport() refuses an unknown name", async () => {
  await assert.rejects(selectTransport("quic" as TransportName), (error) => {
    assert.ok(error instanceof ConfigurationError);
    assert.match(error.message, /"quic".*"deno", "bun" or "node"/);
    return true;
  });
});

test("selectTransport() refuses another runtime's transport", async () => {
  for (const name of ["deno", "bun"] as const) {
    if (name === runtime) continue;
    await assert.rejects(selectTransport(name), ConfigurationError);
  }
});
