/**
 * Writes BENCHMARKS.md and its charts from result files.
 *
 * deno task bench:report [--results file] [--scale file] [--out folder]
 *
 * Default: the newest files of bench/results, and the project's folder.
 */

import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { drawSvg, scaleCharts, scenarioCharts } from "./harness/charts.ts";
import { reportText } from "./harness/report_text.ts";
import type { Results } from "./harness/results.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const RESULTS = join(ROOT, "bench", "results");

const results = readResults(optionOf("--results") ?? newest("scenarios"));
if (results === undefined) {
  console.error("There are no results: run `deno task bench` first, or name a file with --results");
  Deno.exit(2);
}
const scale = readResults(optionOf("--scale") ?? newest("scale"));
const out = optionOf("--out") ?? ROOT;
const folder = join(out, "bench", "charts");
await Deno.mkdir(folder, { recursive: true });
const charts = [];
for (const chart of [...scenarioCharts(results), ...(scale ? scaleCharts(scale) : [])]) {
  const path = join(folder, `${chart.name}.svg`);
  await Deno.writeTextFile(path, await drawSvg(chart));
  charts.push({ ...chart, path: relative(out, path) });
}
const path = join(out, "BENCHMARKS.md");
await Deno.writeTextFile(path, reportText({ results, scale, charts }));
console.log(`${path} and ${charts.length} charts in ${folder}`);

function optionOf(name: string): string | undefined {
  const at = Deno.args.indexOf(name);
  return at < 0 ? undefined : Deno.args[at + 1];
}

/** File names begin with the kind and the time. */
function newest(kind: string): string | undefined {
  try {
    const names = [...Deno.readDirSync(RESULTS)].map(({ name }) => name);
    const last = names.filter((name) => name.startsWith(`${kind}-`) && name.endsWith(".json")).sort().pop();
    return last && join(RESULTS, last);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

function readResults(path: string | undefined): Results | undefined {
  if (path === undefined) return undefined;
  const parsed = JSON.parse(Deno.readTextFileSync(path)) as Results;
  if (parsed.format !== 1) throw new Error(`Cannot read ${path}: it is no result file of this version`);
  return parsed;
}
