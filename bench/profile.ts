/**
 * The hottest functions of a driver in a scenario, from the runtime's own profiler.
 *
 * deno task bench:profile --scenarios extended [--drivers pipegres] [--runtimes node] [--window ms] [--out folder]
 *
 * Profiles stay in the folder that is named with --out, for DevTools or another viewer.
 */

import { join } from "node:path";
import { findRuntime, type Runtime } from "../scripts/runtimes.ts";
import { Child } from "./harness/child_process.ts";
import { percent } from "./harness/gates.ts";
import { listScenarios } from "./harness/lists.ts";
import type { ListedScenario } from "./harness/measure.ts";
import { parseOptions, selectNames } from "./harness/options.ts";
import { type CpuProfile, hotFunctions } from "./harness/profile_summary.ts";
import { childEnvironment, installPackages, prepareServer } from "./harness/surroundings.ts";
import { alignColumns } from "./harness/tables.ts";

/** Milliseconds that are profiled, and functions that are shown. */
const WINDOW = "3000";
const SHOWN = 15;

const options = parseOptions(["--window", WINDOW, ...Deno.args]);
const drivers = options.drivers.length > 0 ? options.drivers : ["pipegres"];
const all = await listScenarios("scenarios");
const names = selectNames(all.map(({ scenario }) => scenario.name), options.scenarios);
const folder = options.out || await Deno.makeTempDir({ prefix: "pipegres-profiles-" });
await Deno.mkdir(folder, { recursive: true });
const environment = childEnvironment(await installPackages());
await using server = await prepareServer();
for (const listed of all.filter(({ scenario }) => names.includes(scenario.name))) {
  for (const runtime of await Promise.all(options.runtimes.map(findRuntime))) {
    for (const driver of drivers) await profile(listed, runtime, driver);
  }
}
if (!options.out) await Deno.remove(folder, { recursive: true });

async function profile({ scenario, path }: ListedScenario, runtime: Runtime, driver: string): Promise<void> {
  const own = join(folder, `${scenario.name.replace(/\W+/g, "-")}-${driver}-${runtime.name}`);
  await Deno.mkdir(own, { recursive: true });
  const child = Child.start(runtime, environment, own);
  console.log(`\n${scenario.name}, ${driver} on ${runtime.name}`);
  try {
    await child.request({ do: "open", driver, scenario: path, point: 0, target: server.target });
    await child.request({ do: "warmUp", window: options.warmWindow, limit: options.warmLimit });
    await child.request({ do: "window", milliseconds: options.window });
    await child.request({ do: "close" });
  } catch (error) {
    console.log(error instanceof Error ? error.message : error);
  } finally {
    await child.end();
  }
  for (const { name } of Deno.readDirSync(own)) {
    if (!name.endsWith(".cpuprofile")) continue;
    const hot = hotFunctions(
      JSON.parse(Deno.readTextFileSync(join(own, name))) as CpuProfile,
      options.window,
    );
    console.log(
      alignColumns(
        hot.slice(0, SHOWN).map(({ name, place, share }) => [`${name}  ${place}`, percent(share)]),
      ),
    );
  }
}
