/** Streams: portals that hold a connection, or live in a transaction, and every way to leave them. */

import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { type Connection, createPool, type RowStream, type Transaction } from "../../mod.ts";
import { leavesNoSession, limit, testUrl, uniqueName } from "../_support/server.ts";
import { rejectionOf, sleep, withConnection } from "../_support/session.ts";

type Place = "a connection" | "a transaction" | "a nested transaction";
const PLACES: readonly Place[] = ["a connection", "a transaction", "a nested transaction"];

/** Runs `body` where a stream can be; the connection must be fit for use and idle afterwards. */
async function streamIn(place: Place, body: (on: Connection | Transaction) => Promise<void>): Promise<void> {
  await withConnection(async (conn) => {
    if (place === "a connection") await body(conn);
    else if (place === "a transaction") await conn.transaction((tx) => body(tx));
    else await conn.transaction((tx) => tx.transaction((nested) => body(nested)));
    const [row] = await limit(
      conn.sql`select 'after' as a, (select count(*) from pg_cursors where name <> '') as open`,
      2_000,
    );
    assert.deepEqual(row, { a: "after", open: 0n });
    assert.equal(conn.transactionStatus, "idle");
  });
}

function series(on: Connection | Transaction, count: number, batch: number) {
  return on.sql<{ i: number }>`select i from generate_series(1, ${count}::int) i`.stream({ batch });
}

async function collect<T>(rows: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const row of rows) all.push(row);
  return all;
}

for (const place of PLACES) {
  test(`all rows in order, whatever the batch, in ${place}`, async () => {
    await streamIn(place, async (on) => {
      for (const count of [0, 1, 9, 10, 11, 20, 2_345]) {
        for (const batch of [1, 10, 1_000]) {
          if (count > 100 && batch === 1) continue;
          const rows = await collect(series(on, count, batch));
          assert.deepEqual(rows.map(({ i }) => i), Array.from({ length: count }, (_, i) => i + 1));
        }
      }
    });
  });

  test(`breaks and errors of the loop free the connection in ${place}`, async () => {
    await streamIn(place, async (on) => {
      const mine = new Error("mine");
      for (const count of [1, 10, 20, 100_000]) {
        for (let round = 0; round < 8; round++) {
          for await (const { i } of series(on, count, 10)) if (i > round * 2) break;
          const thrown = (async () => {
            for await (const _ of series(on, count, 10)) throw mine;
          })();
          assert.equal(await rejectionOf(thrown), mine);
          assert.deepEqual(await on.sql`select ${round}::int as a`, [{ a: round }]);
        }
      }
    });
  });

  test(`a stream that is returned before it began costs nothing in ${place}`, async () => {
    await streamIn(place, async (on) => {
      const rows = series(on, 10, 2);
      assert.deepEqual(await rows.return(), { done: true, value: undefined });
      assert.deepEqual(await rows.next(), { done: true, value: undefined });
      await rows[Symbol.asyncDispose]();
    });
  });

  test(`concurrent calls of next are answered in order in ${place}`, async () => {
    await streamIn(place, async (on) => {
      const rows = series(on, 7, 3);
      const results = await Promise.all(Array.from({ length: 10 }, () => rows.next()));
      assert.deepEqual(results.map(({ value }) => value?.i), [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        ...Array(3).fill(undefined),
      ]);
      const left = series(on, 1_000, 3);
      const calls = [left.next(), left.next(), left.return(), left.next(), left.return()];
      assert.deepEqual((await Promise.all(calls)).map(({ value }) => value?.i), [
        1,
        2,
        undefined,
        undefined,
        undefined,
      ]);
    });
  });
}

test("errors come where they happen, and leave nothing behind", async () => {
  const failing: [(on: Connection | Transaction) => AsyncIterable<unknown>, string, number][] = [
    [(on) => on.sql`selekt`.stream(), "42601", 0],
    [(on) => on.sql`select ${"x"}::text::int`.stream(), "22P02", 0],
    [(on) => on.sql`select ${"x"}::int`.stream(), "22P02", 0],
    [(on) => on.sql`select 10 / (5 - i) from generate_series(1, 9) i`.stream({ batch: 100 }), "22012", 0],
    [(on) => on.sql`select 10 / (5 - i) from generate_series(1, 9) i`.stream({ batch: 2 }), "22012", 4],
    [(on) => on.sql`select 10 / (5 - i) from generate_series(1, 9) i`.stream({ batch: 1 }), "22012", 4],
  ];
  await withConnection(async (conn) => {
    for (const [start, code, before] of failing) {
      for (const inside of [false, true]) {
        let seen = 0;
        const run = async (on: Connection | Transaction) => {
          for await (const _ of start(on)) seen++;
        };
        const ran = inside ? conn.transaction(run) : run(conn);
        assert.equal((await rejectionOf(ran)).code, code);
        assert.equal(seen, before, `rows before ${code}`);
        assert.deepEqual(await conn.sql`select 1 as a`, [{ a: 1 }]);
      }
    }
  });
});

test("unfit values and unfit batches are refused before anything is sent", async () => {
  await withConnection(async (conn) => {
    assert.equal((await rejectionOf(collect(conn.sql`select ${undefined}`.stream()))).name, "ValueError");
    assert.equal((await rejectionOf(collect(conn.sql`select ${{}}::int[]`.stream()))).name, "ValueError");
    const statement = await conn.prepare("select i from generate_series(1, $1) i");
    for (const batch of [0, -1, 1.5, Infinity, 2 ** 31]) {
      assert.throws(() => conn.sql`select 1`.stream({ batch }), { name: "ValueError" });
      assert.throws(() => statement.stream([1], { batch }), { name: "ValueError" });
    }
    assert.equal((await collect(statement.stream([5], { batch: 2 }))).length, 5);
    for (const text of ["copy pg_class to stdout", "copy pg_am from stdin"]) {
      const { message } = await rejectionOf(collect(conn.sql`${conn.sql.raw(text)}`.stream()));
      assert.match(message, /use copy(To|From)\(\)/);
      assert.deepEqual(await conn.sql`select 1 as a`, [{ a: 1 }]);
    }
  });
});

for (const place of PLACES) {
  test(`given up while suspended or running, in ${place}`, async () => {
    await withConnection(async (conn) => {
      const mine = new Error("mine");
      const giveUp = async (on: Connection | Transaction, running: boolean) => {
        const controller = new AbortController();
        const rows = on.sql`select i, pg_sleep(case when ${running}::bool and i > 4 then 30 end)
          from generate_series(1, 100000) i`.with({ signal: controller.signal }).stream({ batch: 2 });
        assert.deepEqual((await rows.next()).done, false);
        assert.deepEqual((await rows.next()).done, false);
        assert.deepEqual((await rows.next()).done, false);
        if (running) {
          await rows.next();
          setTimeout(() => controller.abort(mine), 30);
        } else {
          await sleep(20);
          controller.abort(mine);
          assert.equal(await rejectionOf(rows.next()), mine);
        }
        const began = performance.now();
        if (running) assert.equal(await rejectionOf(rows.next(), 2_000), mine);
        assert.ok(performance.now() - began < 1_000);
        assert.deepEqual(await rows.next(), { done: true, value: undefined });
      };
      for (const running of [true, false]) {
        for (let round = 0; round < 5; round++) {
          const run = (on: Connection | Transaction) => giveUp(on, running);
          const ran = place === "a connection"
            ? run(conn)
            : conn.transaction(place === "a transaction" ? run : (tx) => tx.transaction(run));
          // The cancel fails the block that the stream was in.
          if (running && place !== "a connection") {
            assert.match((await rejectionOf(ran)).message, /rolled back|aborted/);
          } else await limit(ran, 5_000);
          assert.deepEqual(await limit(conn.sql`select 1 as a`, 2_000), [{ a: 1 }]);
          assert.equal(conn.transactionStatus, "idle");
        }
      }
    });
  });
}

/** Ways to take rows; each tells how many it got in `seen`, which may give the query up. */
const CONSUMERS: Readonly<Record<string, (rows: RowStream<unknown>, seen: () => void) => Promise<void>>> = {
  "a loop": async (rows, seen) => {
    for await (const _ of rows) seen();
  },
  "concurrent calls": async (rows, seen) => {
    const calls = Array.from({ length: 100 }, () => rows.next().then(seen));
    for (const call of calls) await call;
  },
  "a Web stream": async (rows, seen) => {
    for await (const _ of rows.toReadable()) seen();
  },
};

for (const place of PLACES) {
  test(`no row is given once the query has been given up, in ${place}`, async () => {
    await streamIn(place, async (on) => {
      const mine = new Error("mine");
      for (const [name, consume] of Object.entries(CONSUMERS)) {
        // The rows of one batch, which is the last, and of one that is not.
        for (const count of [100, 10_000]) {
          // A cancel that meets the server at work fails the block.
          if (count > 500 && place !== "a connection") continue;
          const controller = new AbortController();
          const query = on.sql`select i from generate_series(1, ${count}::int) i`;
          const rows = query.with({ signal: controller.signal }).stream();
          let seen = 0;
          const consumed = consume(rows, () => {
            if (++seen === 1) controller.abort(mine);
          });
          assert.equal(await rejectionOf(consumed), mine, name);
          // Calls that were made before have been answered already.
          if (name !== "concurrent calls") assert.equal(seen, 1, name);
          assert.deepEqual(await limit(rows.next()), { done: true, value: undefined });
          assert.deepEqual(await limit(on.sql`select 1 as a`), [{ a: 1 }]);
        }
      }
    });
  });
}

test("a time limit that is not reached leaves no trace", async () => {
  await withConnection(async (conn) => {
    await conn.transaction(async (tx) => {
      assert.equal((await collect(tx.sql`select 1`.with({ timeout: 40 }).stream())).length, 1);
      for await (
        const _ of tx.sql`select generate_series(1, 100)`.with({ timeout: 40 }).stream({ batch: 3 })
      ) break;
      await sleep(80);
      await tx.query("select 1");
    });
    assert.equal((await collect(conn.sql`select 1`.with({ timeout: 40 }).stream())).length, 1);
    await sleep(60);
    assert.deepEqual(await limit(conn.sql`select 2 as a`, 2_000), [{ a: 2 }]);
  });
});

test("a consumer that is too slow runs into its time limit", async () => {
  await withConnection(async (conn) => {
    const slow = async (on: Connection | Transaction) => {
      const query = on.sql`select generate_series(1, 100000)`.with({ timeout: 60 });
      for await (const _ of query.stream({ batch: 1 })) await sleep(5);
    };
    assert.equal((await rejectionOf(slow(conn))).name, "TimeoutError");
    await conn.transaction(async (tx) => {
      assert.equal((await rejectionOf(slow(tx))).name, "TimeoutError");
    }).catch((error) => assert.match(error.message, /rolled back/));
    assert.deepEqual(await limit(conn.sql`select 2 as a`, 2_000), [{ a: 2 }]);
  });
});

test("rows that are there are not given once the time limit has passed", async () => {
  await withConnection(async (conn) => {
    const query = conn.sql`select i from generate_series(1, 10000) i`.with({ timeout: 200 });
    let seen = 0;
    const consumed = (async () => {
      for await (const _ of query) {
        seen++;
        await sleep(300);
      }
    })();
    assert.equal((await rejectionOf(consumed)).name, "TimeoutError");
    assert.equal(seen, 1);
    assert.deepEqual(await limit(conn.sql`select 2 as a`, 2_000), [{ a: 2 }]);
  });
});

test("a stream of a pool that is given up behind its last answer gives its connection back", async () => {
  await using db = createPool(testUrl(), { max: 1, acquireTimeout: 2_000 });
  for (const count of [100, 600, 10_000]) {
    const controller = new AbortController();
    const mine = new Error("mine");
    const query = db.sql`select i from generate_series(1, ${count}::int) i`.with({
      signal: controller.signal,
    });
    const rows = query.stream();
    await limit(rows.next());
    // All that was asked for has come.
    await sleep(30);
    controller.abort(mine);
    assert.equal(await rejectionOf(rows.next()), mine);
    assert.deepEqual(await limit(db.sql`select 1 as a`), [{ a: 1 }]);
    assert.equal(db.stats().busy, 0);
  }
});

test("on a connection others wait until the stream ends, in a transaction they go between", async () => {
  await withConnection(async (conn) => {
    const order: string[] = [];
    let between: Promise<unknown> | undefined;
    for await (const { i } of series(conn, 6, 2)) {
      order.push(String(i));
      between ??= conn.sql`select 'x' as x`.then(() => order.push("x"));
      await sleep(5);
    }
    await between;
    // The last batch was made ahead.
    assert.ok(order.indexOf("x") >= 4, order.join(" "));
    await conn.transaction(async (tx) => {
      const pairs: string[] = [];
      for await (const { i } of series(tx, 6, 2)) {
        for await (const inner of series(tx, 2, 1)) pairs.push(`${i}${inner.i}`);
        assert.deepEqual(await tx.sql`select ${i}::int as i`, [{ i }]);
      }
      assert.equal(pairs.join(" "), "11 12 21 22 31 32 41 42 51 52 61 62");
    });
  });
});

test("a table that was streamed can be altered in the same transaction", async () => {
  await withConnection(async (conn) => {
    const table = uniqueName("altered");
    await conn.exec(`create temp table ${table} as select i from generate_series(1, 100) i`);
    await conn.transaction(async (tx) => {
      const rows = () => tx.sql`select i from ${tx.sql.id(table)}`.stream({ batch: 7 });
      await collect(rows());
      await tx.exec(`alter table ${table} add b text`);
      for await (const _ of rows()) break;
      await tx.exec(`alter table ${table} drop b`);
      const unfinished = rows();
      await unfinished.next();
      assert.equal((await rejectionOf(tx.exec(`alter table ${table} add c text`))).code, "55006");
    }).catch((error) => assert.match(error.message, /rolled back/));
  });
});

test("no portal outlives a nested transaction, nor the return of a stream of it", async () => {
  await withConnection(async (conn) => {
    const table = uniqueName("outlived");
    await conn.exec(`create temp table ${table} as select i from generate_series(1, 100) i`);
    for (const returns of [false, true]) {
      for (const deep of [false, true]) {
        const undone = new Error("undone");
        const ran = conn.transaction(async (tx) => {
          let rows: AsyncIterator<unknown> | undefined;
          const inside = async (nested: Transaction) => {
            rows = nested.sql`select i from ${tx.sql.id(table)}`.stream({ batch: 10 })
              [Symbol.asyncIterator]();
            await rows.next();
          };
          await tx.transaction((nested) => deep ? nested.transaction(inside) : inside(nested));
          if (returns) await rows!.return!();
          assert.equal(await tx.sql`select count(*) from pg_cursors where name <> ''`.scalar(), 0n);
          await tx.exec(`drop table ${table}`);
          // Rows that are there are given; then it is known that there is nobody to ask for more.
          if (!returns) {
            for (let row = 1; row < 20; row++) assert.equal((await rows!.next()).done, false);
            assert.match((await rejectionOf(rows!.next())).message, /ended/);
          }
          await tx.sql`select 1`;
          throw undone;
        });
        assert.equal(await rejectionOf(ran), undone);
      }
    }
  });
});

test("a stream is as long as it likes in bounded memory", async () => {
  await withConnection(async (conn) => {
    const query = conn.sql`select repeat('x', 10000) as pad from generate_series(1, 20000)`;
    let rows = 0;
    let most = 0;
    const before = process.memoryUsage().rss;
    for await (const _ of query.stream({ batch: 100 })) {
      if (++rows % 500 === 0) most = Math.max(most, process.memoryUsage().rss - before);
    }
    assert.equal(rows, 20_000);
    // 200 MB went through.
    assert.ok(most < 150_000_000, `${most} bytes more`);
  }, { within: 60_000 });
});

/** Loops that hold their connection; each calls `inside` once. */
const LOOPS: Readonly<Record<string, (conn: Connection, inside: () => Promise<void>) => Promise<void>>> = {
  "a stream": async (conn, inside) => {
    let rows = 0;
    for await (const _ of series(conn, 10_000, 10)) if (rows++ === 3) await inside();
    assert.equal(rows, 10_000);
  },
  "COPY TO": async (conn, inside) => {
    let chunks = 0;
    let bytes = 0;
    for await (const chunk of conn.copyTo("copy (select generate_series(1, 2000000)) to stdout")) {
      if (chunks++ === 3) await inside();
      bytes += chunk.length;
    }
    assert.equal(bytes, 14_888_896);
  },
  "COPY FROM": async (conn, inside) => {
    await conn.exec("create temp table held (a int)");
    const writer = conn.copyFrom("copy held from stdin").getWriter();
    await writer.write("1\n");
    await inside();
    await writer.write("2\n");
    await writer.close();
    assert.equal(await conn.sql`select sum(a)::int from held`.scalar(), 3);
  },
};

test("a query that is awaited inside a loop which holds its connection is refused, and the loop goes on", async () => {
  await Promise.all(
    Object.entries(LOOPS).map(([name, loop]) =>
      withConnection(async (conn) => {
        let error: Error | undefined;
        await loop(conn, async () => {
          error = await rejectionOf(conn.sql`select 1`, 15_000);
        });
        assert.equal(error?.name, "TimeoutError", name);
        assert.match(error.message, /stream or COPY on the same connection/, name);
        assert.deepEqual(await limit(conn.sql`select 1 as a`), [{ a: 1 }], name);
      }, { within: 40_000 })
    ),
  );
});

test("a query behind a stream that is slow but goes on waits for its end", async () => {
  await withConnection(async (conn) => {
    const rows: number[] = [];
    const stream = (async () => {
      for await (const { i } of series(conn, 13, 1)) {
        rows.push(i);
        await sleep(1_000);
      }
    })();
    await sleep(100);
    assert.deepEqual(await conn.sql`select 1 as a`, [{ a: 1 }]);
    assert.equal(rows.length, 13);
    await stream;
  }, { within: 40_000 });
});

leavesNoSession();
