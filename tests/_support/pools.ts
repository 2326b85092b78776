/** Pools for one test each. */

import assert from "node:assert/strict";
import { createPool, type Pool } from "../../mod.ts";
import { ask, limit, testUrl } from "./server.ts";

/** Options that {@linkcode createPool} takes. */
export type PoolTestOptions = NonNullable<Parameters<typeof createPool>[1]> & {
  /** Connection URI. Default: that of the test server. */
  readonly url?: string;
  /** Milliseconds that the test may take. Default 30_000. */
  readonly within?: number;
};

/** Runs `body` with a pool that is closed afterwards, in bounded time. */
export async function withPool<T>(
  body: (pool: Pool) => Promise<T>,
  { url = testUrl(), within = 30_000, ...options }: PoolTestOptions = {},
): Promise<T> {
  const pool = createPool(url, options);
  try {
    return await limit(body(pool), within, "the test's body");
  } finally {
    await limit(pool.close({ timeout: 0 }), 5_000, "close");
    const { total, waiting } = pool.stats();
    assert.deepEqual({ total, waiting }, { total: 0, waiting: 0 });
  }
}

/** Process ID of the backend that runs a query of the pool. */
export async function pidOf(pool: Pick<Pool, "query">): Promise<number> {
  const { rows } = await pool.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]!.pid;
}

/** Ends backends. */
export async function terminate(pids: readonly number[]): Promise<void> {
  if (pids.length > 0) await ask(`select pg_terminate_backend(pid) from unnest('{${pids}}'::int[]) pid`);
}

/** The pool's numbers without the waiting time. */
export function counts(
  pool: Pool,
): { total: number; idle: number; busy: number; opening: number; waiting: number } {
  const { waitTime: _, ...rest } = pool.stats();
  return rest;
}
