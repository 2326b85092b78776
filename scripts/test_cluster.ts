/**
 * A primary and a synchronous streaming standby for tests that restart, demote and lose servers.
 *
 * deno run -A scripts/test_cluster.ts [major version]
 *
 * Prints a line of JSON with where both are, then carries out one command a line from standard input and answers each
 * with a line: `restart fast`, `restart immediate` (the primary), `read-only on`, `read-only off` (the primary),
 * `crash` (the primary, for good), `promote` (the standby). The end of the input ends everything.
 */

import { dirname, join } from "node:path";
import { SimpleClient } from "../tests/_support/simple_client.ts";
import { type EmbeddedPostgres, type PostgresVersion, startPostgres } from "./embedded_postgres.ts";

/** Where a server is, for tests. */
export interface ClusterNode {
  readonly host: string;
  readonly port: number;
}

/** What the first line says. */
export interface ClusterFacts {
  readonly primary: ClusterNode;
  readonly standby: ClusterNode;
  readonly user: string;
  readonly password: string;
}

/** An acknowledged commit is on the standby, but nothing waits for a disk: no machine crashes here. */
const SETTINGS: Readonly<Record<string, string>> = {
  fsync: "off",
  full_page_writes: "on",
  synchronous_commit: "on",
  wal_level: "replica",
  wal_keep_size: "512MB",
  max_wal_senders: "4",
  hot_standby: "on",
  max_connections: "100",
  log_min_messages: "warning",
};

const STANDBY_TIMEOUT = 60_000;

/** A standby of a primary, in a directory of its own; ends with this process, like the primary. */
class Standby {
  readonly port: number;
  readonly #process: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;

  private constructor(port: number, process: Deno.ChildProcess) {
    this.port = port;
    this.#process = process;
    this.#input = process.stdin.getWriter();
  }

  static async start(primary: EmbeddedPostgres): Promise<Standby> {
    const home = dirname(primary.dataDirectory);
    const { uid, gid } = await Deno.stat(primary.dataDirectory);
    const directory = await Deno.makeTempDir({ prefix: "pipegres-standby-" });
    await Deno.chown(directory, uid, gid);
    const data = join(directory, "data");
    await takeBaseBackup(primary, data);
    const port = freePort();
    await Deno.writeTextFile(
      join(data, "postgresql.conf"),
      `\nprimary_conninfo = 'host=127.0.0.1 port=${primary.port} user=${primary.user} password=${primary.password}'
unix_socket_directories = ''
wal_retrieve_retry_interval = '100ms'\n`,
      { append: true },
    );
    await Deno.writeTextFile(join(data, "standby.signal"), "");
    await giveAll(data, uid!, gid!);
    const process = new Deno.Command("/bin/sh", {
      args: ["-c", SUPERVISOR, "pipegres-standby", join(home, "bin", "postgres"), directory, String(port)],
      cwd: directory,
      clearEnv: true,
      env: { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" },
      ...(Deno.uid() === 0 && { uid: uid!, gid: gid! }),
      stdin: "piped",
      stdout: "null",
      stderr: "null",
      detached: true,
    }).spawn();
    process.unref();
    return new Standby(port, process);
  }

  async end(): Promise<void> {
    this.#process.ref();
    await this.#input.close();
    await this.#process.status;
  }
}

const SUPERVISOR = `
trap '' INT TERM HUP
"$1" -D "$2/data" -p "$3" >"$2/log" 2>&1 </dev/null & server=$!
read -r line
kill -QUIT "$server" 2>/dev/null; wait "$server"
cd / && rm -rf -- "$2"
`;

/** Copies the data directory of a running server (PostgreSQL manual, 25.3.4). */
async function takeBaseBackup(primary: EmbeddedPostgres, target: string): Promise<void> {
  const [start, stop] = primary.version < 15
    ? ["select pg_start_backup('standby', true, false)", "select labelfile from pg_stop_backup(false, false)"]
    : ["select pg_backup_start('standby', true)", "select labelfile from pg_backup_stop(false)"];
  const client = await SimpleClient.connect(primary.url);
  try {
    await client.query(start);
    await copyData(primary.dataDirectory, target);
    const label = (await client.query(stop))[0]![0]!;
    await Deno.writeTextFile(join(target, "backup_label"), label);
  } finally {
    await client.close();
  }
}

/** Everything but what belongs to the running server alone; its log comes by streaming. */
async function copyData(source: string, target: string, path: string = ""): Promise<void> {
  await Deno.mkdir(join(target, path), { mode: 0o700 });
  for await (const { name, isDirectory } of Deno.readDir(join(source, path))) {
    const each = join(path, name);
    if (each === "postmaster.pid" || each === "postmaster.opts") continue;
    if (isDirectory) {
      if (["pg_wal", "pg_replslot"].includes(each)) await Deno.mkdir(join(target, each), { mode: 0o700 });
      else await copyData(source, target, each);
      // A file that has been dropped meanwhile is not missed.
    } else await Deno.copyFile(join(source, each), join(target, each)).catch(ignoreMissing);
  }
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}

async function giveAll(path: string, uid: number, gid: number): Promise<void> {
  await Deno.chown(path, uid, gid);
  for await (const { name, isDirectory } of Deno.readDir(path)) {
    if (isDirectory) await giveAll(join(path, name), uid, gid);
    else await Deno.chown(join(path, name), uid, gid);
  }
}

function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return port;
}

/** Asks until the answer is as wanted. */
async function untilAnswer(url: string, sql: string, wanted: string): Promise<void> {
  let last: unknown;
  for (const deadline = Date.now() + STANDBY_TIMEOUT; Date.now() < deadline;) {
    try {
      last = await ask(url, sql);
      if (last === wanted) return;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`"${sql}" did not become ${wanted} in ${STANDBY_TIMEOUT} ms: ${last}`);
}

async function ask(url: string, ...sql: string[]): Promise<string | null | undefined> {
  const client = await SimpleClient.connect(url);
  try {
    let answer: string | null | undefined;
    for (const each of sql) answer = (await client.query(each))[0]?.[0];
    return answer;
  } finally {
    await client.close();
  }
}

async function carryOut(command: string, primary: EmbeddedPostgres, standbyUrl: string): Promise<void> {
  switch (command) {
    case "restart fast":
      return await primary.restart({ mode: "fast" });
    case "restart immediate":
      return await primary.restart({ mode: "immediate" });
    case "read-only on":
    case "read-only off":
      await ask(
        primary.url,
        `alter system set default_transaction_read_only = ${command.split(" ")[1]}`,
        "select pg_reload_conf()",
      );
      return await untilAnswer(primary.url, "show default_transaction_read_only", command.split(" ")[1]!);
    case "crash": {
      const pid = Number(
        (await Deno.readTextFile(join(primary.dataDirectory, "postmaster.pid"))).split("\n")[0],
      );
      return Deno.kill(pid, "SIGQUIT");
    }
    case "promote":
      await ask(standbyUrl, "select pg_promote(true, 60)");
      return;
    default:
      throw new Error(`Unknown command "${command}"`);
  }
}

async function main(version: PostgresVersion): Promise<void> {
  await using primary = await startPostgres({
    version,
    settings: SETTINGS,
    hba: ["host replication all 127.0.0.1/32 scram-sha-256"],
  });
  const standby = await Standby.start(primary);
  try {
    const { host, user, password } = primary;
    const standbyUrl = `postgres://${user}:${password}@127.0.0.1:${standby.port}/postgres`;
    await ask(
      primary.url,
      "alter system set synchronous_standby_names = '*'",
      "select pg_reload_conf()",
    );
    await untilAnswer(primary.url, "select sync_state from pg_stat_replication", "sync");
    // Or the promoted standby would wait for one of its own.
    await untilAnswer(standbyUrl, "select pg_is_in_recovery()", "t");
    const facts: ClusterFacts = {
      primary: { host, port: primary.port },
      standby: { host: "127.0.0.1", port: standby.port },
      user,
      password,
    };
    console.log(JSON.stringify(facts));
    let rest = "";
    for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        await carryOut(line, primary, standbyUrl);
        console.log("done");
      }
    }
  } finally {
    await standby.end();
  }
}

if (import.meta.main) await main(Number(Deno.args[0] ?? 18) as PostgresVersion);
