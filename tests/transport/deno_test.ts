import { test } from "node:test";
import { conformLastWords, conformSockets } from "./socket_conformance.ts";

if ("Deno" in globalThis) {
  const { createDenoTransport } = await import("../../src/transport/deno.ts");
  const factory = createDenoTransport();
  conformSockets(factory);
  conformLastWords(factory);
} else {
  test("deno: needs Deno", { skip: true }, () => {});
}
