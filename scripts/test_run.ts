/** Runs one test file under one runtime, in a process of its own. */

import { join } from "node:path";
import type { Runtime, RuntimeName } from "./runtimes.ts";

/** How a test ended. */
export type Outcome = "passed" | "failed" | "skipped";

/** One test. */
export interface TestResult {
  readonly name: string;
  readonly outcome: Outcome;
}

/** One file under one runtime. */
export interface FileResult {
  readonly file: string;
  readonly runtime: RuntimeName;
  readonly tests: readonly TestResult[];
  /** What went wrong besides failing tests. */
  readonly problems: readonly string[];
  /** All that the process printed. */
  readonly output: string;
  readonly milliseconds: number;
}

/** Options of {@linkcode runFile}. */
export interface RunOptions {
  readonly root: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Folder for the runner's reports. */
  readonly reports: string;
  /** Milliseconds a file may take. */
  readonly timeout: number;
}

/** Milliseconds that a process may stay after its last test. */
const EXIT_PATIENCE = 5_000;
const MAX_OUTPUT = 4_000_000;

/** Runs a file and reads the runner's report. Never rejects because of what the file does. */
export async function runFile(file: string, runtime: Runtime, options: RunOptions): Promise<FileResult> {
  const report = join(options.reports, `${runtime.name}-${file.replaceAll("/", "-")}`);
  const began = performance.now();
  const child = new Deno.Command(runtime.path, {
    args: testArguments(runtime.name, file, report, options),
    cwd: options.root,
    clearEnv: true,
    env: { ...options.environment },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const problems: string[] = [];
  const end = (problem: string) => {
    problems.push(problem);
    child.kill("SIGKILL");
  };
  const timer = setTimeout(() => end(`did not end within ${options.timeout / 1000} s`), options.timeout);
  const watcher = runtime.name === "node" ? watchExit(report, end) : undefined;
  const output: string[] = [];
  const [status] = await Promise.all([
    child.status,
    collect(child.stdout, output),
    collect(child.stderr, output),
  ]);
  clearTimeout(timer);
  watcher?.stop();
  const tests = readReport(runtime.name, await Deno.readTextFile(report).catch(() => ""));
  const failed = tests.some((test) => test.outcome === "failed");
  if (problems.length === 0) {
    if (!status.success && !failed) {
      problems.push(`ended with ${status.signal ?? `exit code ${status.code}`}`);
    }
    if (status.success && tests.length === 0) problems.push("ran no test");
  }
  const milliseconds = performance.now() - began;
  return { file, runtime: runtime.name, tests, problems, output: output.join(""), milliseconds };
}

function testArguments(runtime: RuntimeName, file: string, report: string, options: RunOptions): string[] {
  switch (runtime) {
    case "deno":
      // Types are checked by `deno task check`.
      return ["test", "-A", "--no-check", `--junit-path=${report}`, file];
    case "bun":
      return [
        "test",
        `--timeout=${options.timeout}`,
        "--reporter=junit",
        `--reporter-outfile=${report}`,
        `./${file}`,
      ];
    case "node":
      return [
        "--test-reporter=spec",
        "--test-reporter-destination=stdout",
        `--test-reporter=${join(options.root, "scripts/node_reporter.ts")}`,
        `--test-reporter-destination=${report}`,
        file,
      ];
  }
}

/**
 * Node.js alone ends when nothing is left to wait for (the other runners exit after the last test), so there a
 * forgotten socket, timer or process shows.
 */
function watchExit(report: string, end: (problem: string) => void): { stop(): void } {
  let idleSince = 0;
  const timer = setInterval(() => {
    let idle = false;
    try {
      idle = Deno.readTextFileSync(report).trimEnd().endsWith('{"idle":true}');
    } catch {
      // Not written yet.
    }
    if (!idle) idleSince = 0;
    else if (idleSince === 0) idleSince = Date.now();
    else if (Date.now() - idleSince > EXIT_PATIENCE) {
      clearInterval(timer);
      end(
        `did not exit within ${
          EXIT_PATIENCE / 1000
        } s after its last test: a socket, timer or process is left open`,
      );
    }
  }, 250);
  return { stop: () => clearInterval(timer) };
}

async function collect(stream: ReadableStream<Uint8Array>, output: string[]): Promise<void> {
  let size = 0;
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    if (size < MAX_OUTPUT) output.push(text);
    size += text.length;
  }
}

function readReport(runtime: RuntimeName, text: string): TestResult[] {
  return runtime === "node" ? readLines(text) : readJunit(text);
}

function readLines(text: string): TestResult[] {
  return text.split("\n").filter((line) => line.startsWith('{"name"')).map((line) => JSON.parse(line));
}

/** The test cases of a JUnit report; subtests (`outer > inner`) count with their outer test. */
export function readJunit(xml: string): TestResult[] {
  const results: TestResult[] = [];
  for (const [, attributes, body] of xml.matchAll(/<testcase ([^>]*?)(?:\/>|>([^]*?)<\/testcase>)/g)) {
    const name = unescapeXml(/\bname="([^"]*)"/.exec(attributes!)?.[1] ?? "");
    const failed = /<(failure|error)\b/.test(body ?? "");
    if (name.includes(" > ") && results.some((result) => name.startsWith(`${result.name} > `))) continue;
    results.push({ name, outcome: failed ? "failed" : /<skipped\b/.test(body ?? "") ? "skipped" : "passed" });
  }
  return results;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function unescapeXml(text: string): string {
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (entity, hex, decimal, name) => {
    if (hex) return String.fromCodePoint(parseInt(hex, 16));
    if (decimal) return String.fromCodePoint(Number(decimal));
    return ENTITIES[name] ?? entity;
  });
}
