/** README.md tells the truth: every example runs, and prints what it says. */

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { ask, createDatabase, leavesNoSession, limit } from "../_support/server.ts";
import { readmeExamples, readmeSetup } from "./readme.ts";
import { reached } from "./readme_check.ts";

const markdown = await readFile(new URL("../../README.md", import.meta.url), "utf8");
const moduleUrl = new URL("../../mod.ts", import.meta.url).href;
const checkUrl = new URL("./readme_check.ts", import.meta.url).href;
const examples = readmeExamples(markdown, moduleUrl, checkUrl);

test("every block of TypeScript is an example", () => {
  assert.equal(examples.length, markdown.match(/^ *```(?:ts|js|typescript|javascript)\b/gm)?.length);
  for (const { title, checkedProgram } of examples) {
    assert.doesNotMatch(checkedProgram, /console\.log/, `${title}: each console.log says what it prints`);
  }
  assert.ok(examples.some(({ title, checks }) => title === "Start" && checks > 0));
});

for (const { title, checkedProgram, checks } of examples) {
  test(`the example "${title}" prints what README.md says`, async () => {
    const folder = await mkdtemp(join(tmpdir(), "pipegres-readme-"));
    const database = await createDatabase();
    try {
      await ask(readmeSetup(markdown), database.name);
      process.env["DATABASE_URL"] = database.url;
      const path = join(folder, "example.mts");
      await writeFile(path, checkedProgram);
      reached.clear();
      await limit(import(pathToFileURL(path).href), 30_000, title);
      assert.equal(reached.size, checks, "not every console.log was reached");
    } finally {
      await database.drop();
      await rm(folder, { recursive: true });
    }
  });
}

leavesNoSession();
