/** A primary and a standby of one test file, which it may restart and destroy: scripts/test_cluster.ts. */

import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { limit } from "./limit.ts";
import { serverVersion } from "./server.ts";

const SCRIPT = fileURLToPath(new URL("../../scripts/test_cluster.ts", import.meta.url));

/** Why there can be none, for `skip`; `false` when there can. */
export const NO_CLUSTER: string | false = denoPath() === undefined &&
  "PIPEGRES_TEST_DENO does not name a Deno";

/** What {@linkcode Cluster.command} can do. */
export type ClusterCommand =
  | "restart fast"
  | "restart immediate"
  | "read-only on"
  | "read-only off"
  | "crash"
  | "promote";

interface Facts {
  readonly primary: { readonly host: string; readonly port: number };
  readonly standby: { readonly host: string; readonly port: number };
  readonly user: string;
  readonly password: string;
}

/** A running primary with its synchronous standby. */
export class Cluster {
  readonly #child: ChildProcess;
  readonly #facts: Facts;
  readonly #lines: Lines;

  private constructor(child: ChildProcess, facts: Facts, lines: Lines) {
    this.#child = child;
    this.#facts = facts;
    this.#lines = lines;
  }

  /** Starts both, of the test server's version; takes some seconds. */
  static async start(): Promise<Cluster> {
    const child = spawn(denoPath()!, ["run", "-A", "--no-check", SCRIPT, String(await serverVersion())], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const lines = new Lines(child);
    const facts: Facts = JSON.parse(await limit(lines.next(), 150_000, "the cluster's start"));
    return new Cluster(child, facts, lines);
  }

  /** URI of the primary, of the standby, or of both in this order. */
  url(which: "primary" | "standby" | "both"): string {
    const { primary, standby, user, password } = this.#facts;
    const nodes = which === "both" ? [primary, standby] : [this.#facts[which]];
    return `postgres://${user}:${password}@${
      nodes.map(({ host, port }) => `${host}:${port}`).join(",")
    }/postgres`;
  }

  /** Resolves when it is done. */
  async command(command: ClusterCommand): Promise<void> {
    this.#child.stdin!.write(`${command}\n`);
    await limit(this.#lines.next(), 60_000, command);
  }

  /** Ends both. */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#child.on("close", resolve));
    this.#child.stdin!.end();
    await limit(closed, 60_000, "the cluster's end");
  }
}

/** The lines that a process prints. */
class Lines {
  #text: string = "";
  #ended: boolean = false;
  #wake: () => void = () => {};

  constructor(child: ChildProcess) {
    child.stdout!.on("data", (chunk) => {
      this.#text += chunk;
      this.#wake();
    });
    child.on("close", () => {
      this.#ended = true;
      this.#wake();
    });
  }

  async next(): Promise<string> {
    for (;;) {
      const end = this.#text.indexOf("\n");
      if (end >= 0) {
        const line = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 1);
        return line;
      }
      if (this.#ended) throw new Error("The cluster has ended; what it said stands above");
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }
}

function denoPath(): string | undefined {
  return process.env["PIPEGRES_TEST_DENO"] || ("Deno" in globalThis ? process.execPath : undefined);
}
