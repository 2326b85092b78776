/** Queries take effect in the order in which they were issued, also those that are the first to use a type. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Connection, createPool, type Queryable, sql, ValueError } from "../../mod.ts";
import { ask, leavesNoSession, limit, testUrl, withSchema } from "../_support/server.ts";
import { rejectionOf, type SessionOptions, withConnection } from "../_support/session.ts";

/** A table for each kind of type, and a value whose form depends on the type. */
const KINDS: readonly (readonly [column: string, value: unknown, literal: string])[] = [
  ["e[]", ["y", "z"], "{y,z}"],
  ["c", { a: 1, m: "y" }, "(1,y)"],
  ["c[]", [{ a: 1, m: "z" }, null], '{"(1,z)",NULL}'],
  ["d", ["y"], "{y}"],
  ["f[]", [{ a: 1, m: "z" }, null], '{"(1,z)",NULL}'],
  ["n", { p: { a: 2, m: null }, l: [{ a: 3, m: "y" }] }, '("(2,)","{""(3,y)""}")'],
];

/** Each test has types that nobody has looked up. */
async function withTypes(use: (conn: Connection, schema: string) => Promise<void>, options?: SessionOptions) {
  await withSchema(async (schema) => {
    await ask(`set search_path = ${schema};
      create type e as enum ('y', 'z'); create type c as (a int, m e); create domain d as e[]; create domain f as c;
      create type n as (p c, l c[]);
      ${KINDS.map(([column], i) => `create table t${i} (v ${column})`).join(";")}`);
    await withConnection((conn) => use(conn, schema), { ...options, parameters: { search_path: schema } });
  });
}

const count = (db: Queryable, i: number) => db.query(`select count(*)::int as n from t${i}`);

for (const statementCache of [256, 0]) {
  test(`a query behind a first use sees what that did, statementCache: ${statementCache}`, async () => {
    for (const way of ["values", "named", "after null"] as const) {
      await withTypes(async (conn) => {
        for (const [i, [column, value]] of KINDS.entries()) {
          const text = way === "named"
            ? `insert into t${i} values ($1::${column})`
            : `insert into t${i} values ($1)`;
          // A statement that is known while its type is not: NULL needs none.
          if (way === "after null") { for (let n = 0; n < 2; n++) await conn.query(text, [null]); }
          const before = way === "after null" ? 2 : 0;
          const [first, , inserted, last] = await limit(Promise.all([
            count(conn, i),
            conn.query("select 1"),
            conn.query(`${text} returning v`, [value]),
            count(conn, i),
            conn.query(text, [value]),
          ]));
          assert.deepEqual(first.rows, [{ n: before }], column);
          assert.deepEqual(inserted.rows, [{ v: value }], column);
          assert.deepEqual(last.rows, [{ n: before + 1 }], column);
          assert.deepEqual((await count(conn, i)).rows, [{ n: before + 2 }], column);
        }
      }, { statementCache });
    }
  });
}

test("inside a transaction, a savepoint or a block of the user's own the order is kept too", async () => {
  for (const [i, [column, value]] of KINDS.entries()) {
    await withTypes(async (conn) => {
      const insert = `insert into t${i} values ($1)`;
      // The first query of all, so that it travels with BEGIN.
      await conn.transaction(async (tx) => {
        const [, counted] = await Promise.all([tx.query(insert, [value]), count(tx, i)]);
        assert.deepEqual(counted.rows, [{ n: 1 }], column);
      });
    });
    await withTypes(async (conn) => {
      await conn.transaction(async (tx) => {
        await tx.query("select 1");
        await tx.transaction(async (nested) => {
          const [before, , counted] = await Promise.all([
            count(nested, i),
            nested.query(insert(i), [value]),
            count(nested, i),
          ]);
          assert.deepEqual([before.rows, counted.rows], [[{ n: 0 }], [{ n: 1 }]], column);
        });
      });
    });
    await withTypes(async (conn) => {
      const [, , counted] = await limit(Promise.all([
        conn.query("begin"),
        conn.query(insert(i), [value]),
        count(conn, i),
        conn.query("commit"),
      ]));
      assert.deepEqual(counted.rows, [{ n: 1 }], column);
      assert.deepEqual((await count(conn, i)).rows, [{ n: 1 }], column);
    });
  }
});

const insert = (i: number) => `insert into t${i} values ($1)`;

test("a first use is not undone by what fails behind it in the same turn", async () => {
  for (const [i, [column, value]] of KINDS.entries()) {
    await withTypes(async (conn) => {
      for (let round = 0; round < 3; round++) {
        const outcomes = await conn.transaction(async (tx) => {
          const settled = await Promise.allSettled([
            tx.query(insert(i), [value]),
            tx.query(`select $1::${column} as v`, [value]),
            tx.query("select 1 / $1::int", [0]),
            tx.query(insert(i), [value]),
          ]);
          await tx.rollback();
          return settled;
        });
        const codes = outcomes.map((each) =>
          each.status === "fulfilled" ? "done" : each.reason.code ?? "never ran"
        );
        assert.deepEqual(codes.slice(0, 3), ["done", "done", "22012"], column);
        assert.notEqual(codes[3], "done");
        assert.deepEqual((outcomes[1] as PromiseFulfilledResult<{ rows: unknown }>).value.rows, [{
          v: value,
        }]);
      }
    });
  }
});

test("a first use in a block that has failed says so, and does no harm to later ones", async () => {
  for (const [i, [column, value]] of KINDS.entries()) {
    await withTypes(async (conn) => {
      await conn.query("begin");
      await rejectionOf(conn.query("select 1 / 0"));
      for (let round = 0; round < 2; round++) {
        assert.equal((await rejectionOf(conn.query(insert(i), [value]))).code, "25P02", column);
      }
      await conn.query("rollback");
      const { rows } = await conn.query(`insert into t${i} values ($1) returning v`, [value]);
      assert.deepEqual(rows, [{ v: value }]);
    });
  }
});

test("a batch that is the first to use types keeps its order, and its block alive", async () => {
  for (const inside of [false, true]) {
    for (const [i, [column, value]] of KINDS.entries()) {
      await withTypes(async (conn) => {
        const run = async (db: Queryable) => {
          const counted = () => sql`select count(*)::int as n from ${sql.raw(`t${i}`)}`;
          const batch = db.batch([
            counted(),
            sql`insert into ${sql.raw(`t${i}`)} values (${value})`,
            counted(),
            sql`select ${value}::${sql.raw(column)} as v`,
          ]);
          const behind = count(db, i);
          const results = await limit(batch);
          assert.deepEqual(
            [0, 2, 3].map((at) => results[at]!.rows),
            [[{ n: 0 }], [{ n: 1 }], [{ v: value }]],
            column,
          );
          assert.deepEqual((await behind).rows, [{ n: 1 }]);
        };
        await (inside ? conn.transaction(run) : run(conn));
      });
    }
  }
});

test("rows of a type that is first seen in a block which then fails are decoded or refused, never text", async () => {
  for (const [column, value, literal] of KINDS) {
    const text = `select '${literal}'::${column} as v`;
    await withTypes(async (conn) => {
      for (const shape of ["query", "json", "stream"] as const) {
        const read = async (db: Queryable): Promise<unknown> => {
          if (shape === "query") return (await db.query(text)).rows;
          if (shape === "json") return JSON.parse(await db.sql`${sql.raw(text)}`.json());
          return await Array.fromAsync(db.sql`${sql.raw(text)}`);
        };
        const outcomes = await conn.transaction(async (tx) => {
          const settled = await limit(Promise.allSettled([read(tx), tx.query("select 1 / 0")]));
          await tx.rollback();
          return settled;
        });
        const [seen] = outcomes;
        if (seen.status === "fulfilled") assert.deepEqual(seen.value, [{ v: value }], `${column} ${shape}`);
        else if (shape === "query") {
          assert.ok(seen.reason instanceof ValueError, String(seen.reason));
          assert.match(
            seen.reason.message,
            /^Cannot decode column "v": .* the transaction block has failed$/,
          );
          assert.equal((seen.reason.cause as { code?: string }).code, "25P02");
        }
        for (let i = 0; i < 3; i++) {
          assert.deepEqual(await read(conn), [{ v: value }], `${column} ${shape} ${i}`);
        }
      }
    });
  }
});

test("rows that nobody waited for inside their transaction are decoded when it has ended", async () => {
  await withTypes(async (conn, schema) => {
    const pool = createPool(testUrl(), { max: 1 });
    try {
      for (const db of [conn, pool]) {
        let late: Promise<{ rows: unknown[] }> | undefined;
        await db.transaction((tx) => void (late = tx.query(`select array['y']::${schema}.e[] as v`)));
        assert.deepEqual((await limit(late!)).rows, [{ v: ["y"] }]);
      }
    } finally {
      await limit(pool.close({ timeout: 0 }));
    }
  });
});

test("await, json() and streams give equal values at any time", async () => {
  await withTypes(async (conn, schema) => {
    const value = { a: 1, m: "y" };
    const text =
      "select row(1, 'y')::c as v, array[row(1, 'y')::c] as l, array['y']::e[] as m, $1::text as t";
    const read = async (shape: string, db: Queryable): Promise<unknown> => {
      const query = db
        .sql`select row(1, 'y')::c as v, array[row(1, 'y')::c] as l, array['y']::e[] as m, ${"t"}::text as t`;
      if (shape === "json") return JSON.parse(await query.json());
      if (shape === "stream") return await Array.fromAsync(query.stream({ batch: 1 }));
      if (shape === "arrays") {
        return (await query.arrays()).map(([v, l, m, t]) => ({ v, l, m, t }));
      }
      if (shape === "prepared") {
        await using statement = await (db as Connection).prepare(text);
        return await Array.fromAsync(statement.stream(["t"]));
      }
      return await query;
    };
    const shapes = ["json", "stream", "query", "arrays", "prepared"];
    for (const [at, first] of shapes.entries()) {
      // Each time the same text, and other types of the same names, first met in another way.
      await ask(
        `set search_path = ${schema}; drop domain if exists d, f cascade; drop type if exists n, c, e cascade;
        create type e as enum ('y', 'z'); create type c as (a int, m e)`,
      );
      for (const shape of [first, ...shapes.slice(at), ...shapes, first]) {
        if (shape === "prepared") {
          assert.deepEqual(
            await read(shape, conn),
            [{ v: value, l: [value], m: ["y"], t: "t" }],
            `${first} ${shape}`,
          );
        } else {
          for (
            const run of [
              (f: (db: Queryable) => Promise<void>) => f(conn),
              (f: (db: Queryable) => Promise<void>) => conn.transaction(f),
            ]
          ) {
            await run(async (db) =>
              assert.deepEqual(
                await read(shape, db),
                [{ v: value, l: [value], m: ["y"], t: "t" }],
                `${first}, ${shape}`,
              )
            );
          }
        }
      }
    }
  });
});

leavesNoSession();
