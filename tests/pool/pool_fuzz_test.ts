/** Random operations on the pool's state; the model checks its invariants after each of them. */

import { test } from "node:test";
import assert from "node:assert/strict";
import process from "node:process";
import { seededRandom } from "../_support/proxy.ts";
import { createPoolModel, type PoolModel } from "./pool_model.ts";

const SEED = Number(process.env["PIPEGRES_TEST_SEED"] ?? Date.now() % 1_000_000);
const ROUNDS = 60;
const STEPS = 400;

type Random = () => number;

function pick<T>(items: readonly T[], random: Random): T | undefined {
  return items[Math.floor(random() * items.length)];
}

/** One random step; what it did, for the message of a failure. */
function step(pool: PoolModel, random: Random, number: number, opens: boolean): string {
  const { state } = pool;
  const name = `w${number}`;
  const held = pick(pool.held(), random);
  const waiting = pick(pool.waiting(), random);
  const dice = random();
  if (dice < 0.25) return `share ${name}: ${pool.share(name, { last: random() < 0.15 })}`;
  if (dice < 0.4) return `own ${name}: ${pool.own(name)}`;
  if (dice < 0.7 && held !== undefined) return pool.finish(held), `finish ${held}`;
  if (dice < 0.74 && waiting !== undefined) return `leave ${waiting}: ${pool.leave(waiting)}`;
  if (dice < 0.77 && held !== undefined && !pool.entryOf(held).gone) {
    return pool.loseConnectionOf(held), `lose the connection of ${held}`;
  }
  if (dice < 0.78 && state.idle > 0) return pool.loseIdle(), "lose an idle connection";
  if (dice < 0.8 && held !== undefined) return state.retire(pool.entryOf(held)), `retire that of ${held}`;
  if (dice < 0.83) return `overdue: ${pool.overdue(40)}`;
  if (dice < 0.86) return `expire ${pool.expire()}`;
  if (dice < 0.9) return pool.openWanted(), "open what is wanted";
  if (state.opening > 0 && opens) {
    if (random() < 0.75) return pool.openOne(), "opened";
    return pool.failOne(), "failed to open";
  }
  pool.now += Math.floor(random() * 15);
  return `now ${pool.now}`;
}

/** Everything ends well: what is open works off all that waits. */
function drain(pool: PoolModel): void {
  for (let i = 0; pool.waiting().length + pool.held().length > 0; i++) {
    assert.ok(i < 10_000, "somebody waits for ever");
    const held = pool.held()[0];
    if (held !== undefined) pool.finish(held);
    pool.expire();
    pool.now = Math.max(pool.now, pool.state.nextDeadline() ?? 0);
    pool.openWanted();
    if (pool.state.opening > 0) pool.openOne();
  }
  for (let i = 0; i < 1_000 && pool.state.opening > 0; i++) pool.openOne();
  assert.equal(pool.state.waiting, 0);
  assert.equal(pool.state.opening, 0);
}

test("random operations keep the invariants", () => {
  console.log(`PIPEGRES_TEST_SEED=${SEED}`);
  for (let round = 0; round < ROUNDS; round++) {
    const random = seededRandom(SEED + round);
    const pool = createPoolModel({
      max: 1 + Math.floor(random() * 4),
      minIdle: Math.floor(random() * 3),
      idleTimeout: random() < 0.5 ? 30 : 0,
      maxLifetime: random() < 0.5 ? 100 : 0,
    });
    const done: string[] = [];
    try {
      const opens = random() < 0.9;
      for (let i = 0; i < STEPS; i++) {
        pool.jitter = random();
        done.push(step(pool, random, i, opens));
      }
      done.push("drain");
      drain(pool);
    } catch (error) {
      (error as Error).message += `\nseed ${SEED}, round ${round}, after: ${done.slice(-12).join("; ")}`;
      throw error;
    }
  }
});
