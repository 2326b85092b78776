/** Transactions that a signal ends: while they wait, while they run, and too late. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, type Connection, createPool, type Pool, type Transaction } from "../../mod.ts";
import { ask, leavesNoSession, limit, testUrl, withSchema } from "../_support/server.ts";
import { rejectionOf, sleep, withConnection } from "../_support/session.ts";

const REASON = new Error("enough");

/** What can open transactions: a connection, a session of a pool, a pool. */
const KINDS: Readonly<
  Record<string, () => Promise<[owner: Connection | Pool, close: () => Promise<unknown>]>>
> = {
  connection: async () => {
    const conn = await connect(testUrl());
    return [conn, () => conn.close({ timeout: 0 })];
  },
  session: async () => {
    const pool = createPool(testUrl(), { max: 1 });
    const session = await pool.acquire();
    return [session, () => session.close().then(() => pool.close({ timeout: 0 }))];
  },
  pool: async () => {
    const pool = createPool(testUrl(), { max: 1 });
    await pool.query("select 1");
    return [pool, () => pool.close({ timeout: 0 })];
  },
};

for (const [kind, open] of Object.entries(KINDS)) {
  const on = (name: string, body: (owner: Connection | Pool) => Promise<void>) =>
    test(`${kind}: ${name}`, async () => {
      const [owner, close] = await limit(open());
      try {
        await limit(body(owner), 20_000);
      } finally {
        await limit(close());
      }
    });

  on("a transaction that waits for its turn is taken out of the line", async (owner) => {
    const first = await owner.begin();
    await first.query("select 1");
    const controller = new AbortController();
    const { signal } = controller;
    let ran = false;
    const waiting = [
      rejectionOf(owner.begin({ signal })),
      rejectionOf(owner.transaction({ signal }, () => ran = true)),
    ];
    const behind = owner.query("select 'behind' as t");
    controller.abort(REASON);
    for (const each of waiting) assert.equal(await each, REASON);
    assert.equal(await rejectionOf(owner.begin({ signal })), REASON, "aborted before");
    await first.commit();
    assert.deepEqual((await behind).rows, [{ t: "behind" }]);
    assert.ok(!ran);
    await owner.transaction((tx) => tx.query("select 1"));
  });

  on("a transaction that runs is rolled back, its queries are cancelled", async (owner) => {
    await withSchema(async (schema) => {
      await ask(`create table ${schema}.t (a int)`);
      // Where it is when the signal aborts.
      const steps: Record<string, (tx: Transaction) => Promise<unknown>> = {
        "at its first query": () => Promise.resolve(),
        "behind a query": (tx) => tx.query(`insert into ${schema}.t values (1)`),
        "in a nested one": (tx) =>
          tx.transaction(async (nested) => {
            await nested.query(`insert into ${schema}.t values (2)`);
            await nested.query("select pg_sleep(30)");
          }),
        "with much on its way": (tx) =>
          Promise.all([
            tx.query("select pg_sleep(30)"),
            tx.query("select 1"),
            tx.batch([tx.sql`select 1`, tx.sql`select ${[1]}::int[]`]),
            tx.query("select 2", [], { pipeline: false }),
            tx.exec("select 3"),
            Array.fromAsync(tx.sql`select generate_series(1, 9)`.stream({ batch: 2 })),
            tx.copyRows([schema, "t"], ["a"], [[3], [4]]),
          ]),
      };
      for (const [where, step] of Object.entries(steps)) {
        const controller = new AbortController();
        let later: unknown;
        const running = rejectionOf(
          owner.transaction({ signal: controller.signal, retry: 2 }, async (tx) => {
            try {
              await step(tx);
              await tx.query("select pg_sleep(30)");
            } finally {
              later = await rejectionOf(tx.query(`insert into ${schema}.t values (5)`));
            }
          }),
        );
        await sleep(where === "at its first query" ? 0 : 60);
        controller.abort(REASON);
        assert.equal(await running, REASON, where);
        assert.equal(later, REASON, where);
        const { rows } = await owner.query(`select count(*)::int as n from ${schema}.t`);
        assert.deepEqual(rows, [{ n: 0 }], where);
      }
      // Before anything has been sent.
      const controller = new AbortController();
      const running = owner.transaction({ signal: controller.signal }, async (tx) => {
        const queries = [tx.query("select 1"), tx.query("select 2"), tx.exec("select 3")].map(rejectionOf);
        controller.abort(REASON);
        for (const query of queries) assert.equal(await query, REASON);
      });
      assert.equal(await rejectionOf(running), REASON);
      assert.deepEqual((await owner.query("select 1 as n")).rows, [{ n: 1 }]);
    });
  });

  on("a transaction() whose function does something else rejects at once", async (owner) => {
    const controller = new AbortController();
    let go = () => {};
    const running = owner.transaction({ signal: controller.signal }, async (tx) => {
      await tx.query("select 1");
      setTimeout(() => controller.abort(REASON), 10);
      await new Promise<void>((resolve) => go = resolve);
      await tx.query("select 2");
    });
    assert.equal(await rejectionOf(running), REASON);
    assert.deepEqual((await owner.query("select 1 as n")).rows, [{ n: 1 }]);
    go();
  });

  on("a handle is ended, and disposed of behind the rollback", async (owner) => {
    const controller = new AbortController();
    {
      await using tx = await owner.begin({ signal: controller.signal });
      await tx.query("select 1");
      controller.abort(REASON);
      for (const use of [() => tx.query("select 1"), () => tx.commit(), () => tx.transaction(() => 1)]) {
        assert.equal(await rejectionOf(use()), REASON);
      }
      await tx.rollback();
    }
    assert.deepEqual((await owner.query("select 1 as n")).rows, [{ n: 1 }]);
    // One that nothing was sent for costs nothing.
    const another = new AbortController();
    const unused = await owner.begin({ signal: another.signal });
    another.abort(REASON);
    assert.equal(await rejectionOf(unused.commit()), REASON);
    assert.deepEqual((await owner.query("select 1 as n")).rows, [{ n: 1 }]);
  });

  on("what is committed stays so, whatever the signal does then", async (owner) => {
    const controller = new AbortController();
    const tx = await owner.begin({ signal: controller.signal });
    await tx.query("select 1");
    const committed = tx.commit();
    controller.abort(REASON);
    await committed;
    const done = await owner.transaction({ signal: new AbortController().signal }, () => "done");
    assert.equal(done, "done");
    assert.deepEqual((await owner.query("select 1 as n")).rows, [{ n: 1 }]);
  });
}

test("aborts of transactions at random moments leave a connection that works, and nobody else is hit", async () => {
  await withConnection(async (conn) => {
    const outcomes = new Map<string, number>();
    const one = async (i: number): Promise<void> => {
      const controller = new AbortController();
      const timer = setTimeout(() => controller.abort(REASON), (i * 7) % 23);
      const outcome = await conn.transaction({ signal: controller.signal }, async (tx) => {
        await Promise.all([1, 2, 3].map((n) => tx.query("select $1::int, pg_sleep(0.001)", [n])));
        await tx.query("select pg_sleep(0.002)");
      }).then(() => "committed", (error) => error === REASON ? "aborted" : String(error));
      clearTimeout(timer);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    };
    for (let i = 0; i < 40; i++) {
      const [, , { rows }] = await Promise.all([
        one(i),
        one(i + 1),
        conn.query("select $1::int as n, pg_sleep(0.001)::text as s", [i]),
      ]);
      assert.deepEqual(rows, [{ n: i, s: "" }]);
    }
    assert.deepEqual([...outcomes.keys()].filter((each) => !["aborted", "committed"].includes(each)), []);
    assert.equal(conn.transactionStatus, "idle");
  }, { within: 60_000 });
});

leavesNoSession();
