/**
 * COPY of a million rows beside `psql \copy` of the same rows, on the same server in the same run.
 *
 * deno task bench:psql [--runtimes deno,bun,node] [--rounds n]    5 rounds unless told
 *
 * Needs `psql` on the PATH (Debian's postgresql-client).
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findRuntime, RUNTIME_NAMES } from "../scripts/runtimes.ts";
import type { Target } from "./harness/driver.ts";
import { childEnvironment, installPackages, prepareServer } from "./harness/surroundings.ts";
import { median } from "./harness/statistics.ts";
import { alignColumns, formatTime, significant } from "./harness/tables.ts";
import type { CopyTimes } from "./psql/child.ts";
import { rowsAsText } from "./psql/rows.ts";

const CHILD = fileURLToPath(new URL("psql/child.ts", import.meta.url));

function option(name: string): string | undefined {
  const at = Deno.args.indexOf(name);
  return at < 0 ? undefined : Deno.args[at + 1];
}

function urlOf({ host, port, user, password, database }: Target): string {
  const [name, secret, base] = [user, password, database].map(encodeURIComponent);
  return `postgres://${name}:${secret}@${host}:${port}/${base}`;
}

async function findPsql(): Promise<string | undefined> {
  for (const folder of (Deno.env.get("PATH") ?? "").split(":")) {
    const path = join(folder, "psql");
    if (await Deno.stat(path).then(({ isFile }) => isFile, () => false)) return path;
  }
  return undefined;
}

const psql = await findPsql();
if (psql === undefined) {
  console.error("There is no psql on the PATH: apt-get install postgresql-client");
  Deno.exit(2);
}
const wanted = option("--runtimes")?.split(",");
const names = RUNTIME_NAMES.filter((name) => wanted === undefined || wanted.includes(name));
const environment = childEnvironment(await installPackages());
await using server = await prepareServer();
const folder = await Deno.makeTempDir({ prefix: "pipegres-psql-" });
try {
  const file = join(folder, "rows");
  await Deno.writeTextFile(file, rowsAsText());
  const table = [["", "psql \\copy from", "copyRows", "ratio", "psql \\copy to", "copyTo", "ratio"]];
  for (const name of names) {
    const runtime = await findRuntime(name);
    const { success, stdout } = await new Deno.Command(runtime.path, {
      args: [
        ...(name === "deno" ? ["run", "-A", "--no-check"] : []),
        CHILD,
        urlOf(server.target),
        psql,
        file,
        option("--rounds") ?? "5",
      ],
      clearEnv: true,
      env: environment,
      stdin: "null",
      stderr: "inherit",
    }).output();
    if (!success) throw new Error(`The program failed on ${name}`);
    const times = JSON.parse(new TextDecoder().decode(stdout)) as CopyTimes;
    const [psqlIn, copyRows, psqlOut, copyTo] = [times.psqlIn, times.copyRows, times.psqlOut, times.copyTo]
      .map(median) as [number, number, number, number];
    const cells = [psqlIn, copyRows, copyRows / psqlIn, psqlOut, copyTo, copyTo / psqlOut];
    table.push([
      `${name} ${runtime.version}`,
      ...cells.map((cell, i) => i % 3 === 2 ? significant(cell) : formatTime(cell * 1_000)),
    ]);
  }
  console.log(
    `Medians of the wall time for 1,000,000 rows; below 1 psql needs longer\n\n${alignColumns(table)}`,
  );
} finally {
  await Deno.remove(folder, { recursive: true });
}
