/**
 * The process's environment, user and files: the only place that reads them.
 *
 * Nothing is read when the module is loaded. What the runtime has not, or does not permit, is "not set": under Deno a
 * permission is looked up before use, so that nobody is ever prompted.
 */

import { isPermitted } from "../transport/permissions.ts";

/** A text file. */
export interface FileText {
  readonly text: string;
  /** Permission bits, or `undefined` where the system has none. */
  readonly mode: number | undefined;
  /** User ID of the owner, or `undefined` where the system has none. */
  readonly owner?: number | undefined;
}

/** What options may be filled in from. */
export interface Environment {
  /** Whether the system has Windows' places and no permission bits. */
  readonly windows: boolean;
  /** An environment variable; `undefined` when it is not set or not readable. */
  variable(name: string): string | undefined;
  /** The name of the user this process runs as. */
  userName(): string | undefined;
  /** The user's home directory. */
  homeDirectory(): string | undefined;
  /** A plain file; `undefined` when there is none or it is not readable. */
  readFile(path: string): Promise<FileText | undefined>;
  /** Whether anything is at a path, readable or not; true where that may not be looked up. */
  mayExist(path: string): Promise<boolean>;
}

/** The parts of the runtimes used here, each possibly absent. */
interface Runtime {
  readonly Deno?: {
    readonly env: { get(name: string): string | undefined };
  };
  readonly process?: {
    readonly env?: Readonly<Record<string, string | undefined>>;
    readonly platform?: string;
    getBuiltinModule?(name: string): unknown;
    geteuid?(): number;
  };
}

interface FileSystem {
  stat(path: string): Promise<{ readonly mode: number; readonly uid: number; isFile(): boolean }>;
  readFile(path: string, encoding: "utf8"): Promise<string>;
}

interface SyncFileSystem {
  readFileSync(path: string, encoding: "utf8"): string;
}

interface OperatingSystem {
  userInfo(): { readonly username: string; readonly homedir: string };
}

/** The environment of the running process. */
export function processEnvironment(): Environment {
  const runtime = globalThis as Runtime;
  const windows = attempt(() => runtime.process?.platform) === "win32";
  // One question for all of libpq's variables, where Deno permits all; asking costs more than reading. Other variables
  // may be read much later, when the permission is gone.
  const isOpen = isPermitted({ name: "env" });
  const variable = (name: string): string | undefined =>
    readVariable(runtime, name, isOpen && name.startsWith("PG"));
  return {
    windows,
    variable,
    userName() {
      // The effective user first, as libpq does: USER survives a change of the user.
      const name = listedUser(runtime) || userInfo(runtime)?.username || variable("USER") ||
        variable("LOGNAME") || variable("USERNAME");
      return name === "unknown" ? undefined : name; // Bun's word for nobody
    },
    homeDirectory() {
      return variable("HOME") || (windows ? variable("USERPROFILE") : userInfo(runtime)?.homedir);
    },
    readFile: (path) => readPlainFile(runtime, path, windows),
    mayExist: (path) => mayExist(runtime, path),
  };
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function readVariable(runtime: Runtime, name: string, isOpen: boolean): string | undefined {
  if (!isOpen && !isPermitted({ name: "env", variable: name })) return undefined;
  return attempt(() =>
    runtime.Deno === undefined ? runtime.process?.env?.[name] : runtime.Deno.env.get(name)
  );
}

/** Who the effective user is by the system's list of users: Bun's `userInfo` believes USER. */
function listedUser(runtime: Runtime): string | undefined {
  const path = "/etc/passwd";
  if (runtime.Deno !== undefined) return undefined; // its `userInfo` is right, and needs fewer permissions
  const user = attempt(() => runtime.process?.geteuid?.());
  const fs = builtinModule(runtime, "node:fs") as SyncFileSystem | undefined;
  const text = user === undefined ? undefined : attempt(() => fs?.readFileSync(path, "utf8"));
  const line = text?.split("\n").find((each) => each.split(":")[2] === String(user));
  return line?.slice(0, line.indexOf(":"));
}

function userInfo(runtime: Runtime): ReturnType<OperatingSystem["userInfo"]> | undefined {
  // Deno asks for each of the three.
  for (const kind of ["userInfo", "uid", "gid"]) {
    if (!isPermitted({ name: "sys", kind })) return undefined;
  }
  const os = builtinModule(runtime, "node:os") as OperatingSystem | undefined;
  // Throws where the process's user has no entry in the system's list.
  return attempt(() => os?.userInfo());
}

async function readPlainFile(
  runtime: Runtime,
  path: string,
  windows: boolean,
): Promise<FileText | undefined> {
  if (path === "" || path.includes("\0") || !isPermitted({ name: "read", path })) return undefined;
  const fs = builtinModule(runtime, "node:fs/promises") as FileSystem | undefined;
  if (fs === undefined) return undefined;
  try {
    // Opening a pipe would wait for its writer.
    const found = await fs.stat(path);
    if (!found.isFile()) return undefined;
    const text = await fs.readFile(path, "utf8");
    return windows ? { text, mode: undefined } : { text, mode: found.mode & 0o777, owner: found.uid };
  } catch {
    return undefined;
  }
}

async function mayExist(runtime: Runtime, path: string): Promise<boolean> {
  if (path === "" || path.includes("\0")) return false;
  if (!isPermitted({ name: "read", path })) return true;
  try {
    await (builtinModule(runtime, "node:fs/promises") as FileSystem).stat(path);
    return true;
  } catch (error) {
    const { code } = error as { readonly code?: unknown };
    return code !== "ENOENT" && code !== "ENOTDIR";
  }
}

/** Not an import: bundlers for other runtimes would fail on it. Every supported runtime has this function. */
function builtinModule(runtime: Runtime, name: string): unknown {
  return attempt(() => runtime.process?.getBuiltinModule?.(name));
}
