/** The channels `pipegres:query`, `pipegres:connect` and `pipegres:acquire`. */

import assert from "node:assert/strict";
import { tracingChannel } from "node:diagnostics_channel";
import { test } from "node:test";
import { connect, createPool } from "../../mod.ts";
import { leavesNoSession, limit, testUrl } from "../_support/server.ts";
import { rejectionOf, withConnection } from "../_support/session.ts";

type Step = "start" | "end" | "asyncStart" | "asyncEnd" | "error";

/** What is published, in order. */
interface Published {
  readonly step: Step;
  readonly message: Record<string, unknown>;
}

/** Runs `body` with a subscriber on a channel. */
async function listening(name: string, body: (published: Published[]) => Promise<void>): Promise<void> {
  const published: Published[] = [];
  const subscriber = (step: Step) => (message: unknown) =>
    void published.push({ step, message: message as Record<string, unknown> });
  const subscribers = {
    start: subscriber("start"),
    end: subscriber("end"),
    asyncStart: subscriber("asyncStart"),
    asyncEnd: subscriber("asyncEnd"),
    error: subscriber("error"),
  };
  const channel = tracingChannel(name);
  channel.subscribe(subscribers);
  try {
    await body(published);
  } finally {
    channel.unsubscribe(subscribers);
  }
}

/** The steps of each operation. */
function stepsOf(published: readonly Published[]): Step[][] {
  const operations = new Map<unknown, Step[]>();
  for (const { step, message } of published) {
    operations.set(message, [...operations.get(message) ?? [], step]);
  }
  return [...operations.values()];
}

const WELL: readonly Step[] = ["start", "end", "asyncStart", "asyncEnd"];
const FAILED: readonly Step[] = ["start", "end", "error", "asyncStart", "asyncEnd"];

test("a query tells when it was issued, written, answered and settled, and never its parameters", async () => {
  await withConnection(async (conn) => {
    await conn.query("select 1");
    await listening("pipegres:query", async (published) => {
      await Promise.all([
        conn.query("select pg_sleep(0.05), $1::text as t", ["s3cret"]),
        conn.sql`select ${"s3cret"}::text as t`.with({ label: "mine" }).result(),
        conn.exec("select 2"),
        rejectionOf(conn.query("select 1/0")),
      ]);
      assert.deepEqual(stepsOf(published), [WELL, WELL, WELL, FAILED]);
      const traces = published.filter(({ step }) => step === "asyncEnd").map(({ message }) => message);
      assert.deepEqual(traces.map(({ text, label }) => [text, label]), [
        ["select pg_sleep(0.05), $1::text as t", undefined],
        ["select $1::text as t", "mine"],
        ["select 2", undefined],
        ["select 1/0", undefined],
      ]);
      assert.ok(!JSON.stringify(traces).includes("s3cret"));
      for (const [i, trace] of traces.entries()) {
        const { queuedAt, writtenAt, firstRowAt, endedAt } = trace as Record<string, number>;
        assert.ok(queuedAt! <= writtenAt! && writtenAt! <= endedAt!, JSON.stringify(trace));
        // The pipeline's time is told apart: what stands behind a slow query waits for its row, not to be written.
        if (i < 3) assert.ok(firstRowAt! - queuedAt! >= 40 && firstRowAt! <= endedAt!, JSON.stringify(trace));
        else assert.equal(firstRowAt, undefined);
      }
      assert.equal((traces[3]!["error"] as { code?: string }).code, "22012");
    });
    // Nobody listens any more.
    await conn.query("select 1");
  });
});

test("the queries of a batch are told by their labels", async () => {
  await withConnection(async (conn) => {
    for (const sync of ["one", "each"] as const) {
      await listening("pipegres:query", async (published) => {
        const { sql } = conn;
        await conn.batch([sql`select 1`, sql`select 2`.with({ label: "two" })], { sync } as { sync: "one" });
        const labels = new Set(published.map(({ message }) => `${message["text"]}: ${message["label"]}`));
        assert.deepEqual([...labels], ["select 1: undefined", "select 2: two"]);
      });
    }
  });
});

test("a query that waits in the queue is written later than it was issued", async () => {
  await withConnection(async (conn) => {
    await listening("pipegres:query", async (published) => {
      await Promise.all([
        conn.query("select pg_sleep(0.1)", [], { pipeline: false }),
        conn.query("select 1"),
      ]);
      const { queuedAt, writtenAt } = published.at(-1)!.message as Record<string, number>;
      assert.ok(writtenAt! - queuedAt! >= 80, `${writtenAt! - queuedAt!} ms`);
    });
  });
});

test("connecting and acquiring are told, and why they failed", async () => {
  await listening("pipegres:connect", async (published) => {
    const conn = await connect(testUrl());
    await conn.close();
    await rejectionOf(connect(testUrl(), { database: "no_such_database" }));
    assert.deepEqual(stepsOf(published), [WELL, FAILED]);
    const [well, failed] = [published[0]!.message, published.at(-1)!.message];
    assert.equal(well["database"], new URL(testUrl()).pathname.slice(1));
    assert.equal(failed["database"], "no_such_database");
    assert.ok(Array.isArray(well["hosts"]) && well["hosts"].length === 1);
    assert.ok(!JSON.stringify(published).includes(new URL(testUrl()).password || "\0"));
  });
  await listening("pipegres:acquire", async (published) => {
    const pool = createPool(testUrl(), { max: 1, acquireTimeout: 50 });
    try {
      const conn = await pool.acquire();
      await rejectionOf(pool.acquire());
      await conn.close();
      assert.deepEqual(stepsOf(published), [WELL, FAILED]);
    } finally {
      await limit(pool.close({ timeout: 0 }));
    }
  });
});

leavesNoSession();
