/** copyRows: values of every family of types, rows from every kind of source, and what is wrong with them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Connection, createPool, Interval, Range, type Transaction } from "../../mod.ts";
import { leavesNoSession, limit, testUrl, uniqueName, withSchema } from "../_support/server.ts";
import { rejectionOf, sleep, withConnection } from "../_support/session.ts";

async function collect<T>(rows: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const row of rows) all.push(row);
  return all;
}

/** A value of each family as JavaScript has it by default. */
const FAMILIES: readonly (readonly [type: string, ...values: unknown[]])[] = [
  ["int2", -32_768, 32_767],
  ["int4", -2_147_483_648, 0],
  ["int8", -(2n ** 63n), 2n ** 63n - 1n],
  ["oid", 4_294_967_295],
  ["float4", 0.1, Infinity],
  ["float8", 5e-324, NaN, -0],
  ["numeric", "12345678901234567890.0001", "NaN"],
  ["money", "$1.50"],
  ["bool", true, false],
  ["text", "", "tab\tline\nreturn\rback\\slash \\N \\.", "𝄞ß"],
  ["varchar(10)", "ä"],
  ["char(3)", "abc"],
  ['"char"', "x"],
  ["name", "n"],
  ["xml", "<a>&amp;</a>"],
  ["uuid", "01234567-89ab-cdef-0123-456789abcdef"],
  ["bytea", new Uint8Array([0, 255, 92, 10])],
  ["json", { a: [1, "x\n", null] }, [1, 2], 5],
  ["jsonb", { a: [1, "x\n", null] }, [1, 2], true],
  ["date", "2024-02-29", "infinity"],
  ["time", "23:59:59.999999"],
  ["timetz", "23:59:59+02"],
  ["timestamp", new Date(0), Infinity],
  ["timestamptz", new Date(1.7e12), -Infinity],
  ["interval", new Interval(1, -2, 3)],
  ["bit(3)", "101"],
  ["varbit", "1"],
  ["inet", "10.0.0.1/8", "::1"],
  ["cidr", "10.0.0.0/8"],
  ["macaddr", "08:00:2b:01:02:03"],
  ["tsvector", "'a' 'b'"],
  ["pg_lsn", "16/B374D848"],
  ["point", { x: 1, y: -2.5 }],
  ["circle", { x: 0, y: 0, radius: 1 }],
  ["int4range", new Range(1, 5)],
  ["numrange", new Range("1.5", null)],
  ["int4[]", [1, null, 3], [], [[1, 2], [3, 4]]],
  ["numeric[]", [], ["1.50", null]],
  ["text[]", ["a", "NULL", '"', null, ""]],
  ["timestamptz[]", [new Date(0), null]],
  ["jsonb[]", [{ a: 1 }, [1]]],
  ["date[]", ["2024-02-29"]],
];

test("what copyRows stores copyTo gives back, for each family of types", async () => {
  await withConnection(async (conn) => {
    const failed: string[] = [];
    for (const [type, ...values] of FAMILIES) {
      const table = uniqueName("f");
      await conn.exec(`create temp table ${table} (n int, v ${type})`);
      // NULL first, last, and in between: what a column holds shows later than in its first row.
      const rows = [null, ...values, null].map((v, n) => ({ n, v }));
      try {
        assert.equal(await conn.copyRows(table, ["n", "v"], rows), rows.length);
        const text = `copy (select * from ${table} order by n) to stdout`;
        assert.deepEqual(await collect(conn.copyTo(text).rows()), rows);
        assert.deepEqual(await collect(conn.copyTo(`${text} (format text)`).rows()), rows);
        await conn.exec(`truncate ${table}`);
        await conn.copyRows(table, ["n", "v"], rows.map(({ n, v }) => [n, v]), { format: "text" });
        assert.deepEqual(await conn.sql`select * from ${conn.sql.id(table)} order by n`, rows);
      } catch (error) {
        failed.push(`${type}: ${(error as Error).message}`);
      }
    }
    assert.deepEqual(failed, []);
  }, { within: 60_000 });
});

test("all of them in one row, and types that were made", async () => {
  await withSchema(async (schema) => {
    await withConnection(async (conn) => {
      await conn.exec(`create type ${schema}.mood as enum ('sad', 'so, so');
        create domain ${schema}.small as int4 check (value < 10);
        create type ${schema}.pair as (a int4, b text)`);
      const made: typeof FAMILIES = [
        [`${schema}.mood`, "so, so"],
        [`${schema}.small`, 9],
        [`${schema}.pair`, { a: 1, b: 'x"y' }],
        [`${schema}.mood[]`, ["sad", null]],
        [`${schema}.pair[]`, [{ a: null, b: "" }]],
      ];
      const families = [...FAMILIES, ...made];
      await conn.exec(
        `create temp table wide (${families.map(([type], i) => `"c ${i}" ${type}`).join(", ")})`,
      );
      const names = families.map((_, i) => `c ${i}`);
      const row = families.map(([, ...values]) => values.at(-1));
      const object = Object.fromEntries(names.map((name, i) => [name, row[i]]));
      assert.equal(await conn.copyRows("wide", names, [row, object]), 2);
      assert.deepEqual(await collect(conn.copyTo("copy wide to stdout").rows()), [object, object]);
      const outside = conn.copyRows("wide", ["c 0", `c ${FAMILIES.length + 1}`], [[1, 10]]);
      assert.equal((await rejectionOf(outside)).code, "23514");
    });
  });
});

/** Runs `body` with a temporary table `t (a int4, b text, c timestamptz)`. */
async function withTable(body: (conn: Connection) => Promise<void>): Promise<void> {
  await withConnection(async (conn) => {
    await conn.exec("create temp table t (a int4 check (a < 1000000), b text, c timestamptz)");
    await body(conn);
    assert.deepEqual(await limit(conn.sql`select 1 as a`), [{ a: 1 }]);
    assert.equal(conn.transactionStatus, "idle");
  }, { within: 60_000 });
}

const count = (on: Connection | Transaction) => on.sql<bigint>`select count(*) from t`.scalar();

test("rows come from anything that can be iterated", async () => {
  await withTable(async (conn) => {
    const rows = Array.from({ length: 5_000 }, (_, a) => [a, `row ${a}`]);
    const sources: Record<string, Iterable<unknown[]> | AsyncIterable<unknown[]>> = {
      "an array": rows,
      "a generator": (function* () {
        yield* rows;
      })(),
      "an async generator": (async function* () {
        for (const [i, row] of rows.entries()) {
          if (i % 1_000 === 0) await sleep(1);
          yield row;
        }
      })(),
      "a stream": new ReadableStream<unknown[]>({
        start(controller) {
          for (const row of rows) controller.enqueue(row);
          controller.close();
        },
      }) as unknown as AsyncIterable<unknown[]>,
      "a thenable that is no promise": {
        [Symbol.asyncIterator]: () => {
          const inner = rows[Symbol.iterator]();
          const next = () => {
            const result = inner.next();
            return { then: (resolve: (result: unknown) => void) => resolve(result) };
          };
          return { next } as unknown as AsyncIterator<unknown[]>;
        },
      },
    };
    for (const [name, source] of Object.entries(sources)) {
      assert.equal(await limit(conn.copyRows("t", ["a", "b"], source), 20_000), 5_000, name);
      assert.deepEqual(await conn.sql`select sum(a), count(distinct b) as n from t`, [{
        sum: 12_497_500n,
        n: 5_000n,
      }]);
      await conn.exec("truncate t");
    }
    assert.equal(await conn.copyRows("t", ["a", "b"], []), 0);
    assert.equal(
      await conn.copyRows(["pg_temp", "t"], ["b", "a"], [["x", 1], { a: 2, b: null, more: 3 }]),
      2,
    );
    assert.deepEqual(await conn.sql`select a, b from t order by a`, [{ a: 1, b: "x" }, { a: 2, b: null }]);
  });
});

/** Rows that end by an error, and whether the source was told that no more is wanted. */
function* failing(after: number, last: unknown, told: { left: boolean }): Generator<unknown[]> {
  try {
    for (let a = 0; a < after; a++) yield [a, "x", new Date(0)];
    if (last instanceof Error) throw last;
    yield last as unknown[];
    yield [1, "x", null];
  } finally {
    told.left = true;
  }
}

test("a source that fails stores nothing, and its error is thrown", async () => {
  await withTable(async (conn) => {
    const mine = new Error("mine");
    for (const after of [0, 3, 50_000]) {
      const told = { left: false };
      assert.equal(await rejectionOf(conn.copyRows("t", ["a", "b", "c"], failing(after, mine, told))), mine);
      const later = (async function* () {
        yield* failing(after, mine, told);
      })();
      assert.equal(await rejectionOf(conn.copyRows("t", ["a", "b", "c"], later)), mine);
      assert.equal(await count(conn), 0n);
    }
    // One that failed is not told to end.
    let returned = 0;
    const broken = {
      [Symbol.iterator]: () => ({
        next(): never {
          throw mine;
        },
        return() {
          returned++;
          return { done: true as const, value: undefined };
        },
      }),
    };
    assert.equal(await rejectionOf(conn.copyRows("t", ["a"], broken)), mine);
    assert.equal(returned, 0);
  });
});

test("a value that does not fit names its row and column; nothing is stored", async () => {
  await withTable(async (conn) => {
    const bad: [row: unknown, message: RegExp][] = [
      [["x", "x", null], /column "a" of type int4 in row (\d+): .*format: "text"/],
      [[1.5, "x", null], /column "a" of type int4 in row (\d+)/],
      [[2 ** 31, "x", null], /column "a" of type int4 in row (\d+)/],
      [[undefined, "x", null], /column "a" of type int4 in row (\d+)/],
      [[1, undefined, null], /column "b" of type text in row (\d+)/],
      [[1, "x", new Date(NaN)], /column "c" of type timestamptz in row (\d+)/],
      [[1, "x", {}], /column "c" of type timestamptz in row (\d+)/],
      [[1, "x"], /row of 2 values to 3 columns/],
      [{ a: 1, b: "x" }, /column "c" of type timestamptz in row (\d+)/],
      [5, /Expected an array or an object as a row, received a number/],
      [null, /Expected an array or an object as a row, received null/],
    ];
    for (const [row, message] of bad) {
      for (const after of [0, 1, 20_000]) {
        const told = { left: false };
        const error = await rejectionOf(conn.copyRows("t", ["a", "b", "c"], failing(after, row, told)));
        // First values without a binary form ask for text format: then it is the server that refuses, and says where.
        if (error.name === "PostgresError") {
          assert.equal(after, 0, error.message);
          assert.match((error as unknown as { where: string }).where, /^COPY t, line 1, column a: /);
        } else {
          assert.equal(error.name, "ValueError", error.message);
          assert.match(error.message, message);
          const named = message.exec(error.message)?.[1];
          if (named !== undefined) assert.equal(Number(named), after + 1);
        }
        assert.ok(told.left);
        assert.equal(await count(conn), 0n);
      }
    }
  });
});

test("what the server refuses is its error, with the line", async () => {
  await withTable(async (conn) => {
    const rows = (last: unknown) => failing(30_000, [last, "x", null], { left: false });
    const error = await rejectionOf(conn.copyRows("t", ["a", "b", "c"], rows(1_000_000)));
    assert.equal(error.code, "23514");
    assert.match((error as unknown as { where: string }).where, /^COPY t, line 30001/);
    assert.equal(await count(conn), 0n);
    assert.equal((await rejectionOf(conn.copyRows("missing", ["a"], [[1]]))).code, "42P01");
    assert.equal((await rejectionOf(conn.copyRows("t", ["missing"], [[1]]))).code, "42703");
    assert.equal((await rejectionOf(conn.copyRows("t", [], [[]]))).name, "ValueError");
    assert.equal((await rejectionOf(conn.copyRows("t\0", ["a"], [[1]]))).name, "ValueError");
  });
});

test("a signal ends it", async () => {
  await withTable(async (conn) => {
    const mine = new Error("mine");
    const endless = (async function* () {
      for (let a = 0;; a++) {
        if (a % 100 === 0) await sleep(1);
        yield [a % 1000, "x"];
      }
    })();
    const controller = new AbortController();
    setTimeout(() => controller.abort(mine), 50);
    const copied = conn.copyRows("t", ["a", "b"], endless, { signal: controller.signal });
    assert.equal(await rejectionOf(copied, 5_000), mine);
    assert.equal((await endless.next()).done, true);
    assert.equal(await rejectionOf(conn.copyRows("t", ["a"], [[1]], { signal: controller.signal })), mine);
    assert.equal(await count(conn), 0n);
  });
});

test("in transactions, savepoints, pipelines and pools", async () => {
  await withTable(async (conn) => {
    const rows = Array.from({ length: 1_000 }, (_, a) => [a, "x"]);
    await conn.transaction(async (tx) => {
      await rejectionOf(
        tx.transaction((sp) => sp.copyRows("t", ["a", "b"], failing(9, new Error("mine"), { left: false }))),
      );
      assert.equal(await tx.copyRows("t", ["a", "b"], rows), 1_000);
      assert.equal(await count(tx), 1_000n);
    });
    const settled = await limit(Promise.all([
      conn.copyRows("t", ["a", "b"], rows),
      rejectionOf(conn.copyRows("t", ["a", "b"], [[1_000_000, "x"]])),
      conn.sql`select 1 as a`,
      conn.copyRows("t", ["a", "b"], rows),
    ]));
    assert.deepEqual([settled[0], settled[2], settled[3]], [1_000, [{ a: 1 }], 1_000]);
    assert.equal(await count(conn), 3_000n);
  });
  await withSchema(async (schema) => {
    const pool = createPool(testUrl(), { max: 2 });
    try {
      await pool.exec(`create table ${schema}.t (a int4)`);
      const rows = Array.from({ length: 1_000 }, (_, a) => [a]);
      const counts = await limit(
        Promise.all(Array.from({ length: 8 }, () => pool.copyRows([schema, "t"], ["a"], rows))),
        20_000,
      );
      assert.deepEqual(counts, Array(8).fill(1_000));
      assert.equal(pool.stats().busy, 0);
    } finally {
      await limit(pool.close({ timeout: 0 }));
    }
  });
});

leavesNoSession();
