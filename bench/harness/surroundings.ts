/** What a run needs around it: packages, a server, and what there is to say about the machine. */

import { cpus, release, totalmem, type } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startPostgres } from "../../scripts/embedded_postgres.ts";
import type { Runtime } from "../../scripts/runtimes.ts";
import { SimpleClient } from "../../tests/_support/simple_client.ts";
import { CREATE_TABLES, DROP_TABLES, SERVER_SETTINGS, SHOWN_SETTINGS } from "./database.ts";
import type { Target } from "./driver.ts";
import { modulesDirectory, PACKAGE_VERSIONS } from "./packages.ts";
import type { Environment } from "./results.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Packages that Bun and Node.js need on disk. */
const ON_DISK: readonly string[] = ["mitata", "pg", "pg-cursor", "pg-copy-streams", "postgres", "postgrejs"];

/**
 * Installs packages for Bun and Node.js into a cache folder, unless they are there.
 *
 * @param nodePath the Node.js to compile pg-native for, where that is wanted
 * @returns the folder
 */
export async function installPackages(nodePath?: string): Promise<string> {
  const native = nodePath !== undefined;
  const directory = `${modulesDirectory()}${native ? "-native" : ""}`;
  const marker = join(directory, "complete");
  if (await exists(marker)) return directory;
  await removeOtherVersions(directory);
  await Deno.mkdir(directory, { recursive: true });
  const names = native ? [...ON_DISK, "pg-native"] : ON_DISK;
  const dependencies = Object.fromEntries(names.map((name) => [name, PACKAGE_VERSIONS[name]!]));
  await Deno.writeTextFile(join(directory, "package.json"), JSON.stringify({ private: true, dependencies }));
  // pg-native runs node-gyp, which Deno does not do.
  const [command, args] = native
    ? ["npm", ["install", "--no-audit", "--no-fund"]]
    : [Deno.execPath(), ["install", "--node-modules-dir=auto"]];
  const { success, stdout, stderr } = await new Deno.Command(command as string, {
    args: args as string[],
    cwd: directory,
    env: { NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1", ...(native && compileEnvironment(nodePath)) },
    stdin: "null",
  }).output();
  if (!success) {
    const decoder = new TextDecoder();
    throw new Error(`Cannot install the other drivers: ${decoder.decode(stderr)}${decoder.decode(stdout)}`);
  }
  await Deno.writeTextFile(marker, "");
  return directory;
}

/** Makes npm compile for this Node.js, with the headers beside it. */
function compileEnvironment(nodePath: string): Record<string, string> {
  const bin = dirname(nodePath);
  return { PATH: `${bin}:${Deno.env.get("PATH") ?? ""}`, npm_config_nodedir: dirname(bin) };
}

/** Folders of other versions are of no use any more. */
async function removeOtherVersions(directory: string): Promise<void> {
  const base = dirname(directory);
  const key = directory.slice(base.length + 1).replace(/-native$/, "");
  try {
    for await (const { name } of Deno.readDir(base)) {
      if (/^[0-9a-f]{8}(-native)?$/.test(name) && !name.startsWith(key)) {
        await Deno.remove(join(base, name), { recursive: true });
      }
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

/** A server with the tables of the scenarios. */
export interface BenchServer extends AsyncDisposable {
  readonly target: Target;
  readonly description: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** Uses the server of `DATABASE_URL`, or starts PostgreSQL 18 with {@linkcode SERVER_SETTINGS}. */
export async function prepareServer(): Promise<BenchServer> {
  const given = Deno.env.get("DATABASE_URL");
  if (given) return await fillServer(given, () => Promise.resolve());
  const server = await startPostgres({
    version: 18,
    settings: SERVER_SETTINGS,
    // Proving a password is measured where a scenario says so, and nowhere else.
    hba: ["host all postgres 127.0.0.1/32 trust"],
  });
  try {
    return await fillServer(server.url, () => server.stop());
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function fillServer(url: string, stop: () => Promise<void>): Promise<BenchServer> {
  const client = await SimpleClient.connect(url);
  const settings: Record<string, string> = {};
  let version = "";
  try {
    await client.query(CREATE_TABLES);
    for (const name of SHOWN_SETTINGS) {
      settings[name] = (await client.query(`select current_setting('${name}', true)`))[0]?.[0] ?? "";
    }
    version = (await client.query("select version()"))[0]?.[0] ?? "";
  } finally {
    await client.close();
  }
  return {
    target: targetOf(url),
    description: version.split(" on ")[0]!,
    settings,
    async [Symbol.asyncDispose]() {
      try {
        const last = await SimpleClient.connect(url);
        await last.query(DROP_TABLES);
        await last.close();
      } finally {
        await stop();
      }
    },
  };
}

function targetOf(url: string): Target {
  const { hostname, port, username, password, pathname } = new URL(url);
  const user = decodeURIComponent(username) || "postgres";
  return {
    host: hostname || "127.0.0.1",
    port: Number(port || 5432),
    user,
    password: decodeURIComponent(password),
    database: decodeURIComponent(pathname.slice(1)) || user,
  };
}

/** The environment of a child: ours without what changes how drivers connect or what they print. */
export function childEnvironment(modules: string): Record<string, string> {
  const kept = Object.entries(Deno.env.toObject()).filter(([name]) =>
    !/^(PG[A-Z]|DATABASE_URL$|NODE_OPTIONS$|FORCE_COLOR$|TZ$)/.test(name)
  );
  return {
    ...Object.fromEntries(kept),
    NO_COLOR: "1",
    DENO_NO_UPDATE_CHECK: "1",
    TZ: "UTC",
    PIPEGRES_BENCH_MODULES: modules,
  };
}

/** What the run is measured on. */
export async function describeEnvironment(
  runtimes: readonly Runtime[],
  server: BenchServer,
): Promise<Environment> {
  const processors = cpus();
  return {
    cpu: processors[0]?.model.trim() ?? "unknown",
    cores: processors.length,
    memory: totalmem(),
    system: `${type()} ${release()} ${Deno.build.arch}`,
    runtimes: Object.fromEntries(runtimes.map(({ name, version }) => [name, version])),
    server: server.description,
    settings: server.settings,
    commit: (await git("rev-parse", "HEAD")).trim() || "unknown",
  };
}

/** Files that differ from the commit, or that it does not know. */
export async function dirtyFiles(): Promise<string[]> {
  return (await git("status", "--porcelain")).split("\n").filter((line) => line !== "").map((line) =>
    line.slice(3)
  );
}

async function git(...args: string[]): Promise<string> {
  try {
    const { stdout } = await new Deno.Command("git", { args, cwd: ROOT, stdin: "null", stderr: "null" })
      .output();
    return new TextDecoder().decode(stdout);
  } catch {
    return "";
  }
}
