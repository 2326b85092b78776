import { test } from "node:test";
import { conformSockets } from "./socket_conformance.ts";

if ("Deno" in globalThis) {
  const { createDenoTransport } = await import("../../src/transport/deno.ts");
  conformSockets(createDenoTransport());
} else {
  test("deno: needs Deno", { skip: true }, () => {});
}
