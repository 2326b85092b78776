import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ask,
  createDatabase,
  hasTestRoles,
  leavesNoSession,
  limit,
  serverVersion,
  TEST_ROLES,
  type TestRole,
  testTarget,
  testUrl,
  uniqueName,
  withSchema,
} from "./server.ts";
import { SimpleClient, SimpleClientError } from "./simple_client.ts";

test("ask() gives the last result's rows as text", async () => {
  assert.deepEqual(await limit(ask("select 1; select 'ä', null, ''")), [["ä", null, ""]]);
  assert.ok(await limit(serverVersion()) >= 14);
});

test("ask() rejects with the server's error and leaves the client usable", async () => {
  const client = await limit(SimpleClient.connect(testTarget()));
  await assert.rejects(limit(client.query("select 1/0")), (error) => {
    return error instanceof SimpleClientError && error.code === "22012";
  });
  assert.deepEqual(await limit(client.query("select 2")), [["2"]]);
  await limit(client.close());
});

test("a large result arrives whole", async () => {
  const rows = await limit(ask("select repeat('x', 100000) from generate_series(1, 50)"));
  assert.equal(rows.length, 50);
  assert.ok(rows.every((row) => row[0]?.length === 100_000));
});

test("a database of one's own is dropped with its sessions", async () => {
  const database = await limit(createDatabase());
  const client = await limit(SimpleClient.connect({ ...testTarget(), database: database.name }));
  assert.deepEqual(await limit(client.query("select current_database()")), [[database.name]]);
  await limit(database.drop());
  await assert.rejects(limit(client.query("select 1")));
  assert.deepEqual(await limit(ask(`select from pg_database where datname = '${database.name}'`)), []);
});

test("a schema is dropped even when its user throws", async () => {
  let name = "";
  const failing = withSchema(async (schema) => {
    name = schema;
    await ask(`create table ${schema}.t ()`);
    throw new Error("on purpose");
  });
  await assert.rejects(limit(failing), /on purpose/);
  assert.deepEqual(await limit(ask(`select from pg_namespace where nspname = '${name}'`)), []);
});

test("unique names differ and need no quotes", () => {
  const names = new Set(Array.from({ length: 100 }, () => uniqueName("x")));
  assert.equal(names.size, 100);
  for (const name of names) assert.match(name, /^x[a-z0-9_]{1,60}$/);
});

test("testUrl() keeps the address and replaces user, password and database", () => {
  const url = new URL(testUrl({ user: "a b", password: "p@ß", database: "d/e" }));
  const target = testTarget();
  assert.equal(url.hostname, target.host);
  assert.equal(Number(url.port || 5432), target.port);
  assert.equal(decodeURIComponent(url.username), "a b");
  assert.equal(decodeURIComponent(url.password), "p@ß");
  assert.equal(decodeURIComponent(url.pathname), "/d/e");
});

const methods: Readonly<Record<TestRole, string>> = {
  app_trust: "trust",
  app_password: "password",
  app_md5: "md5",
  app_scram: "scram-sha-256",
};

test("every test role is asked for its password as its name says", { skip: !hasTestRoles() }, async () => {
  const rules = await limit(
    ask("select user_name[1], auth_method from pg_hba_file_rules where type = 'host'"),
  );
  for (const role of Object.keys(TEST_ROLES) as TestRole[]) {
    assert.ok(rules.some(([user, method]) => user === role && method === methods[role]), role);
    if (role === "app_md5") continue; // The simple client does not speak md5.
    const client = await limit(
      SimpleClient.connect({ ...testTarget(), user: role, password: TEST_ROLES[role] }),
      5_000,
      role,
    );
    assert.deepEqual(await limit(client.query("select current_user")), [[role]]);
    await limit(client.close());
    if (methods[role] === "trust") continue;
    await assert.rejects(
      limit(SimpleClient.connect({ ...testTarget(), user: role, password: "wrong" })),
      /28P01/,
    );
  }
});

leavesNoSession();
