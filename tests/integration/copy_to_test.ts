/** COPY TO STDOUT as a stream and as rows, and every way to leave it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, type Connection, createPool, type Transaction, ValueError } from "../../mod.ts";
import { selectTransport } from "../../src/transport/select.ts";
import type { TransportFactory, TransportHandler } from "../../src/transport/transport.ts";
import { ask, leavesNoSession, limit, testUrl, uniqueName, until } from "../_support/server.ts";
import { rejectionOf, sleep, withConnection } from "../_support/session.ts";

async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) text += decoder.decode(chunk, { stream: true });
  return text;
}

async function collect<T>(rows: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const row of rows) all.push(row);
  return all;
}

/** A quarter of a terabyte: nobody reads to its end. */
const HUGE = "copy (select repeat('x', 1000), generate_series(1, 250000000)) to stdout";

async function assertUsable(on: Connection | Transaction): Promise<void> {
  assert.deepEqual(await limit(on.sql`select 1 as a`, 2_000), [{ a: 1 }]);
}

test("gives the data in any format, and the number of rows", async () => {
  await withConnection(async (conn) => {
    const cases: [text: string, data: string, rows: number][] = [
      ["copy (select 1, 'a') to stdout", "1\ta\n", 1],
      ["copy (select 1 where false) to stdout", "", 0],
      [
        "copy (values (1, 'a,b'), (2, null)) to stdout (format csv, header)",
        'column1,column2\n1,"a,b"\n2,\n',
        2,
      ],
      [
        "copy (select repeat('ä', 100000) from generate_series(1, 3)) to stdout",
        `${"ä".repeat(100_000)}\n`.repeat(3),
        3,
      ],
    ];
    for (const [text, data, rows] of cases) {
      const stream = conn.copyTo(text);
      assert.equal(stream.rowCount, undefined);
      assert.equal(await limit(textOf(stream)), data);
      assert.equal(stream.rowCount, rows);
    }
  });
});

test("each chunk has bytes of its own", async () => {
  await withConnection(async (conn) => {
    const chunks: Uint8Array[] = [];
    const stream = conn.copyTo("copy (select generate_series(1, 100000)) to stdout");
    for await (const chunk of stream) chunks.push(chunk);
    // A transfer of one must not take the others along.
    assert.equal(new Set(chunks.map(({ buffer }) => buffer)).size, chunks.length);
    const text = await new Blob(chunks as BlobPart[]).text();
    assert.equal(text, Array.from({ length: 100_000 }, (_, i) => `${i + 1}\n`).join(""));
  });
});

test("nothing is sent before the first read", async () => {
  await withConnection(async (conn) => {
    const unread = conn.copyTo("copy (select 1) to stdout");
    await assertUsable(conn);
    await limit(unread.cancel());
    await assertUsable(conn);
    const bad = conn.copyTo("copi").getReader();
    assert.equal((await rejectionOf(bad.read())).code, "42601");
    for (const text of ["select 1", "copy pg_am from stdin"]) {
      assert.match((await rejectionOf(textOf(conn.copyTo(text)))).message, /neither asked|use copyFrom\(\)/);
      await assertUsable(conn);
    }
  });
});

test("breaks, errors of the loop, and cancelling free the connection within a second", async () => {
  await withConnection(async (conn) => {
    const { processId } = conn;
    const mine = new Error("mine");
    const leave: Record<string, (on: Connection | Transaction) => Promise<unknown>> = {
      "break at once": async (on) => {
        for await (const _ of on.copyTo(HUGE)) break;
      },
      "break later": async (on) => {
        let bytes = 0;
        for await (const chunk of on.copyTo(HUGE)) if ((bytes += chunk.length) > 5_000_000) break;
      },
      "throw": async (on) => {
        const thrown = (async () => {
          for await (const _ of on.copyTo(HUGE)) throw mine;
        })();
        assert.equal(await rejectionOf(thrown), mine);
      },
      "cancel after a pause": async (on) => {
        const reader = on.copyTo(HUGE).getReader();
        await reader.read();
        await sleep(50);
        await reader.cancel(mine);
      },
      "cancel before the answer": async (on) => {
        const reader = on.copyTo(HUGE).getReader();
        const read = reader.read();
        await reader.cancel();
        assert.equal((await read).done, true);
      },
      "a sink that fails": async (on) => {
        const sink = new WritableStream({
          write(): void {
            throw mine;
          },
        });
        assert.equal(await rejectionOf(on.copyTo(HUGE).pipeTo(sink)), mine);
      },
      "break from rows": async (on) => {
        for await (const _ of on.copyTo(HUGE).rows()) break;
      },
    };
    for (const [way, run] of Object.entries(leave)) {
      const began = performance.now();
      await limit(run(conn), 5_000, way);
      await assertUsable(conn);
      assert.ok(performance.now() - began < 1_000, `${way} took ${performance.now() - began} ms`);
      assert.equal(conn.processId, processId);
    }
    // A cancel fails the block; with a savepoint the transaction goes on.
    await conn.transaction(async (tx) => {
      await rejectionOf(tx.transaction(async (sp) => {
        await leave["break later"]!(sp);
        throw mine;
      }));
      await assertUsable(tx);
    });
  }, { within: 60_000 });
});

test("an error of the server midway comes at once", async () => {
  await withConnection(async (conn) => {
    const text = "copy (select 1 / (90000 - i), 'x' from generate_series(1, 100000) i) to stdout";
    for (const format of ["", " (format binary)"]) {
      assert.equal((await rejectionOf(textOf(conn.copyTo(text + format)))).code, "22012");
      await assertUsable(conn);
    }
    assert.equal((await rejectionOf(collect(conn.copyTo(text).rows()))).code, "22012");
    await assertUsable(conn);
    // While nobody reads, the error waits; then nothing of what came before it is given.
    const reader = conn.copyTo(text).getReader();
    await reader.read();
    await sleep(100);
    const rest = async () => {
      while (!(await reader.read()).done);
    };
    assert.equal((await rejectionOf(rest())).code, "22012");
    await assertUsable(conn);
  });
});

/** The runtime's own transport, which gives whole replies at once, but the ReadyForQuery at their end by itself. */
async function gathering(): Promise<TransportFactory> {
  const factory = await selectTransport();
  return {
    ...factory,
    async connect(target) {
      const transport = await factory.connect(target);
      let gathered: Uint8Array[] = [];
      let ready: Uint8Array | undefined;
      let established = false;
      let paused = false;
      let handler: TransportHandler;
      const release = () => {
        if (ready === undefined || paused) return;
        const last = ready;
        ready = undefined;
        handler.onBytes(last);
      };
      const { start, pauseReading, resumeReading } = transport;
      transport.start = (given) => {
        handler = given;
        start.call(transport, {
          onBytes(chunk) {
            const isEnd = chunk.at(-6) === 0x5a; // 'Z'
            if (!established) {
              established = isEnd;
              return handler.onBytes(chunk);
            }
            gathered.push(chunk.slice());
            if (!isEnd) return;
            const bytes = new Uint8Array(gathered.reduce((sum, each) => sum + each.length, 0));
            let at = 0;
            for (const each of gathered) {
              bytes.set(each, at);
              at += each.length;
            }
            gathered = [];
            ready = bytes.subarray(-6);
            handler.onBytes(bytes.subarray(0, -6));
            setTimeout(release, 1);
          },
          onEnd: (cause) => handler.onEnd(cause),
        });
      };
      transport.pauseReading = () => {
        paused = true;
        pauseReading.call(transport);
      };
      transport.resumeReading = () => {
        paused = false;
        resumeReading.call(transport);
        setTimeout(release, 1);
      };
      return transport;
    },
  };
}

test("an error in one chunk with more data than may wait leaves the connection to be read", async () => {
  const connection = await limit(connect(testUrl(), { transport: await gathering() }));
  try {
    const text = "copy (select 1 / (90000 - i), 'x' from generate_series(1, 100000) i) to stdout";
    for (let i = 0; i < 3; i++) {
      assert.equal((await rejectionOf(textOf(connection.copyTo(text)))).code, "22012");
      await assertUsable(connection);
      assert.equal((await rejectionOf(collect(connection.copyTo(text).rows()))).code, "22012");
      await assertUsable(connection);
    }
  } finally {
    await limit(connection.close({ timeout: 0 }));
  }
});

test("a row that cannot be decoded, longer than may wait, leaves the connection to be read", async () => {
  const types = {
    text: {
      decodeText(): never {
        throw new ValueError("Expected another text");
      },
    },
  };
  const connection = await limit(connect(testUrl(), { types }));
  try {
    const text = "copy (select repeat('x', 1000000) from generate_series(1, 100)) to stdout (format text)";
    const rows = connection.copyTo(text).rows();
    const error = await limit(rejectionOf(collect(rows)), 3_000, "the row's error");
    assert.match(String(error), /expected another text/);
    assert.deepEqual((await limit(connection.query("select 1::int4 as a"), 2_000)).rows, [{ a: 1 }]);
  } finally {
    await limit(connection.close({ timeout: 0 }));
  }
});

test("a slow reader keeps the server waiting", async () => {
  await withConnection(async (conn) => {
    const waits = `select wait_event from pg_stat_activity where pid = ${conn.processId}`;
    const reader = conn.copyTo(HUGE).getReader();
    await reader.read();
    await until(
      async () => (await ask(waits))[0]![0] === "ClientWrite",
      5_000,
      "the server waits for its reader",
    );
    for (let bytes = 0; bytes < 20_000_000;) bytes += (await limit(reader.read())).value!.length;
    await limit(reader.cancel());
    const rows = conn.copyTo(HUGE).rows();
    await rows.next();
    await until(
      async () => (await ask(waits))[0]![0] === "ClientWrite",
      5_000,
      "the server waits for its reader",
    );
    for (let i = 0; i < 20_000; i++) await rows.next();
    await limit(rows.return());
    await assertUsable(conn);
  });
});

test("rows are what a query gives, in text and in binary format", async () => {
  await withConnection(async (conn) => {
    const table = uniqueName("r");
    await conn.exec(`create temp table ${table} as select i as id, 'n' || i as name, i % 3 = 0 as third,
      case when i % 5 = 0 then null else E'a\\\\b\\tc\\nd\\re' || chr(8) || chr(11) || chr(12) end as odd,
      array[i, null] as list, timestamptz '2024-01-01 00:00:00Z' + i * interval '1 microsecond' as at,
      '' as empty, '\\N' as backslash from generate_series(1, 3000) i`);
    const expected = await conn.sql`select * from ${conn.sql.id(table)} order by id`;
    const query = `select * from ${table} order by id`;
    const ways = [
      `copy (${query}) to stdout`,
      `copy (${query}) to stdout;`,
      `copy (${query}) to stdout (format binary)`,
      `copy (${query}) to stdout with (format text)`,
      `COPY ${table} TO STDOUT WITH BINARY`,
      `copy ${table} (id, name, third, odd, list, at, empty, backslash) to stdout`,
    ];
    for (const text of ways) {
      const stream = conn.copyTo(text);
      assert.deepEqual(await limit(collect(stream.rows())), expected, text);
      assert.throws(() => stream.rows(), { name: "TypeError" });
    }
    const batches = await collect(conn.copyTo(ways[0]!).rows().batches());
    assert.deepEqual(batches.flat(), expected);
    const readable = conn.copyTo(ways[0]!).rows().toReadable();
    assert.deepEqual(await collect(readable), expected);
    assert.deepEqual(await collect(conn.copyTo(`copy (select where false) to stdout`).rows()), []);
    assert.deepEqual(
      await collect(conn.copyTo(`copy (select from generate_series(1, 2)) to stdout`).rows()),
      [{}, {}],
    );
  });
});

test("rows of a COPY that cannot be decoded are refused, and the connection goes on", async () => {
  await withConnection(async (conn) => {
    const refused: [string, RegExp][] = [
      ["copy pg_am to stdout (format csv)", /wanted no option but/],
      ["copy pg_am to stdout (delimiter '|')", /wanted no option but/],
      ["copy pg_am to program 'cat'", /not found/],
      ["select 1", /not found/],
      [
        "copy (select timestamp '294276-01-01') to stdout",
        /Cannot decode column "timestamp" of type timestamp/,
      ],
      ["copy (select timestamp '294276-01-01') to stdout (format text)", /Cannot decode column "timestamp"/],
    ];
    for (const [text, message] of refused) {
      assert.match((await rejectionOf(collect(conn.copyTo(text).rows()))).message, message, text);
      await assertUsable(conn);
    }
    // Rows before the one that fails are given.
    const good: unknown[] = [];
    const read = async () => {
      const text = `copy (select case when i < 5000 then timestamp '2000-01-01' else '294276-01-01' end as t
        from generate_series(1, 100000) i) to stdout`;
      for await (const row of conn.copyTo(text).rows()) good.push(row);
    };
    assert.match((await rejectionOf(read())).message, /Cannot decode column "t"/);
    assert.equal(good.length, 4_999);
    await assertUsable(conn);
    // Types without a binary form here: text is taken by itself.
    const rows = await collect(
      conn.copyTo("copy (select '1 day'::interval as i, 'a b'::tsvector as v) to stdout").rows(),
    );
    assert.deepEqual(rows, await conn.sql`select '1 day'::interval as i, 'a b'::tsvector as v`);
  });
});

test("on a pool, with more than there are connections, some left early", async () => {
  const pool = createPool(testUrl(), { max: 2 });
  try {
    const read = async (i: number) => {
      if (i % 3 === 0) {
        for await (const _ of pool.copyTo(HUGE)) break;
        return 0;
      }
      return (await collect(pool.copyTo("copy (select generate_series(1, 5000)) to stdout").rows()))
        .length;
    };
    const counts = await limit(Promise.all(Array.from({ length: 12 }, (_, i) => read(i))), 20_000);
    assert.deepEqual(counts, counts.map((_, i) => i % 3 === 0 ? 0 : 5_000));
    // Cancelled while it waits for a connection: nothing of it is run.
    const holders = await Promise.all([pool.acquire(), pool.acquire()]);
    const reader = pool.copyTo(HUGE).getReader();
    const read1 = reader.read();
    await limit(reader.cancel(), 2_000);
    assert.equal((await read1).done, true);
    for (const holder of holders) await holder.close();
    const began = performance.now();
    await limit(Promise.all([pool.sql`select 1`, pool.sql`select 2`]));
    for (const deadline = Date.now() + 2_000; pool.stats().busy > 0 && Date.now() < deadline;) await sleep(5);
    assert.equal(pool.stats().busy, 0);
    assert.ok(performance.now() - began < 1_000);
  } finally {
    await limit(pool.close({ timeout: 0 }));
  }
});

leavesNoSession();
