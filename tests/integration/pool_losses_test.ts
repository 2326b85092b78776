/** Connections that die: idle, under work, inside a transaction. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionError, type Pool } from "../../mod.ts";
import { counts, pidOf, terminate, withPool } from "../_support/pools.ts";
import { startProxy } from "../_support/proxy.ts";
import { ask, leavesNoSession, limit, testTarget, testUrl, uniqueName, until } from "../_support/server.ts";
import { type Failure, rejectionOf, sleep } from "../_support/session.ts";

/** Opens that many connections; their process IDs. */
async function warm(pool: Pool, count: number): Promise<number[]> {
  const owned = await Promise.all(Array.from({ length: count }, () => pool.acquire()));
  for (const each of owned) await each.close();
  return owned.map((each) => each.processId!);
}

/** Starts a proxy to the test server; the URI that goes through it. */
async function proxied(): Promise<{ proxy: Awaited<ReturnType<typeof startProxy>>; url: string }> {
  const proxy = await startProxy({ target: testTarget() });
  const url = new URL(testUrl());
  url.host = `${proxy.host}:${proxy.port}`;
  return { proxy, url: url.href };
}

const IDLE = { busy: 0, opening: 0, waiting: 0 };

test("idle connections that the server ends are dropped when they die, without an event or an error", async () => {
  await withPool(async (pool) => {
    const pids = await warm(pool, 3);
    assert.equal(pool.stats().total, 3);
    await terminate(pids);
    await until(() => pool.stats().total === 0, 2_000, "the end of all three");
    const fresh = await pidOf(pool);
    assert.ok(!pids.includes(fresh));
    assert.deepEqual(counts(pool), { total: 1, idle: 1, ...IDLE });
  }, { max: 3 });
});

for (const how of ["end", "reset"] as const) {
  test(`a network that closes idle connections by ${how} costs at most the queries of the same moment`, async () => {
    const { proxy, url } = await proxied();
    try {
      await withPool(async (pool) => {
        for (let round = 0; round < 5; round++) {
          await warm(pool, 3);
          proxy.cut({ direction: "backend", after: 0, how });
          proxy.cut(undefined);
          const racing = await Promise.allSettled(
            Array.from({ length: 10 }, () => pool.query("select 1 as a")),
          );
          for (const outcome of racing) {
            if (outcome.status === "fulfilled") assert.deepEqual(outcome.value.rows, [{ a: 1 }]);
            else assert.ok(outcome.reason instanceof ConnectionError, String(outcome.reason));
          }
          const later = await Promise.all(Array.from({ length: 10 }, () => pool.query("select 1 as a")));
          assert.equal(later.length, 10);
        }
      }, { max: 3, url });
    } finally {
      await limit(proxy.close());
    }
  });
}

test("after idle connections have died and a turn has passed, no query at all fails", async () => {
  await withPool(async (pool) => {
    for (let round = 0; round < 10; round++) {
      await terminate(await warm(pool, 3));
      await until(() => pool.stats().total === 0, 2_000);
      await Promise.all(
        Array.from(
          { length: 20 },
          (_, i) => i % 2 ? pool.query("select 1") : pool.transaction((tx) => tx.query("select 1")),
        ),
      );
    }
  }, { max: 3 });
});

test("what was never sent moves to another connection; what may have been sent rejects with sent: unknown", async () => {
  await withPool(async (pool) => {
    const table = uniqueName("moved");
    await pool.exec(`create table ${table} (i int)`);
    const pid = await pidOf(pool);
    // One is in flight, three may be behind it, the rest waits in the connection's queue.
    const works = Array.from(
      { length: 20 },
      (_, i) =>
        pool.query(`with _ as (insert into ${table} values ($1)) select pg_sleep($2), $1::int4 as i`, [
          i,
          i ? 0 : 5,
        ]),
    );
    const settled = Promise.allSettled(works);
    await sleep(100);
    await terminate([pid]);
    const outcomes = await limit(settled, 10_000);
    const failed = outcomes.flatMap((outcome, i) =>
      outcome.status === "rejected" ? [[i, outcome.reason]] as const : []
    );
    assert.deepEqual(failed.map(([i]) => i), [0, 1, 2, 3]);
    for (const [, error] of failed) {
      assert.ok(error instanceof ConnectionError);
      assert.equal(error.sent, "unknown");
      assert.equal((error.cause as Failure).code, "57P01");
    }
    const stored = (await pool.query<{ i: number }>(`select i from ${table} order by i`)).rows.map(({ i }) =>
      i
    );
    assert.deepEqual(stored, Array.from({ length: 16 }, (_, i) => i + 4), "each once");
    await pool.exec(`drop table ${table}`);
  }, { max: 1, pipeline: { maxQueries: 4 } });
});

test("a batch that was never sent moves as a whole, one in flight rejects as a whole", async () => {
  await withPool(async (pool) => {
    const { sql } = pool;
    const pid = await pidOf(pool);
    const sent = rejectionOf(pool.batch([sql`select pg_sleep(5)`, sql`select 2`]));
    const waiting = pool.batch([sql`select 3 as a`, sql`select 4 as a`]);
    await sleep(50);
    await terminate([pid]);
    assert.equal((await sent).sent, "unknown");
    assert.deepEqual((await limit(waiting)).map(({ rows }) => rows), [[{ a: 3 }], [{ a: 4 }]]);
  }, { max: 1, pipeline: { maxQueries: 1 } });
});

test("a query that moved keeps its time limit and its signal", async () => {
  await withPool(async (pool) => {
    const pid = await pidOf(pool);
    const first = rejectionOf(pool.query("select pg_sleep(5)"));
    const controller = new AbortController();
    const late = rejectionOf(pool.sql`select pg_sleep(5)`.with({ timeout: 400 }).result());
    await sleep(50);
    await terminate([pid]);
    await first;
    assert.equal((await late).name, "TimeoutError");
    const running = rejectionOf(pool.sql`select pg_sleep(5)`.with({ signal: controller.signal }).result());
    await sleep(50);
    controller.abort(new Error("enough"));
    assert.equal((await running).message, "enough");
    assert.ok(await limit(pidOf(pool), 2_000));
  }, { max: 1, pipeline: { maxQueries: 1 } });
});

test("a transaction is bound to one connection: after its loss every call rejects, nothing runs elsewhere", async () => {
  const table = uniqueName("bound");
  await ask(`create table ${table} (a int)`);
  await withPool(async (pool) => {
    for (const end of ["callback", "commit", "rollback"] as const) {
      let second: Failure | undefined;
      const body = async () => {
        const tx = await pool.begin();
        await tx.query(`insert into ${table} values (1)`);
        await terminate([await pidOf(tx)]);
        // The pool goes on meanwhile, on a new connection.
        const others = Array.from({ length: 5 }, () => pool.query(`select count(*)::int as n from ${table}`));
        second = await rejectionOf(tx.query(`insert into ${table} values (2)`));
        for (const { rows } of await Promise.all(others)) assert.deepEqual(rows, [{ n: 0 }]);
        await rejectionOf(tx.query("select 1"));
        if (end === "commit") await tx.commit();
        else if (end === "rollback") await tx.rollback();
        else throw second;
      };
      const error = await rejectionOf(body());
      for (const each of [error, second!]) assert.ok(each instanceof ConnectionError, String(each));
      assert.deepEqual((await pool.query(`select a from ${table}`)).rows, []);
    }
  }, { max: 2 });
  await ask(`drop table ${table}`);
});

test("two transactions on a pool of one, the first loses its connection: the second is whole", async () => {
  const table = uniqueName("second");
  await ask(`create table ${table} (a int)`);
  await withPool(async (pool) => {
    const first = pool.transaction(async (tx) => {
      await tx.query(`insert into ${table} values (1)`);
      await terminate([await pidOf(tx)]);
      await tx.query(`insert into ${table} values (2)`);
    });
    const second = pool.transaction(async (tx) => {
      for (const a of [3, 4]) await tx.query(`insert into ${table} values ($1)`, [a]);
    });
    assert.ok(await rejectionOf(first) instanceof ConnectionError);
    await limit(second);
    assert.deepEqual((await pool.query(`select a from ${table} order by a`)).rows, [{ a: 3 }, { a: 4 }]);
  }, { max: 1 });
  await ask(`drop table ${table}`);
});

test("idle_in_transaction_session_timeout: what follows rejects, the pool goes on", async () => {
  await withPool(async (pool) => {
    const error = await rejectionOf(pool.transaction(async (tx) => {
      await tx.query("set local idle_in_transaction_session_timeout = 50");
      await sleep(300);
      await tx.query("select 1");
    }));
    assert.ok(error instanceof ConnectionError);
    assert.equal(error.cause?.code, "25P03");
    await until(() => pool.stats().total === 0);
    await pool.query("select 1");
  }, { max: 1 });
});

test("53300 and other passing refusals are tried again within acquireTimeout", async () => {
  const role = uniqueName("few");
  await ask(`create role ${role} login superuser password 'few' connection limit 1`);
  const limited = testUrl({ user: role, password: "few" });
  await ask(`alter role ${role} nosuperuser`);
  await withPool(async (first) => {
    const own = await first.acquire();
    await withPool(async (pool) => {
      const query = pool.query("select current_user::text as u");
      await sleep(200);
      assert.equal(pool.stats().waiting, 1);
      await own.query("select 1");
      await own.close();
      await limit(first.close(), 2_000);
      assert.deepEqual((await query).rows, [{ u: role }]);
      const began = performance.now();
      await withPool(async (second) => {
        const error = await rejectionOf(second.query("select 1"));
        assert.match(error.message, /last attempt to connect failed: too many connections for role/);
        assert.equal(error.cause?.code, "53300");
        assert.ok(performance.now() - began < 3_000);
      }, { url: limited, acquireTimeout: 300 });
    }, { url: limited });
  }, { url: limited });
  await ask(`drop role ${role}`);
});

test("a pool under load survives the death of every backend, again and again", async () => {
  await withPool(async (pool) => {
    let running = true;
    let done = 0;
    const loops = Array.from({ length: 30 }, async (_, i) => {
      for (let n = 0; running; n++) {
        try {
          const { rows } = await pool.query("select $1::int4 as i, $2::int4 as n", [i, n]);
          assert.deepEqual(rows, [{ i, n }]);
          done++;
        } catch (error) {
          assert.ok(error instanceof ConnectionError, String(error));
          assert.equal(error.sent, "unknown");
        }
      }
    });
    for (let round = 0; round < 8; round++) {
      const before = done;
      await until(() => done > before + 30, 10_000, "progress");
      await ask(`select pg_terminate_backend(pid) from pg_stat_activity
        where pid <> pg_backend_pid() and application_name = 'pipegres-test-${uniqueApplication()}'`);
    }
    running = false;
    await Promise.all(loops);
    assert.ok(pool.stats().total <= 4);
  }, { max: 4, within: 60_000 });
});

/** The number in this process's application_name. */
function uniqueApplication(): string {
  return /pipegres-test-(\d+)/.exec(testUrl())![1]!;
}

leavesNoSession();
