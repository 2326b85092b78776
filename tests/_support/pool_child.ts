/**
 * Uses a pool and prints "done": whether this process then ends by itself is what the tests of pools ask.
 * Argument: what to do, a key of SCENARIOS.
 */

import process from "node:process";
import { createPool, type Pool } from "../../mod.ts";
import { pidOf, terminate } from "./pools.ts";
import { testUrl } from "./server.ts";

type Options = NonNullable<Parameters<typeof createPool>[1]>;

async function everything(pool: Pool): Promise<void> {
  await Promise.all(Array.from({ length: 20 }, () => pool.query("select 1")));
  await pool.transaction(async (tx) => {
    await tx.query("select 1");
    await tx.transaction((nested) => nested.query("select 2"));
  });
  for await (const _ of pool.sql`select generate_series(1, 1000)`) break;
  await pool.sql`select pg_sleep(5)`.with({ timeout: 50 }).result().catch(() => {});
  await pool.sql`select pg_sleep(5)`.with({ signal: AbortSignal.timeout(50) }).result().catch(() => {});
  const own = await pool.acquire();
  await own.exec("set work_mem = '1MB'");
  await own.close();
}

const SCENARIOS: Readonly<Record<string, readonly [Options, (pool: Pool) => Promise<unknown>]>> = {
  "close after everything": [{ queryTimeout: 60_000 }, async (pool) => {
    await everything(pool);
    await pool.close();
  }],
  "close without use": [{}, (pool) => pool.close()],
  "close twice, with a query": [{}, async (pool) => {
    const query = pool.query("select pg_sleep(0.2)");
    await Promise.all([pool.close(), pool.close(), query]);
  }],
  "close after listening": [{}, async (pool) => {
    const stream = pool.listen("somewhere");
    await stream.listening;
    await pool.close();
  }],
  "close while nothing can be reached": [{ host: "127.0.0.1", port: 1 }, async (pool) => {
    const failing = pool.query("select 1").catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 50));
    await pool.close({ timeout: 50 });
    await failing;
  }],
  "idle after everything": [{ allowExitOnIdle: true, max: 2 }, everything],
  "idle with queryTimeout": [{ allowExitOnIdle: true, queryTimeout: 60_000 }, everything],
  "idle after many have waited": [
    { allowExitOnIdle: true, max: 1, acquireTimeout: 60_000 },
    (pool) => Promise.all(Array.from({ length: 10 }, () => pool.transaction((tx) => tx.query("select 1")))),
  ],
  "idle after one who waited has left": [
    { allowExitOnIdle: true, max: 1, acquireTimeout: 60_000 },
    async (pool) => {
      const own = await pool.acquire();
      await pool.acquire({ signal: AbortSignal.timeout(20) }).catch(() => {});
      await own.close();
    },
  ],
  "idle with a query under way": [{ allowExitOnIdle: true }, async (pool) => {
    await pool.query("select 1");
    const { rows } = await pool.query("select pg_sleep(0.5), 'answered' as answer");
    console.log(rows[0]!["answer"]);
  }],
  "idle with minIdle": [{ allowExitOnIdle: true, minIdle: 3 }, (pool) => pool.query("select 1")],
  "idle, killed": [{ allowExitOnIdle: true }, async (pool) => {
    await terminate([await pidOf(pool)]);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }],
  "open and idle": [{}, (pool) => pool.query("select 1")],
};

const [options, work] = SCENARIOS[process.argv[2]!]!;
const { host, port, ...rest } = options;
const pool = host === undefined
  ? createPool(testUrl(), rest)
  : createPool({ host, port, user: "x", database: "x", ...rest });
await work(pool);
console.log("done");
