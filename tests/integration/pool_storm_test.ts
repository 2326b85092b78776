/**
 * 500 tasks at once on a pool of 8 do everything a pool can do, while a backend is killed every 50 ms.
 *
 * PIPEGRES_STORM_OPERATIONS sets how many operations; the default takes about half a minute on a small machine.
 * PIPEGRES_TEST_SEED repeats the choice of operations (not the timing).
 */

import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { ConnectionError, createPool, type Pool, TimeoutError, type Transaction } from "../../mod.ts";
import { counts } from "../_support/pools.ts";
import { seededRandom } from "../_support/proxy.ts";
import { leavesNoSession, limit, testTarget, testUrl, uniqueName, until } from "../_support/server.ts";
import { SimpleClient } from "../_support/simple_client.ts";

const OPERATIONS = Number(process.env["PIPEGRES_STORM_OPERATIONS"] ?? 12_000);
const SEED = Number(process.env["PIPEGRES_TEST_SEED"] ?? Date.now() % 1_000_000);
const TASKS = 500;
const MAX = 8;
const KILL_EVERY = 50;
const WITHIN = Math.max(160_000, OPERATIONS * 20);

/** The transaction a query runs in, if any has written there. */
const XID = "pg_current_xact_id_if_assigned()::text as xid";

/** What one operation did, besides succeeding. */
type Outcome = "done" | "lost" | "given up" | "rolled back";

class Storm {
  readonly outcomes: Map<string, number> = new Map();
  /** Numbers of transactions that were acknowledged, and of those that were refused with certainty. */
  readonly committed: number[] = [];
  readonly rolledBack: number[] = [];
  readonly signal: AbortSignal = new AbortController().signal;
  /** Listeners on the signal that is never aborted. */
  listeners: number = 0;
  readonly #pool: Pool;
  readonly #table: string;
  readonly #random: () => number;
  #next: number = 0;

  constructor(pool: Pool, table: string) {
    this.#pool = pool;
    this.#table = table;
    this.#random = seededRandom(SEED);
    const { addEventListener, removeEventListener } = this.signal;
    Object.assign(this.signal, {
      addEventListener: (...args: Parameters<typeof addEventListener>) => {
        this.listeners++;
        addEventListener.apply(this.signal, args);
      },
      removeEventListener: (...args: Parameters<typeof removeEventListener>) => {
        this.listeners--;
        removeEventListener.apply(this.signal, args);
      },
    });
  }

  /** One task: takes the next operation until there are no more. */
  async run(): Promise<void> {
    while (this.#next < OPERATIONS) {
      const nonce = this.#next++;
      const [name, work] = this.#pick(nonce);
      const outcome = await limit(work(), 120_000, `operation ${nonce}: ${name}`).catch((error) =>
        this.#excuse(name, error)
      );
      const key = `${name}: ${outcome}`;
      this.outcomes.set(key, (this.outcomes.get(key) ?? 0) + 1);
    }
  }

  #pick(nonce: number): readonly [string, () => Promise<Outcome>] {
    const dice = this.#random();
    // From while it waits in line to behind its end.
    const delay = 1 + this.#random() ** 2 * 600;
    if (dice < 0.5) return ["plain", () => this.#plain(nonce)];
    if (dice < 0.55) return ["plain with a signal", () => this.#plain(nonce, { signal: this.signal })];
    if (dice < 0.58) return ["script", () => this.#script(nonce)];
    if (dice < 0.63) return ["batch", () => this.#batch(nonce)];
    if (dice < 0.8) return ["transaction", () => this.#transaction(nonce, this.#random() < 0.2)];
    if (dice < 0.86) return ["cursor", () => this.#cursor(nonce, this.#random() < 0.3)];
    if (dice < 0.92) return ["abort", () => this.#abort(nonce, delay)];
    if (dice < 0.98) return ["timeout", () => this.#timeout(nonce, delay)];
    if (dice < 0.995) return ["session", () => this.#session(nonce)];
    return ["kill", () => this.#kill()];
  }

  /** Which failures there may be: the connection was killed. Everything else is a fault. */
  #excuse(name: string, error: unknown): Outcome {
    if (error instanceof ConnectionError && error.code === "CONNECTION_LOST") return "lost";
    (error as Error).message = `${name}: ${(error as Error).message}`;
    throw error;
  }

  async #plain(nonce: number, options?: { signal: AbortSignal }): Promise<Outcome> {
    const { rows } = await this.#pool.query(`select $1::int4 as nonce, ${XID}`, [nonce], options);
    assert.deepEqual(rows, [{ nonce, xid: null }]);
    return "done";
  }

  async #script(nonce: number): Promise<Outcome> {
    const results = await this.#pool.exec(
      `set work_mem = '1MB'; select ${nonce} as nonce, ${XID}; select 2 as b`,
    );
    assert.deepEqual(results.map(({ rows }) => rows), [[], [{ nonce, xid: null }], [{ b: 2 }]]);
    return "done";
  }

  async #batch(nonce: number): Promise<Outcome> {
    const { sql } = this.#pool;
    const results = await this.#pool.batch([0, 1, 2].map((n) => sql`select ${nonce + n}::int4 as nonce`));
    assert.deepEqual(results.map(({ rows }) => rows), [0, 1, 2].map((n) => [{ nonce: nonce + n }]));
    return "done";
  }

  async #transaction(nonce: number, fails: boolean): Promise<Outcome> {
    const reason = new Error("rolled back on purpose");
    const body = async (tx: Transaction) => {
      const { rows: [own] } = await tx.query("select $1::int4 as nonce, pg_current_xact_id()::text as xid", [
        nonce,
      ]);
      assert.equal(own!["nonce"], nonce);
      const inside = await Promise.all([1, 2].map((n) => tx.query(`select $1::int4 as n, ${XID}`, [n])));
      assert.deepEqual(inside.map(({ rows }) => rows[0]), [1, 2].map((n) => ({ n, xid: own!["xid"] })));
      await tx.query(`insert into ${this.#table} values ($1)`, [nonce]);
      if (fails) throw reason;
    };
    try {
      await this.#pool.transaction(body);
    } catch (error) {
      if (error !== reason && (error as ConnectionError).sent !== false) throw error;
      this.rolledBack.push(nonce);
      if (error !== reason) throw error;
      return "rolled back";
    }
    this.committed.push(nonce);
    return "done";
  }

  async #cursor(nonce: number, leaves: boolean): Promise<Outcome> {
    let n = 0;
    const query = this.#pool.sql<{ nonce: number; n: number }>`
      select ${nonce}::int4 as nonce, n from generate_series(1, 60) n`;
    for await (const row of query.stream({ batch: 20 })) {
      assert.deepEqual(row, { nonce, n: ++n });
      if (leaves && n === 30) return "done";
    }
    assert.equal(n, 60);
    return "done";
  }

  async #abort(nonce: number, delay: number): Promise<Outcome> {
    const controller = new AbortController();
    const reason = new Error("given up on purpose");
    const timer = setTimeout(() => controller.abort(reason), delay);
    try {
      const { rows } = await this.#pool.sql`select ${nonce}::int4 as nonce, pg_sleep(0.01)`
        .with({ signal: controller.signal }).result();
      assert.equal(rows[0]!["nonce" as never], nonce);
      return "done";
    } catch (error) {
      if (error !== reason) throw error;
      return "given up";
    } finally {
      clearTimeout(timer);
    }
  }

  async #timeout(nonce: number, timeout: number): Promise<Outcome> {
    try {
      const { rows } = await this.#pool.sql`select ${nonce}::int4 as nonce, pg_sleep(0.01)`.with({ timeout })
        .result();
      assert.equal(rows[0]!["nonce" as never], nonce);
      return "done";
    } catch (error) {
      if (!(error instanceof TimeoutError)) throw error;
      return "given up";
    }
  }

  async #session(nonce: number): Promise<Outcome> {
    await using own = await this.#pool.acquire({ signal: this.signal });
    const name = `storm.owner`;
    const { rows: [before] } = await own.query("select current_setting($1, true) as owner", [name]);
    assert.ok(!before!["owner"], "somebody's setting was left behind");
    await own.query("select set_config($1, $2, false)", [name, String(nonce)]);
    const { rows: [after] } = await own.query("select current_setting($1) as owner", [name]);
    assert.equal(after!["owner"], String(nonce));
    if (nonce % 3 === 0) await own.query("begin");
    return "done";
  }

  async #kill(): Promise<Outcome> {
    await this.#pool.query("select pg_terminate_backend(pg_backend_pid())");
    return "done";
  }
}

test(`${OPERATIONS} operations from ${TASKS} tasks while backends are killed`, async () => {
  console.log(`PIPEGRES_TEST_SEED=${SEED}`);
  const admin = await SimpleClient.connect(testTarget());
  const table = uniqueName("storm");
  await admin.query(`create unlogged table ${table} (nonce int)`);
  const pool = createPool(testUrl(), { max: MAX, acquireTimeout: 120_000 });
  const application = new URL(testUrl()).searchParams.get("application_name");
  const storm = new Storm(pool, table);
  let kills = 0;
  let most = 0;
  let running = true;
  const killer = (async () => {
    while (running) {
      const killed = await admin.query(`select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = '${application}' order by random() limit 1`);
      kills += killed.length;
      most = Math.max(most, pool.stats().total);
      await new Promise((resolve) => setTimeout(resolve, KILL_EVERY));
    }
  })();
  const began = performance.now();
  try {
    await limit(Promise.all(Array.from({ length: TASKS }, () => storm.run())), WITHIN, "the storm");
    const took = performance.now() - began;
    running = false;
    await killer;
    console.log(
      `${OPERATIONS} operations in ${Math.round(took)} ms, ${kills} kills: ${
        [...storm.outcomes].sort().map(([key, count]) => `${key} ${count}`).join(", ")
      }`,
    );
    assert.ok(kills > took / KILL_EVERY / 4, `only ${kills} kills`);
    assert.ok(most <= MAX);
    await until(() => pool.stats().busy + pool.stats().opening === 0, 10_000, "the end of all work");
    const { waiting, total, idle } = pool.stats();
    assert.equal(waiting, 0);
    assert.ok(total === idle && total <= MAX);
    assert.equal(storm.listeners, 0, "listeners are left on a signal");
    const stored = (await admin.query(`select nonce from ${table}`)).map(([nonce]) => Number(nonce));
    assert.equal(new Set(stored).size, stored.length, "a transaction ran twice");
    const there = new Set(stored);
    assert.deepEqual(
      storm.committed.filter((nonce) => !there.has(nonce)),
      [],
      "an acknowledged write is lost",
    );
    assert.deepEqual(storm.rolledBack.filter((nonce) => there.has(nonce)), [], "a refused write is there");
    assert.equal((await pool.query("select 1 as a")).rows[0]!["a"], 1);
  } finally {
    running = false;
    await limit(pool.close({ timeout: 1_000 }), 10_000, "close");
    assert.deepEqual(counts(pool), { total: 0, idle: 0, busy: 0, opening: 0, waiting: 0 });
    await admin.query(`drop table ${table}`);
    await admin.close();
  }
});

leavesNoSession();
