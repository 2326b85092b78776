/**
 * Runs every test under Deno, Bun and Node.js, on a PostgreSQL of its own.
 *
 * deno task test [--runtime deno,bun,node] [--pg 14..18] [--jobs n] [--server-log] [filter…]
 * deno task test --unit      only tests that need no server
 * deno task test --serve     keeps a server running for tests started by hand
 *
 * A filter is a part of a file's path. `PIPEGRES_TEST_URL` replaces the server by one of yours (superuser needed).
 */

import { fileURLToPath } from "node:url";
import { walkTests } from "./test_files.ts";
import { findRuntime, type Runtime, RUNTIME_NAMES, type RuntimeName } from "./runtimes.ts";
import { type FileResult, runFile } from "./test_run.ts";
import { endForgottenSessions, startTestServer, type TestServer } from "./test_server.ts";
import { startTlsServer, type TlsServer } from "./tls_server.ts";
import { compareRuntimes, hasFailed, printFile, printTotals } from "./test_report.ts";
import type { PostgresVersion } from "./embedded_postgres.ts";

const FILE_TIMEOUT = 180_000;
/** Files that are run a second time when they fail; more are no accident. */
const MOST_REPEATED = 3;

interface Options {
  readonly runtimes: readonly RuntimeName[];
  readonly version: PostgresVersion;
  readonly jobs: number;
  readonly unit: boolean;
  readonly serve: boolean;
  readonly serverLog: boolean;
  readonly filters: readonly string[];
}

function parseArguments(args: readonly string[]): Options {
  const filters: string[] = [];
  let [runtimes, version, jobs, unit, serve, serverLog] = [RUNTIME_NAMES, 18, 0, false, false, false];
  for (let i = 0; i < args.length; i++) {
    const argument = args[i]!;
    const value = () => args[++i] ?? fail(`${argument} needs a value`);
    if (argument === "--runtime") {
      const names = value().split(",");
      const unknown = names.find((name) => !RUNTIME_NAMES.some((known) => known === name));
      if (unknown !== undefined) fail(`Unknown runtime "${unknown}": expected ${RUNTIME_NAMES.join(", ")}`);
      runtimes = RUNTIME_NAMES.filter((name) => names.includes(name));
    } else if (argument === "--pg") version = Number(value());
    else if (argument === "--jobs") jobs = Number(value());
    else if (argument === "--unit") unit = true;
    else if (argument === "--serve") serve = true;
    else if (argument === "--server-log") serverLog = true;
    else if (argument.startsWith("-")) fail(`Unknown option ${argument}`);
    else filters.push(argument);
  }
  if (![14, 15, 16, 17, 18].includes(version)) {
    fail(`Unknown PostgreSQL version ${version}: expected 14 to 18`);
  }
  if (!(jobs > 0)) jobs = Math.min(4, Math.max(1, navigator.hardwareConcurrency));
  return { runtimes, version: version as PostgresVersion, jobs, unit, serve, serverLog, filters };
}

function fail(message: string): never {
  console.error(message);
  Deno.exit(2);
}

async function main(options: Options): Promise<number> {
  const began = performance.now();
  const root = fileURLToPath(new URL("..", import.meta.url));
  const files = (await walkTests(root)).filter((file) =>
    (!options.unit || !file.needsServer && !file.needsTls) &&
    (options.filters.length === 0 || options.filters.some((filter) => file.path.includes(filter)))
  );
  if (files.length === 0) fail("No test file matches");
  const runtimes = await Promise.all(options.runtimes.map(findRuntime));
  await using server = files.some((file) => file.needsServer)
    ? await startTestServer(options.version)
    : undefined;
  if (server) console.log(server.description);
  await using tlsServer = files.some((file) => file.needsTls)
    ? await startTlsServer(options.version)
    : undefined;
  const reports = await Deno.makeTempDir({ prefix: "pipegres-reports-" });
  try {
    const results: FileResult[] = [];
    const problems: string[] = [];
    for (const runtime of runtimes) {
      const paths = files.filter((file) => runtime.name === "deno" || !file.denoOnly).map((file) =>
        file.path
      );
      if (paths.length === 0) continue;
      console.log(`\n${runtime.name} ${runtime.version}`);
      results.push(...await runAll(paths, runtime, { root, reports, server, tlsServer, jobs: options.jobs }));
      problems.push(...await findLeftovers(runtime, server));
    }
    problems.push(...compareRuntimes(results.filter((result) => !isDenoOnly(result, files))));
    if (server && options.serverLog) console.log(`\nThe server's log:\n${await server.log()}`);
    return printTotals(results, problems, performance.now() - began);
  } finally {
    await Deno.remove(reports, { recursive: true });
  }
}

function isDenoOnly(result: FileResult, files: readonly { path: string; denoOnly: boolean }[]): boolean {
  return files.some((file) => file.path === result.file && file.denoOnly);
}

interface Surroundings {
  readonly root: string;
  readonly reports: string;
  readonly server: TestServer | undefined;
  readonly tlsServer: TlsServer | undefined;
  readonly jobs: number;
}

/** Marks every process that tests start, so that forgotten ones are found. */
const RUN_MARKER = `PIPEGRES_TEST_RUN=${crypto.randomUUID()}`;

async function runAll(paths: string[], runtime: Runtime, surroundings: Surroundings): Promise<FileResult[]> {
  const { root, reports, server, tlsServer } = surroundings;
  const environment = { ...testEnvironment(server), ...tlsServer?.environment };
  const waiting = [...paths];
  const results: FileResult[] = [];
  const work = async () => {
    for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
      const result = await runFile(path, runtime, { root, reports, environment, timeout: FILE_TIMEOUT });
      printFile(result);
      results.push(result);
    }
  };
  await Promise.all(Array.from({ length: surroundings.jobs }, work));
  const failed = results.filter(hasFailed);
  // A few may have met with a busy machine: they are run once more, alone, and named whatever comes of it.
  if (failed.length > MOST_REPEATED) return results;
  for (const before of failed) {
    console.log(`  AGAIN ${before.file}, alone`);
    const path = paths.find((each) => each.endsWith(before.file)) ?? before.file;
    const result = await runFile(path, runtime, { root, reports, environment, timeout: FILE_TIMEOUT });
    printFile(result);
    if (!hasFailed(result)) console.log(`  UNSTABLE ${before.file} failed beside others and passed alone`);
    results[results.indexOf(before)] = result;
  }
  return results;
}

/** The caller's environment without what would change how tests connect or print. */
function testEnvironment(server: TestServer | undefined): Record<string, string> {
  const kept = Object.entries(Deno.env.toObject()).filter(([name]) =>
    !/^(PG[A-Z]|PIPEGRES_TEST_|DATABASE_URL$|NODE_OPTIONS$|NODE_TEST|FORCE_COLOR$|TZ$)/.test(name)
  );
  return {
    ...Object.fromEntries(kept),
    NO_COLOR: "1",
    DENO_NO_UPDATE_CHECK: "1",
    // For tests that start servers of their own.
    PIPEGRES_TEST_DENO: Deno.execPath(),
    ...server?.environment,
    [RUN_MARKER.split("=")[0]!]: RUN_MARKER.split("=")[1]!,
  };
}

async function findLeftovers(runtime: Runtime, server: TestServer | undefined): Promise<string[]> {
  const problems: string[] = [];
  for (const process of await markedProcesses()) {
    problems.push(`${runtime.name}: a process was left running: ${process.command}`);
    Deno.kill(process.pid, "SIGKILL");
  }
  if (server) {
    for (const session of await endForgottenSessions(server)) {
      problems.push(`${runtime.name}: a session was left open: ${session}`);
    }
  }
  return problems;
}

/** Processes whose environment holds the marker; Linux only, elsewhere none are found. */
async function markedProcesses(): Promise<{ pid: number; command: string }[]> {
  if (Deno.build.os !== "linux") return [];
  const found: { pid: number; command: string }[] = [];
  for await (const { name } of Deno.readDir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const environment = await Deno.readTextFile(`/proc/${name}/environ`).catch(() => "");
    if (!environment.split("\0").includes(RUN_MARKER)) continue;
    const command = await Deno.readTextFile(`/proc/${name}/cmdline`).catch(() => "");
    found.push({ pid: Number(name), command: command.replaceAll("\0", " ").trim() });
  }
  return found;
}

async function serve(options: Options): Promise<never> {
  const server = await startTestServer(options.version);
  const tlsServer = await startTlsServer(options.version);
  console.error(`${server.description}; Ctrl-C ends it`);
  const environment = { ...server.environment, ...tlsServer.environment };
  for (const [name, value] of Object.entries(environment)) console.log(`export ${name}='${value}'`);
  // Only a timer keeps this process alive; the server ends with it.
  setInterval(() => {}, 1_000_000);
  return await new Promise<never>(() => {});
}

const options = parseArguments(Deno.args);
if (options.serve) await serve(options);
Deno.exitCode = await main(options);
