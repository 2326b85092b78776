/** mitata, typed as far as micro benches use it. `deno task bench:micro` installs it for Bun and Node.js. */

import { loadPackage } from "../harness/packages.ts";

/** What is used of mitata. */
export interface Mitata {
  /** Adds one measured function. */
  bench(name: string, run: () => unknown): unknown;
  /** Puts measured functions together. */
  group(name: string, add: () => void): void;
  /** Measures everything that was added and prints it. */
  run(options?: { readonly colors?: boolean }): Promise<unknown>;
  /** Keeps a value from being optimised away. */
  do_not_optimize(value: unknown): void;
}

/** Loads it. */
export function loadMitata(): Promise<Mitata> {
  return loadPackage<Mitata>("mitata");
}
