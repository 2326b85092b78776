/** A whole run: server, control, scenarios, control again, results. */

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findRuntime, type Runtime } from "../../scripts/runtimes.ts";
import { killChildren } from "./child_process.ts";
import type { Driver } from "./driver.ts";
import { driftOf, floorMismatches, marksOf, percent } from "./gates.ts";
import { listDrivers } from "./lists.ts";
import { type ListedScenario, measureControl, measureScenario, type Setting } from "./measure.ts";
import { type RunOptions, selectNames } from "./options.ts";
import { PACKAGE_VERSIONS } from "./packages.ts";
import { Progress } from "./progress.ts";
import type { Control, DriverInfo, Measurement, Results } from "./results.ts";
import {
  type BenchServer,
  childEnvironment,
  describeEnvironment,
  dirtyFiles,
  installPackages,
  prepareServer,
} from "./surroundings.ts";
import { FLOOR, OURS } from "./summary.ts";
import { terminalTable } from "./tables.ts";

const RESULTS = fileURLToPath(new URL("../results", import.meta.url));

/** Measures and prints; resolves to the exit status: 1 when the drift gate or a break forbids publication. */
export async function runBench(
  kind: Results["kind"],
  scenarios: readonly ListedScenario[],
  options: RunOptions,
): Promise<number> {
  const progress = new Progress(stepCount(scenarios) + 3);
  progress.step("setting up");
  const drivers = await chooseDrivers(options);
  const runtimes = await Promise.all(options.runtimes.map(findRuntime));
  const competitors = runtimes.flatMap((runtime) =>
    drivers.filter((driver) => driver.runtimes.includes(runtime.name)).map((driver) => ({ runtime, driver }))
  );
  const node = runtimes.find(({ name }) => name === "node");
  const modules = await installPackages(
    drivers.some(({ name }) => name === "pg-native") ? node?.path : undefined,
  );
  const began = new Date();
  await using server = await prepareServer();
  const interrupted = onInterrupt();
  const setting: Setting = {
    options,
    target: server.target,
    environment: childEnvironment(modules),
    progress,
  };
  const run = new Run(kind, scenarios, options, drivers, runtimes, server, began);
  progress.finish();
  const measuring = measureAll(run, scenarios, competitors, setting);
  try {
    await Promise.race([interrupted, measuring]);
  } catch (error) {
    progress.end();
    if (!(error instanceof Interrupted)) throw error;
    progress.note("Interrupted: ending all processes");
    killChildren();
    // It fails now, and has cleaned up then.
    await measuring.catch(() => {});
    await run.write();
    return 130;
  }
  progress.end();
  const results = await run.write();
  console.log(terminalTable(results));
  console.log(`\n${summaryLines(results).join("\n")}\nResults: ${run.path}`);
  return results.control !== null && driftOf(results.control) <= results.driftLimit ? 0 : 1;
}

/** Collects what a run finds. */
class Run {
  readonly path: string;
  control: Control | null = null;
  measurements: Measurement[] = [];
  readonly #make: () => Promise<Results>;

  constructor(
    kind: Results["kind"],
    scenarios: readonly ListedScenario[],
    options: RunOptions,
    drivers: readonly Driver[],
    runtimes: readonly Runtime[],
    server: BenchServer,
    began: Date,
  ) {
    const stamp = began.toISOString().replace(/[-:]|\.\d+/g, "");
    this.path = options.out || join(RESULTS, `${kind}-${stamp}.json`);
    this.#make = async () => {
      const excluded = this.measurements.filter(({ status }) => status === "excluded" || status === "failed");
      return {
        format: 1,
        kind,
        startedAt: began.toISOString(),
        seconds: (Date.now() - began.getTime()) / 1000,
        seed: options.seed,
        rounds: options.rounds,
        window: options.window,
        driftLimit: options.drift,
        environment: await describeEnvironment(runtimes, server),
        scenarios: scenarios.map(({ scenario: { name, title, unit, queries } }) => ({
          name,
          title,
          unit,
          queries,
        })),
        drivers: drivers.map(infoOf),
        measurements: this.measurements,
        control: this.control,
        marks: marksOf({
          control: this.control,
          driftLimit: options.drift,
          dirty: await dirtyFiles(),
          debugServer: server.settings["debug_assertions"] === "on",
          excluded: excluded.map(({ scenario, driver, runtime, status, reason }) =>
            `${status} in ${scenario}: ${driver} on ${runtime} ${reason}`
          ),
          mismatches: floorMismatches(this.measurements, OURS, FLOOR),
          rounds: options.rounds,
        }),
      };
    };
  }

  async write(): Promise<Results> {
    const results = await this.#make();
    await Deno.mkdir(dirname(this.path), { recursive: true });
    await Deno.writeTextFile(this.path, `${JSON.stringify(results, undefined, 1)}\n`);
    return results;
  }
}

function infoOf({ name, packages, notes }: Driver): DriverInfo {
  return { name, versions: packages.map((each) => `${each} ${PACKAGE_VERSIONS[each]}`), notes };
}

function stepCount(scenarios: readonly ListedScenario[]): number {
  return scenarios.reduce((sum, { scenario }) => sum + (scenario.points?.length ?? 1), 0);
}

async function chooseDrivers(options: RunOptions): Promise<Driver[]> {
  const all = await listDrivers();
  if (options.drivers.length === 0) return all.filter(({ optIn }) => !optIn);
  const names = selectNames(all.map(({ name }) => name), options.drivers);
  // "pg" is the whole name of one driver and a part of others.
  return all.filter(({ name }) => names.includes(name));
}

/** The control is the cheapest question: what disturbs shows there. */
const CONTROL_SCENARIO = "scenarios/05_extended.ts";

async function measureAll(
  run: Run,
  scenarios: readonly ListedScenario[],
  competitors: readonly { runtime: Runtime; driver: Driver }[],
  setting: Setting,
): Promise<void> {
  const { progress } = setting;
  const first = competitors[0];
  if (first === undefined) throw new Error("No driver runs on the runtimes that were asked for");
  const { default: scenario } = await import(`../${CONTROL_SCENARIO}`);
  const control = { scenario, path: CONTROL_SCENARIO };
  const what = `${scenario.name}, ${first.driver.name} on ${first.runtime.name}`;
  progress.step("control");
  const firstCost = await measureControl(control, first, setting);
  progress.finish();
  for (const listed of scenarios) {
    for (const point of listed.scenario.points ?? [0]) {
      progress.step(`${listed.scenario.name}${point ? ` ${point}` : ""}`);
      run.measurements.push(...await measureScenario(listed, point, competitors, setting));
      progress.finish();
    }
  }
  progress.step("control again");
  run.control = { what, first: firstCost, last: await measureControl(control, first, setting) };
  progress.finish();
}

class Interrupted extends Error {}

/** Rejects at Ctrl-C or a polite kill. */
function onInterrupt(): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => reject(new Interrupted()));
  }
  promise.catch(() => {});
  return promise;
}

function summaryLines(results: Results): string[] {
  const lines = [
    "vs ours, vs floor: median of the rounds' ratios with its 95 % interval; above 1 the driver needs more",
  ];
  if (results.control) {
    lines.push(
      `Drift ${percent(driftOf(results.control))} (${results.control.what}), allowed ${
        percent(results.driftLimit)
      }`,
    );
  }
  for (const { kind, text } of results.marks) lines.push(`${kind}: ${text}`);
  return lines;
}
