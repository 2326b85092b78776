/** What the test runner prints. */

import { RUNTIME_NAMES } from "./runtimes.ts";
import type { FileResult, Outcome } from "./test_run.ts";

/** What the runners print for a test that passed. */
const PASSED_LINE = /^(\s*✔ .*|\(pass\) .*|.* \.\.\. ok \(\S+\))\n/gm;

/** Whether a test of the file failed, or something besides its tests went wrong. */
export function hasFailed(result: FileResult): boolean {
  return count([result], "failed") > 0 || result.problems.length > 0;
}

/** One line for a file; for one that failed, all that it printed as well, but for the tests that passed. */
export function printFile(result: FileResult): void {
  const failed = hasFailed(result);
  const seconds = (result.milliseconds / 1000).toFixed(1);
  const skipped = count([result], "skipped");
  console.log(
    `  ${failed ? "FAIL" : "ok  "}  ${result.file}  ${result.tests.length} tests` +
      `${skipped ? `, ${skipped} skipped` : ""}, ${seconds} s`,
  );
  if (!failed) return;
  for (const problem of result.problems) console.log(`        ${problem}`);
  console.log(result.output.replace(PASSED_LINE, "").trimEnd().replace(/^/gm, "        | "));
}

/** The totals, and last a plain line of them. Returns the exit code. */
export function printTotals(
  results: readonly FileResult[],
  problems: readonly string[],
  milliseconds: number,
): number {
  console.log("");
  for (const runtime of RUNTIME_NAMES) {
    const own = results.filter((result) => result.runtime === runtime);
    if (own.length === 0) continue;
    const time = own.reduce((sum, result) => sum + result.milliseconds, 0);
    console.log(
      `${runtime.padEnd(4)}  ${own.length} files, ${count(own, "passed")} passed, ${failures(own)} failed, ` +
        `${count(own, "skipped")} skipped, ${(time / 1000).toFixed(1)} s of tests`,
    );
  }
  for (const result of results) {
    for (const test of result.tests) {
      if (test.outcome === "passed") continue;
      console.log(`${test.outcome}: ${result.runtime}, ${result.file}: ${test.name}`);
    }
    for (const problem of result.problems) {
      console.log(`failed: ${result.runtime}, ${result.file}: ${problem}`);
    }
  }
  for (const problem of problems) console.log(`failed: ${problem}`);
  const failed = failures(results) + problems.length;
  console.log(`\nAll in ${(milliseconds / 1000).toFixed(1)} s`);
  console.log(`${count(results, "passed")} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
}

function count(results: readonly FileResult[], outcome: Outcome): number {
  return results.reduce(
    (sum, result) => sum + result.tests.filter((test) => test.outcome === outcome).length,
    0,
  );
}

function failures(results: readonly FileResult[]): number {
  return results.reduce((sum, result) => sum + result.problems.length, count(results, "failed"));
}

/**
 * Tests that some runtimes know and others do not: a test is left out by skipping it, never silently. A runtime that
 * skipped all it has of a file has said that the file is not for it.
 */
export function compareRuntimes(results: readonly FileResult[]): string[] {
  const problems: string[] = [];
  for (const file of new Set(results.map((result) => result.file))) {
    // A file that broke down is reported already.
    const own = results.filter((result) =>
      result.file === file && result.problems.length === 0 && !allSkipped(result)
    );
    const names = new Set(own.flatMap((result) => result.tests).map((test) => test.name));
    for (const { runtime, tests } of own) {
      const missing = [...names].filter((name) => !tests.some((test) => test.name === name));
      if (missing.length === 0) continue;
      const shown = missing.slice(0, 3).map((name) => `"${name}"`).join(", ");
      problems.push(`${runtime} did not run ${missing.length} tests of ${file}: ${shown}`);
    }
  }
  return problems;
}

function allSkipped(result: FileResult): boolean {
  return result.tests.every((test) => test.outcome === "skipped");
}
