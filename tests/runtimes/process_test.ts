/** Whole processes: what they need, and that they end. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { leavesNoSession, limit, socketDirectory, testTarget, testUrl } from "../_support/server.ts";
import { runChild, runtime } from "./children.ts";

const ANSWER = { first: { n: 1 }, list: [1, 2], failed: "42601" };

test("a process that connects, queries and closes ends by itself", async () => {
  const { code, output, errors, time } = await limit(runChild("./session_child.ts", [testUrl()]), 40_000);
  assert.equal(code, 0, errors);
  assert.deepEqual(JSON.parse(output), ANSWER);
  assert.equal(errors, "");
  assert.ok(time < 15_000, `${time} ms`);
});

test("deno run --allow-net alone is enough", { skip: runtime !== "deno" }, async () => {
  const { code, output, errors } = await limit(
    runChild("./session_child.ts", [testUrl()], ["--allow-net"]),
    40_000,
  );
  assert.equal(code, 0, errors);
  assert.deepEqual(JSON.parse(output), ANSWER);
});

test(
  "denied --allow-env and --allow-read mean that nothing is set",
  { skip: runtime !== "deno" },
  async () => {
    const flags = ["--allow-net", "--deny-env", "--deny-read"];
    const env = { PGPORT: "1", PGDATABASE: "nowhere", PGSERVICE: "nowhere", PGSSLMODE: "verify-full" };
    const { code, output, errors } = await limit(
      runChild("./session_child.ts", [testUrl()], flags, env),
      40_000,
    );
    assert.equal(code, 0, errors);
    assert.deepEqual(JSON.parse(output), ANSWER);
  },
);

test("without --allow-net the attempt is refused with a reason", { skip: runtime !== "deno" }, async () => {
  const { code, errors } = await limit(runChild("./session_child.ts", [testUrl()], []), 40_000);
  assert.equal(code, 1);
  assert.match(errors, /net access|allow-net/);
  const { password } = testTarget();
  if (password) assert.ok(!errors.includes(password), "the password is shown");
});

test("a process over the Unix socket ends by itself", { skip: socketDirectory() === undefined }, async () => {
  const { user, password, port, database } = testTarget();
  const host = encodeURIComponent(socketDirectory()!);
  const name = new URL(testUrl()).searchParams.get("application_name");
  const url = `postgres://${user}:${password}@${host}:${port}/${database}?application_name=${name}`;
  const { code, output, errors } = await limit(runChild("./session_child.ts", [url]), 40_000);
  assert.equal(code, 0, errors);
  assert.deepEqual(JSON.parse(output), ANSWER);
});

test("failures and a session that the server ends leave nothing unhandled, and the process ends", async () => {
  const { code, output, errors } = await limit(runChild("./open_child.ts", [testUrl()]), 40_000);
  assert.equal(code, 0, output + errors);
  assert.match(output, /^pid \d+ rejected,rejected,rejected,rejected\nclosed true\n$/);
});

leavesNoSession();
