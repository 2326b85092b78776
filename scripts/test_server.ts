/** The server that tests run against, and the environment that tells them of it. */

import { type PostgresVersion, startPostgres, UNSAFE_FAST_SETTINGS } from "./embedded_postgres.ts";
import { TEST_ROLES } from "../tests/_support/server.ts";
import { SimpleClient } from "../tests/_support/simple_client.ts";

/** A server ready for tests. */
export interface TestServer extends AsyncDisposable {
  /** URI of the superuser. */
  readonly url: string;
  /** What tests are told, by environment variable. */
  readonly environment: Readonly<Record<string, string>>;
  /** A line that says what it is. */
  readonly description: string;
  /** What the server logged; empty when it is not our own. */
  log(): Promise<string>;
}

const AUTHENTICATION_METHODS: Readonly<Record<keyof typeof TEST_ROLES, string>> = {
  app_trust: "trust",
  app_password: "password",
  app_md5: "md5",
  app_scram: "scram-sha-256",
};

/** Uses the server named by `PIPEGRES_TEST_URL`, or starts one of the given version. */
export async function startTestServer(version: PostgresVersion): Promise<TestServer> {
  const given = Deno.env.get("PIPEGRES_TEST_URL");
  if (given) {
    return {
      url: given,
      environment: { PIPEGRES_TEST_URL: given },
      description: `PostgreSQL of PIPEGRES_TEST_URL, ${await ask(given, "show server_version")}`,
      log: () => Promise.resolve(""),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  }
  const server = await startPostgres({
    version,
    settings: { ...UNSAFE_FAST_SETTINGS, max_connections: "200", log_min_messages: "warning" },
    hba: Object.entries(AUTHENTICATION_METHODS).flatMap(([role, method]) => [
      `local all ${role} ${method}`,
      `host all ${role} 127.0.0.1/32 ${method}`,
    ]),
  });
  try {
    await createRoles(server.url);
    return {
      url: server.url,
      environment: {
        PIPEGRES_TEST_URL: server.url,
        PIPEGRES_TEST_SOCKET_DIR: server.socketDirectory,
        PIPEGRES_TEST_ROLES: "1",
      },
      description: `PostgreSQL ${await ask(server.url, "show server_version")} on port ${server.port}`,
      log: () => server.log(),
      [Symbol.asyncDispose]: () => server.stop(),
    };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function createRoles(url: string): Promise<void> {
  const client = await SimpleClient.connect(url);
  for (const [role, password] of Object.entries(TEST_ROLES)) {
    const encryption = role === "app_md5" ? "md5" : "scram-sha-256";
    await client.query(`set password_encryption = '${encryption}';
      create role ${role} login password '${password}'`);
  }
  await client.close();
}

async function ask(url: string, sql: string): Promise<string> {
  const client = await SimpleClient.connect(url);
  try {
    return (await client.query(sql))[0]?.[0] ?? "";
  } finally {
    await client.close();
  }
}

/** Sessions that tests have left open, after a moment of patience. They are ended. */
export async function endForgottenSessions(server: TestServer): Promise<string[]> {
  const client = await SimpleClient.connect(server.url);
  // On a server of somebody else, only those that tests open.
  const ours = server.environment["PIPEGRES_TEST_SOCKET_DIR"]
    ? "true"
    : "application_name like 'pipegres-test-%'";
  const from =
    `from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() and ${ours}`;
  try {
    for (const deadline = Date.now() + 2_000;;) {
      const rows = await client.query(
        `select concat_ws(' ', application_name, state, left(query, 200)) ${from}`,
      );
      if (rows.length === 0) return [];
      if (Date.now() > deadline) {
        await client.query(`select pg_terminate_backend(pid) ${from}`);
        return rows.map((row) => row[0] ?? "");
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  } finally {
    await client.close();
  }
}
