/** What is stored is what was given, and what is read is what is stored, on every path; else it is an error. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Connection, Range, sql, ValueError } from "../../mod.ts";
import { withConnection } from "../_support/session.ts";

/** The texts of a parameter of a type by its first, second and third execution, alone and inside of other types. */
async function storedTexts(conn: Connection, value: unknown, type: string): Promise<unknown[]> {
  const text = `select $1::${type}::text as v`;
  const list = `select ($1::${type}[])[2]::text as v`;
  const texts: unknown[] = [];
  for (let i = 0; i < 3; i++) {
    texts.push((await conn.query<{ v: string }>(text, [value])).rows[0]!.v);
    texts.push((await conn.query<{ v: string }>(list, [[null, value]])).rows[0]!.v);
  }
  texts.push(await conn.sql`select ${sql.typed(value, type)}::text`.scalar());
  const [row] = (await conn.batch([sql`select ${value}::${sql.raw(type)}::text as v`]))[0]!.rows as {
    v: string;
  }[];
  return [...texts, row!.v];
}

test("a whole number past 2^53 is stored with all of its digits", async () => {
  await withConnection(async (conn) => {
    const values = [
      2 ** 53,
      2 ** 53 + 2,
      2 ** 60,
      2 ** 60 + 256,
      -(2 ** 61),
      2 ** 62 + 2 ** 20,
      2 ** 63 - 1024,
      -(2 ** 63),
    ];
    for (const value of values) {
      const exact = String(BigInt(value));
      const types = value < 0 ? ["int8", "numeric"] : ["int8", "numeric", "xid8"];
      for (const type of types) {
        assert.deepStrictEqual(
          new Set(await storedTexts(conn, value, type)),
          new Set([exact]),
          `${type} ${exact}`,
        );
      }
      assert.deepStrictEqual(
        new Set(await storedTexts(conn, value, "float8")),
        new Set(await storedTexts(conn, BigInt(value), "float8")),
        `float8 ${exact}`,
      );
      const range = `select lower($1::int8range)::text as v`;
      for (let i = 0; i < 3; i++) {
        const { rows } = await conn.query(range, [new Range(value, null)]);
        assert.deepStrictEqual(rows, [{ v: exact }], `int8range ${exact}`);
      }
    }
  });
});

test("copyRows stores a whole number past 2^53 with all of its digits", async () => {
  await withConnection(async (conn) => {
    await conn.exec("create temp table wholes (i int8, n numeric, l int8[], r int8range)");
    const value = 2 ** 60 + 256;
    const exact = String(BigInt(value));
    const row = [value, value, [value], new Range(value, null)];
    await conn.copyRows("wholes", ["i", "n", "l", "r"], [row], { format: "text" });
    await conn.copyRows("wholes", ["i", "n", "l", "r"], [row]);
    await conn.copyRows("wholes", ["i", "l", "r"], [[value, [value], row[3]]], { format: "binary" });
    const { rows } = await conn.query("select i::text, n::text, l::text, r::text from wholes");
    const stored = { i: exact, n: exact, l: `{${exact}}`, r: `[${exact},)` };
    assert.deepStrictEqual(rows, [stored, stored, { ...stored, n: null }]);
  });
});

test("a number that int8 cannot hold is refused by name on every path", async () => {
  await withConnection(async (conn) => {
    for (const value of [2 ** 63, 1e20, 1e21, -1e19, 1.5, NaN, Infinity]) {
      for (let i = 0; i < 3; i++) {
        await assert.rejects(conn.query("select $1::int8 as v", [value]), /bigint/, String(value));
        await assert.rejects(conn.query("select $1::int8[] as v", [[value]]), /bigint/, String(value));
      }
    }
  });
});

class Point {
  readonly #x: number = 1;

  toJSON(): unknown {
    return { x: this.#x };
  }
}

class Options {
  depth?: number;
}

/** Sends `value` as JSON in every way there is; each is a promise of the JSON texts that were stored. */
function jsonPaths(
  conn: Connection,
  value: unknown,
  type: "json" | "jsonb",
): Record<string, () => Promise<unknown>> {
  const text = `select $1::${type}::text as v`;
  const list = `select ($1::${type}[])[1]::text as v`;
  const copy = (format: "binary" | "text") => async () => {
    await conn.exec("truncate documents");
    await conn.copyRows("documents", [type], [[value]], { format });
    return await conn.sql`select ${sql.id(type)}::text from documents`.scalar();
  };
  const query = async (query: string, parameter: unknown) =>
    (await conn.query<{ v: string }>(query, [parameter])).rows[0]!.v;
  return {
    first: () => query(text, value),
    second: () => query(text, value),
    list: () => query(list, [value]),
    wrapped: () => query(text, sql.json(value)),
    typed: () => query(text, sql.typed(value, type)),
    batch: async () =>
      ((await conn.batch([sql`select ${value}::${sql.raw(type)}::text as v`]))[0]!.rows[0] as { v: string })
        .v,
    copied: copy("binary"),
    "copied as text": copy("text"),
  };
}

test("what JSON has no form for is refused on every path, wherever it is", async () => {
  await withConnection(async (conn) => {
    await conn.exec("create temp table documents (json json, jsonb jsonb)");
    const opaque: readonly (readonly [string, unknown])[] = [
      ["a Map", new Map([["a", 1]])],
      ["a Map", new Map()],
      ["a Set", new Set([1])],
      ["a WeakMap", new WeakMap()],
      ["a RegExp", /a/],
      ["an Error", new Error("a")],
      ["a Promise", Promise.resolve(1)],
    ];
    for (const type of ["json", "jsonb"] as const) {
      for (const [name, value] of opaque) {
        for (const holder of [value, { a: [1, { b: value }] }, [value, {}], { a: "{}", b: value }]) {
          for (const [path, send] of Object.entries(jsonPaths(conn, holder, type))) {
            await assert.rejects(send(), (error: unknown) => {
              assert.ok(error instanceof ValueError, `${name} ${path}: ${error}`);
              assert.ok(error.message.includes(`${name}`), error.message);
              return true;
            });
          }
        }
      }
      await assert.rejects(conn.sql`select ${sql.json(new Date(NaN))}`, ValueError);
    }
    assert.deepStrictEqual((await conn.query("select count(*)::int4 as n from documents")).rows, [{ n: 0 }]);
  });
});

test("what JSON.stringify says of an object is what is stored on every path", async () => {
  await withConnection(async (conn) => {
    await conn.exec("create temp table documents (json json, jsonb jsonb)");
    const values: readonly (readonly [unknown, string])[] = [
      [{}, "{}"],
      [[{}, [], ""], '[{},[],""]'],
      [{ a: {}, b: "{}" }, '{"a":{},"b":"{}"}'],
      [new Point(), '{"x":1}'],
      [{ a: new Point() }, '{"a":{"x":1}}'],
      [new Options(), "{}"],
      [Object.create(null), "{}"],
      [{ a: undefined }, "{}"],
      [{ a: new Date(0), b: {} }, '{"a":"1970-01-01T00:00:00.000Z","b":{}}'],
      [new URL("http://localhost/"), '"http://localhost/"'],
    ];
    for (const [value, stored] of values) {
      for (const [path, send] of Object.entries(jsonPaths(conn, value, "json"))) {
        assert.equal(await send(), stored, path);
      }
    }
  });
});
