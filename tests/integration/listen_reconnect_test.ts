/** What becomes of listening when its connection is lost, or dies without a word. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, createPool, type NotificationEvent, type Pool, type PoolOptions } from "../../mod.ts";
import { type Proxy, startProxy } from "../_support/proxy.ts";
import { ask, leavesNoSession, limit, testTarget, testUrl, uniqueName, until } from "../_support/server.ts";
import { rejectionOf, sleep } from "../_support/session.ts";

/** Events of channels as they come, by channel. */
class Log {
  readonly #events: Map<string, string[]> = new Map();

  readonly note = (event: NotificationEvent): void => {
    const { channel } = event;
    const events = this.#events.get(channel) ?? [];
    this.#events.set(channel, events);
    events.push(event.type === "gap" ? "gap" : event.payload);
  };

  of(channel: string): readonly string[] {
    return this.#events.get(channel) ?? [];
  }

  gaps(channel: string): number {
    return this.of(channel).filter((event) => event === "gap").length;
  }
}

interface Setting {
  readonly pool: Pool;
  readonly proxy: Proxy;
  readonly log: Log;
  /** Listens and waits for it. */
  listen(channel: string): Promise<void>;
  /** Ends the backend that listens, if there is one. */
  kill(): Promise<void>;
}

/** A pool behind a proxy, with an application name of its own by which its listening backend is found. */
async function withSetting(
  body: (setting: Setting) => Promise<void>,
  options: PoolOptions = {},
): Promise<void> {
  const { host, port } = testTarget();
  const proxy = await startProxy({ target: { host, port } });
  const url = new URL(testUrl());
  url.host = `${proxy.host}:${proxy.port}`;
  const pool = createPool(url.href, options);
  const log = new Log();
  const channels: string[] = [];
  const listen = async (channel: string) => {
    channels.push(channel);
    await limit(pool.listen(channel, log.note), 20_000);
  };
  const kill = async () => {
    await ask(`select pg_terminate_backend(pid, 5000) from pg_stat_activity
      where pid <> pg_backend_pid() and query ilike 'listen %' and query like '%${channels.at(-1)}%'`);
  };
  try {
    await limit(body({ pool, proxy, log, listen, kill }), 60_000, "the test's body");
  } finally {
    await limit(pool.close({ timeout: 0 }));
    await limit(proxy.close());
  }
}

/** Notifies past the driver. */
const notify = (channel: string, payload: string) => ask(`select pg_notify('${channel}', '${payload}')`);

test("losing the connection 20 times loses no channel, and each hears of 20 gaps", async () => {
  await withSetting(async ({ log, listen, kill }) => {
    const channels = ["a", "b", "c"].map((each) => uniqueName(each));
    await listen(channels[0]!);
    await listen(channels[1]!);
    await listen(channels[2]!);
    for (let round = 1; round <= 20; round++) {
      await kill();
      await until(() => channels.every((each) => log.gaps(each) === round), 10_000, `gap ${round}`);
      for (const channel of channels) await notify(channel, `after ${round}`);
    }
    const expected = Array.from({ length: 20 }, (_, i) => ["gap", `after ${i + 1}`]).flat();
    for (const channel of channels) {
      await until(() => log.of(channel).length === 40, 5_000, "the last notification");
      assert.deepEqual(log.of(channel), expected);
    }
  });
});

test("while it is down one may listen and unlisten; nothing arrives twice", async () => {
  await withSetting(async ({ pool, proxy, log, listen, kill }) => {
    const [a, b, c] = ["a", "b", "c"].map((each) => uniqueName(each)) as [string, string, string];
    await listen(a);
    const second = pool.listen(b);
    await limit(second.listening);
    proxy.hold("backend"); // Nobody gets an answer: reconnecting takes its time.
    await kill();
    await sleep(20);
    proxy.cut({ direction: "backend", after: 0, how: "reset" });
    proxy.release("backend");
    await sleep(100);
    await second.return();
    const late = listen(c);
    const again = pool.listen(b);
    const given = new AbortController();
    const givenUp = pool.listen(uniqueName("d"), { signal: given.signal });
    await notify(a, "lost");
    given.abort(new Error("mine"));
    assert.equal((await rejectionOf(givenUp.listening)).message, "mine");
    proxy.cut(undefined);
    await limit(late);
    await limit(again.listening);
    await until(() => log.gaps(a) === 1);
    for (const channel of [a, b, c]) await notify(channel, "once");
    await until(() => log.of(c).length === 1);
    const { value } = await limit(again.next());
    assert.deepEqual([value?.type, value?.channel], ["notify", b]);
    await sleep(50);
    assert.deepEqual(log.of(a), ["gap", "once"]);
    assert.deepEqual(log.of(c), ["once"]);
  });
});

test("a channel that the server refuses while it is opened again holds nobody up", async () => {
  const database = uniqueName("latin1");
  await ask(`create database ${database} encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0`);
  try {
    await withSetting(async ({ pool, proxy, log, listen, kill }) => {
      const [a, b] = ["a", "b"].map((each) => uniqueName(each)) as [string, string];
      await listen(a);
      proxy.cut({ direction: "backend", after: 0, how: "reset" });
      await kill();
      const [refused, late] = [pool.listen("日本"), listen(b)];
      await sleep(100); // An attempt or two in vain.
      proxy.cut(undefined);
      assert.equal((await rejectionOf(refused.listening, 10_000)).code, "22P05");
      await limit(late);
      await until(() => log.gaps(a) === 1);
      for (const channel of [a, b]) await pool.notify(channel, "once");
      await until(() => log.of(a).length === 2 && log.of(b).length === 1);
      assert.deepEqual([log.of(a), log.of(b)], [["gap", "once"], ["once"]]);
    }, { database });
  } finally {
    await ask(`drop database ${database} with (force)`);
  }
});

for (const how of ["end", "reset"] as const) {
  test(`a proxy that breaks off by ${how} is a gap`, async () => {
    await withSetting(async ({ proxy, log, listen }) => {
      const channel = uniqueName("c");
      await listen(channel);
      proxy.cut({ direction: "backend", after: 0, how });
      await notify(channel, "lost");
      await sleep(20);
      proxy.cut(undefined);
      await until(() => log.gaps(channel) === 1, 10_000, "the gap");
      await notify(channel, "arrives");
      await until(() => log.of(channel).includes("arrives"));
      assert.equal(log.gaps(channel), 1);
    });
  });
}

test("a connection that dies without a word is found out by probes", async () => {
  await withSetting(async ({ proxy, log, listen }) => {
    const channel = uniqueName("c");
    await listen(channel);
    await sleep(400); // Probes are answered.
    assert.equal(proxy.connections(), 1);
    assert.equal(log.gaps(channel), 0);
    proxy.hold("backend");
    await until(() => proxy.connections() > 1, 10_000, "another attempt");
    proxy.release("backend");
    await until(() => log.gaps(channel) === 1, 10_000, "the gap");
    await notify(channel, "arrives");
    await until(() => log.of(channel).includes("arrives"));
  }, { listenProbeInterval: 100 });
});

test("without probes, and with limits that cannot be", async () => {
  await withSetting(async ({ proxy, log, listen }) => {
    const channel = uniqueName("c");
    await listen(channel);
    proxy.hold("backend");
    await sleep(300);
    proxy.release("backend");
    await notify(channel, "arrives");
    await until(() => log.of(channel).includes("arrives"));
    assert.deepEqual([proxy.connections(), log.gaps(channel)], [1, 0]);
  }, { listenProbeInterval: 0 });
  assert.throws(() => createPool(testUrl(), { listenProbeInterval: -1 }), { name: "ConfigurationError" });
});

test("closing the pool while it is down ends at once", async () => {
  await withSetting(async ({ pool, proxy, listen, kill }) => {
    const channel = uniqueName("c");
    await listen(channel);
    const stream = pool.listen(channel);
    proxy.cut({ direction: "backend", after: 0, how: "reset" });
    await kill();
    await sleep(300);
    const waiting = pool.listen(uniqueName("d"));
    const began = performance.now();
    await limit(pool.close(), 2_000);
    assert.deepEqual(await limit(stream.next()), { done: true, value: undefined });
    assert.deepEqual(await limit(waiting.next()), { done: true, value: undefined });
    assert.ok(performance.now() - began < 1_000);
  });
});

test("a connection of one's own that is lost ends listening with an error", async () => {
  const conn = await limit(connect(testUrl()));
  try {
    const stream = conn.listen(uniqueName("c"));
    const subscription = await limit(conn.listen(uniqueName("d"), () => {}));
    await limit(stream.listening);
    const lost = rejectionOf(stream.next());
    await ask(`select pg_terminate_backend(${conn.processId})`);
    assert.equal((await lost).code, "CONNECTION_LOST");
    assert.equal((await limit(subscription.ended) as { code: string }).code, "CONNECTION_LOST");
    assert.deepEqual(await limit(stream.next()), { done: true, value: undefined });
    assert.equal((await rejectionOf(conn.listen("e").listening)).name, "ConnectionError");
  } finally {
    await limit(conn.close());
  }
});

leavesNoSession();
