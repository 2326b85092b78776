/** COPY FROM STDIN as a stream: data in any pieces, and every way for it to fail. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Connection, type CopyFromStream, createPool, type Transaction } from "../../mod.ts";
import { leavesNoSession, limit, testUrl, uniqueName, withSchema } from "../_support/server.ts";
import { rejectionOf, sleep, withConnection } from "../_support/session.ts";

type Chunk = Uint8Array | string;

async function send(stream: CopyFromStream, chunks: Iterable<Chunk>): Promise<number> {
  const writer = stream.getWriter();
  for (const chunk of chunks) {
    await limit(writer.ready);
    writer.write(chunk).catch(() => {});
  }
  await limit(writer.close());
  return stream.rowCount!;
}

/** Runs `body` with a temporary table `t (a int primary key, b text)`. */
async function withTable(body: (conn: Connection) => Promise<void>): Promise<void> {
  await withConnection(async (conn) => {
    await conn.exec("create temp table t (a int primary key, b text)");
    const { processId } = conn;
    await body(conn);
    assert.deepEqual(await limit(conn.sql`select 1 as a`), [{ a: 1 }]);
    assert.equal(conn.processId, processId);
    assert.equal(conn.transactionStatus, "idle");
  }, { within: 60_000 });
}

const count = (on: Connection | Transaction) => on.sql<bigint>`select count(*) from t`.scalar();

test("data comes in pieces of any size, strings or bytes", async () => {
  await withTable(async (conn) => {
    const text = "1\tone\n2\tzwö\n3\t\\N\n4\t𝄞 and 𝄢\n";
    const bytes = new TextEncoder().encode(text);
    const ways: Record<string, Chunk[]> = {
      "one string": [text],
      "one array": [bytes],
      "single bytes": Array.from(bytes, (_, i) => bytes.subarray(i, i + 1)),
      // The halves of characters outside the BMP come apart.
      "single UTF-16 units": text.split(""),
      "with empty ones": ["", text.slice(0, 5), new Uint8Array(0), text.slice(5), ""],
      "mixed": [text.slice(0, 3), new TextEncoder().encode(text.slice(3))],
    };
    for (const [way, chunks] of Object.entries(ways)) {
      assert.equal(await send(conn.copyFrom("copy t from stdin"), chunks), 4, way);
      const rows = await conn.sql<{ b: string }>`delete from t returning a, b`;
      assert.deepEqual(rows.map(({ b }) => b), ["one", "zwö", null, "𝄞 and 𝄢"], way);
    }
  });
});

test("a lone half of a character is sent as U+FFFD", async () => {
  await withTable(async (conn) => {
    assert.equal(await send(conn.copyFrom("copy t from stdin"), ["1\tx\ud834", new Uint8Array([10])]), 1);
    assert.equal(await send(conn.copyFrom("copy t from stdin"), ["2\ty\ud834"]), 1);
    assert.deepEqual(await conn.sql`select b from t order by a`, [{ b: "x\ufffd" }, { b: "y\ufffd" }]);
  });
});

test("no data, csv, binary, quoted and fewer columns", async () => {
  await withTable(async (conn) => {
    assert.equal(await send(conn.copyFrom("copy t from stdin"), []), 0);
    assert.equal(await send(conn.copyFrom("copy t from stdin (format csv, header)"), ['b,a\n1,"x\n"\n']), 1);
    assert.equal(await send(conn.copyFrom('copy t ("a") from stdin where a > 2'), ["2\n3\n"]), 1);
    const binary = "5047434f50590aff0d0a00" + "00000000".repeat(2) +
      "0002" + "00000004" + "00000007" + "ffffffff" + "ffff";
    const bytes = Uint8Array.from(binary.match(/../g)!, (byte) => parseInt(byte, 16));
    assert.equal(await send(conn.copyFrom("copy t from stdin (format binary)"), [bytes]), 1);
    assert.deepEqual(await conn.sql`select * from t order by a`, [
      { a: 1, b: "x\n" },
      { a: 3, b: null },
      { a: 7, b: null },
    ]);
  });
});

test("one chunk of 64 MB goes in pieces", async () => {
  await withTable(async (conn) => {
    const line = new TextEncoder().encode(`\t${"x".repeat(1_048_576 - 4)}\n`);
    const chunk = new Uint8Array(64 * 1_048_576);
    for (let i = 0; i < 64; i++) {
      chunk.set(new TextEncoder().encode(String(10 + i)), i * 1_048_576);
      chunk.set(line.subarray(0, line.length - 1), i * 1_048_576 + 2);
      chunk[(i + 1) * 1_048_576 - 1] = 10;
    }
    const writer = conn.copyFrom("copy t from stdin").getWriter();
    await limit(writer.write(chunk), 30_000);
    await limit(writer.close(), 30_000);
    assert.equal(await conn.sql`select sum(length(b)) from t`.scalar(), BigInt(64 * (1_048_576 - 4)));
  });
});

test("what is no data is refused, and nothing is stored", async () => {
  await withTable(async (conn) => {
    for (const chunk of [undefined, null, 5, {}, [1], new ArrayBuffer(4)]) {
      const writer = conn.copyFrom("copy t from stdin").getWriter();
      await writer.write("1\tx\n");
      assert.equal((await rejectionOf(writer.write(chunk as unknown as string))).name, "ValueError");
      assert.equal((await rejectionOf(writer.closed)).name, "ValueError");
      assert.equal(await count(conn), 0n);
    }
  });
});

/** Writes until the stream has failed. */
async function writeUntilFailure(stream: CopyFromStream, first: string, megabytes: number): Promise<number> {
  const writer = stream.getWriter();
  writer.closed.catch(() => {});
  await writer.write(first);
  let line = 100;
  for (let sent = 0; sent < megabytes * 16; sent++) {
    let chunk = "";
    while (chunk.length < 65_536) chunk += `${line++}\t${"y".repeat(1_000)}\n`;
    await writer.ready;
    await writer.write(chunk);
  }
  await writer.close();
  return line;
}

test("a row that the server refuses errors the stream while data still comes", async () => {
  const refused: [text: string, first: string, code: string, where: RegExp][] = [
    ["copy t from stdin", "1\ta\nx\tb\n", "22P02", /^COPY t, line 2, column a: "x"$/],
    ["copy t from stdin", "1\ta\n1\tb\n", "23505", /^COPY t, line 2$/],
    ["copy t from stdin", "1\ta\n2\tb\tc\n", "22P04", /^COPY t, line 2: "2\tb\tc"$/],
    ["copy t from stdin (format csv)", '1,a\n2,"b\n', "22P04", /^COPY t, line \d+/],
  ];
  await withTable(async (conn) => {
    for (const [text, first, code, where] of refused) {
      // CSV in quotes goes on until the data ends.
      const megabytes = text.includes("csv") ? 0 : 50;
      const error = await rejectionOf(writeUntilFailure(conn.copyFrom(text), first, megabytes), 20_000);
      assert.equal(error.code, code);
      assert.match((error as unknown as { where: string }).where, where);
      assert.equal(await count(conn), 0n);
    }
  });
});

test("statement_timeout ends a COPY whose source is slow", async () => {
  await withTable(async (conn) => {
    await conn.exec("set statement_timeout = 100");
    const stream = conn.copyFrom("copy t from stdin");
    const writer = stream.getWriter();
    await writer.write("1\tx\n");
    await sleep(150);
    // While it waits for data the server does not look at the clock.
    await writer.write("2\tx\n");
    assert.equal((await rejectionOf(writer.closed, 5_000)).code, "57014");
    await conn.exec("set statement_timeout = 0");
    assert.equal(await count(conn), 0n);
  });
});

test("a source that fails stores nothing, and its error is what the caller gets", async () => {
  await withTable(async (conn) => {
    const mine = new Error("mine");
    for (const rows of [0, 3, 20_000]) {
      let row = 0;
      const source = new ReadableStream<string>({
        pull(controller) {
          if (row >= rows) return controller.error(mine);
          controller.enqueue(`${row++}\tx\n`);
        },
      });
      assert.equal(await rejectionOf(source.pipeTo(conn.copyFrom("copy t from stdin"))), mine);
      assert.equal(await count(conn), 0n);
    }
    const writer = conn.copyFrom("copy t from stdin").getWriter();
    await writer.write("1\tx\n");
    await limit(writer.abort(mine));
    assert.equal(await rejectionOf(writer.closed), mine);
    assert.equal(await count(conn), 0n);
  });
});

test("abort does not wait for a server that does not read", async () => {
  await withSchema(async (schema) => {
    await withConnection(async (conn) => {
      await conn.exec(`create table ${schema}.t (b text);
        create function ${schema}.wait() returns trigger language plpgsql as
          'begin perform pg_sleep(60); return new; end';
        create trigger t before insert on ${schema}.t for each row execute function ${schema}.wait()`);
      const stream = conn.copyFrom(`copy ${schema}.t from stdin`);
      const writer = stream.getWriter();
      writer.closed.catch(() => {});
      const chunk = `${"x".repeat(1_000)}\n`.repeat(1_000);
      for (let i = 0; i < 40; i++) writer.write(chunk).catch(() => {});
      await sleep(50);
      const began = performance.now();
      await limit(writer.abort(new Error("mine")), 5_000);
      assert.ok(performance.now() - began < 3_000);
      assert.deepEqual(await limit(conn.sql`select 1 as a`), [{ a: 1 }]);
    });
  });
});

test("a COPY that the server does not accept errors the stream", async () => {
  await withTable(async (conn) => {
    const refused: [string, string | RegExp][] = [
      ["copy missing from stdin", "42P01"],
      ["copi t from stdin", "42601"],
      ["select 1", /neither asked for data/],
      ["copy t to stdout", /use copyTo\(\)/],
      ["copy t from stdin; select 1", /./],
    ];
    for (const [text, expected] of refused.slice(0, 4)) {
      const { code, message } = await rejectionOf(conn.copyFrom(text).getWriter().closed);
      if (typeof expected === "string") assert.equal(code, expected);
      else assert.match(message, expected);
      assert.deepEqual(await limit(conn.sql`select 1 as a`), [{ a: 1 }], text);
    }
  });
});

test("inside transactions and savepoints", async () => {
  await withTable(async (conn) => {
    const good = (on: Connection | Transaction) => send(on.copyFrom("copy t from stdin"), ["1\tx\n"]);
    const bad = (on: Connection | Transaction) => send(on.copyFrom("copy t from stdin"), ["x\tx\n"]);
    await conn.transaction(async (tx) => {
      // Nothing was sent before: BEGIN goes first.
      assert.equal(await good(tx), 1);
      const nested = tx.transaction(async (sp) => {
        await sp.query("insert into t values (2)");
        await bad(sp);
      });
      assert.equal((await rejectionOf(nested)).code, "22P02");
      const aborted = tx.transaction(async (sp) => {
        const writer = sp.copyFrom("copy t from stdin").getWriter();
        writer.closed.catch(() => {});
        await writer.write("3\tx\n");
        await writer.abort(new Error("mine"));
        throw new Error("mine");
      });
      assert.equal((await rejectionOf(aborted)).message, "mine");
      assert.deepEqual(await tx.sql`select a from t`, [{ a: 1 }]);
    });
    assert.equal((await rejectionOf(conn.transaction((tx) => bad(tx)))).code, "22P02");
    assert.deepEqual(await conn.sql`select a from t`, [{ a: 1 }]);
  });
});

test("aborted before BEGIN is answered, it leaves the transaction usable", async () => {
  await withTable(async (conn) => {
    for (const nested of [false, true]) {
      const run = async (tx: Transaction) => {
        const stream = tx.copyFrom("copy t from stdin");
        await limit(stream.abort(new Error("mine")), 3_000);
      };
      const ran = conn.transaction((tx) => nested ? tx.transaction(run) : run(tx));
      await limit(ran.catch((error) => assert.match(String(error), /rolled back|aborted|mine/)), 5_000);
    }
    assert.equal(await count(conn), 0n);
  });
});

test("two at once on one connection, between queries that are not waited for", async () => {
  await withTable(async (conn) => {
    const lines = (from: number) => Array.from({ length: 5_000 }, (_, i) => `${from + i}\tx\n`);
    const results = await limit(
      Promise.all([
        count(conn),
        send(conn.copyFrom("copy t from stdin"), lines(0)),
        count(conn),
        send(conn.copyFrom("copy t from stdin"), lines(10_000)),
        count(conn),
        rejectionOf(conn.sql`selekt`).then((error) => error.code),
        count(conn),
      ]),
      20_000,
    );
    assert.deepEqual(results, [0n, 5_000, results[2], 5_000, results[4], "42601", results[6]]);
    assert.equal(await count(conn), 10_000n);
  });
});

test("on a pool each has a connection of its own, which comes back", async () => {
  await withSchema(async (schema) => {
    const table = `${schema}.${uniqueName("t")}`;
    const pool = createPool(testUrl(), { max: 2 });
    try {
      await pool.exec(`create table ${table} (a int)`);
      const copies = Array.from({ length: 6 }, (_, i) => {
        const stream = pool.copyFrom(`copy ${table} from stdin`);
        const lines = Array.from({ length: 1_000 }, (_, row) => i === 4 && row === 999 ? "x\n" : `${row}\n`);
        return send(stream, lines);
      });
      const settled = await limit(Promise.allSettled(copies), 20_000);
      assert.deepEqual(settled.map(({ status }) => status === "fulfilled"), [
        true,
        true,
        true,
        true,
        false,
        true,
      ]);
      assert.equal(await pool.sql`select count(*) from ${pool.sql.raw(table)}`.scalar(), 5_000n);
      // One that waits for a connection is given up at once.
      const holders = await Promise.all([pool.acquire(), pool.acquire()]);
      const waiting = pool.copyFrom(`copy ${table} from stdin`);
      const aborted = waiting.abort(new Error("mine"));
      for (const holder of holders) await holder.close();
      await limit(aborted);
      assert.equal(await limit(pool.sql`select count(*) from ${pool.sql.raw(table)}`.scalar()), 5_000n);
      assert.equal(pool.stats().busy, 0);
    } finally {
      await limit(pool.close({ timeout: 0 }));
    }
  });
});

leavesNoSession();
