import { test } from "node:test";
import { conformLastWords, conformSockets } from "./socket_conformance.ts";

if ("Bun" in globalThis) {
  const { createBunTransport } = await import("../../src/transport/bun.ts");
  const factory = createBunTransport();
  conformSockets(factory);
  conformLastWords(factory);
} else {
  test("bun: needs Bun", { skip: true }, () => {});
}
