/**
 * npm packages that only benchmarks need, in pinned versions.
 *
 * Deno takes them from its cache. Bun and Node.js want a node_modules folder: it is outside the repository, its path
 * comes from the runner by `PIPEGRES_BENCH_MODULES`.
 */

import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

/** Everything that may be loaded. */
export const PACKAGE_VERSIONS: Readonly<Record<string, string>> = {
  "mitata": "1.0.34",
  "pg": "8.23.1",
  "pg-cursor": "2.22.1",
  "pg-copy-streams": "7.0.0",
  "pg-native": "3.9.0",
  "postgres": "3.4.9",
  "postgrejs": "2.23.1",
  "vega": "6.4.0",
  "vega-lite": "6.4.3",
};

/** Loads a package; the caller knows its shape. */
export async function loadPackage<T>(name: string): Promise<T> {
  const version = PACKAGE_VERSIONS[name];
  if (version === undefined) throw new Error(`Cannot load ${name}: it is no package of the benchmarks`);
  if ("Deno" in globalThis) return await import(`npm:${name}@${version}`) as T;
  const path = createRequire(join(modulesDirectory(), "package.json")).resolve(name);
  return await import(pathToFileURL(path).href) as T;
}

/** The folder that holds node_modules: one for each set of versions, so that an old one is never taken for a new one. */
export function modulesDirectory(): string {
  const given = process.env["PIPEGRES_BENCH_MODULES"];
  if (given) return given;
  const cache = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  return join(cache, "pipegres-bench", packagesKey());
}

/** Names the set of versions. */
export function packagesKey(): string {
  let hash = 0x811c9dc5;
  for (const unit of JSON.stringify(PACKAGE_VERSIONS)) {
    hash = Math.imul(hash ^ unit.charCodeAt(0), 0x01000193) >>> 0;
  }
  return hash.toString(16).padStart(8, "0");
}
