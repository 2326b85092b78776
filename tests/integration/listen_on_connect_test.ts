/** What onConnect has begun to listen to ends with its connection, whatever ends that, and is heard once. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Connection, NotificationStream, Pool, Subscription } from "../../mod.ts";
import { pidOf, withPool } from "../_support/pools.ts";
import { ask, leavesNoSession, limit, uniqueName, until } from "../_support/server.ts";

interface Heard {
  /** Which call of onConnect has heard what. */
  readonly events: string[];
  readonly subscriptions: Subscription[];
  readonly streams: NotificationStream[];
}

/** A pool of one whose onConnect listens by callback and by stream. */
function listening(body: (pool: Pool, heard: Heard, channel: string) => Promise<void>): Promise<void> {
  const channel = uniqueName("prepared");
  const heard: Heard = { events: [], subscriptions: [], streams: [] };
  const onConnect = async (conn: Connection): Promise<void> => {
    const call = heard.subscriptions.length + 1;
    heard.subscriptions.push(
      await conn.listen(channel, (event) => {
        if (event.type === "notify") heard.events.push(`${call} ${event.payload}`);
      }),
    );
    const stream = conn.listen(`${channel}_2`);
    await stream.listening;
    heard.streams.push(stream);
  };
  return withPool((pool) => body(pool, heard, channel), { max: 1, onConnect });
}

/** What ended both ways of listening of a call of onConnect: an error's name. */
async function endOf({ subscriptions, streams }: Heard, call: number): Promise<unknown[]> {
  const name = (error: unknown) => (error as Error | undefined)?.name;
  const subscription = limit(subscriptions[call - 1]!.ended, 5_000, `call ${call}: the subscription's end`);
  const next = streams[call - 1]!.next().then(({ done }) => done ? undefined : { name: "event" });
  const stream = limit(next.catch((error: unknown) => error), 5_000, `call ${call}: the stream's end`);
  return [name(await subscription), name(await stream)];
}

const ENDS: readonly (readonly [string, string | undefined, (pool: Pool) => Promise<unknown>])[] = [
  ["the loss of its connection", "ConnectionError", async (pool) => {
    await ask(`select pg_terminate_backend(${await pidOf(pool)})`);
  }],
  ["close() of the pool", undefined, (pool) => pool.close()],
  ["close() of the pool with work under way", undefined, async (pool) => {
    const working = pool.query("select pg_sleep(0.2)");
    await Promise.all([pool.close(), working]);
  }],
];

for (const [name, error, end] of ENDS) {
  for (const prepared of [1, 2]) {
    test(`listening that onConnect began ends by ${name}, when it was called ${prepared} times`, () =>
      listening(async (pool, heard, channel) => {
        await pool.notify(channel, "a");
        if (prepared === 2) {
          await pool.exec("set work_mem = '2MB'");
          await pool.notify(channel, "b");
        }
        await until(() => heard.events.length === prepared);
        assert.deepEqual(heard.events, ["1 a", "2 b"].slice(0, prepared));
        await end(pool);
        assert.deepEqual(await endOf(heard, prepared), [error, error]);
      }));
  }
}

test("what onConnect began to listen to ends when its session is undone, and is heard by the next call once", () =>
  listening(async (pool, heard, channel) => {
    for (let call = 1; call <= 4; call++) {
      await pool.notify(channel, "x");
      await until(() => heard.events.length === call);
      await pool.exec("set work_mem = '2MB'");
      await pool.query("select 1");
      assert.deepEqual(await endOf(heard, call), [undefined, undefined]);
    }
    assert.deepEqual(heard.events, ["1 x", "2 x", "3 x", "4 x"]);
  }));

leavesNoSession();
