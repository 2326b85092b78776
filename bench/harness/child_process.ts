/** The runner's side of a child. */

import { fileURLToPath } from "node:url";
import type { Runtime } from "../../scripts/runtimes.ts";
import type { Reply, ReplyValues, Request } from "./messages.ts";

/** A driver cannot do what a scenario asks for. */
export class UnsupportedError extends Error {}

const CHILD = fileURLToPath(new URL("../child.ts", import.meta.url));

/** Milliseconds until a child that does not answer is given up. */
const ANSWER_TIMEOUT = 120_000;
/** Milliseconds that a child may take to end by itself. */
const END_PATIENCE = 3_000;

const children: Set<Child> = new Set();

let stopping = false;

/** Ends every child at once and lets none be started any more; for Ctrl-C. */
export function killChildren(): void {
  stopping = true;
  for (const child of children) child.kill();
}

/** Whether {@linkcode killChildren} was called. */
export function childrenAreStopping(): boolean {
  return stopping;
}

/** One child process. */
export class Child {
  readonly #process: Deno.ChildProcess;
  readonly #commands: WritableStreamDefaultWriter<Uint8Array>;
  readonly #lines: AsyncIterator<string>;
  #log: string = "";
  #ended: boolean = false;

  private constructor(process: Deno.ChildProcess) {
    this.#process = process;
    this.#commands = process.stdin.getWriter();
    this.#lines = linesOf(process.stdout);
    this.#collectLog();
    children.add(this);
  }

  /**
   * Starts a runtime.
   *
   * @param profiles the folder that a CPU profile is written to; default: none is taken
   */
  static start(
    runtime: Runtime,
    environment: Readonly<Record<string, string>>,
    profiles?: string,
  ): Child {
    if (stopping) throw new Error("Cannot start a child: the run is ending");
    const profile = profiles === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profiles}`];
    const args = {
      deno: ["run", "-A", "--no-check", "--v8-flags=--expose-gc", ...profile, CHILD],
      bun: [...profile, "run", CHILD],
      node: ["--expose-gc", "--disable-warning=ExperimentalWarning", ...profile, CHILD],
    }[runtime.name];
    return new Child(
      new Deno.Command(runtime.path, {
        args,
        clearEnv: true,
        env: { ...environment },
        stdin: "piped",
        stdout: "piped",
        stderr: "piped",
      }).spawn(),
    );
  }

  /** Sends a request and waits for its reply. */
  async request<R extends Request>(request: R): Promise<ReplyValues[R["do"]]> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        this.kill();
        reject(new Error(`gave no answer to "${request.do}" within ${ANSWER_TIMEOUT / 1000} s`));
      }, ANSWER_TIMEOUT);
    });
    try {
      return await Promise.race([this.#exchange(request), timeout]) as ReplyValues[R["do"]];
    } finally {
      clearTimeout(timer);
    }
  }

  async #exchange(request: Request): Promise<unknown> {
    await this.#commands.write(new TextEncoder().encode(`${JSON.stringify(request)}\n`));
    const line = await this.#lines.next();
    if (line.done) throw new Error(`the process ended: ${this.#log.trim().slice(-500)}`);
    const reply = JSON.parse(line.value) as Reply;
    if (reply.ok) return reply.value;
    throw reply.kind === "unsupported" ? new UnsupportedError(reply.reason) : new Error(reply.reason);
  }

  /** Asks the child to end, and makes it. */
  async end(): Promise<void> {
    if (!this.#ended) {
      const timer = setTimeout(() => this.kill(), END_PATIENCE);
      await this.#commands.close().catch(() => {});
      await this.#process.status;
      clearTimeout(timer);
    }
    children.delete(this);
  }

  kill(): void {
    try {
      this.#process.kill("SIGKILL");
    } catch {
      // It has ended.
    }
  }

  async #collectLog(): Promise<void> {
    for await (const text of this.#process.stderr.pipeThrough(new TextDecoderStream())) {
      this.#log = (this.#log + text).slice(-4000);
    }
    await this.#process.status;
    this.#ended = true;
    children.delete(this);
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    rest += text;
    for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n")) {
      yield rest.slice(0, end);
      rest = rest.slice(end + 1);
    }
  }
}
