import assert from "node:assert/strict";
import { test } from "node:test";
import { hotFunctions } from "../../bench/harness/profile_summary.ts";

function node(id: number, functionName: string, url: string) {
  return { id, callFrame: { functionName, url, lineNumber: 9 } };
}

test("hotFunctions() adds up the time of equal functions, leaves waiting out and sorts", () => {
  const hot = hotFunctions({
    nodes: [
      node(1, "(idle)", ""),
      node(2, "read", "file:///home/me/src/wire/framer.ts"),
      node(3, "read", "file:///home/me/src/wire/framer.ts"),
      node(4, "", "node:net"),
    ],
    samples: [1, 2, 3, 4, 1],
    timeDeltas: [500, 30, 30, 40, 500],
  });
  assert.deepEqual(hot, [
    { name: "read", place: "src/wire/framer.ts:10", share: 0.6 },
    { name: "(anonymous)", place: "node:net:10", share: 0.4 },
  ]);
});

test("hotFunctions() can look at the end alone", () => {
  const nodes = [node(1, "start", "a"), node(2, "work", "b")];
  const hot = hotFunctions({ nodes, samples: [1, 1, 2], timeDeltas: [5_000, 5_000, 10_000] }, 10);
  assert.deepEqual(hot.map(({ name, share }) => [name, share]), [["work", 1]]);
});
