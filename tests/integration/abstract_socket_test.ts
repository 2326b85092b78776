/** Sessions over a Unix-domain socket in Linux's abstract namespace, which libpq writes with `@`. */

import assert from "node:assert/strict";
import { createConnection, createServer, type Socket } from "node:net";
import process from "node:process";
import { test } from "node:test";
import { connect, createPool } from "../../mod.ts";
import { leavesNoSession, limit, testTarget, uniqueName } from "../_support/server.ts";
import { rejectionOf } from "../_support/session.ts";

const skip = process.platform === "linux" ? false : "abstract sockets are Linux's own";

/** Forwards an abstract socket to the test server; gives the host as libpq writes it, and how many came. */
async function withFront(
  body: (host: string, port: number, count: () => number) => Promise<void>,
): Promise<void> {
  const { host, port } = testTarget();
  const sockets = new Set<Socket>();
  let count = 0;
  const server = createServer((front) => {
    count++;
    const back = createConnection({ host, port });
    for (const [from, to] of [[front, back], [back, front]] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  const directory = `@${uniqueName("pipegres")}`;
  const name = `${directory.slice(1)}/.s.PGSQL.${port}`;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(`\0${name}`, resolve);
  });
  try {
    await limit(body(directory, port, () => count), 30_000, "the test's body");
  } finally {
    for (const socket of sockets) socket.destroy();
    await limit(new Promise((resolve) => server.close(resolve)), 5_000, "the front's end");
  }
}

test(
  "an abstract socket is connected to by option, conninfo string and URI",
  { skip },
  () =>
    withFront(async (host, port, count) => {
      const { user, password = "", database } = testTarget();
      const [u, p, d] = [user, password, database].map((each) => encodeURIComponent(each));
      const quote = (value: string) => `'${value.replace(/[\\']/g, "\\$&")}'`;
      const credentials = `user=${quote(user)} password=${quote(password)} dbname=${quote(database)}`;
      const at = encodeURIComponent(host);
      const targets: readonly (readonly [string, Parameters<typeof connect>[0]])[] = [
        ["options", { host, port, user, password, database }],
        ["a list of hosts", { host: ["@nobody_listens", host], port, user, password, database }],
        ["conninfo", `host=${host} port=${port} ${credentials}`],
        ["URI", `postgres://${u}:${p}@${at}:${port}/${d}`],
        [
          "URI with the host as a parameter",
          `postgres:///${d}?host=${at}&port=${port}&user=${u}&password=${p}`,
        ],
      ];
      for (const [i, [name, target]] of targets.entries()) {
        const conn = await limit(connect(target), 10_000, name);
        try {
          assert.equal(await limit(conn.sql`select ${i}::int4`.scalar()), i, name);
          assert.equal(count(), i + 1, `${name}: it was another way`);
        } finally {
          await limit(conn.close({ timeout: 0 }), 5_000, "close");
        }
      }
      const before = count();
      const pool = createPool({ host, port, user, password, database });
      try {
        // The cancel goes the same way.
        const slow = pool.sql`select pg_sleep(30)`.with({ timeout: 100 });
        assert.equal((await rejectionOf(slow, 10_000)).name, "TimeoutError");
        assert.equal(await limit(pool.sql`select 1`.scalar()), 1);
        assert.ok(count() >= before + 2, "the cancel went another way");
      } finally {
        await limit(pool.close({ timeout: 0 }), 5_000, "close");
      }
    }),
);

test("an abstract socket that nobody listens on is refused by its name", { skip }, async () => {
  const error = await rejectionOf(connect({ host: "@nobody_listens", port: 5432, user: "u", database: "d" }));
  assert.equal(error.name, "ConnectionError");
  assert.match(error.message, /@nobody_listens\/\.s\.PGSQL\.5432/);
});

leavesNoSession();
