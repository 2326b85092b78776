import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { recallOptions } from "../../src/connection/option_memo.ts";
import type { ConnectOptions } from "../../src/connection/options.ts";

const APP = { host: "db.example", user: "app", password: "secret" } as const;

/** Runs `work` with an environment variable, and puts back what was there. */
async function withVariable(name: string, value: string, work: () => Promise<void>): Promise<void> {
  const before = process.env[name];
  process.env[name] = value;
  try {
    await work();
  } finally {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  }
}

test("the same options in the same environment are resolved once", async () => {
  const first = await recallOptions({ ...APP }, {});
  assert.equal(await recallOptions({ ...APP }, {}), first);
  const uri = await recallOptions("postgres://app:secret@db.example/app", {});
  assert.equal(await recallOptions(new URL("postgres://app:secret@db.example/app"), {}), uri);
  assert.notEqual(uri, first);
});

test("another value, another option and another string are resolved anew", async () => {
  const first = await recallOptions({ ...APP }, {});
  assert.equal((await recallOptions({ ...APP, user: "other" }, {})).user, "other");
  assert.equal((await recallOptions({ ...APP }, { user: "third" })).user, "third");
  assert.equal((await recallOptions({ ...APP, database: "d" }, {})).database, "d");
  assert.equal((await recallOptions("postgres://app@one.example/a", {})).database, "a");
  assert.equal((await recallOptions("postgres://app@one.example/b", {})).database, "b");
  assert.equal((await recallOptions({ ...APP }, {})).user, first.user);
});

test("a variable that has changed counts", async () => {
  await withVariable("PGAPPNAME", "one", async () => {
    const first = await recallOptions({ ...APP }, {});
    assert.equal(first.startupParameters["application_name"], "one");
    process.env["PGAPPNAME"] = "two";
    const second = await recallOptions({ ...APP }, {});
    assert.equal(second.startupParameters["application_name"], "two");
    delete process.env["PGAPPNAME"];
    const third = await recallOptions({ ...APP }, {});
    assert.equal(third.startupParameters["application_name"], undefined);
  });
});

test("a variable that makes the options unusable is refused although they were usable before", async () => {
  await recallOptions({ ...APP }, {});
  await withVariable("PGSSLMODE", "perhaps", async () => {
    await assert.rejects(recallOptions({ ...APP }, {}), { name: "ConfigurationError" });
  });
});

test("lists and objects count by what is in them at the time", async () => {
  const host = ["one.example"];
  const parameters: Record<string, string> = { search_path: "one" };
  const options = { ...APP, host, parameters };
  await recallOptions(options, {});
  host[0] = "two.example";
  parameters["search_path"] = "two";
  const later = await recallOptions(options, {});
  assert.equal(later.hosts[0]!.host, "two.example");
  assert.equal(later.startupParameters["search_path"], "two");
});

test("inherited options are none, and what cannot be used is refused each time", async () => {
  await recallOptions({ ...APP }, {});
  const inherited = Object.create({ ...APP, user: "inherited" }) as ConnectOptions;
  assert.notEqual((await recallOptions(inherited, { user: "own" })).hosts[0]!.host, APP.host);
  await recallOptions(undefined, { ...APP });
  for (const wrong of [null, 5, true]) {
    await assert.rejects(recallOptions(wrong as unknown as ConnectOptions, { ...APP }), {
      name: "ConfigurationError",
    });
  }
});

test("a password function is asked each time", async () => {
  let asked = 0;
  const options = { host: "db.example", user: "app", password: () => `token ${++asked}` };
  const [first, second] = [await recallOptions(options, {}), await recallOptions(options, {})];
  assert.equal(await first.password(first.hosts[0]!), "token 1");
  assert.equal(await second.password(second.hosts[0]!), "token 2");
});
