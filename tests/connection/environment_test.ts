import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { processEnvironment } from "../../src/connection/environment.ts";
import { limit } from "../_support/limit.ts";

const CHILD = fileURLToPath(new URL("./resolve_child.ts", import.meta.url));
const ON_DENO = "Deno" in globalThis;

/** Runs the child in this runtime with exactly these environment variables, and gives what it printed. */
async function runChild(variables: Record<string, string>, permissions: string[] = ["-A"]): Promise<unknown> {
  const args = ON_DENO ? ["run", "--no-prompt", "--quiet", ...permissions, CHILD] : [CHILD];
  const home = process.env["HOME"] ?? "";
  const path = process.env["PATH"] ?? "";
  // Deno's cache is found by HOME.
  const env = { DENO_DIR: process.env["DENO_DIR"] ?? join(home, ".cache", "deno"), PATH: path, ...variables };
  const { stdout } = await limit(
    promisify(execFile)(process.execPath, args, { env, timeout: 30_000 }),
    40_000,
    "child process",
  );
  return JSON.parse(stdout.trim());
}

test("processEnvironment() reads variables when asked, and tells absent from empty", () => {
  const name = `PIPEGRES_TEST_${process.pid}`;
  const environment = processEnvironment();
  assert.equal(environment.variable(name), undefined);
  try {
    process.env[name] = "é x";
    assert.equal(environment.variable(name), "é x");
    process.env[name] = "";
    assert.equal(environment.variable(name), "");
  } finally {
    delete process.env[name];
  }
  assert.equal(environment.variable(name), undefined);
  assert.equal(environment.variable("a=b"), undefined);
  assert.equal(environment.variable(""), undefined);
  assert.equal(environment.variable("a\0b"), undefined);
});

test("processEnvironment() reads plain files and their modes, and takes anything else for absent", async () => {
  const environment = processEnvironment();
  const directory = await mkdtemp(join(tmpdir(), "pipegres-environment-"));
  try {
    const path = join(directory, "file");
    await writeFile(path, "ä\nb");
    await chmod(path, 0o640);
    assert.deepEqual(
      await limit(environment.readFile(path)),
      environment.windows
        ? { text: "ä\nb", mode: undefined }
        : { text: "ä\nb", mode: 0o640, owner: process.getuid?.() },
    );
    for (const absent of [directory, join(directory, "none"), join(path, "x"), "", "a\0b", "/dev/zero"]) {
      assert.equal(await limit(environment.readFile(absent)), undefined, JSON.stringify(absent));
    }
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("processEnvironment() knows the user as the system does", () => {
  const { uid, username } = userInfo();
  // Bun takes the name from USER.
  const known = process.platform === "win32"
    ? username
    : execFileSync("id", ["-un"], { encoding: "utf8" }).trim();
  const { USER } = process.env;
  try {
    for (const name of [USER, "somebody-else", undefined]) {
      if (name === undefined) delete process.env["USER"];
      else process.env["USER"] = name;
      assert.equal(processEnvironment().userName(), known, `uid ${uid}, USER ${name}`);
    }
  } finally {
    if (USER === undefined) delete process.env["USER"];
    else process.env["USER"] = USER;
  }
});

test("resolveOptions() reads the process's environment and the password file", async () => {
  const home = await mkdtemp(join(tmpdir(), "pipegres-home-"));
  try {
    await writeFile(join(home, ".pgpass"), "h:7:*:u:from-file\n", { mode: 0o600 });
    await mkdir(join(home, "etc"));
    await writeFile(join(home, "etc", "pg_service.conf"), "[s]\nhost=h\nport=7\n");
    const variables = { HOME: home, PGUSER: "u", PGSERVICE: "s", PGSYSCONFDIR: join(home, "etc") };
    assert.deepEqual(await runChild(variables), ["u", "h", 7, "from-file", true]);
    assert.deepEqual(
      await runChild({ ...variables, PGPORT: "8", PGPASSWORD: "p" }),
      ["u", "h", 7, "p", true],
    );
    if (!ON_DENO) return;
    // Without permissions the same environment is empty; the only complaint is that there is no user.
    assert.deepEqual(await runChild(variables, ["--allow-net"]), ["ConfigurationError", false]);
    const env = ["--allow-net", "--allow-env=PGUSER,PGHOST"];
    assert.deepEqual(await runChild(variables, env), ["u", "localhost", 5432, null, false]);
    const sys = ["--allow-net", "--allow-sys=userInfo,uid,gid"];
    assert.deepEqual(await runChild(variables, sys), [userInfo().username, "localhost", 5432, null, false]);
    assert.deepEqual(await runChild(variables, ["--allow-sys=userInfo"]), ["ConfigurationError", false]);
    const most = ["--allow-env", `--allow-read=${home}`];
    assert.deepEqual(await runChild(variables, most), ["u", "h", 7, "from-file", false]);
  } finally {
    await rm(home, { recursive: true });
  }
});
