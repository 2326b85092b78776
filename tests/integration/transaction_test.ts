/** Transactions on one connection: who is inside, what is sent when, and how they end. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Connection, Transaction } from "../../mod.ts";
import { startProxy } from "../_support/proxy.ts";
import {
  bindComplete,
  commandComplete,
  errorResponse,
  noData,
  parameterDescription,
  parseComplete,
  readyForQuery,
} from "../_support/backend_writer.ts";
import { type ScriptedSession, startScriptedBackend } from "../_support/scripted_backend.ts";
import { ask, leavesNoSession, limit, testTarget, testUrl, uniqueName, until } from "../_support/server.ts";
import { rejectionOf, sleep, withConnection } from "../_support/session.ts";

const XID = "select pg_current_xact_id_if_assigned()::text as xid, pg_backend_pid() as pid";

async function createTable(conn: Connection, columns = "a int"): Promise<string> {
  const table = uniqueName("tx");
  await conn.exec(`create temp table ${table} (${columns})`);
  return table;
}

async function valuesOf(conn: Connection | Transaction, table: string): Promise<unknown[]> {
  return (await conn.query(`select a from ${table} order by a`)).rows.map((row) => row["a"]);
}

for (const pipeline of [false, { maxQueries: 1 }, { maxQueries: 2 }, { maxQueries: 7 }, undefined] as const) {
  const name = pipeline === undefined ? "the default" : JSON.stringify(pipeline);
  test(`outsiders never join a transaction, whatever fills the queue: pipeline ${name}`, async () => {
    await withConnection(async (conn) => {
      for (let fill = 0; fill < 12; fill++) {
        const outside = Array.from({ length: fill }, () => conn.query(XID));
        const inside: Promise<{ rows: Record<string, unknown>[] }>[] = [];
        const transaction = conn.transaction(async (tx) => {
          const xid = await tx.sql`select pg_current_xact_id()::text as xid, pg_backend_pid() as pid`.one();
          for (let i = 0; i < 3; i++) {
            outside.push(conn.query(XID));
            inside.push(tx.query(XID));
          }
          await inside[0];
          outside.push(conn.query(XID));
          inside.push(tx.query(XID));
          return xid;
        });
        outside.push(conn.query(XID), conn.exec(XID).then((results) => results[0]!));
        const xid = await transaction;
        for (const { rows } of await Promise.all(outside)) {
          assert.deepEqual(rows, [{ xid: null, pid: xid["pid"] }]);
        }
        for (const { rows } of await Promise.all(inside)) assert.deepEqual(rows, [xid]);
      }
    }, pipeline === undefined ? {} : { pipeline });
  });
}

test("a statement that is prepared again does not slip into a transaction begun behind it", async () => {
  await withConnection(async (conn) => {
    const query = () => conn.query(`${XID}, $1::text as own`, ["own"]);
    for (let i = 0; i < 20; i++) {
      await query();
      const healed = conn.exec("deallocate all").then(() => {});
      const outsider = query().then(({ rows }) => rows[0]!["xid"], (error) => error.code);
      const tx = await conn.begin();
      // Scripts: a statement of theirs would be lost as well, and fail the transaction.
      await tx.exec("select pg_current_xact_id()");
      await tx.exec("select 1");
      await tx.commit();
      await healed;
      // It ran outside, or its server error says that it never ran.
      assert.ok([null, "26000"].includes(await outsider), `joined: ${await outsider}`);
    }
  });
});

/** Turns of who speaks, as seen by a proxy: each is one round trip. */
async function countRoundTrips(body: (conn: Connection) => Promise<unknown>): Promise<number> {
  const proxy = await startProxy({ target: testTarget(), record: true });
  try {
    const url = new URL(testUrl());
    url.port = String(proxy.port);
    return await withConnection(async (conn) => {
      const begin = proxy.recorded.length;
      await body(conn);
      const speakers = proxy.recorded.slice(begin).map(({ from }) => from);
      return speakers.filter((from, i) => from === "frontend" && speakers[i - 1] !== "frontend").length;
    }, { url: url.href });
  } finally {
    await proxy.close();
  }
}

test("BEGIN travels with the first query", async () => {
  const trips = await countRoundTrips((conn) => conn.transaction((tx) => tx.sql`select 1`));
  assert.equal(trips, 2);
  const many = await countRoundTrips((conn) =>
    conn.transaction((tx) => Promise.all([1, 2, 3].map((i) => tx.sql`select ${i}::int`)))
  );
  assert.equal(many, 2);
  assert.equal(await countRoundTrips((conn) => conn.transaction(async () => {})), 0);
  const nested = await countRoundTrips((conn) =>
    conn.transaction(async (tx) => {
      await tx.sql`select 1`;
      await tx.transaction((sp) => sp.sql`select 2`);
      await tx.sql`select 3`;
    })
  );
  // SAVEPOINT goes with the second query, RELEASE with the third.
  assert.equal(nested, 4);
});

test("a COMMIT that the server answers by ROLLBACK rejects with the first failure as its cause", async () => {
  await withConnection(async (conn) => {
    const table = await createTable(conn);
    const failure = await rejectionOf(conn.transaction(async (tx) => {
      await tx.query(`insert into ${table} values (1)`);
      await tx.query("select 1/0").catch(() => {});
      await tx.query("select 1").catch(() => {});
    }));
    assert.match(failure.message, /rolled back/);
    assert.equal(failure.cause?.code, "22012");
    assert.deepEqual(await valuesOf(conn, table), []);
    assert.equal(conn.transactionStatus, "idle");
  });
});

test("the first error wins, and a rollback error is attached to it", async () => {
  await withConnection(async (conn) => {
    const mine = new Error("mine");
    assert.equal(await rejectionOf(conn.transaction(() => Promise.reject(mine))), mine);
    const failure = await rejectionOf(conn.transaction(async (tx) => {
      await tx.query("select 1");
      await ask(`select pg_terminate_backend(${conn.processId})`);
      throw mine;
    }));
    assert.equal(failure, mine);
    assert.equal(failure.rollbackError?.name, "ConnectionError");
  });
});

test("queries of one turn in a transaction fail from the culprit on", async () => {
  await withConnection(async (conn) => {
    const tx = await conn.begin();
    const settled = await Promise.allSettled([
      tx.sql`select 1 as a`,
      tx.sql`select ${"x"}::text::int`,
      tx.sql`select 2 as a`,
    ]);
    assert.deepEqual(settled.map(({ status }) => status), ["fulfilled", "rejected", "rejected"]);
    const [, culprit, later] = settled as PromiseRejectedResult[];
    assert.equal(culprit!.reason.code, "22P02");
    assert.equal(later!.reason.name, "PipelineAbortedError");
    assert.equal(later!.reason.executed, false);
    await tx.rollback();
    assert.deepEqual(await conn.sql`select 3 as a`, [{ a: 3 }]);
  });
});

test("values that are first described go with others of their turn", async () => {
  await withConnection(async (conn) => {
    const rows = await conn.transaction((tx) =>
      Promise.all([
        tx.sql`select ${"a"}::text as v`,
        tx.sql`select ${[1, 2]}::int[] as v`,
        tx.sql`select ${{ k: 1 }}::jsonb as v`,
        tx.sql`select ${"b"}::text as v`,
      ])
    );
    assert.deepEqual(rows.map(([row]) => row!["v"]), ["a", [1, 2], { k: 1 }, "b"]);
  });
});

test("an unfit value fails alone: first, described and later ones", async () => {
  await withConnection(async (conn) => {
    const table = await createTable(conn);
    await conn.transaction(async (tx) => {
      const unfit = [
        rejectionOf(tx.sql`insert into ${tx.sql.id(table)} values (${undefined})`),
        rejectionOf(tx.sql`insert into ${tx.sql.id(table)} values (${{}})`),
      ];
      await tx.query(`insert into ${table} values (1)`);
      for (const failure of unfit) assert.equal((await failure).name, "ValueError");
      await tx.query(`insert into ${table} values (2)`);
    });
    assert.deepEqual(await valuesOf(conn, table), [1, 2]);
  });
});

test("a deferred constraint fails the commit", async () => {
  await withConnection(async (conn) => {
    const table = await createTable(conn, "a int unique deferrable initially deferred");
    const failure = await rejectionOf(conn.transaction(async (tx) => {
      await tx.query(`insert into ${table} values (1), (1)`);
    }));
    assert.equal(failure.code, "23505");
    assert.equal(conn.transactionStatus, "idle");
    // The same at a Sync: of a query, and of a batch.
    assert.equal((await rejectionOf(conn.query(`insert into ${table} values (2), (2)`))).code, "23505");
    const batch = conn.batch([
      conn.sql`select 1`,
      conn.sql`insert into ${conn.sql.id(table)} values (3), (3)`,
    ]);
    assert.equal((await rejectionOf(batch)).code, "23505");
    assert.deepEqual(await valuesOf(conn, table), []);
  });
});

test("options become the transaction's modes", async () => {
  await withConnection(async (conn) => {
    const modes = (tx: Transaction) =>
      tx.sql`select current_setting('transaction_isolation') as isolation,
        current_setting('transaction_read_only') as read_only,
        current_setting('transaction_deferrable') as deferrable`.one();
    for (
      const isolation of ["read uncommitted", "read committed", "repeatable read", "serializable"] as const
    ) {
      assert.equal((await conn.transaction({ isolation }, modes))["isolation"], isolation);
    }
    assert.deepEqual(
      await conn.transaction({ isolation: "serializable", readOnly: true, deferrable: true }, modes),
      { isolation: "serializable", read_only: "on", deferrable: "on" },
    );
    await conn.exec("set default_transaction_read_only = on");
    assert.equal((await conn.transaction({ readOnly: false }, modes))["read_only"], "off");
    assert.equal((await conn.transaction(modes))["read_only"], "on");
    const unknown = "serializable; drop table x" as "serializable";
    assert.equal((await rejectionOf(conn.begin({ isolation: unknown }))).name, "TypeError");
  });
});

test("retry runs the function again after a serialization failure, and after nothing else", async () => {
  await withConnection((a) =>
    withConnection(async (b) => {
      const table = uniqueName("retried");
      await a.exec(`create table ${table} (a int); insert into ${table} values (0)`);
      try {
        let attempts = 0;
        const result = await a.transaction({ isolation: "serializable", retry: 2 }, async (tx) => {
          attempts++;
          const { a: before } = await tx.sql`select a from ${tx.sql.id(table)}`.one() as { a: number };
          if (attempts === 1) await b.query(`update ${table} set a = a + 10`);
          await tx.query(`update ${table} set a = ${before + 1}`);
          return before;
        });
        assert.deepEqual([attempts, result, await valuesOf(b, table)], [2, 10, [11]]);
        attempts = 0;
        const failing = () => a.transaction({ retry: 5 }, (tx) => (attempts++, tx.query("select 1/0")));
        assert.equal((await rejectionOf(failing())).code, "22012");
        assert.equal(attempts, 1);
      } finally {
        await b.exec(`drop table ${table}`);
      }
    })
  );
});

/** Plays a backend that refuses to begin; texts that it executes are added to `executed`. */
async function refuseBegin(session: ScriptedSession, executed: string[]): Promise<void> {
  const texts: Map<string, string> = new Map();
  let [skipping, bound] = [false, ""];
  for (let message = await session.receive(); message !== undefined; message = await session.receive()) {
    if (message.type === "Sync") {
      session.send(readyForQuery());
      skipping = false;
    } else if (skipping) continue;
    else if (message.type === "Parse") {
      texts.set(message.statement, message.text);
      session.send(parseComplete);
    } else if (message.type === "Describe") session.send(parameterDescription([]), noData);
    else if (message.type === "Bind") {
      bound = texts.get(message.statement)!;
      skipping = bound === "begin";
      session.send(skipping ? errorResponse({ C: "25006", M: "no transactions today" }) : bindComplete);
    } else if (message.type === "Execute") {
      executed.push(bound);
      session.send(commandComplete("INSERT 0 1"));
    }
  }
}

// Under another DateStyle than ISO statements are described before their first use.
for (const dateStyle of ["ISO, MDY", "German, DMY"]) {
  test(`a BEGIN that the server refuses lets nothing run outside a block: DateStyle ${dateStyle}`, async () => {
    const executed: string[] = [];
    const backend = await startScriptedBackend(async (session) => {
      await session.establish({ parameters: { DateStyle: dateStyle } });
      await refuseBegin(session, executed);
    });
    try {
      for (const maxQueries of [1, 2, 100]) {
        await withConnection(async (conn) => {
          await conn.query("outside");
          const tx = await conn.begin();
          const inside = ["insert 1", "insert 2", "insert 3"].map((text) => rejectionOf(tx.query(text)));
          const nested = rejectionOf(tx.transaction((sp) => sp.query("insert 4")));
          for (const failure of await Promise.all([...inside, nested])) {
            assert.match(`${failure.message} ${failure.cause?.message}`, /no transactions today/);
          }
          await rejectionOf(tx.query("insert 5"));
          assert.match((await rejectionOf(tx.commit())).message, /could not begin/);
          await conn.query("outside");
          // BEGIN and the first query are known by now, the second is not.
          const failure = await rejectionOf(conn.transaction(async (tx) => {
            await Promise.all([tx.query("outside"), tx.query("insert 6"), tx.query("insert 7")]);
          }));
          assert.equal(failure.rollbackError, undefined);
          await conn.query("outside");
        }, { url: backend.url, pipeline: { maxQueries } });
      }
      assert.deepEqual(executed, Array(9).fill("outside"));
    } finally {
      await backend.close();
    }
  });
}

test("an outsider waits for an open transaction", async () => {
  await withConnection(async (conn) => {
    const tx = await conn.begin();
    await tx.query("select 1");
    let answered = false;
    const outsider = conn.query("select 1").then(() => answered = true);
    await tx.query("select pg_sleep(0.05)");
    assert.equal(answered, false);
    await tx.commit();
    await limit(outsider);
  });
});

test("disposal without commit rolls back", async () => {
  await withConnection(async (conn) => {
    const table = await createTable(conn);
    const tx = await conn.begin();
    await tx.query(`insert into ${table} values (1)`);
    await tx[Symbol.asyncDispose]();
    await tx[Symbol.asyncDispose]();
    assert.match((await rejectionOf(tx.query("select 1"))).message, /ended/);
    assert.match((await rejectionOf(tx.commit())).message, /ended/);
    assert.deepEqual(await valuesOf(conn, table), []);
  });
});

test("after loss of the connection every call rejects and nothing is replayed", async () => {
  await withConnection(async (conn) => {
    const table = uniqueName("lost");
    await ask(`create table ${table} (a int)`);
    const tx = await conn.begin();
    await tx.query(`insert into ${table} values (1)`);
    const unused = conn.begin();
    const waiting = rejectionOf(conn.query("select 1"), 2_000);
    await ask(`select pg_terminate_backend(${conn.processId})`);
    await until(() => conn.closed);
    for (const call of [tx.query(`insert into ${table} values (2)`), tx.commit(), tx.rollback()]) {
      const failure = await call.then(() => undefined, (error) => error);
      if (failure !== undefined) assert.match(failure.name, /ConnectionError|PipegresError/);
    }
    assert.equal((await waiting).name, "ConnectionError");
    const next = await limit(unused, 2_000);
    assert.equal((await rejectionOf(next.query("select 1"), 2_000)).name, "ConnectionError");
    assert.equal((await rejectionOf(conn.query("select 1"), 2_000)).name, "ConnectionError");
    assert.equal((await rejectionOf(next.commit(), 2_000)).name, "ConnectionError");
    assert.deepEqual(await ask(`select * from ${table}`), []);
    await ask(`drop table ${table}`);
  });
});

test("idle_in_transaction_session_timeout rejects what comes next", async () => {
  await withConnection(async (conn) => {
    const failure = await rejectionOf(conn.transaction(async (tx) => {
      await tx.query("set local idle_in_transaction_session_timeout = 50");
      await sleep(250);
      await tx.query("select 1");
    }));
    assert.equal(failure.code === "25P03" || failure.cause?.code === "25P03", true, String(failure));
  });
});

test("a script may hold a block of its own", async () => {
  await withConnection(async (conn) => {
    const table = await createTable(conn);
    const [begin] = await conn.exec("begin");
    assert.equal(begin!.command, "BEGIN");
    assert.equal(conn.transactionStatus, "transaction");
    await conn.query(`insert into ${table} values (1)`);
    await rejectionOf(conn.query("select 1/0"));
    assert.equal(conn.transactionStatus, "failed");
    assert.equal((await rejectionOf(conn.query("select 1"))).code, "25P02");
    await conn.exec("rollback");
    assert.deepEqual([conn.transactionStatus, await valuesOf(conn, table)], ["idle", []]);
  });
});

leavesNoSession();
