/** A server that is restarted, demoted or lost under load; a standby that is promoted. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, ConnectionError, createPool, type Pool, PoolError, PostgresError } from "../../mod.ts";
import { Cluster, NO_CLUSTER } from "../_support/cluster.ts";
import { counts } from "../_support/pools.ts";
import { leavesNoSession, limit, until } from "../_support/server.ts";
import { rejectionOf, sleep } from "../_support/session.ts";

const MAX = 6;
const LOOPS = 24;

let cluster: Cluster | undefined;

/** A load of inserts, each acknowledged, refused, or of unknown outcome. */
class Load {
  readonly acknowledged: Set<number> = new Set();
  readonly refused: Set<number> = new Set();
  readonly unknown: Set<number> = new Set();
  /** Longest time that an insert took, milliseconds. */
  longest: number = 0;
  readonly #pool: Pool;
  readonly #table: string;
  readonly #loops: Promise<void>[];
  #running: boolean = true;
  #next: number = 0;

  constructor(pool: Pool, table: string) {
    this.#pool = pool;
    this.#table = table;
    this.#loops = Array.from({ length: LOOPS }, (_, i) => this.#loop(i % 2 === 0));
  }

  /** Resolves when so many more have been acknowledged. */
  async more(count: number): Promise<void> {
    const wanted = this.acknowledged.size + count;
    await until(() => this.acknowledged.size >= wanted, 60_000, "more acknowledged inserts");
  }

  async stop(): Promise<void> {
    this.#running = false;
    await limit(Promise.all(this.#loops), 60_000, "the load's end");
  }

  async #loop(inTransaction: boolean): Promise<void> {
    while (this.#running) {
      const n = this.#next++;
      const began = performance.now();
      const text = `insert into ${this.#table} values ($1)`;
      try {
        if (!inTransaction) await this.#pool.query(text, [n]);
        else await this.#pool.transaction((tx) => tx.query(text, [n]));
        this.acknowledged.add(n);
      } catch (error) {
        assert.ok(error instanceof ConnectionError, `${error}`);
        assert.equal(error.code, "CONNECTION_LOST", `${error}`);
        (error.sent === false ? this.refused : this.unknown).add(n);
      }
      this.longest = Math.max(this.longest, performance.now() - began);
    }
  }

  /** Every acknowledged insert is there once, none of the refused ones. */
  async check(): Promise<void> {
    const { rows } = await this.#pool.query<{ n: number }>(`select n from ${this.#table}`);
    const there = new Set(rows.map(({ n }) => n));
    assert.equal(there.size, rows.length, "an insert ran twice");
    assert.deepEqual([...this.acknowledged].filter((n) => !there.has(n)), [], "acknowledged writes are lost");
    assert.deepEqual([...this.refused].filter((n) => there.has(n)), [], "refused writes are there");
    for (const n of there) assert.ok(this.acknowledged.has(n) || this.unknown.has(n));
  }
}

async function withLoad(
  url: string,
  table: string,
  body: (load: Load, pool: Pool) => Promise<void>,
): Promise<void> {
  const pool = createPool(url, { max: MAX, acquireTimeout: 60_000 });
  try {
    await pool.exec(`create table ${table} (n int)`);
    const load = new Load(pool, table);
    try {
      await body(load, pool);
    } finally {
      await load.stop();
    }
    await load.check();
    await until(() => pool.stats().busy + pool.stats().opening === 0);
    assert.ok(pool.stats().total <= MAX);
    console.log(
      `${table}: ${load.acknowledged.size} acknowledged, ${load.refused.size} refused, ${load.unknown.size} unknown; ` +
        `the longest took ${Math.round(load.longest)} ms`,
    );
  } finally {
    await limit(pool.close({ timeout: 0 }));
    assert.deepEqual(counts(pool), { total: 0, idle: 0, busy: 0, opening: 0, waiting: 0 });
  }
}

const options = { skip: NO_CLUSTER };

test("a cluster starts", options, async () => {
  cluster = await Cluster.start();
});

test(
  "target_session_attrs chooses between a primary and its standby, whatever their order",
  options,
  async () => {
    const [primary, standby] = [cluster!.url("primary"), cluster!.url("standby")].map((url) => new URL(url));
    const place = async (hosts: readonly URL[], attributes: string): Promise<string> => {
      const url = `postgres://${primary!.username}:${primary!.password}@${
        hosts.map(({ host }) => host).join(",")
      }/postgres?target_session_attrs=${attributes}`;
      const conn = await limit(connect(url), 20_000);
      try {
        return await conn.sql<boolean>`select pg_is_in_recovery()`.scalar() ? "standby" : "primary";
      } finally {
        await conn.close();
      }
    };
    const wanted = {
      "read-write": "primary",
      primary: "primary",
      "read-only": "standby",
      standby: "standby",
      "prefer-standby": "standby",
    };
    for (const order of [[primary!, standby!], [standby!, primary!]]) {
      for (const [attributes, node] of Object.entries(wanted)) {
        assert.equal(await place(order, attributes), node, attributes);
      }
      assert.equal(await place(order, "any"), order[0] === primary ? "primary" : "standby");
    }
    assert.equal(await place([primary!], "prefer-standby"), "primary");
    for (
      const [host, attributes] of [[primary!, "standby"], [primary!, "read-only"], [
        standby!,
        "primary",
      ]] as const
    ) {
      const error = await rejectionOf(place([host], attributes));
      assert.equal(error.name, "ConnectionError", attributes);
      assert.ok(error.message.includes(host.port), error.message);
    }
  },
);

for (const mode of ["fast", "immediate"] as const) {
  test(
    `a server restarted under load (${mode}) costs errors only for what was in flight`,
    options,
    async () => {
      await withLoad(cluster!.url("primary"), `restarted_${mode}`, async (load) => {
        await load.more(300);
        await cluster!.command(`restart ${mode}`);
        await load.more(300);
        // Each loop has one insert at a time: no more than one of each can have been in flight.
        const failed = load.unknown.size + load.refused.size;
        assert.ok(failed <= LOOPS, `${failed} inserts failed`);
      });
    },
  );
}

test(
  "while a server is away, pools wait for it no longer than acquireTimeout, and say why",
  options,
  async () => {
    const pool = createPool(cluster!.url("primary"), { acquireTimeout: 30 });
    const other = createPool(cluster!.url("primary"));
    await other.query("select 1");
    const reasons: string[] = [];
    let restarting = true;
    const asking = (async () => {
      while (restarting) {
        await pool.query("select pg_sleep(0.01)").catch((error) =>
          reasons.push(`${error.name}: ${error.message}`)
        );
      }
    })();
    await cluster!.command("restart fast");
    restarting = false;
    await asking;
    for (const each of reasons) {
      assert.match(
        each,
        /^(PoolError: No connection within 30 ms .*|ConnectionError: Connection lost: .*)$/s,
      );
    }
    await limit(other.query("select 1"));
    await Promise.all([pool.close(), other.close()]);
  },
);

test(
  "connections to a host that has become read-only are retired, and found again when it is not",
  options,
  async () => {
    // The second host is a standby: there is nowhere to go.
    const pool = createPool(cluster!.url("both"), {
      max: 3,
      acquireTimeout: 400,
      targetSessionAttrs: "read-write",
    });
    try {
      await pool.exec("create table demoted (n int)");
      await Promise.all([1, 2, 3].map(() => pool.query("insert into demoted select 1 from pg_sleep(0.05)")));
      assert.equal(pool.stats().total, 3);
      // A transaction that was made read-only says nothing about its server.
      const own = await rejectionOf(
        pool.transaction({ readOnly: true }, (tx) => tx.query("insert into demoted values (2)")),
      );
      assert.equal(own.code, "25006");
      assert.equal(pool.stats().total, 3);
      await cluster!.command("read-only on");
      const outcomes = await Promise.allSettled([
        pool.query("insert into demoted values (3)"),
        pool.transaction((tx) => tx.query("insert into demoted values (4)")),
      ]);
      for (const outcome of outcomes) {
        assert.ok(outcome.status === "rejected");
        assert.ok(
          outcome.reason instanceof PostgresError || outcome.reason instanceof PoolError,
          `${outcome.reason}`,
        );
      }
      await until(() => pool.stats().total === pool.stats().opening, 5_000, "the end of all three");
      const error = await rejectionOf(pool.query("select 1"));
      assert.ok(error instanceof PoolError);
      assert.match(
        error.message,
        /last attempt to connect failed: .*read-only.*target_session_attrs=read-write/,
      );
      await cluster!.command("read-only off");
      await until(() => pool.query("insert into demoted values (5)").then(() => true, () => false), 10_000);
      assert.deepEqual((await pool.query("select n from demoted order by n")).rows.map((row) => row["n"]), [
        1,
        1,
        1,
        5,
      ]);
    } finally {
      await limit(pool.close());
    }
  },
);

test(
  "a standby promoted under load: no acknowledged write is lost, the pool finds it by itself",
  options,
  async () => {
    const url = `${cluster!.url("both")}?target_session_attrs=read-write`;
    await withLoad(url, "promoted", async (load, pool) => {
      await load.more(300);
      const stream = pool.sql`select generate_series(1, 100000000)`.stream();
      await stream.next();
      const tx = await pool.begin();
      await tx.query("insert into promoted values (-1)");
      await cluster!.command("crash");
      await sleep(200);
      const before = load.acknowledged.size;
      await cluster!.command("promote");
      await load.more(300);
      assert.ok(load.acknowledged.size > before);
      assert.ok(load.unknown.size + load.refused.size <= LOOPS, "only what was in flight");
      for (
        const lost of [
          tx.query("select 1"),
          tx.commit(),
          (async () => {
            for await (const _ of stream);
          })(),
        ]
      ) assert.ok(await rejectionOf(lost) instanceof ConnectionError);
      const { rows } = await pool.query("select pg_is_in_recovery() as standby, inet_server_port() as port");
      assert.equal(rows[0]!["standby"], false);
      assert.ok(cluster!.url("standby").includes(`:${rows[0]!["port"]}/`));
    });
  },
);

test("the cluster ends", options, async () => {
  await cluster!.stop();
});

leavesNoSession();
