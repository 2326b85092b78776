/** What is stored is what was given, and what is read is what is stored, on every path; else it is an error. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Connection, Range, sql } from "../../mod.ts";
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
