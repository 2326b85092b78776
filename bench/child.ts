/** One driver in one runtime, told by the runner what to do. Runs unbuilt on Deno, Bun and Node.js. */

import process from "node:process";
import type { Driver, Session } from "./harness/driver.ts";
import type { Reply, Request } from "./harness/messages.ts";
import { Meter } from "./harness/meter.ts";
import type { Context, Scenario } from "./harness/scenario.ts";

/** What is open. */
interface Open {
  readonly driver: Driver;
  readonly scenario: Scenario;
  readonly session: Session | undefined;
  readonly state: unknown;
  readonly meter: Meter;
}

class Unsupported extends Error {}

let open: Open | undefined;

/** How long the driver may take to say goodbye, in milliseconds. */
const CLOSE_PATIENCE = 2_000;

async function handle(request: Request): Promise<unknown> {
  switch (request.do) {
    case "open":
      return void (open = await openScenario(request));
    case "answer": {
      const { scenario, state, driver } = open!;
      const answer = await scenario.check(await scenario.run(state), state);
      return { answer, counts: driver.counts === true };
    }
    case "run":
      return await runOperations(open!, request.operations, request.limit);
    case "warmUp":
      return await open!.meter.warmUp(request.window, request.limit);
    case "window":
      return await open!.meter.window(request.milliseconds);
    case "peakHeap":
      return await open!.meter.peakHeap(request.milliseconds);
    case "close":
      return await closeScenario();
  }
}

async function runOperations({ scenario, state }: Open, most: number, limit: number): Promise<number> {
  const end = performance.now() + limit;
  let count = 0;
  do {
    await scenario.run(state);
    count++;
  } while (count < most && performance.now() < end);
  return count;
}

async function openScenario(request: Request & { do: "open" }): Promise<Open> {
  const driver = await loadDefault<Driver>(`./drivers/${request.driver.replace(/\W/g, "_")}.ts`);
  const scenario = await loadDefault<Scenario>(`./${request.scenario}`);
  const { target, point } = request;
  if (scenario.needsValues && driver.counts) throw new Unsupported("answers are only counted");
  if (scenario.pool !== undefined && !driver.openPool) throw new Unsupported("not yet");
  const needsSession = scenario.needs.length > 0;
  const session = !needsSession
    ? undefined
    : scenario.pool === undefined
    ? await driver.open(target)
    : await driver.openPool!(target, scenario.pool);
  try {
    for (const name of scenario.needs) {
      if (typeof session![name] === "function") continue;
      throw new Unsupported(driver.lacks?.[name] ?? `no ${name}`);
    }
    const context: Context = { driver, target, point, session: session! };
    const state = await scenario.setup(context);
    const meter = await Meter.create(() => scenario.run(state));
    return { driver, scenario, session, state, meter };
  } catch (error) {
    await within(CLOSE_PATIENCE, session?.close());
    throw error;
  }
}

async function closeScenario(): Promise<null> {
  if (open === undefined) return null;
  const { scenario, state, session } = open;
  open = undefined;
  await scenario.teardown?.(state);
  await within(CLOSE_PATIENCE, session?.close());
  return null;
}

async function within(milliseconds: number, work: Promise<unknown> | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const limit = new Promise<void>((resolve) => timer = setTimeout(resolve, milliseconds));
  await Promise.race([limit, work?.catch(() => {})]);
  clearTimeout(timer);
}

async function loadDefault<T>(path: string): Promise<T> {
  return (await import(path) as { default: T }).default;
}

async function reply(request: Request): Promise<Reply> {
  try {
    return { ok: true, value: await handle(request) };
  } catch (error) {
    const kind = error instanceof Unsupported ? "unsupported" : "failed";
    return { ok: false, kind, reason: error instanceof Error ? error.message : String(error) };
  }
}

/** Requests from standard input, one after the other; its end is the end of the runner, and at once ours. */
function serve(): void {
  // Standard output is the runner's: what a driver prints must not get in between.
  console.log = console.info = console.error;
  let rest = "";
  let answered: Promise<unknown> = Promise.resolve();
  const decoder = new TextDecoder();
  process.stdin.on("data", (chunk: Uint8Array) => {
    rest += decoder.decode(chunk, { stream: true });
    for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n")) {
      const line = rest.slice(0, end);
      rest = rest.slice(end + 1);
      answered = answered.then(async () => {
        process.stdout.write(`${JSON.stringify(await reply(JSON.parse(line) as Request))}\n`);
      });
    }
  });
  process.stdin.on("end", () => process.exit(0));
}

process.on("SIGINT", () => process.exit(130));
process.on("unhandledRejection", (reason) => console.error("unhandled rejection:", reason));
serve();
