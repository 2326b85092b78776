/** A second server for tests of TLS and authentication: with certificates made for the run, and rules by role. */

import { dirname, join } from "node:path";
import { encryptKey, issueCertificate, revocationList } from "../tests/_support/certificates.ts";
import { SimpleClient } from "../tests/_support/simple_client.ts";
import { TLS_ROLES } from "../tests/_support/tls_target.ts";
import {
  type EmbeddedPostgres,
  type PostgresVersion,
  startPostgres,
  UNSAFE_FAST_SETTINGS,
} from "./embedded_postgres.ts";

/** A running server with TLS. */
export interface TlsServer extends AsyncDisposable {
  /** What tests are told. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Passphrase of the client's encrypted key. */
const PASSPHRASE = "key secret äß";

/** Starts it. Certificates and where the server is stand in its directory, which is removed with it. */
export async function startTlsServer(version: PostgresVersion): Promise<TlsServer> {
  const server = await startPostgres({
    version,
    settings: { ...UNSAFE_FAST_SETTINGS, max_connections: "100", log_min_messages: "warning" },
    hba: rules(),
  });
  try {
    const directory = dirname(server.dataDirectory);
    await writeCertificates(directory);
    await switchOn(server, directory);
    const { host, port, password, socketDirectory } = server;
    const facts = { host, port, password, socketDirectory, version, passphrase: PASSPHRASE };
    await Deno.writeTextFile(join(directory, "server.json"), JSON.stringify(facts), { mode: 0o600 });
    return { environment: { PIPEGRES_TEST_TLS: directory }, [Symbol.asyncDispose]: () => server.stop() };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** What is not allowed by a role's own lines is rejected. */
function rules(): string[] {
  const address = "127.0.0.1/32";
  return Object.entries(TLS_ROLES).flatMap(([role, { rule }]) => [
    ...rule.map(([type, method]) =>
      type === "local" ? `local all ${role} ${method}` : `${type} all ${role} ${address} ${method}`
    ),
    `local all ${role} reject`,
    `host all ${role} ${address} reject`,
  ]);
}

async function writeCertificates(directory: string): Promise<void> {
  const write = (name: string, text: string) =>
    Deno.writeTextFile(join(directory, name), text, { mode: 0o600 });
  const ca = await issueCertificate({ name: "pipegres test authority", authority: true });
  const other = await issueCertificate({ name: "another authority", authority: true });
  const server = await issueCertificate({
    name: "pipegres.test",
    issuer: ca,
    dnsNames: ["localhost", "*.pipegres.test"],
    addresses: ["127.0.0.1"],
  });
  const client = await issueCertificate({ name: "app_cert", issuer: ca });
  const stranger = await issueCertificate({ name: "app_cert", issuer: other });
  await write("ca.crt", ca.certificate);
  await write("other_ca.crt", other.certificate);
  await write("server.crt", server.certificate);
  await write("server.key", server.key);
  await write("client.crt", client.certificate);
  await write("client.key", client.key);
  await write("client_encrypted.key", await encryptKey(client.key, PASSPHRASE));
  await write("stranger.crt", stranger.certificate);
  await write("stranger.key", stranger.key);
  await write("empty.crl", await revocationList(ca, []));
  await write("revoked.crl", await revocationList(ca, [server]));
}

async function switchOn(server: EmbeddedPostgres, directory: string): Promise<void> {
  for (
    const [from, to] of [["ca.crt", "root.crt"], ["server.crt", "server.crt"], ["server.key", "server.key"]]
  ) {
    const path = join(server.dataDirectory, to!);
    await Deno.copyFile(join(directory, from!), path);
    await server.own(path);
  }
  const client = await SimpleClient.connect(server.url);
  try {
    for (const [role, { password, encryption }] of Object.entries(TLS_ROLES)) {
      await client.query(
        `set password_encryption = '${encryption}'; create role ${role} login password '${password}'`,
      );
    }
    for (const setting of ["ssl_ca_file = 'root.crt'", "ssl = on"]) {
      await client.query(`alter system set ${setting}`);
    }
    await client.query("select pg_reload_conf()");
    for (const deadline = Date.now() + 30_000; (await client.query("show ssl"))[0]?.[0] !== "on";) {
      if (Date.now() > deadline) throw new Error(`The server did not switch TLS on: ${await server.log()}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  } finally {
    await client.close();
  }
}
