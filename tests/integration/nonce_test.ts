/** Answers reach those who asked, in order, under any mix of queries on one connection. */

import { test } from "node:test";
import assert from "node:assert/strict";
import process from "node:process";
import { connect, type Connection, PostgresError, ValueError } from "../../mod.ts";
import { seededRandom } from "../_support/proxy.ts";
import { leavesNoSession, limit, testUrl } from "../_support/server.ts";

const SEED: number = Number(process.env["PIPEGRES_SEED"] ?? Math.floor(Math.random() * 1e9));
const QUERIES = 10_000;

/** One kind of query: resolves once its answer has been checked against its nonce. */
type Ask = (connection: Connection, nonce: number, random: () => number) => Promise<void>;

async function rejectsWith(work: Promise<unknown>, code: string): Promise<void> {
  const error = await work.then(() => undefined, (reason) => reason);
  assert.ok(error instanceof PostgresError, `${code} expected, got ${error}`);
  assert.equal(error.code, code);
}

const ASKS: Readonly<Record<string, Ask>> = {
  async "a simple query"(connection, nonce) {
    const results = await connection.exec<{ n: number }>(`select ${nonce} as n; select ${nonce} + 1 as n`);
    assert.deepEqual(results.map(({ rows }) => rows[0]?.n), [nonce, nonce + 1]);
  },
  async "a first use"(connection, nonce) {
    const { rows } = await connection.query(`select $1::int4 as n, ${nonce} as m`, [nonce]);
    assert.deepEqual(rows, [{ n: nonce, m: nonce }]);
  },
  async "a repeated query"(connection, nonce) {
    assert.deepEqual(await connection.sql`select ${nonce}::int4 as n, 'same' as s`, [{
      n: nonce,
      s: "same",
    }]);
  },
  async "a repeated query of one of twenty texts"(connection, nonce) {
    const { rows } = await connection.query(`select $1::int4 as n, ${nonce % 20} as k`, [nonce]);
    assert.deepEqual(rows, [{ n: nonce, k: nonce % 20 }]);
  },
  async "several rows"(connection, nonce) {
    const rows = await connection.sql<{ n: number }>`
      select ${nonce}::int4 + i as n from generate_series(1, ${nonce % 50}::int4) i`;
    assert.deepEqual(rows.map(({ n }) => n), Array.from({ length: nonce % 50 }, (_, i) => nonce + i + 1));
  },
  async "an ambiguous parameter"(connection, nonce) {
    const rows = await connection.sql`select n from unnest(${[
      nonce,
      nonce + 1,
    ]}::int4[]) n where n > ${nonce}`;
    assert.deepEqual(rows, [{ n: nonce + 1 }]);
  },
  async "an ambiguous parameter on first use"(connection, nonce) {
    const { rows } = await connection.query(`select $1::jsonb as j, ${nonce} as n`, [{ nonce }]);
    assert.deepEqual(rows, [{ j: { nonce }, n: nonce }]);
  },
  "a parse error": (connection, nonce) =>
    rejectsWith(connection.query(`select nonsense_${nonce % 30} from nowhere_${nonce}`), "42P01"),
  "a repeated parse error": (connection) => rejectsWith(connection.query("selec 1"), "42601"),
  "a bind error": (connection, nonce) =>
    rejectsWith(connection.query("select $1::int4 as n", [`x${nonce}`]), "22P02"),
  "an execution error": (connection, nonce) =>
    rejectsWith(connection.query("select 1 / ($1::int4 - $1::int4)", [nonce]), "22012"),
  async "an execution error behind rows"(connection, nonce) {
    const { sql } = connection;
    await rejectsWith(sql`select ${nonce}::int4 / (3 - i) from generate_series(1, 5) i`.arrays(), "22012");
  },
  "a simple error": (connection, nonce) =>
    rejectsWith(connection.exec(`select ${nonce}; select 1/0`), "22012"),
  async "an unfit value"(connection, nonce) {
    const error = await connection.query(`select $1::int4, ${nonce % 5}`, [undefined]).then(
      () => undefined,
      (e) => e,
    );
    assert.ok(error instanceof ValueError, String(error));
  },
  async "a description"(connection, nonce) {
    const { parameters, fields } = await connection.sql`select ${nonce}::int4 as n, ${nonce % 7}::text as t`
      .describe();
    assert.deepEqual(parameters, [23, 25]);
    assert.deepEqual(fields.map(({ name }) => name), ["n", "t"]);
  },
  async "an empty query"(connection) {
    assert.equal((await connection.query("")).command, null);
  },
};

for (
  const [name, options] of Object.entries({
    "as usual": {},
    "with a cache of 5 statements": { statementCache: 5 },
    "without statement cache": { statementCache: 0 },
    "with a narrow pipeline": { pipeline: { maxQueries: 3 } },
  })
) {
  const count = name === "as usual" ? QUERIES : QUERIES / 10;
  test(`${count} mixed queries on one connection, ${name}: each gets its own answer`, async () => {
    console.log(`seed ${SEED} (PIPEGRES_SEED)`);
    const random = seededRandom(SEED);
    await using connection = await limit(connect(testUrl(), options));
    const kinds = Object.entries(ASKS);
    const running: Promise<void>[] = [];
    for (let i = 0; i < count; i++) {
      const [kind, ask] = kinds[Math.floor(random() * kinds.length)]!;
      const nonce = Math.floor(random() * 1e9);
      running.push(
        ask(connection, nonce, random).catch((error) => {
          throw new Error(`seed ${SEED}, query ${i}, ${kind}, nonce ${nonce}`, { cause: error });
        }),
      );
      // Bursts of all sizes, and now and then none.
      if (random() < 0.02) await limit(Promise.all(running.splice(0)), 60_000);
      else if (random() < 0.1) await Promise.resolve();
      else if (random() < 0.05) await new Promise((resolve) => setTimeout(resolve, 0));
    }
    await limit(Promise.all(running), 60_000, "the last burst");
    assert.deepEqual(await limit(connection.sql`select 1 as n`), [{ n: 1 }]);
  });
}

test("queries settle in the order in which they were issued", async () => {
  await using connection = await limit(connect(testUrl()));
  const order: number[] = [];
  const note = (i: number) => () => void order.push(i);
  const texts = [
    "select pg_sleep(0.05)",
    "select $1::int4[]",
    "selec",
    "select $1::int4[]",
    "select 1/0",
    "select 5",
  ];
  await limit(Promise.all(texts.map((text, i) => {
    const parameters = text.includes("$1") ? [[1]] : [];
    return connection.query(text, parameters).then(note(i), note(i));
  })));
  assert.deepEqual(order, [0, 1, 2, 3, 4, 5]);
});

test("queries that fail settle in their place among those that go well", async () => {
  await using connection = await limit(connect(testUrl()));
  const statement = await limit(connection.prepare("select 1 / $1::int4"));
  const order: number[] = [];
  const note = (i: number) => () => void order.push(i);
  const indices = Array.from({ length: 300 }, (_, i) => i);
  // Answers come many at a time: of one, of several and of many in a row that fail.
  await limit(
    Promise.all(
      indices.map((i) =>
        statement.query([i % 7 === 0 || i % 11 < 3 || (i > 200 && i < 250) ? 0 : 1]).then(note(i), note(i))
      ),
    ),
  );
  assert.deepEqual(order, indices);
});

test("queries of every kind settle in the order in which they were issued", async () => {
  console.log(`seed ${SEED} (PIPEGRES_SEED)`);
  await using connection = await limit(connect(testUrl()));
  const statement = await limit(connection.prepare("select 1 / $1::int4"));
  const { sql } = connection;
  const kinds: Readonly<Record<string, () => Promise<unknown>>> = {
    "a query": () => connection.query("select 1"),
    "a query that fails": () => connection.query("select 1 / 0"),
    "a tagged query": () => sql`select 1`.result(),
    "a tagged query that fails": () => sql`select 1 / 0`.result(),
    "a row that is missing": () => sql`select 1 where false`.one(),
    "a prepared statement": () => statement.query([1]),
    "a prepared statement that fails": () => statement.query([0]),
    "a script": () => connection.exec("select 1"),
    "a script that fails": () => connection.exec("select 1 / 0"),
    "a batch": () => connection.batch([sql`select 1`, sql`select 2`]),
    "a description": () => sql`select 1`.describe(),
  };
  const random = seededRandom(SEED);
  const names = Object.keys(kinds);
  for (let round = 0; round < 60; round++) {
    // Two kinds in turns, then all of them.
    const [a, b] = [names[round % names.length]!, names[Math.floor(random() * names.length)]!];
    const chosen = round < 40 ? [a, b] : names;
    const issued = Array.from({ length: 20 }, () => chosen[Math.floor(random() * chosen.length)]!);
    const settled: string[] = [];
    const note = (name: string, i: number) => () => void settled.push(`${i} ${name}`);
    await limit(Promise.all(issued.map((name, i) => kinds[name]!().then(note(name, i), note(name, i)))));
    assert.deepEqual(settled, issued.map((name, i) => `${i} ${name}`));
  }
});

test("queries of every kind that end with their connection settle in the order in which they were issued", async () => {
  await using connection = await limit(connect(testUrl()));
  const { sql } = connection;
  const order: number[] = [];
  const issued = [
    connection.query("select pg_sleep(20)"),
    sql`select 1`.one(),
    connection.exec("select 1"),
    connection.batch([sql`select 1`]),
    connection.query("select 1"),
    sql`select 1`.describe(),
    sql`select 1`.result(),
  ];
  const noted = issued.map((each, i) => each.then(() => assert.fail(), () => void order.push(i)));
  await limit(connection.close({ timeout: 0 }));
  await limit(Promise.all(noted));
  assert.deepEqual(order, issued.map((_, i) => i));
});

for (const [name, value] of Object.entries({ "a plain": 1, "an ambiguous": [1] })) {
  test(`a query issued while another with ${name} parameter is in its first use does not overtake it`, async () => {
    await using connection = await limit(connect(testUrl()));
    await limit(connection.exec("create temp table log (id serial, t text)"));
    const text = Array.isArray(value)
      ? "insert into log (t) select 'first' from unnest($1::int4[])"
      : "insert into log (t) select 'first' where $1::int4 = 1";
    const first = connection.query(text, [value]);
    // Turns in which the description may or may not have come.
    for (let i = 0; i < 20; i++) {
      void connection.query("insert into log (t) values ($1)", [`later ${i}`]);
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    await limit(first);
    const rows = await limit(connection.sql<{ t: string }>`select t from log order by id`);
    assert.deepEqual(rows.map(({ t }) => t), [
      "first",
      ...Array.from({ length: 20 }, (_, i) => `later ${i}`),
    ]);
  });
}

leavesNoSession();
