/**
 * Benchmarks of our driver and its peers, on all runtimes.
 *
 * deno task bench [options]    `--help` lists them; `DATABASE_URL` names a server to use instead of an embedded one
 */

import { listScenarios } from "./harness/lists.ts";
import { parseOptions, selectNames, USAGE, UsageError } from "./harness/options.ts";
import { runBench } from "./harness/bench_run.ts";

if (Deno.args.includes("--help")) {
  console.log(USAGE);
  Deno.exit(0);
}
try {
  const options = parseOptions(Deno.args);
  const all = await listScenarios("scenarios");
  const names = selectNames(all.map(({ scenario }) => scenario.name), options.scenarios);
  const scenarios = all.filter(({ scenario }) => names.includes(scenario.name));
  Deno.exit(await runBench("scenarios", scenarios, options));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(error.message);
  Deno.exitCode = 2;
}
