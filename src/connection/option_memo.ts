/**
 * Options resolved last: who connects again mostly does so with the same options in the same environment, and to read
 * forty keywords costs more than to see that nothing has changed.
 */

import { type Environment, processEnvironment } from "./environment.ts";
import { type ConnectOptions, type ResolvedOptions, resolveOptions } from "./options.ts";

type Input = string | URL | ConnectOptions | undefined;

/** What options were resolved from, and to what. */
interface Memo {
  readonly given: readonly unknown[];
  readonly variables: ReadonlyMap<string, string | undefined>;
  readonly options: ResolvedOptions;
}

let last: Memo | undefined;

/** Options that are passed on as the objects they are, and read later. */
const KEPT_AS_GIVEN: ReadonlySet<string> = new Set(["types", "transport"]);

/**
 * As `resolveOptions` with the running process's environment. Options that hold a list or an object, which may change
 * inside, and those for which a file or the system's user was looked up are resolved anew each time.
 *
 * @throws {ConfigurationError} as `resolveOptions`
 */
export async function recallOptions(input?: Input, overrides?: ConnectOptions): Promise<ResolvedOptions> {
  const environment = processEnvironment();
  const given = flatten(input, overrides);
  if (given !== undefined && last !== undefined && isSame(last, given, environment)) return last.options;
  const recorder = new Recorder(environment);
  const options = await resolveOptions(input, overrides, recorder);
  const variables = recorder.end();
  if (given !== undefined && variables !== undefined) last = { given, variables, options };
  return options;
}

function isSame({ given, variables }: Memo, now: readonly unknown[], environment: Environment): boolean {
  if (given.length !== now.length) return false;
  for (let i = 0; i < given.length; i++) if (given[i] !== now[i]) return false;
  for (const [name, value] of variables) if (environment.variable(name) !== value) return false;
  return true;
}

/**
 * What decides over the result, in a row: a connection string, names and values. `undefined` where one of them may change
 * inside, or cannot be used.
 */
function flatten(input: Input, overrides: ConnectOptions | undefined): unknown[] | undefined {
  const flat: unknown[] = [];
  if (typeof input === "string" || input instanceof URL) flat.push(String(input));
  else if (input !== undefined && !add(flat, input)) return undefined;
  return overrides === undefined || add(flat, overrides) ? flat : undefined;
}

function add(flat: unknown[], options: ConnectOptions): boolean {
  if (typeof options !== "object" || options === null) return false;
  for (const name of Object.keys(options)) {
    const value: unknown = options[name as keyof ConnectOptions];
    if (typeof value === "object" && value !== null && !KEPT_AS_GIVEN.has(name)) return false;
    flat.push(name, value);
  }
  return true;
}

/** Notes which variables are asked for, and what they were; any other question makes the notes worthless. */
class Recorder implements Environment {
  readonly windows: boolean;
  readonly #environment: Environment;
  #variables: Map<string, string | undefined> | undefined = new Map();

  constructor(environment: Environment) {
    this.windows = environment.windows;
    this.#environment = environment;
  }

  /** What was asked for, `undefined` where there was more than that. Notes no more. */
  end(): ReadonlyMap<string, string | undefined> | undefined {
    const variables = this.#variables;
    this.#variables = undefined;
    return variables;
  }

  variable(name: string): string | undefined {
    const value = this.#environment.variable(name);
    this.#variables?.set(name, value);
    return value;
  }

  userName(): string | undefined {
    this.#variables = undefined;
    return this.#environment.userName();
  }

  homeDirectory(): string | undefined {
    this.#variables = undefined;
    return this.#environment.homeDirectory();
  }

  readFile(path: string): ReturnType<Environment["readFile"]> {
    this.#variables = undefined;
    return this.#environment.readFile(path);
  }

  mayExist(path: string): Promise<boolean> {
    this.#variables = undefined;
    return this.#environment.mayExist(path);
  }
}
