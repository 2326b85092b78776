/** Which scenarios and drivers there are: files in folders, nothing is registered. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Driver } from "./driver.ts";
import type { ListedScenario } from "./measure.ts";
import type { Scenario } from "./scenario.ts";

const BENCH = fileURLToPath(new URL("..", import.meta.url));

/** Files that drivers share. */
const NOT_DRIVERS: readonly string[] = ["raw_socket.ts"];

/** Scenarios of a folder below bench/, in the order of their file names. */
export async function listScenarios(folder: string): Promise<ListedScenario[]> {
  const listed: ListedScenario[] = [];
  for (const name of await fileNames(folder)) {
    const path = `${folder}/${name}`;
    const { default: scenario } = await import(`../${path}`) as { default: Scenario };
    listed.push({ scenario, path });
  }
  return listed;
}

/** All drivers: ours first, then peers by name, the floor last. */
export async function listDrivers(): Promise<Driver[]> {
  const drivers: Driver[] = [];
  for (const name of await fileNames("drivers")) {
    if (NOT_DRIVERS.includes(name)) continue;
    drivers.push((await import(`../drivers/${name}`) as { default: Driver }).default);
  }
  const rank = ({ name }: Driver) => name === "pipegres" ? 0 : name === "floor" ? 2 : 1;
  return drivers.sort((a, b) => rank(a) - rank(b));
}

async function fileNames(folder: string): Promise<string[]> {
  const names: string[] = [];
  for await (const entry of Deno.readDir(join(BENCH, folder))) {
    if (entry.isFile && entry.name.endsWith(".ts")) names.push(entry.name);
  }
  return names.sort();
}
