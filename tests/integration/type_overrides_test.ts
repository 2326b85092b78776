/** Representations that the user chooses, for a pool, a connection or one query, and codecs that throw. */

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ConfigurationError,
  connect,
  type Connection,
  createPool,
  sql,
  type TypeOverride,
  ValueError,
} from "../../mod.ts";
import { rejectionOf, withConnection } from "../_support/session.ts";
import { leavesNoSession, limit, testUrl, withSchema } from "../_support/server.ts";

const decoder = new TextDecoder();

/** Values of a type as marked text. */
const marked: TypeOverride = {
  decodeText: (bytes, start, end) => `<${decoder.decode(bytes.subarray(start, end))}>`,
};

function throwing(bad: string): TypeOverride {
  return {
    decodeText(bytes, start, end): string {
      const text = decoder.decode(bytes.subarray(start, end));
      if (text === bad) throw new Error(`no ${bad} please`);
      return text;
    },
  };
}

const encodesBadly: TypeOverride = {
  encodeText(): string {
    throw new Error("not today");
  },
};

test("overrides hold for a connection, a pool, or one query", async () => {
  const text = "select 1::int4 as a, array[2]::int4[] as b, int4range(3, 5) as c, 7::int8 as d";
  const plain = { a: 1, b: [2], d: 7n };
  const changed = { a: "<1>", b: ["<2>"], d: 7n };
  const read = async (rows: PromiseLike<{ rows: unknown[] }>): Promise<unknown> => {
    const { c, ...rest } = (await rows).rows[0] as Record<string, unknown>;
    return [rest, (c as { lower: unknown }).lower];
  };
  await withConnection(async (conn) => {
    const types = { int4: marked };
    for (let i = 0; i < 3; i++) {
      assert.deepStrictEqual(await read(conn.query(text)), [plain, 3]);
      assert.deepStrictEqual(await read(conn.query(text, [], { types })), [changed, "<3>"]);
      assert.deepStrictEqual(await read(conn.query(text, [], { types: { 23: marked } })), [changed, "<3>"]);
      assert.deepStrictEqual(
        await conn.sql`select 1 as a`.with({ types }),
        [{ a: "<1>" }],
      );
    }
    assert.deepStrictEqual((await conn.exec("select 1 as a", { types }))[0]!.rows, [{ a: "<1>" }]);
    assert.deepStrictEqual(await conn.sql`select 1 as a`.with({ types }).arrays(), [["<1>"]]);
    assert.deepStrictEqual(await conn.sql`select 1 as a`.with({ types }).columns(), { a: ["<1>"] });
    const streamed = [];
    for await (const row of conn.sql`select 1 as a`.with({ types })) streamed.push(row);
    assert.deepStrictEqual(streamed, [{ a: "<1>" }]);
    const [batched] = await conn.batch([sql`select 1 as a`], { types });
    assert.deepStrictEqual(batched!.rows, [{ a: "<1>" }]);
    await conn.transaction(async (tx) => {
      assert.deepStrictEqual(await tx.sql`select 1 as a`.with({ types }), [{ a: "<1>" }]);
      assert.deepStrictEqual(await tx.sql`select 1 as a`, [{ a: 1 }]);
    });
    await using statement = await conn.prepare("select 1 as a");
    assert.deepStrictEqual((await statement.query([], { types })).rows, [{ a: "<1>" }]);
    assert.deepStrictEqual((await statement.query()).rows, [{ a: 1 }]);
  });
  await withConnection(async (conn) => {
    for (let i = 0; i < 3; i++) assert.deepStrictEqual(await read(conn.query(text)), [changed, "<3>"]);
    // What a query says goes before what the connection says of the same type only.
    const [row] = await conn.sql`select 1::int4 as a, 2::int8 as b`.with({ types: { int8: marked } });
    assert.deepStrictEqual(row, { a: "<1>", b: "<2>" });
  }, { types: { int4: marked } });
  await using pool = createPool(testUrl(), { max: 2, types: { int4: marked } });
  for (let i = 0; i < 3; i++) assert.deepStrictEqual(await read(pool.query(text)), [changed, "<3>"]);
  assert.deepStrictEqual(await pool.sql`select 1::int8 as a`.with({ types: "text" }), [{ a: "1" }]);
});

test('types: "text" gives every value as its text, and takes parameters as ever', async () => {
  const text =
    `select 1 as a, true as b, null as c, '{1,2}'::int4[] as d, '{"x":1}'::jsonb as e, '\\x00ff'::bytea as f,
    '2024-02-29'::timestamptz at time zone 'UTC' as g, row(1, 'x') as h, $1::int4[] as i, $2::jsonb as j`;
  const expected = {
    a: "1",
    b: "t",
    c: null,
    d: "{1,2}",
    e: '{"x": 1}',
    f: "\\x00ff",
    g: "2024-02-29 00:00:00",
    h: "(1,x)",
    i: "{1,2}",
    j: "[1]",
  };
  const values = [[1, 2], [1]];
  await withConnection(async (conn) => {
    for (let i = 0; i < 3; i++) assert.deepStrictEqual((await conn.query(text, values)).rows, [expected]);
  }, { types: "text", parameters: { TimeZone: "UTC" } });
  await withConnection(async (conn) => {
    for (let i = 0; i < 3; i++) {
      assert.deepStrictEqual((await conn.query(text, values, { types: "text" })).rows, [expected]);
      assert.deepStrictEqual((await conn.query("select 1 as a")).rows, [{ a: 1 }]);
    }
  }, { parameters: { TimeZone: "UTC" } });
});

test("overrides by name reach types that are learnt later, everywhere or in one schema", () =>
  withSchema((schema) =>
    withSchema((other) =>
      withConnection(async (conn) => {
        for (const each of [schema, other]) {
          await conn.exec(`create type ${each}.mood as enum ('sad', 'ok')`);
        }
        const text =
          `select 'ok'::${schema}.mood as a, '{sad}'::${schema}.mood[] as b, 'ok'::${other}.mood as c`;
        for (let i = 0; i < 3; i++) {
          const { rows } = await conn.query(text, [], { types: { mood: marked } });
          assert.deepStrictEqual(rows, [{ a: "<ok>", b: ["<sad>"], c: "<ok>" }]);
          const types = { [`${schema}.mood`]: marked };
          const only = await conn.query(text, [], { types });
          assert.deepStrictEqual(only.rows, [{ a: "<ok>", b: ["<sad>"], c: "ok" }]);
          assert.deepStrictEqual((await conn.query(text)).rows, [{ a: "ok", b: ["sad"], c: "ok" }]);
        }
      })
    )
  ));

test("the encoding half of an override leaves decoding as it is, and the other way round", async () => {
  const shout: TypeOverride = { encodeText: (value) => `${JSON.stringify(value)}!` };
  await withConnection(async (conn) => {
    for (let i = 0; i < 3; i++) {
      const { rows } = await conn.query("select $1::text as a", [{ x: 1 }], { types: { text: shout } });
      assert.deepStrictEqual(rows, [{ a: '{"x":1}!' }]);
      const other = await conn.query("select $1::jsonb as a", [{ x: 1 }], { types: { jsonb: marked } });
      assert.deepStrictEqual(other.rows, [{ a: '<{"x": 1}>' }]);
    }
  });
});

test("an option types that is none is refused", async () => {
  // One that reads binary alone would give other values once the formats are learned.
  for (const types of [5, { int4: 5 }, { int4: { decodeText: "x" } }, { int4: { decodeBinary: () => 1 } }]) {
    await assert.rejects(limit(connect(testUrl(), { types } as never)), ConfigurationError);
    await withConnection((conn) =>
      assert.rejects(conn.query("select 1", [], { types } as never), ConfigurationError)
    );
  }
});

/** What `attempt` rejects with while queries before and behind it in the pipeline succeed. */
async function amongNeighbours(conn: Connection, attempt: () => PromiseLike<unknown>): Promise<Error> {
  const nonces = [1, 2].map((n) => n * 1000 + Math.trunc(Math.random() * 1000));
  const ask = (nonce: number) => conn.query<{ v: number }>("select $1::int4 as v", [nonce]);
  const before = ask(nonces[0]!);
  const failure = rejectionOf(attempt());
  const behind = ask(nonces[1]!);
  const results = await limit(Promise.all([before, behind]));
  assert.deepStrictEqual(results.map(({ rows }) => rows[0]!.v), nonces);
  return await failure;
}

test("a codec that throws fails its own query only, and the column is named", async () => {
  const types = { text: throwing("bad") };
  await withConnection(async (conn) => {
    const pid = conn.processId;
    for (const columns of ["t as x, 1 as a, 2 as b", "1 as a, t as x, 2 as b", "1 as a, 2 as b, t as x"]) {
      const text = `select ${columns} from unnest(array['good', 'bad', 'good']) t`;
      const ways: (() => PromiseLike<unknown>)[] = [
        () => conn.query(text, [], { types }),
        () => conn.query(text, [], { types }),
        () => conn.exec(text, { types }),
        () => conn.sql`${sql.raw(text)}`.with({ types }).arrays(),
        () => conn.sql`${sql.raw(text)}`.with({ types }).columns(),
        async () => {
          for await (const _ of conn.sql`${sql.raw(text)}`.with({ types }).stream({ batch: 1 }));
        },
        async () => {
          for await (const _ of conn.sql`${sql.raw(text)}`.with({ types }).stream());
        },
        () => conn.transaction((tx) => tx.query(text, [], { types })),
        async () => {
          const [first] = await conn.batch([sql.raw(text)], { types, sync: "each" });
          if (first!.status === "rejected") throw first!.reason;
        },
        () => conn.batch([sql.raw(text), sql`select 1`], { types }),
        async () => {
          await using statement = await conn.prepare(text);
          await statement.query([], { types });
        },
      ];
      for (const way of ways) {
        const error = await amongNeighbours(conn, way);
        assert.ok(error instanceof ValueError, String(error));
        assert.match(error.message, /column "x" of type text/);
        assert.equal((error.cause as Error).message, "no bad please");
      }
    }
    for (let i = 0; i < 100; i++) assert.equal(await conn.sql`select ${i}::int4`.scalar(), i);
    assert.equal(conn.processId, pid);
  });
});

test("an encoder that throws fails its own query only, nothing is sent, and the parameter is named", async () => {
  const types = { int4range: encodesBadly };
  await withConnection(async (conn) => {
    await conn.exec("create temp table t (r int4range)");
    const text = "insert into t values ($1)";
    const value = { some: "object" };
    const ways: (() => PromiseLike<unknown>)[] = [
      () => conn.query(text, [value], { types }),
      () => conn.query(text, [value], { types }),
      () => conn.sql`insert into t values (${value})`.with({ types }),
      () =>
        conn.batch([sql`insert into t values ('[1,2)')`, sql`insert into t values (${value})`], { types }),
      () =>
        conn.batch([sql`insert into t values (${value})`, sql`insert into t values ('[1,2)')`], { types }),
      () => conn.transaction((tx) => tx.query(text, [value], { types })),
      async () => {
        const [bad, good] = await conn.batch([sql`select ${value}::int4range`, sql`select 1`], {
          types,
          sync: "each",
        });
        assert.equal(good!.status, "fulfilled");
        if (bad!.status === "rejected") throw bad!.reason;
      },
      async () => {
        for await (const _ of conn.sql`select ${value}::int4range`.with({ types }));
      },
    ];
    for (const way of ways) {
      const error = await amongNeighbours(conn, way);
      assert.ok(error instanceof ValueError, String(error));
      assert.match(error.message, /parameter \$1 of type int4range/);
      assert.equal((error.cause as Error).message, "not today");
    }
    assert.equal(await conn.sql`select count(*) from t`.scalar(), 0n);
  });
  await withConnection(async (conn) => {
    await conn.exec("create temp table t (r int4range)");
    await assert.rejects(conn.copyRows("t", ["r"], [[value()]]), ValueError);
    assert.equal(await conn.sql`select count(*) from t`.scalar(), 0n);
    function value(): unknown {
      return { some: "object" };
    }
  }, { types });
});

for (const failing of [false, true]) {
  const name = failing ? "throws after" : "goes on after";
  test(`an encoder that ${name} running a query of the same session leaves both in order`, async () => {
    const inner: PromiseLike<unknown>[] = [];
    const order: string[] = [];
    const runs = () => {
      const query = conn.query("select 'inner' as who").then(({ rows }) =>
        order.push(String(rows[0]!["who"]))
      );
      inner.push(query);
      if (failing) throw new Error("not today");
    };
    const types = {
      int4: {
        encodeText(): string {
          runs();
          return "5";
        },
      },
    };
    await using conn: Connection = await limit(connect(testUrl(), { types }));
    const run = async (i: number) => {
      // As an object it is given to the encoder, at the first use when it has been described and later at once.
      const values = [sql.typed(new Map([[i, i]]), "int4")];
      const outer = conn.query(`select $1::text is not null as ok, ${i % 2} as n`, values);
      await outer.then(() => order.push("outer"), () => order.push("refused"));
      await Promise.all(inner.splice(0));
    };
    for (let i = 0; i < 6; i++) await limit(run(i));
    await limit(conn.transaction((tx) => tx.query("select 1")));
    const one = failing ? ["refused", "inner"] : ["outer", "inner"];
    assert.deepEqual(order.length, 12, order.join());
    for (let i = 0; i < 12; i += 2) assert.deepEqual(order.slice(i, i + 2), one, order.join());
  });
}

leavesNoSession();
