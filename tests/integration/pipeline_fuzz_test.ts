/**
 * Random programs on one connection: every query gets its own answer, every promise settles.
 *
 * PIPEGRES_FUZZ_QUERIES sets how many queries the first test issues (default 50,000; the others a tenth),
 * PIPEGRES_FUZZ_SEED repeats a run.
 */

import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { prepareFuzz, runFuzz } from "../_support/pipeline_fuzz.ts";
import { randomChunks, startProxy } from "../_support/proxy.ts";
import { leavesNoSession, testTarget, testUrl, withSchema } from "../_support/server.ts";
import { type SessionOptions, withConnection } from "../_support/session.ts";

const QUERIES = Number(process.env["PIPEGRES_FUZZ_QUERIES"] ?? 50_000);
const SEED = Number(process.env["PIPEGRES_FUZZ_SEED"] ?? Date.now() % 1_000_000_000);

async function fuzz(name: string, queries: number, seed: number, options: SessionOptions): Promise<void> {
  const workers = 24;
  await withSchema((schema) =>
    withConnection(async (conn) => {
      await prepareFuzz(conn, schema);
      const pid = conn.processId;
      const began = performance.now();
      let report;
      try {
        report = await runFuzz(conn, { seed, queries, schema, workers });
      } catch (error) {
        throw new Error(`${name} with PIPEGRES_FUZZ_SEED=${SEED}: ${error}`, { cause: error });
      }
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      const lost = `statements lost: ${report.lost} in transactions`;
      console.log(`${name}: ${report.queries} queries in ${seconds} s, seed ${seed}, ${lost}`);
      assert.ok(report.queries >= queries);
      assert.equal(conn.processId, pid);
      // Outside transactions all are healed; inside they are an exception.
      assert.ok(report.lost < report.queries / 50, JSON.stringify(report));
    }, { within: 150_000, ...options })
  );
}

test("random programs on one connection", async () => {
  await fuzz("plain", QUERIES, SEED, {});
});

const narrow: [string, SessionOptions][] = [
  ["without pipelining", { pipeline: false }],
  ["a window of 3", { pipeline: { maxQueries: 3 } }],
  ["unnamed statements only", { statementCache: 0 }],
  ["a cache of 5", { statementCache: 5 }],
  ["a window of 2,000 bytes", { pipeline: { maxBytes: 2_000 } }],
];

for (const [i, [name, options]] of narrow.entries()) {
  test(`random programs, ${name}`, async () => {
    await fuzz(name, QUERIES / 20, SEED + 1 + i, options);
  });
}

test("random programs through a proxy that cuts and joins at random", async () => {
  const seed = SEED + 10;
  const proxy = await startProxy({
    target: testTarget(),
    frontend: randomChunks(seed, 400),
    backend: randomChunks(seed + 1, 300),
  });
  try {
    const url = new URL(testUrl());
    url.port = String(proxy.port);
    await fuzz("proxy", QUERIES / 10, seed, { url: url.href });
  } finally {
    await proxy.close();
  }
});

leavesNoSession();
