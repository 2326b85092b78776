import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { test } from "node:test";
import { limit } from "../tests/_support/limit.ts";
import { findRuntime, RUNTIME_NAMES, type RuntimeName } from "./runtimes.ts";
import { compareRuntimes } from "./test_report.ts";
import { type FileResult, type Outcome, readJunit, runFile } from "./test_run.ts";

const SAMPLE = `import { test } from "node:test";
test("passes & <well>", () => {});
test("fails", () => { throw new Error("on purpose"); });
test("is skipped", { skip: "no reason" }, () => {});
`;

/** Runs a test file of this text. */
async function runText(name: RuntimeName, text: string, timeout: number = 60_000): Promise<FileResult> {
  const directory = await Deno.makeTempDir({ prefix: "pipegres-runner-" });
  const root = fileURLToPath(new URL("..", import.meta.url));
  try {
    await Deno.writeTextFile(join(directory, "sample_test.ts"), text);
    await Deno.writeTextFile(join(directory, "package.json"), '{"type":"module"}');
    await Deno.mkdir(join(directory, "scripts"));
    await Deno.copyFile(join(root, "scripts/node_reporter.ts"), join(directory, "scripts/node_reporter.ts"));
    const environment = { ...Deno.env.toObject(), NO_COLOR: "1" };
    const options = { root: directory, environment, reports: directory, timeout };
    return await limit(runFile("sample_test.ts", await findRuntime(name), options), 60_000, name);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

for (const name of RUNTIME_NAMES) {
  test(`under ${name} each test's outcome is found`, async () => {
    const result = await runText(name, SAMPLE);
    assert.deepEqual(result.tests, [
      { name: "passes & <well>", outcome: "passed" },
      { name: "fails", outcome: "failed" },
      { name: "is skipped", outcome: "skipped" },
    ]);
    assert.deepEqual(result.problems, []);
    assert.match(result.output, /on purpose/);
  });

  test(`under ${name} a file that cannot be loaded is a problem`, async () => {
    const result = await runText(name, 'import "./missing.ts";\n');
    assert.ok(result.problems.length > 0 || result.tests.some((each) => each.outcome === "failed"));
    assert.match(result.output, /missing\.ts/);
  });

  test(`under ${name} a file that hangs is ended`, async () => {
    const result = await runText(
      name,
      'import { test } from "node:test";\ntest("hangs", () => new Promise((resolve) => setTimeout(resolve, 1e6)));\n',
      2_000,
    );
    assert.deepEqual(result.problems, ["did not end within 2 s"]);
  });

  test(`under ${name} a file without a test is a problem`, async () => {
    assert.equal((await runText(name, "export {};\n")).problems.length, 1);
  });
}

test("under node a process that does not exit after its last test is a problem", async () => {
  const text = 'import { test } from "node:test";\ntest("leaks", () => void setInterval(() => {}, 1000));\n';
  const result = await runText("node", text);
  assert.match(result.problems.join(), /did not exit within 5 s after its last test/);
  assert.deepEqual(result.tests, [{ name: "leaks", outcome: "passed" }]);
});

test("readJunit() counts a subtest with its test", () => {
  const xml = `<testcase name="a"></testcase><testcase name="a &gt; b"><failure/></testcase>
    <testcase name="1 &gt; 0" time="0" />`;
  assert.deepEqual(readJunit(xml), [
    { name: "a", outcome: "passed" },
    { name: "1 > 0", outcome: "passed" },
  ]);
});

function fileResult(runtime: RuntimeName, tests: Readonly<Record<string, Outcome>>): FileResult {
  const list = Object.entries(tests).map(([name, outcome]) => ({ name, outcome }));
  return { file: "a_test.ts", runtime, tests: list, problems: [], output: "", milliseconds: 1 };
}

test("compareRuntimes() finds tests that one runtime does not know", () => {
  const all = { one: "passed", two: "passed" } as const;
  assert.deepEqual(compareRuntimes([fileResult("deno", all), fileResult("bun", all)]), []);
  assert.deepEqual(compareRuntimes([fileResult("deno", all), fileResult("bun", { one: "passed" })]), [
    'bun did not run 1 tests of a_test.ts: "two"',
  ]);
  assert.deepEqual(
    compareRuntimes([fileResult("deno", all), fileResult("bun", { one: "passed", two: "skipped" })]),
    [],
  );
  assert.deepEqual(
    compareRuntimes([fileResult("deno", all), fileResult("bun", { "needs Deno": "skipped" })]),
    [],
  );
});
