/** What an owner leaves in a session is gone before the next one gets it; nobody begins a block by accident. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Connection, Pool } from "../../mod.ts";
import { PoolError } from "../../mod.ts";
import { counts, pidOf, withPool } from "../_support/pools.ts";
import { ask, leavesNoSession, limit, testUrl, uniqueName, until } from "../_support/server.ts";
import { rejectionOf, sleep } from "../_support/session.ts";

/** What a session is like, on a pool of one. */
const SESSION = `select pg_backend_pid() as pid,
  current_setting('work_mem') as work_mem,
  concat(current_setting('app.leak', true), current_setting('local.leak', true),
    current_setting('transaction.leak', true)) as leak, current_setting('search_path') as search_path, current_user::text as "user",
  (select count(*)::int from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as locks,
  (select count(*)::int from pg_prepared_statements where name like 'own%' or statement like '%named%') as prepared,
  (select count(*)::int from pg_cursors where name <> '') as cursors,
  (select count(*)::int from pg_class where relpersistence = 't' and pg_table_is_visible(oid)) as temporary,
  coalesce(array_to_string(array(select pg_listening_channels()), ','), '') as channels,
  pg_current_xact_id_if_assigned()::text as xid`;

async function sessionOf(pool: Pool): Promise<Record<string, unknown>> {
  return (await pool.query(SESSION)).rows[0]!;
}

/** What owners do. */
const CHANGES: readonly [string, (conn: Connection) => Promise<unknown>][] = [
  ["SET", (conn) => conn.query("set work_mem = '77MB'")],
  ["SET in a script", (conn) => conn.exec("select 1; set work_mem = '77MB'; set search_path = pg_catalog")],
  [
    "SET LOCAL, then SET, in one script",
    (conn) => conn.exec("set local work_mem = '1MB'; set work_mem = '77MB'"),
  ],
  ["SET SESSION behind a comment", (conn) => conn.query("/* set local */ set session work_mem = '77MB'")],
  ["set_config", (conn) => conn.query("select set_config('work_mem', $1, false)", ["77MB"])],
  ["set_config with a value that looks local", async (conn) => {
    for (const value of ["'a, true)'", "E'\\', true)'", "$$, true)$$", "'' /*, true)*/"]) {
      await conn.query(`select set_config('app.leak', ${value}, false)`);
    }
  }],
  ["SET of a setting whose name begins like SET LOCAL", async (conn) => {
    await conn.query("set local.leak = 'leak'");
    await conn.query("set transaction .leak = 'leak'");
  }],
  [
    "an update of pg_settings",
    (conn) => conn.query("update pg_settings set setting = 1234 where name = 'work_mem'"),
  ],
  ["a DO block", (conn) => conn.query("do $$ begin set work_mem = '77MB'; end $$")],
  ["a DO block in a script", (conn) => conn.exec("select 1; do $$ begin set work_mem = '77MB'; end $$")],
  ["SET ROLE", (conn) => conn.query("set role pg_monitor")],
  ["SET SESSION AUTHORIZATION", (conn) => conn.query("set session authorization pg_monitor")],
  ["LISTEN", (conn) => conn.query("listen somewhere")],
  ["listen()", async (conn) => void await limit(conn.listen("elsewhere", () => {}), 5_000, "listen")],
  ["an advisory lock", (conn) => conn.query("select pg_advisory_lock(12345)")],
  ["a shared one, tried", (conn) => conn.query("select pg_try_advisory_lock_shared(1, 2)")],
  ["a temporary table", (conn) => conn.exec("create temporary table left_behind (a int)")],
  ["a temporary table by SELECT INTO", (conn) => conn.query("select 1 as a into temp left_behind")],
  ["a view in pg_temp", (conn) => conn.query("create view pg_temp.left_behind as select 1 as a")],
  ["a table in pg_temp by SELECT INTO", (conn) => conn.query("select 1 as a into pg_temp.left_behind")],
  ["PREPARE", (conn) => conn.query("prepare own_statement as select 1")],
  ["prepare()", (conn) => conn.prepare("select 'named'")],
  ["a cursor WITH HOLD", (conn) => conn.query("declare c cursor with hold for select 1")],
  ["an open block", async (conn) => {
    await conn.query("begin");
    await conn.query("select pg_current_xact_id()");
  }],
  ["an open block with a setting", async (conn) => {
    await conn.exec("begin; set work_mem = '77MB'");
  }],
  ["a failed block", async (conn) => {
    await conn.query("begin");
    await conn.query("select 1/0").catch(() => {});
  }],
  ["begin() without an end", async (conn) => {
    const tx = await conn.begin();
    await tx.query("select pg_current_xact_id()");
  }],
  ["a SET that nobody waited for", (conn) => {
    void conn.query("set work_mem = '77MB'");
    return Promise.resolve();
  }],
  ["a query that nobody waited for", (conn) => {
    void conn.query("select pg_sleep(0.1)");
    return Promise.resolve();
  }],
  ["a stream that nobody ended", async (conn) => {
    await conn.sql`select generate_series(1, 100000)`.stream({ batch: 10 }).next();
  }],
];

for (const [what, change] of CHANGES) {
  test(`a returned session is as it was: ${what}`, async () => {
    await withPool(async (pool) => {
      const before = await sessionOf(pool);
      const conn = await pool.acquire();
      await change(conn);
      await conn.close();
      assert.equal(conn.closed, true);
      const late = [conn.query("select 1"), conn.begin(), conn.transaction(() => 5)];
      for (const work of late) {
        assert.equal((await rejectionOf(work)).message, "Connection was given back to the pool");
      }
      const after = await limit(sessionOf(pool), 10_000, "the next one");
      assert.deepEqual(after, before);
    }, { max: 1 });
  });
}

test("who waits for a transaction of a session that goes back learns so", async () => {
  await withPool(async (pool) => {
    const conn = await pool.acquire();
    await conn.begin();
    const waiting = [conn.begin(), conn.transaction(() => 5), conn.query("select 1")].map((work) =>
      rejectionOf(work)
    );
    await conn.close();
    for (const error of await limit(Promise.all(waiting))) {
      assert.equal(error.message, "Connection was given back to the pool");
    }
  }, { max: 1 });
});

test("a session that goes back gives its open streams up: they reject, and the connection stays", async () => {
  await withPool(async (pool) => {
    const pid = await pidOf(pool);
    // The server waits for the consumer, or is at a batch, in a block too; or the stream waits for a transaction to end.
    for (const state of ["suspended", "busy", "in a block", "in line"]) {
      const conn = await pool.acquire();
      if (state === "in a block") await conn.exec("begin");
      if (state === "in line") await conn.begin();
      const slow = state === "suspended" ? 0 : 30;
      const stream = conn.sql`select i, pg_sleep(case when i > 10 then ${slow}::float8 end)
        from generate_series(1, 100) i`.stream({ batch: 10 });
      const next = stream.next();
      // A turn to get into the line.
      await (state === "in line" ? sleep(0) : limit(next));
      const began = performance.now();
      await limit(conn.close());
      const error = await rejectionOf(state === "in line" ? next : stream.next(), 1_000);
      assert.ok(error instanceof PoolError, `${state}: ${error}`);
      assert.match(error.message, /^Stream was given up: its session went back to the pool$/);
      assert.deepEqual(await limit(stream.next()), { done: true, value: undefined });
      assert.equal(await limit(pidOf(pool), 3_000, state), pid, state);
      assert.ok(performance.now() - began < 2_000, state);
    }
    const conn = await pool.acquire();
    const stream = conn.sql`select generate_series(1, 3) as i`.stream();
    const first = await limit(stream.next());
    await conn.close();
    const rest = [first, await limit(stream.next()), await limit(stream.next()), await limit(stream.next())];
    assert.deepEqual(
      rest.map(({ value }) => value),
      [{ i: 1 }, { i: 2 }, { i: 3 }, undefined],
      "all was there",
    );
  }, { max: 1 });
});

test("a session that was not changed costs no extra round trip", async () => {
  const marker = uniqueName("unchanged");
  await withPool(async (pool) => {
    const discarded = async (work: (conn: Connection) => Promise<unknown>) => {
      const conn = await pool.acquire();
      await conn.query(`select '${marker}'`);
      await work(conn);
      const pid = conn.processId;
      await conn.close();
      await until(() => pool.stats().idle === 1);
      return (await ask(`select query from pg_stat_activity where pid = ${pid}`))[0]![0]!;
    };
    for (
      const harmless of [
        (conn: Connection) => conn.query("select 1 as same"),
        (conn: Connection) => conn.query("select set_config('app.user', $1, true) as same", ["me"]),
        (conn: Connection) => conn.query("select set_config('app.user', 'a''b (c)'::text, true) as same"),
        (conn: Connection) => conn.query("select name as same from pg_settings where name = 'work_mem'"),
        (conn: Connection) => conn.query("set local search_path = public"),
        (conn: Connection) => conn.query("select pg_advisory_xact_lock(1) as same"),
        (conn: Connection) => conn.exec("set local work_mem = '1MB'"),
        (conn: Connection) => conn.transaction((tx) => tx.query("set local work_mem = '1MB'")),
      ]
    ) assert.doesNotMatch(await discarded(harmless), /discard|rollback/);
    assert.match(await discarded((conn) => conn.query("set work_mem = '1MB'")), /discard all/);
  }, { max: 1 });
});

test("what is in an open or failed block is rolled back: the next one sees none of it", async () => {
  const table = uniqueName("returned");
  await ask(`create table ${table} (a int)`);
  await withPool(async (pool) => {
    for (const failing of [false, true]) {
      const conn = await pool.acquire();
      await conn.query("begin");
      await conn.query(`insert into ${table} values (1)`);
      if (failing) await rejectionOf(conn.query("select 1/0"));
      await conn.close();
      const { rows } = await pool.query(
        `select count(*)::int as n, pg_current_xact_id_if_assigned() as xid from ${table}`,
      );
      assert.deepEqual(rows, [{ n: 0, xid: null }]);
    }
  }, { max: 1 });
  await ask(`drop table ${table}`);
});

test("a COMMIT that is given up: the connection is not handed on inside the block", async () => {
  const table = uniqueName("slow_commit");
  await ask(`create table ${table} (a int);
    create function ${table}_wait() returns trigger language plpgsql as 'begin perform pg_sleep(5); return null; end';
    create constraint trigger wait after insert on ${table} deferrable initially deferred
      for each row execute function ${table}_wait()`);
  await withPool(async (pool) => {
    const conn = await pool.acquire();
    await conn.query("begin");
    await conn.query(`insert into ${table} values (1)`);
    const error = await rejectionOf(conn.sql`commit`.with({ timeout: 100 }).result());
    assert.equal(error.name, "TimeoutError");
    await conn.close();
    const { rows } = await limit(pool.query(`select count(*)::int as n from ${table}`), 8_000);
    assert.deepEqual(rows, [{ n: 0 }]);
  }, { max: 1 });
  await ask(`drop table ${table}; drop function ${table}_wait`);
});

test("a script has a connection to itself, and leaves neither settings nor locks", async () => {
  await withPool(async (pool) => {
    const before = await sessionOf(pool);
    await pool.exec(
      "set work_mem = '77MB'; select pg_advisory_lock(9); create temp table t (a int); listen x",
    );
    assert.deepEqual(await sessionOf(pool), before);
  }, { max: 1 });
});

test("a script that leaves a block open is rolled back and rejected; the next one is outside", async () => {
  const table = uniqueName("script");
  await ask(`create table ${table} (a int)`);
  await withPool(async (pool) => {
    const pid = await pidOf(pool);
    for (const end of ["", "; select 2"]) {
      const error = await rejectionOf(pool.exec(`begin; insert into ${table} values (1)${end}`));
      assert.ok(error instanceof PoolError);
      assert.match(error.message, /left a transaction block open: it was rolled back/);
      const { rows } = await pool.query(
        `select count(*)::int as n, pg_current_xact_id_if_assigned() as xid from ${table}`,
      );
      assert.deepEqual(rows, [{ n: 0, xid: null }]);
    }
    assert.equal((await rejectionOf(pool.exec("begin; select 1/0"))).code, "22012");
    await pool.exec(`begin; insert into ${table} values (2); commit`);
    assert.deepEqual((await pool.query(`select a from ${table}`)).rows, [{ a: 2 }]);
    assert.equal(await pidOf(pool), pid, "the connection stays");
  }, { max: 1 });
  await ask(`drop table ${table}`);
});

test("a lone BEGIN is refused before anything is sent, however it is dressed", async () => {
  await withPool(async (pool) => {
    const { sql } = pool;
    const attempts: (() => PromiseLike<unknown>)[] = [
      () => pool.query("begin"),
      () => pool.query(" /* a /* nested */ comment */ -- another\n BEGIN isolation level serializable"),
      () => pool.query(";begin"),
      () => pool.query("start/**/transaction"),
      () => sql`start transaction read only`,
      () => pool.batch([sql`select 1`, sql`begin`, sql`select 2`]),
    ];
    for (const attempt of attempts) {
      const error = await rejectionOf(attempt());
      assert.ok(error instanceof PoolError, String(error));
      assert.match(error.message, /^Cannot begin a transaction block through the pool: use transaction\(\)/);
    }
    assert.equal(pool.stats().total, 0, "nothing was even connected");
    // A stream is described first.
    const error = await rejectionOf(sql`begin`.stream().next());
    assert.match(error.message, /^Cannot begin a transaction block through the pool/);
    await pool.batch([sql`select 1`, sql`select 2`]);
  });
});

test("onConnect prepares every connection; when it rejects, that is what connecting failed with", async () => {
  let prepared = 0;
  await withPool(async (pool) => {
    await Promise.all([1, 2, 3].map(() => pool.query("select pg_sleep(0.7)")));
    assert.equal(prepared, 3);
    const shown = await Promise.all(
      [1, 2, 3].map(() => pool.query("select current_setting('app.name') as name")),
    );
    assert.deepEqual(shown.map(({ rows }) => rows[0]!["name"]), ["prepared", "prepared", "prepared"]);
  }, {
    max: 3,
    onConnect: async (conn) => {
      prepared++;
      await conn.exec("set app.name = 'prepared'");
    },
  });
  await withPool(async (pool) => {
    const error = await rejectionOf(pool.query("select 1"));
    assert.match(error.message, /last attempt to connect failed: not today/);
  }, { acquireTimeout: 200, onConnect: () => Promise.reject(new Error("not today")) });
  await withPool(async (pool) => {
    assert.equal((await rejectionOf(pool.query("select 1"))).code, "42P01");
  }, { onConnect: async (conn) => void await conn.query("select * from no_such_table") });
});

test("what onConnect has set is set again when an owner's changes are undone", async () => {
  await withPool(async (pool) => {
    const name = async () =>
      (await pool.query("select current_setting('app.name', true) as name")).rows[0]!["name"];
    assert.equal(await name(), "prepared");
    const pid = await pidOf(pool);
    const conn = await pool.acquire();
    await conn.exec("set app.name = 'changed'");
    await conn.close();
    assert.equal(await name(), "prepared");
    await pool.exec("set app.name = 'changed'");
    assert.equal(await name(), "prepared");
    for (const undo of ["reset all", "reset app.name", "discard all", "set app.name to default"]) {
      const undoing = await pool.acquire();
      await undoing.query(undo);
      await undoing.close();
      assert.equal(await name(), "prepared", undo);
    }
    assert.equal(await pidOf(pool), pid);
  }, { max: 1, onConnect: async (conn) => void await conn.exec("set app.name = 'prepared'") });
});

test("an onConnect that never ends is given up with connectTimeout, and by close()", async () => {
  await withPool(async (pool) => {
    const error = await rejectionOf(pool.query("select 1"));
    assert.match(error.message, /onConnect did not end within 100 ms \(connectTimeout\)/);
  }, { acquireTimeout: 400, connectTimeout: 100, onConnect: () => new Promise(() => {}) });
  await withPool(async (pool) => {
    const waiting = rejectionOf(pool.query("select 1"));
    await until(() => pool.stats().opening === 1);
    await sleep(50);
    const began = performance.now();
    await limit(pool.close({ timeout: 100 }), 5_000);
    assert.ok(performance.now() - began < 2_000);
    assert.ok(await waiting instanceof PoolError);
  }, { onConnect: async (conn) => void await conn.query("select pg_sleep(1)") });
});

test("listen() on an acquired connection hears, ends with its return, and leaves nothing hooked", async () => {
  const channel = uniqueName("ch");
  await withPool(async (pool) => {
    const conn = await pool.acquire();
    const heard: string[] = [];
    const stream = conn.listen(channel);
    await limit(stream.listening, 5_000, "LISTEN");
    await pool.notify(channel, "one");
    const { value } = await limit(stream.next());
    if (value?.type === "notify") heard.push(value.payload);
    assert.deepEqual(heard, ["one"]);
    await conn.close();
    assert.deepEqual(await limit(stream.next()), { done: true, value: undefined });
    for (let i = 0; i < 3; i++) await pool.notify(channel, "two");
    await until(() => pool.stats().idle === 2);
    assert.deepEqual(counts(pool), { total: 2, idle: 2, busy: 0, opening: 0, waiting: 0 });
  }, { max: 2, url: testUrl() });
});

leavesNoSession();
