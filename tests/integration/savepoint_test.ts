/** Nested transactions: SAVEPOINT, RELEASE and ROLLBACK TO at every level. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Connection, Transaction } from "../../mod.ts";
import { leavesNoSession, uniqueName } from "../_support/server.ts";
import { rejectionOf, withConnection } from "../_support/session.ts";

/** Runs `body` in a transaction with a temporary table; returns what is in the table afterwards. */
async function remaining(body: (tx: Transaction, table: string) => Promise<unknown>): Promise<unknown[]> {
  return await withConnection(async (conn: Connection) => {
    const table = uniqueName("nested");
    await conn.exec(`create temp table ${table} (a int)`);
    await conn.transaction((tx) => body(tx, table));
    return (await conn.query(`select a from ${table} order by a`)).rows.map((row) => row["a"]);
  });
}

const undo = new Error("undo");

function insert(into: Transaction, table: string, value: number): Promise<unknown> {
  return into.query(`insert into ${table} values (${value})`);
}

test("levels are released and rolled back one by one", async () => {
  for (let failing = 0; failing <= 3; failing++) {
    const left = await remaining(async (tx, table) => {
      const nest = async (outer: Transaction, level: number): Promise<void> => {
        if (level > 3) return;
        await outer.transaction(async (nested) => {
          await insert(nested, table, level);
          await nest(nested, level + 1);
          if (level === failing) throw undo;
        });
      };
      await insert(tx, table, 0);
      const nested = nest(tx, 1);
      if (failing === 0) await nested;
      else assert.equal(await rejectionOf(nested), undo);
      await insert(tx, table, 9);
    });
    // The failing level's error passes through all those around it.
    assert.deepEqual(left, failing === 0 ? [0, 1, 2, 3, 9] : [0, 9], `failing at ${failing}`);
  }
});

test("a level that catches its inner level's error stays", async () => {
  const left = await remaining((tx, table) =>
    tx.transaction(async (outer) => {
      await insert(outer, table, 1);
      const inner = outer.transaction(async (nested) => {
        await insert(nested, table, 2);
        await nested.query("select 1/0");
      });
      assert.equal((await rejectionOf(inner)).code, "22012");
      await insert(outer, table, 3);
    })
  );
  assert.deepEqual(left, [1, 3]);
});

test("an outer level without queries of its own undoes what its inner level did", async () => {
  const left = await remaining(async (tx, table) => {
    const outer = tx.transaction(async (nested) => {
      await nested.transaction((inner) => insert(inner, table, 1));
      throw undo;
    });
    assert.equal(await rejectionOf(outer), undo);
    await insert(tx, table, 2);
  });
  assert.deepEqual(left, [2]);
});

test("savepoints of one transaction have names of their own", async () => {
  const left = await remaining(async (tx, table) => {
    for (let i = 0; i < 5; i++) {
      await tx.transaction((nested) => insert(nested, table, i)).then(() => {});
      await tx.transaction(async (nested) => {
        await insert(nested, table, 100 + i);
        throw undo;
      }).catch(() => {});
    }
  });
  assert.deepEqual(left, [0, 1, 2, 3, 4]);
});

test("an error that the nested function swallows rejects it, and the transaction goes on", async () => {
  for (const stream of [false, true]) {
    const left = await remaining(async (tx, table) => {
      const nested = tx.transaction(async (inner) => {
        await insert(inner, table, 1);
        const query = inner.sql`select 1 / (3 - i) as a from generate_series(1, 5) i`;
        if (stream) {
          await rejectionOf((async () => {
            for await (const _ of query.stream({ batch: 2 }));
          })());
        } else await rejectionOf(query);
      });
      // The first error wins over the server's 25P02.
      assert.match(String((await rejectionOf(nested)).cause), /division by zero/);
      await insert(tx, table, 2);
    });
    assert.deepEqual(left, [2]);
  }
});

test("nested transactions cannot overlap, and one that is open cannot be committed over", async () => {
  const left = await remaining(async (tx, table) => {
    let leave = () => {};
    const first = tx.transaction(async (nested) => {
      await insert(nested, table, 1);
      await new Promise<void>((resolve) => leave = resolve);
    });
    assert.match((await rejectionOf(tx.transaction(() => {}))).message, /another one is open/);
    assert.match((await rejectionOf(tx.commit())).message, /nested one is open/);
    await insert(tx, table, 2);
    leave();
    await first;
    await tx.transaction((nested) => insert(nested, table, 3));
  });
  assert.deepEqual(left, [1, 2, 3]);
});

test("a forgotten nested transaction cannot commit, nor write behind the end", async () => {
  await withConnection(async (conn) => {
    const table = uniqueName("forgotten");
    await conn.exec(`create temp table ${table} (a int)`);
    let nested: Promise<unknown> = Promise.resolve();
    const outer = conn.transaction(async (tx) => {
      nested = tx.transaction(async (inner) => {
        await insert(inner, table, 1);
        await inner.query("select pg_sleep(0.05)");
        await insert(inner, table, 2);
      });
      nested.catch(() => {});
      await insert(tx, table, 3);
    });
    assert.match((await rejectionOf(outer)).message, /nested one is open/);
    assert.match((await rejectionOf(nested)).message, /rolled back/);
    assert.deepEqual(await conn.query(`select a from ${table}`).then(({ rows }) => rows), []);
  });
});

test("an ended handle takes no more queries, whichever way it ended", async () => {
  const left = await remaining(async (tx, table) => {
    let handle: Transaction | undefined;
    await tx.transaction(async (nested) => {
      handle = nested;
      await insert(nested, table, 1);
      await nested.commit();
      assert.match((await rejectionOf(insert(nested, table, 2))).message, /committed/);
    });
    assert.match((await rejectionOf(handle!.query("select 1"))).message, /ended/);
    await tx.transaction(async (nested) => {
      await insert(nested, table, 3);
      await nested.rollback();
      assert.match((await rejectionOf(insert(nested, table, 4))).message, /rolled back/);
    });
    await insert(tx, table, 5);
  });
  assert.deepEqual(left, [1, 5]);
});

test("a batch and a script in a nested transaction are undone with it", async () => {
  const left = await remaining(async (tx, table) => {
    await rejectionOf(tx.transaction(async (nested) => {
      const values = nested.sql.id(table);
      await nested.batch([
        nested.sql`insert into ${values} values (1)`,
        nested.sql`insert into ${values} values (2)`,
      ]);
      await nested.exec(`insert into ${table} values (3); insert into ${table} values (4)`);
      throw undo;
    }));
    await insert(tx, table, 5);
  });
  assert.deepEqual(left, [5]);
});

leavesNoSession();
