/**
 * The server that integration tests talk to. `deno task test` starts it and tells its coordinates by environment
 * variables; `deno task test --serve` keeps one running for tests started by hand.
 */

import { test } from "node:test";
import process from "node:process";
import { parseTestUrl, SimpleClient, type SimpleClientOptions } from "./simple_client.ts";

export { limit, until } from "./limit.ts";

/** Connections of this process are counted by their application_name. */
const APPLICATION_NAME: string = `pipegres-test-${process.pid}`;

/** Options of {@linkcode testUrl}. */
export interface TestUrlOptions {
  readonly database?: string;
  readonly user?: string;
  readonly password?: string;
}

/** Connection URI of the test server's superuser, or of another user. */
export function testUrl(options: TestUrlOptions = {}): string {
  const url = new URL(configuredUrl());
  if (options.database !== undefined) url.pathname = `/${encodeURIComponent(options.database)}`;
  if (options.user !== undefined) {
    url.username = encodeURIComponent(options.user);
    url.password = encodeURIComponent(options.password ?? "");
  }
  url.searchParams.set("application_name", APPLICATION_NAME);
  return url.href;
}

function configuredUrl(): string {
  const url = process.env["PIPEGRES_TEST_URL"];
  if (url) return url;
  throw new Error(
    "No test server: run `deno task test`, or set PIPEGRES_TEST_URL to the URI of a superuser of a server",
  );
}

/** Host, port, user, password and database of {@linkcode testUrl}. */
export function testTarget(): SimpleClientOptions {
  return parseTestUrl(configuredUrl());
}

/** The server's major version. */
export async function serverVersion(): Promise<number> {
  return Math.floor(Number((await ask("show server_version_num"))[0]![0]) / 10_000);
}

/** Directory of the server's Unix-domain socket; undefined when the server is not our own. */
export function socketDirectory(): string | undefined {
  return process.env["PIPEGRES_TEST_SOCKET_DIR"] || undefined;
}

/** Roles that `pg_hba.conf` treats by name; each is superuser of nothing and owner of nothing. */
export const TEST_ROLES = {
  app_trust: "",
  app_password: "cleartext secret",
  app_md5: "md5 secret",
  app_scram: "scram secret äß",
} as const;

/** One of {@linkcode TEST_ROLES}. */
export type TestRole = keyof typeof TEST_ROLES;

/** Whether the server knows {@linkcode TEST_ROLES}: true on the embedded one. */
export function hasTestRoles(): boolean {
  return process.env["PIPEGRES_TEST_ROLES"] === "1";
}

/** Connection URI of a role, with its password. */
export function roleUrl(role: TestRole): string {
  return testUrl({ user: role, password: TEST_ROLES[role] });
}

let names = 0;

/** A name that no other test of any process uses, fit for an identifier without quotes. */
export function uniqueName(prefix: string = "t"): string {
  return `${prefix}_${process.pid}_${Date.now().toString(36)}_${++names}`;
}

/** Runs SQL as the superuser, past the driver; rows of the last result as text. */
export async function ask(sql: string, database?: string): Promise<(string | null)[][]> {
  const client = await SimpleClient.connect({ ...testTarget(), ...(database !== undefined && { database }) });
  try {
    return await client.query(sql);
  } finally {
    await client.close();
  }
}

/** A database of one test. */
export interface TestDatabase {
  readonly name: string;
  readonly url: string;
  /** Ends its sessions and drops it. */
  drop(): Promise<void>;
}

/** Creates a database of one's own. */
export async function createDatabase(): Promise<TestDatabase> {
  const name = uniqueName("db");
  await ask(`create database ${name}`);
  const drop = async () => void await ask(`drop database ${name} with (force)`);
  return { name, url: testUrl({ database: name }), drop };
}

/** Runs `body` with the name of a new schema, which is dropped afterwards with all that is in it. */
export async function withSchema<T>(body: (schema: string) => Promise<T>): Promise<T> {
  const name = uniqueName("s");
  await ask(`create schema ${name}`);
  try {
    return await body(name);
  } finally {
    await ask(`drop schema ${name} cascade`);
  }
}

/** The sessions that this process has open through {@linkcode testUrl}, each as state and last query. */
export async function openSessions(): Promise<string[]> {
  const rows = await ask(`select coalesce(state, 'starting') || ': ' || left(query, 200)
    from pg_stat_activity where application_name = '${APPLICATION_NAME}'`);
  return rows.map((row) => row[0] ?? "");
}

/** The last test of a file that connects: fails when a session of this process is still open after two seconds. */
export function leavesNoSession(): void {
  test("every session of this file is closed", async () => {
    let open: string[] = [];
    for (const deadline = Date.now() + 2_000; Date.now() < deadline;) {
      open = await openSessions();
      if (open.length === 0) return;
    }
    throw new Error(`${open.length} sessions are still open: ${open.join("; ")}`);
  });
}
