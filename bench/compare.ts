/**
 * What changed between two result files, above noise.
 *
 * deno task bench:compare baseline.json candidate.json [--all]    exits 1 when something became slower
 */

import { compareResults, comparisonGaps } from "./harness/compare_results.ts";
import type { Results } from "./harness/results.ts";
import { alignColumns, formatEstimate, formatTime } from "./harness/tables.ts";

const [baselinePath, candidatePath] = Deno.args.filter((argument) => !argument.startsWith("--"));
if (baselinePath === undefined || candidatePath === undefined) {
  console.error("Usage: deno task bench:compare baseline.json candidate.json [--all]");
  Deno.exit(2);
}
const [baseline, candidate] = [readResults(baselinePath), readResults(candidatePath)];
const changes = compareResults(baseline, candidate);
const shown = Deno.args.includes("--all") ? changes : changes.filter(({ significant }) => significant);
const rows = shown.map(({ what, figure, baseline, candidate, ratio, significant }) => [
  what,
  figure,
  formatTime(baseline),
  formatTime(candidate),
  formatEstimate(ratio),
  !significant ? "noise" : ratio.value > 1 ? "slower" : "faster",
]);
if (rows.length > 0) console.log(alignColumns([["", "", "baseline", "candidate", "ratio", ""], ...rows]));
console.log(
  `${changes.filter(({ significant }) => significant).length} of ${changes.length} figures changed`,
);
for (const gap of comparisonGaps(baseline, candidate)) console.log(gap);
for (const { kind, text } of [...baseline.marks, ...candidate.marks]) {
  if (kind === "NOT PUBLISHABLE") console.log(`${kind}: ${text}`);
}
Deno.exitCode = changes.some(({ significant, ratio }) => significant && ratio.value > 1) ? 1 : 0;

function readResults(path: string): Results {
  const results = JSON.parse(Deno.readTextFileSync(path)) as Results;
  if (results.format !== 1) throw new Error(`Cannot read ${path}: it is no result file of this version`);
  return results;
}
