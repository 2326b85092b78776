/**
 * How cost grows: with connections, with concurrent queries, with rows, and with the distance to the server.
 *
 * deno task bench:scale [options]    the options of `deno task bench`; default: 5 rounds of 200 ms
 */

import { runBench } from "./harness/bench_run.ts";
import { listScenarios } from "./harness/lists.ts";
import { parseOptions, selectNames, USAGE, UsageError } from "./harness/options.ts";

/** Every point is a measurement of its own: shorter ones than in a single scenario must do. */
const DEFAULTS = ["--rounds", "5", "--window", "200"];

if (Deno.args.includes("--help")) {
  console.log(USAGE);
  Deno.exit(0);
}
try {
  const options = parseOptions(Deno.args.includes("--quick") ? Deno.args : [...DEFAULTS, ...Deno.args]);
  const all = await listScenarios("scale");
  // The scenarios that --quick names are not these.
  const wanted = Deno.args.includes("--scenarios") ? options.scenarios : [];
  const names = selectNames(all.map(({ scenario }) => scenario.name), wanted);
  const scenarios = all.filter(({ scenario }) => names.includes(scenario.name));
  Deno.exit(await runBench("scale", scenarios, options));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(error.message);
  Deno.exitCode = 2;
}
