/** What streams, cursors and COPY meet on their way: notices, changed parameters, lost connections. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Connection, createPool, type Notice, type Pool } from "../../mod.ts";
import { startProxy } from "../_support/proxy.ts";
import {
  ask,
  leavesNoSession,
  limit,
  testTarget,
  testUrl,
  uniqueName,
  withSchema,
} from "../_support/server.ts";
import { rejectionOf, sleep, withConnection } from "../_support/session.ts";

async function count(items: AsyncIterable<unknown>): Promise<number> {
  let all = 0;
  for await (const _ of items) all++;
  return all;
}

test("notices and changed parameters between rows and in the middle of COPY", async () => {
  await withSchema(async (schema) => {
    const notices: Notice[] = [];
    const parameters: [string, string][] = [];
    const options = {
      onNotice: (notice: Notice) => void notices.push(notice),
      onParameterStatus: (name: string, value: string) => void parameters.push([name, value]),
    };
    await withConnection(async (conn) => {
      await conn.exec(`create function ${schema}.speak(i int) returns int language plpgsql as $$ begin
          raise notice 'at %', i;
          perform set_config('application_name', 'app ' || i, false);
          return i;
        end $$;
        create table ${schema}.t (a int check (${schema}.speak(a) > 0))`);
      const query = `select ${schema}.speak(i) as i from generate_series(1, 20) i`;
      const seen = (what: string) => {
        assert.deepEqual(
          notices.splice(0).map(({ message }) => message),
          Array.from({ length: 20 }, (_, i) => `at ${i + 1}`),
          what,
        );
        assert.equal(conn.parameters.get("application_name"), "app 20", what);
        // The server tells at the end, and only what has changed.
        assert.ok(
          parameters.splice(0).some(([name, value]) => name === "application_name" && value === "app 20"),
          what,
        );
      };
      const change = () => conn.exec("set application_name = 'none'");
      assert.equal(await count(conn.sql`${conn.sql.raw(query)}`.stream({ batch: 3 })), 20);
      seen("a stream");
      await change();
      await conn.transaction(async (tx) => {
        assert.equal(await count(tx.sql`${conn.sql.raw(query)}`.stream({ batch: 3 })), 20);
      });
      seen("a stream in a transaction");
      await change();
      assert.equal(await count(conn.copyTo(`copy (${query}) to stdout`).rows()), 20);
      seen("COPY TO");
      await change();
      assert.equal(
        await conn.copyRows([schema, "t"], ["a"], Array.from({ length: 20 }, (_, i) => [i + 1])),
        20,
      );
      seen("COPY FROM");
      await change();
      assert.equal((await conn.exec(`${query}; select 1`)).length, 2);
      seen("a script");
    }, options);
  });
});

type Work = (on: Connection | Pool, table: string) => Promise<unknown>;

function* endlessRows(): Generator<[number, string]> {
  for (let i = 0;; i++) yield [i, "x".repeat(100)];
}

/** Work that goes on until something ends it; each is to be rejected. */
const WORK: Readonly<Record<string, Work>> = {
  "a stream": (on) => count(on.sql`select repeat('x', 100), generate_series(1, 100000000)`),
  "a stream that waits for its consumer": async (on) => {
    for await (const _ of on.sql`select generate_series(1, 100000000)`.stream({ batch: 2 })) await sleep(5);
  },
  "COPY TO": (on) =>
    count(on.copyTo("copy (select repeat('x', 100), generate_series(1, 100000000)) to stdout")),
  "rows of COPY TO": (on) =>
    count(on.copyTo("copy (select repeat('x', 100), generate_series(1, 100000000)) to stdout").rows()),
  "COPY TO that waits for its reader": async (on) => {
    for await (const _ of on.copyTo("copy (select generate_series(1, 100000000)) to stdout")) await sleep(20);
  },
  "COPY FROM": async (on, table) => {
    const writer = on.copyFrom(`copy ${table} from stdin`).getWriter();
    writer.closed.catch(() => {});
    const chunk = `1\t${"x".repeat(100)}\n`.repeat(300);
    for (;;) {
      await writer.ready;
      await writer.write(chunk);
    }
  },
  "COPY FROM that waits for its source": async (on, table) => {
    const source = new ReadableStream<string>({
      async pull(controller) {
        await sleep(5);
        controller.enqueue("1\tx\n");
      },
    });
    await source.pipeTo(on.copyFrom(`copy ${table} from stdin`));
  },
  // Sources that never wait: what ends the COPY has to be heard all the same.
  "copyRows": (on, table) => on.copyRows(table.split("."), ["a", "b"], endlessRows()),
  "copyRows of an asynchronous source": (on, table) =>
    on.copyRows(
      table.split("."),
      ["a", "b"],
      (async function* () {
        yield* endlessRows();
      })(),
    ),
};

async function withTable(body: (table: string) => Promise<void>): Promise<void> {
  await withSchema(async (schema) => {
    const table = `${schema}.${uniqueName("t")}`;
    await ask(`create table ${table} (a int, b text)`);
    await body(table);
    assert.deepEqual(await ask(`select count(*) from ${table}`), [["0"]]);
  });
}

test("a backend that is terminated ends whatever was under way, on a pool", async () => {
  await withTable(async (table) => {
    const pool = createPool(testUrl(), { max: 2 });
    try {
      for (const [name, work] of Object.entries(WORK)) {
        const failed = rejectionOf(work(pool, table), 15_000).catch((error) =>
          assert.fail(`${name}: ${error}`)
        );
        let over = false;
        const end = () => over = true;
        failed.then(end, end);
        // Again until it has met a backend: on a busy machine the work may not have begun.
        while (!over) {
          await sleep(60);
          await ask(`select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()
            and application_name = '${new URL(testUrl()).searchParams.get("application_name")}'`);
        }
        const error = await failed;
        assert.ok(
          error.code === "57P01" || error.code === "CONNECTION_LOST",
          `${name}: ${error.message} ${error.code}`,
        );
        assert.deepEqual(await limit(pool.sql`select 1 as a`), [{ a: 1 }], name);
        assert.equal(pool.stats().waiting, 0);
      }
      assert.equal(pool.stats().busy, 0);
    } finally {
      await limit(pool.close({ timeout: 0 }));
    }
  });
});

for (const how of ["end", "reset"] as const) {
  test(`a network that breaks off by ${how} ends whatever was under way`, async () => {
    const { host, port } = testTarget();
    const proxy = await startProxy({ target: { host, port } });
    const url = new URL(testUrl());
    url.host = `${proxy.host}:${proxy.port}`;
    try {
      await withTable(async (table) => {
        for (const [name, work] of Object.entries(WORK)) {
          await withConnection(async (conn) => {
            const failed = rejectionOf(work(conn, table), 15_000).catch((error) =>
              assert.fail(`${name}: ${error}`)
            );
            await sleep(40);
            for (const direction of ["backend", "frontend"] as const) proxy.cut({ direction, after: 0, how });
            const error = await failed;
            assert.equal(error.code, "CONNECTION_LOST", `${name}: ${error.message}`);
            assert.equal(error.sent, "unknown", name);
            assert.equal((await rejectionOf(conn.sql`select 1`)).name, "ConnectionError");
          }, { url: url.href });
          proxy.cut(undefined);
        }
      });
    } finally {
      await limit(proxy.close());
    }
  });
}

test("closing while something is under way ends it", async () => {
  await withTable(async (table) => {
    for (const [name, work] of Object.entries(WORK)) {
      const pool = createPool(testUrl(), { max: 1 });
      const failed = rejectionOf(work(pool, table), 15_000).catch((error) =>
        assert.fail(`${name}: ${error}`)
      );
      await sleep(40);
      await limit(pool.close({ timeout: 10 }), 5_000, name);
      assert.match((await failed).message, /closed/i, name);
    }
  });
});

test("a slow source or consumer is no silent server", async () => {
  await withTable(async (table) => {
    await withConnection(async (conn) => {
      // The limit is the server's for its own work; what the client takes its time for is not counted as silence.
      const writer = conn.copyFrom(`copy ${table} from stdin`).getWriter();
      await writer.write("1\tx\n");
      await sleep(6_500);
      await limit(writer.abort(new Error("mine")));
      await rejectionOf(writer.closed);
      assert.deepEqual(await limit(conn.sql`select 1 as a`), [{ a: 1 }]);
    }, { queryTimeout: 500 });
  });
});

leavesNoSession();
