/** Figures as text: for the terminal and, through report_text.ts, for BENCHMARKS.md. */

import type { Results } from "./results.ts";
import type { Estimate } from "./statistics.ts";
import { type Group, groupsOf, type Summary } from "./summary.ts";

/** Three significant digits, with a unit that fits: `4.56 µs`, `12.3 ms`. */
export function formatTime(microseconds: number): string {
  if (!Number.isFinite(microseconds)) return "–";
  const [value, unit] = microseconds >= 1e6
    ? [microseconds / 1e6, "s"]
    : microseconds >= 1e3
    ? [microseconds / 1e3, "ms"]
    : [microseconds, "µs"];
  return `${significant(value)} ${unit}`;
}

/** Three significant digits, without an exponent. */
export function significant(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const digits = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.max(0, 2 - digits));
}

/** `4.56 kB`. */
export function formatBytes(bytes: number): string {
  if (bytes >= 1e6) return `${significant(bytes / 1e6)} MB`;
  return bytes >= 1e3 ? `${significant(bytes / 1e3)} kB` : `${Math.round(bytes)} B`;
}

/** Thousands separated by commas. */
export function formatCount(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

/** `1.23 [1.20, 1.26]`. */
export function formatEstimate(estimate: Estimate | undefined): string {
  if (estimate === undefined) return "–";
  const [value, low, high] = [estimate.value, estimate.low, estimate.high].map(significant);
  return `${value} [${low}, ${high}]`;
}

/** Columns aligned by spaces; the first to the left, the others to the right. */
export function alignColumns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, i) => widths[i] = Math.max(widths[i] ?? 0, cell.length));
  return rows.map((row) =>
    row.map((cell, i) => i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)).join("  ").trimEnd()
  ).join("\n");
}

/** One block for each scenario and runtime. */
export function terminalTable(results: Results): string {
  return groupsOf(results).map(groupTable).join("\n\n");
}

function groupTable(group: Group): string {
  const head = [`${group.scenario}${group.point ? ` (${group.point})` : ""}, ${group.runtime}`];
  const rows = [[...head, "CPU/op", "wall p50", "p99", "CPU vs ours", "wall vs ours", "CPU vs floor"]];
  for (const summary of group.summaries) rows.push(summaryRow(summary));
  const lines = [alignColumns(rows)];
  for (const { driver, status, reason } of group.missing) {
    lines.push(`  ${driver}: ${status}${reason && reason !== status ? `: ${reason}` : ""}`);
  }
  return lines.join("\n");
}

function summaryRow(summary: Summary): string[] {
  return [
    `  ${summary.measurement.driver}`,
    formatTime(summary.cpu),
    formatTime(summary.p50),
    formatTime(summary.p99),
    formatEstimate(summary.cpuOverOurs),
    formatEstimate(summary.wallOverOurs),
    formatEstimate(summary.cpuOverFloor),
  ];
}
