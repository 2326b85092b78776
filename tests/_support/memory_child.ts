/**
 * A program of its own that reads many rows and says what memory that took: a test runner keeps things of its own.
 *
 * memory_child.ts <what is read> <rows>
 */

import process from "node:process";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { connect, type Connection } from "../../mod.ts";

/** What the program prints, as JSON; all in bytes. */
export interface MemoryReport {
  /** How much higher resident memory was than before; for a slow consumer, than with a fast one. */
  readonly grown: number;
  /** The most that was really in use, with all garbage collected, while the first rows were consumed. */
  readonly held: number;
}

const WAYS: Readonly<Record<string, (conn: Connection, rows: number) => AsyncIterable<unknown>>> = {
  "rows": (conn, rows) => conn.sql`select repeat('x', 100) as pad, i from generate_series(1, ${rows}::int) i`,
  "stream": (conn, rows) =>
    conn.sql`select repeat('x', 1000) as pad, i from generate_series(1, ${rows}::int) i`.stream(),
  "COPY TO": (conn, rows) =>
    conn.copyTo(`copy (select repeat('x', 1000) as pad, generate_series(1, ${rows}) i) to stdout`).rows(),
};
/** Rows that are consumed slowly, and the milliseconds that each of them takes. */
const SLOW_ROWS = 100;
const PAUSE = 1;

const collect: () => void = garbageCollector();

/** Node.js and Deno show the collector to those that ask V8 for it. */
function garbageCollector(): () => void {
  const bun = (globalThis as { Bun?: { gc(now: boolean): void } }).Bun;
  if (bun !== undefined) return () => bun.gc(true);
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}

function inUse(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** @returns the highest resident memory while `rows` were read, and the most of {@linkcode inUse} above `used` */
async function read(rows: AsyncIterable<unknown>, used?: number): Promise<{ peak: number; held: number }> {
  let [count, peak, held] = [0, 0, 0];
  for await (const _ of rows) {
    if (used !== undefined && count < SLOW_ROWS) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
      if (count % 25 === 24) held = Math.max(held, inUse() - used);
    }
    if (++count % 5_000 === 0) peak = Math.max(peak, process.memoryUsage().rss);
  }
  if (count !== ROWS) throw new Error(`${count} rows came, not ${ROWS}`);
  return { peak, held };
}

const [way = "", asked = ""] = process.argv.slice(2);
const ROWS = Number(asked);
const conn = await connect(process.env["PIPEGRES_TEST_URL"]!);
const open = () => WAYS[way]!(conn, ROWS);
let before = process.memoryUsage().rss;
let { peak, held } = { peak: 0, held: 0 };
if (way === "rows") ({ peak } = await read(open()));
else {
  // What a fast consumer needs is the measure: V8 lets its young generation grow step by step, slow or not.
  for (let i = 0; i < 2; i++) before = Math.max(before, (await read(open())).peak);
  ({ peak, held } = await read(open(), inUse()));
}
console.log(JSON.stringify({ grown: peak - before, held } satisfies MemoryReport));
await conn.close();
