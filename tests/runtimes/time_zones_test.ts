/** Values do not depend on the process's time zone, nor on the server's, nor on the way they are asked for. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { leavesNoSession, limit, testUrl } from "../_support/server.ts";
import { runChild } from "./children.ts";

const OFFSETS = { "UTC": 0, "Asia/Tokyo": -540, "America/New_York": 300 };

test("one result on every path, whatever TZ and TimeZone are", async () => {
  const children = Object.entries(OFFSETS).map(async ([TZ, offset]) => {
    const { code, output, errors } = await limit(
      runChild("./values_child.ts", [testUrl()], ["-A"], { TZ }),
      40_000,
    );
    assert.equal(code, 0, errors);
    const { offset: received, results } = JSON.parse(output) as { offset: number; results: string[] };
    assert.equal(received, offset, `the process is in ${TZ}`);
    assert.equal(results.length, 1, `in ${TZ}: ${results.join("\n")}`);
    return results[0]!;
  });
  const [utc, ...others] = await Promise.all(children);
  for (const each of others) assert.equal(each, utc);
  const row = JSON.parse(utc!) as Record<string, unknown>;
  assert.equal(row["d"], "2026-08-24");
  assert.equal(row["s"], `Date ${Date.UTC(2024, 5, 15, 12, 0, 0, 500)}`);
  assert.equal(row["y50"], "Date -60589296000000");
});

leavesNoSession();
