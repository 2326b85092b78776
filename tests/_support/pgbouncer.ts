/** A PgBouncer in transaction mode, where the machine has one (Debian: `apt-get install pgbouncer`). */

import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { limit, until } from "./limit.ts";
import { SimpleClient } from "./simple_client.ts";

const PATHS = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"];

/** Whether {@linkcode startPgBouncer} can work. */
export function hasPgBouncer(): boolean {
  return PATHS.some((path) => existsSync(path));
}

/** A running PgBouncer. */
export interface PgBouncer {
  readonly port: number;
  close(): Promise<void>;
}

/** Starts one that lets everybody in, as `user`, to a few sessions of the server in turn. */
export async function startPgBouncer(
  target: { readonly host: string; readonly port: number; readonly database: string },
  user: string,
): Promise<PgBouncer> {
  const directory = mkdtempSync(join(tmpdir(), "pipegres-pgbouncer-"));
  const port = await freePort();
  const settings = join(directory, "pgbouncer.ini");
  const { host, port: serverPort, database } = target;
  writeFileSync(
    settings,
    `[databases]
${database} = host=${host} port=${serverPort} dbname=${database} user=${user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
server_round_robin = 1
ignore_startup_parameters = extra_float_digits
log_connections = 0
log_disconnections = 0
`,
  );
  chmodSync(directory, 0o755);
  chmodSync(settings, 0o644);
  const path = PATHS.find((each) => existsSync(each))!;
  // It refuses to run as root.
  const command = process.getuid?.() === 0
    ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", path, settings]
    : [path, settings];
  const child = spawn(command[0]!, command.slice(1), { stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  child.stderr.on("data", (chunk) => log += chunk);
  const close = async () => {
    await stop(child);
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await until(
      () => answers({ host: "127.0.0.1", port, user, database }),
      10_000,
      "PgBouncer's first answer",
    );
  } catch (error) {
    await close();
    throw new Error(`PgBouncer does not answer: ${log}`, { cause: error });
  }
  return { port, close };
}

async function answers(options: Parameters<typeof SimpleClient.connect>[0]): Promise<boolean> {
  try {
    const client = await SimpleClient.connect(options);
    await client.query("select 1");
    await client.close();
    return true;
  } catch {
    return false;
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  await limit(ended, 10_000, "PgBouncer's end");
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
