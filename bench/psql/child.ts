/**
 * One program that copies the same rows as psql does, in turns with it.
 *
 * child.ts <url> <path of psql> <file of rows> <rounds>
 */

import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import process from "node:process";
import { connect } from "../../mod.ts";
import { ROW_COUNT, rowAt } from "./rows.ts";

/** Milliseconds of each round, for each way. */
export type CopyTimes = Readonly<Record<(typeof WAYS)[number], number[]>>;

const WAYS = ["psqlIn", "copyRows", "psqlOut", "copyTo"] as const;

const [url = "", psqlPath = "", file = "", rounds = ""] = process.argv.slice(2);
const received = `${file}.out`;

/** What `psql` costs as a user starts it: its own start and connecting are some 20 ms of it. */
function psql(command: string): void {
  const { status, stderr, error } = spawnSync(
    psqlPath,
    ["--no-psqlrc", "--quiet", "--command", command, url],
    {
      encoding: "utf8",
    },
  );
  if (error) throw error;
  if (status !== 0) throw new Error(stderr);
}

await using conn = await connect(url);
await conn.exec("create unlogged table pipegres_bench.psql (a int4, b text, c timestamptz)");
const rows = Array.from({ length: ROW_COUNT }, (_, i) => rowAt(i));
const table = ["pipegres_bench", "psql"];
const isComplete =
  `having count(*) = ${ROW_COUNT} and min(b) = 'row number 0' and count(distinct c) = ${ROW_COUNT}`;

const work: Readonly<Record<(typeof WAYS)[number], () => void | Promise<void>>> = {
  psqlIn: () => psql(`\\copy pipegres_bench.psql from '${file}'`),
  copyRows: async () => void await conn.copyRows(table, ["a", "b", "c"], rows),
  psqlOut: () => psql(`\\copy pipegres_bench.psql to '${received}'`),
  async copyTo() {
    let bytes = 0;
    for await (const chunk of conn.copyTo("copy pipegres_bench.psql to stdout")) bytes += chunk.length;
    if (bytes < ROW_COUNT * 40) throw new Error(`only ${bytes} bytes came`);
  },
};
const times: Record<(typeof WAYS)[number], number[]> = { psqlIn: [], copyRows: [], psqlOut: [], copyTo: [] };
for (let round = 0; round <= Number(rounds); round++) {
  for (const way of WAYS) {
    const fills = way === "psqlIn" || way === "copyRows";
    if (fills) await conn.exec("truncate pipegres_bench.psql");
    const began = performance.now();
    await work[way]();
    // The first round warms up.
    if (round > 0) times[way].push(performance.now() - began);
    if (fills && (await conn.query(`select 1 from pipegres_bench.psql ${isComplete}`)).rows.length !== 1) {
      throw new Error(`${way} did not store the rows`);
    }
  }
}
await conn.exec("drop table pipegres_bench.psql");
rmSync(received, { force: true });
console.log(JSON.stringify(times));
