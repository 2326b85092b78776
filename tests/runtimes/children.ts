/** Child processes of the runtime that runs the test. */

import { spawn } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** What a child did. */
export interface ChildResult {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
  /** Milliseconds from its start to its end. */
  readonly time: number;
}

/** The name of this runtime. */
export const runtime: "deno" | "bun" | "node" = "Deno" in globalThis
  ? "deno"
  : "Bun" in globalThis
  ? "bun"
  : "node";

/**
 * Runs a script of this folder with this runtime, and ends it after 30 seconds.
 *
 * @param flags of `deno run`; the other runtimes have none
 */
export async function runChild(
  script: string,
  args: readonly string[],
  flags: readonly string[] = ["-A"],
  env: Readonly<Record<string, string>> = {},
): Promise<ChildResult> {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const began = performance.now();
  const result = runtime === "deno"
    ? await runDeno(["run", "--no-prompt", "--quiet", "--no-check", ...flags, path, ...args], env)
    : await run([path, ...args], env);
  return { ...result, time: performance.now() - began };
}

/** Deno's own node:child_process gives a child of Deno more permissions than its command line says. */
async function runDeno(
  args: string[],
  env: Readonly<Record<string, string>>,
): Promise<Omit<ChildResult, "time">> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args,
    stdin: "null",
    env: { NO_COLOR: "1", ...env },
    signal: AbortSignal.timeout(PATIENCE),
  }).output();
  const decoder = new TextDecoder();
  return { code, output: decoder.decode(stdout), errors: decoder.decode(stderr) };
}

function run(args: string[], env: Readonly<Record<string, string>>): Promise<Omit<ChildResult, "time">> {
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, NO_COLOR: "1", ...env },
  });
  const texts = { output: "", errors: "" };
  child.stdout.on("data", (chunk) => texts.output += chunk);
  child.stderr.on("data", (chunk) => texts.errors += chunk);
  const timer = setTimeout(() => child.kill("SIGKILL"), PATIENCE);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ code, ...texts });
    });
  });
}

const PATIENCE = 30_000;
