import { test } from "node:test";
import { conformSockets } from "./socket_conformance.ts";

if ("Bun" in globalThis) {
  const { createBunTransport } = await import("../../src/transport/bun.ts");
  conformSockets(createBunTransport());
} else {
  test("bun: needs Bun", { skip: true }, () => {});
}
