import assert from "node:assert/strict";
import { dirname } from "node:path";
import { test } from "node:test";
import { limit, until } from "../tests/_support/limit.ts";
import { SimpleClient } from "../tests/_support/simple_client.ts";
import { errcodesPath, startPostgres, UNSAFE_FAST_SETTINGS } from "./embedded_postgres.ts";

const SLOW = 120_000;

async function ask(url: string, sql: string): Promise<string | null | undefined> {
  const client = await limit(SimpleClient.connect(url));
  try {
    return (await limit(client.query(sql)))[0]?.[0];
  } finally {
    await client.close();
  }
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

async function isListening(port: number): Promise<boolean> {
  return await Deno.connect({ hostname: "127.0.0.1", port }).then(
    (socket) => (socket.close(), true),
    () => false,
  );
}

test("a server with settings and rules of its own runs, restarts with its data, and leaves nothing", async () => {
  const server = await limit(
    startPostgres({
      settings: { ...UNSAFE_FAST_SETTINGS, work_mem: "7MB", "my.quoted": "it's" },
      hba: ["host all guest 127.0.0.1/32 trust"],
    }),
    SLOW,
  );
  const directory = dirname(server.socketDirectory);
  assert.match((await ask(server.url, "select version()")) ?? "", /^PostgreSQL 18\./);
  assert.equal(await ask(server.url, "show work_mem"), "7MB");
  assert.equal(await ask(server.url, "show my.quoted"), "it's");
  assert.equal(await ask(server.url, "show fsync"), "off");
  await ask(server.url, "create role guest login; create table kept as select 42 as n");
  assert.equal(
    await ask(`postgres://guest@127.0.0.1:${server.port}/postgres`, "select current_user"),
    "guest",
  );
  await assert.rejects(ask(server.url.replace(server.password, "wrong"), "select 1"), /28P01/);
  await limit(server.restart(), SLOW);
  assert.equal(await ask(server.url, "select n from kept"), "42");
  await limit(server.restart({ mode: "immediate" }), SLOW);
  assert.equal(await ask(server.url, "select n from kept"), "42");
  assert.match(await server.log(), /was not properly shut down/);
  assert.ok(await exists(`${server.socketDirectory}/.s.PGSQL.${server.port}`));
  await limit(server.stop(), SLOW);
  await limit(server.stop(), SLOW);
  assert.equal(await exists(directory), false);
  assert.equal(await isListening(server.port), false);
});

test("a setting that the server refuses is told, and nothing is left", async () => {
  // A folder for this test alone: other servers may come and go meanwhile.
  const own = await Deno.makeTempDir({ prefix: "pipegres-test-" });
  const before = Deno.env.get("TMPDIR");
  try {
    await Deno.chmod(own, 0o777); // the server is another user
    Deno.env.set("TMPDIR", own);
    await assert.rejects(
      limit(startPostgres({ settings: { shared_buffers: "many" } }), SLOW),
      /invalid value for parameter "shared_buffers"/,
    );
    assert.deepEqual((await Array.fromAsync(Deno.readDir(own))).map(({ name }) => name), []);
  } finally {
    if (before === undefined) Deno.env.delete("TMPDIR");
    else Deno.env.set("TMPDIR", before);
    await Deno.remove(own, { recursive: true });
  }
});

const CHILD = `
const { startPostgres, UNSAFE_FAST_SETTINGS } = await import(Deno.args[0]);
const server = await startPostgres({ settings: UNSAFE_FAST_SETTINGS });
console.log(server.port + " " + server.dataDirectory);
if (Deno.args[1] === "forget") Deno.exit(0);
await new Promise((resolve) => setTimeout(resolve, 1e6));
`;

for (const way of ["SIGTERM", "SIGKILL", "forget"] as const) {
  test(`a server does not outlive its parent: ${way}`, async () => {
    // The current folder is one that only this user can enter.
    const cwd = await Deno.makeTempDir({ prefix: "pipegres-private-" });
    await Deno.writeTextFile(`${cwd}/child.ts`, CHILD);
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-config", "child.ts", import.meta.resolve("./embedded_postgres.ts"), way],
      cwd,
      stdin: "null",
      stdout: "piped",
    }).spawn();
    const reader = child.stdout.getReader();
    const line = new TextDecoder().decode((await limit(reader.read(), SLOW, "the child's server")).value);
    const [port, dataDirectory] = line.trim().split(" ");
    if (way !== "forget") {
      assert.equal(await isListening(Number(port)), true);
      child.kill(way);
    }
    await reader.cancel();
    await limit(child.status, SLOW);
    await until(async () => !await exists(dirname(dataDirectory!)), 10_000, "the removal of its directory");
    assert.equal(await isListening(Number(port)), false);
    await Deno.remove(cwd, { recursive: true });
  });
}

test("the oldest major version starts too", async () => {
  const server = await limit(startPostgres({ version: 14, settings: UNSAFE_FAST_SETTINGS }), SLOW);
  assert.match((await ask(server.url, "select version()")) ?? "", /^PostgreSQL 14\./);
  await limit(server.stop(), SLOW);
});

test("the list of SQLSTATEs is there", async () => {
  assert.match(await Deno.readTextFile(await errcodesPath()), /^23505\s+E\s+ERRCODE_UNIQUE_VIOLATION/m);
});
