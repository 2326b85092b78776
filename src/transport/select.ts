/** Chooses the runtime's transport, and loads no other runtime's. */

import { ConfigurationError } from "../errors.ts";
import type { TransportFactory } from "./transport.ts";

/** Names of the transports to choose from. */
export type TransportName = "deno" | "bun" | "node";

/**
 * Loads a transport.
 *
 * @param name which one; default: `deno` in Deno, `bun` in Bun, else `node`, which works in all three
 * @throws {ConfigurationError} if `name` is unknown, or is that of a runtime this is not
 */
export async function selectTransport(name?: TransportName): Promise<TransportFactory> {
  const runtime = currentRuntime();
  const wanted = name ?? runtime;
  if (wanted !== "node" && wanted !== "deno" && wanted !== "bun") {
    throw new ConfigurationError(
      `Cannot use the transport ${JSON.stringify(wanted)}: expected "deno", "bun" or "node"`,
    );
  }
  if (wanted !== "node" && wanted !== runtime) {
    throw new ConfigurationError(`Cannot use the transport "${wanted}": the runtime is ${runtime}`);
  }
  // Made once: an import costs much even where the module is there, and a factory holds no state.
  return loaded[wanted] ??= await load(wanted);
}

const loaded: { [name in TransportName]?: TransportFactory } = {};

async function load(name: TransportName): Promise<TransportFactory> {
  if (name === "deno") return (await import("./deno.ts")).createDenoTransport();
  if (name === "bun") return (await import("./bun.ts")).createBunTransport();
  return (await import("./node.ts")).createNodeTransport();
}

/** Whether an error made after awaiting a thenable does not show the awaiting caller: Bun's engine forgets it. */
export function losesStacks(): boolean {
  return currentRuntime() === "bun";
}

function currentRuntime(): TransportName {
  const global = globalThis as {
    readonly Bun?: { connect?: unknown };
    readonly Deno?: { connect?: unknown };
  };
  if (typeof global.Bun?.connect === "function") return "bun";
  return typeof global.Deno?.connect === "function" ? "deno" : "node";
}
