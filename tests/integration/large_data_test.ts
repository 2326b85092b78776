/**
 * More data than memory: what streams, cursors and COPY keep of it.
 *
 * Each amount is well above its limit: whoever kept all of it would be found.
 */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { createPool } from "../../mod.ts";
import { ask, leavesNoSession, limit, testUrl, uniqueName, withSchema } from "../_support/server.ts";
import type { MemoryReport } from "../_support/memory_child.ts";
import { rejectionOf, withConnection } from "../_support/session.ts";

const WITHIN = { within: 170_000 };
const MEGABYTE = 1_048_576;
/** Rows before memory is looked at: a runtime lets its heap for short-lived values grow to its own limit first. */
const WARM = 200_000;
const CHILD = fileURLToPath(new URL("../_support/memory_child.ts", import.meta.url));

function assertBelow(bytes: number, megabytes: number, what: string): void {
  const text = `${what} ${(bytes / MEGABYTE).toFixed(1)} MB, the limit is ${megabytes}`;
  console.log(`# ${text}`);
  assert.ok(bytes < megabytes * MEGABYTE, text);
}

/** Reads rows in a program of its own. */
async function readInChild(way: string, rows: number): Promise<MemoryReport> {
  const runtimeArguments = "Deno" in globalThis ? ["run", "-A", "--no-check"] : [];
  const child = spawn(process.execPath, [...runtimeArguments, CHILD, way, String(rows)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    let output = "";
    child.stdout!.on("data", (chunk) => output += chunk);
    const code = await limit(
      new Promise((resolve, reject) => {
        child.on("error", reject);
        child.on("close", resolve);
      }),
      150_000,
    );
    assert.equal(code, 0, output);
    return JSON.parse(output) as MemoryReport;
  } finally {
    child.kill("SIGKILL");
  }
}

/** Watches how far resident memory grows beyond what it was at the start. */
class Memory {
  readonly #before: number;
  #most: number = 0;

  constructor() {
    (globalThis as { gc?: () => void }).gc?.();
    this.#before = process.memoryUsage().rss;
  }

  look(): void {
    this.#most = Math.max(this.#most, process.memoryUsage().rss - this.#before);
  }

  assertBelow(megabytes: number, what: string): void {
    assertBelow(this.#most, megabytes, `${what}: resident memory grew by`);
  }
}

test("a million rows of 100 bytes are streamed in less than 60 MB", async () => {
  const { grown } = await readInChild("rows", 1_000_000);
  assertBelow(grown, 60, "rows of a stream: resident memory grew by");
});

for (const way of ["stream", "COPY TO"]) {
  test(`a slow consumer of a ${way} does not make memory grow`, async () => {
    const { grown, held } = await readInChild(way, 400_000);
    assertBelow(held, 8, `${way}: held for a slow consumer`);
    assertBelow(grown, 120, `${way}: resident memory with a slow consumer is above a fast one's by`);
  });
}

test("200 cursors at once on a pool of 2 all finish", async () => {
  const pool = createPool(testUrl(), { max: 2 });
  try {
    const read = async (cursor: number) => {
      const seen: number[] = [];
      const rows = pool.sql<{ i: number }>`select i + ${cursor}::int as i from generate_series(1, 10) i`;
      for await (const { i } of rows.stream({ batch: 2 })) seen.push(i - cursor);
      return seen.join();
    };
    const all = await limit(Promise.all(Array.from({ length: 200 }, (_, i) => read(i))), 60_000);
    assert.deepEqual(all, Array(200).fill("1,2,3,4,5,6,7,8,9,10"));
    const { total, busy, waiting } = pool.stats();
    assert.deepEqual([total, busy, waiting], [2, 0, 0]);
    // Given back with a cursor open, a session is fit for the next one.
    const session = await limit(pool.acquire());
    const left = session.sql`select generate_series(1, 100000)`.stream({ batch: 2 });
    await left.next();
    await session.close();
    await limit(left.return().catch(() => {}));
    assert.deepEqual(await limit(pool.sql`select 1 as a`), [{ a: 1 }]);
  } finally {
    await limit(pool.close({ timeout: 0 }));
  }
});

test("breaking out of a COPY TO of a gigabyte takes less than a second", async () => {
  const pool = createPool(testUrl(), { max: 1 });
  try {
    const text = "copy (select repeat('x', 1000), generate_series(1, 1000000)) to stdout";
    for (const after of [1, 20 * MEGABYTE, 400 * MEGABYTE]) {
      const memory = new Memory();
      let bytes = 0;
      let began = 0;
      for await (const chunk of pool.copyTo(text)) {
        bytes += chunk.length;
        memory.look();
        began = performance.now();
        if (bytes >= after) break;
      }
      assert.deepEqual(await limit(pool.sql`select 1 as a`), [{ a: 1 }]);
      const took = performance.now() - began;
      console.log(`# broke out of COPY TO after ${after} bytes: ${took.toFixed(0)} ms`);
      assert.ok(took < 1_000, `${took} ms`);
      // V8 lets 64 MB of buffers go by before it looks for those that are of no use any more.
      memory.assertBelow(100, "COPY TO");
    }
  } finally {
    await limit(pool.close({ timeout: 0 }));
  }
});

test("COPY FROM of 200 MB that fails half-way stores nothing and leaks nothing", async () => {
  await withSchema(async (schema) => {
    const table = `${schema}.${uniqueName("t")}`;
    await ask(`create unlogged table ${table} (a int, b text)`);
    await withConnection(async (conn) => {
      const mine = new Error("mine");
      const chunk = new TextEncoder().encode(`1\t${"x".repeat(1_000)}\n`.repeat(65));
      const copy = (megabytes: number, memory: Memory | undefined) => {
        let left = megabytes * MEGABYTE;
        return new ReadableStream<Uint8Array>({
          pull(controller) {
            if (left <= 0) return controller.error(mine);
            left -= chunk.length;
            controller.enqueue(chunk);
            memory?.look();
          },
        }).pipeTo(conn.copyFrom(`copy ${table} from stdin`));
      };
      assert.equal(await rejectionOf(copy(10, undefined), 60_000), mine);
      const memory = new Memory();
      assert.equal(await rejectionOf(copy(100, memory), 120_000), mine);
      assert.deepEqual(await limit(conn.sql`select count(*) as n from ${conn.sql.raw(table)}`), [{ n: 0n }]);
      memory.assertBelow(60, "COPY FROM");
    }, WITHIN);
  });
});

test("copyRows of a million rows keeps none of them", async () => {
  await withSchema(async (schema) => {
    await ask(`create unlogged table ${schema}.t (a int4, b text, c timestamptz)`);
    await withConnection(async (conn) => {
      const count = 1_000_000;
      const rows = function* (size: number, memory: Memory | undefined): Generator<unknown[]> {
        const at = new Date(1.7e12);
        for (let i = 0; i < size; i++) {
          if (i % 10_000 === 0) memory?.look();
          yield [i, `row number ${i} of many`, at];
        }
      };
      await conn.copyRows([schema, "t"], ["a", "b", "c"], rows(WARM, undefined));
      const memory = new Memory();
      const copied = conn.copyRows([schema, "t"], ["a", "b", "c"], rows(count, memory));
      assert.equal(await limit(copied, 120_000), count);
      memory.assertBelow(60, "copyRows");
    }, WITHIN);
  });
});

leavesNoSession();
