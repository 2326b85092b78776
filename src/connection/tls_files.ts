/** The files that TLS needs, where libpq looks for them and with its checks (PostgreSQL manual, 32.19). */

import { ConfigurationError } from "../errors.ts";
import type { TlsCredentials } from "../transport/transport.ts";
import type { Environment, FileText } from "./environment.ts";
import type { ResolvedOptions } from "./options.ts";

/**
 * Reads certificates, keys and revocation lists.
 *
 * As in libpq a file of trusted certificates is used whenever it is there, so that even sslmode=require then refuses
 * others; and a client certificate that is not there is not sent. What is named, is there and cannot be read is an
 * error: going on without it would be less than was asked for.
 *
 * @throws {ConfigurationError} when a file that is needed is missing, or must not be used
 */
export async function loadTlsCredentials(
  { tls, sslmode }: Pick<ResolvedOptions, "tls" | "sslmode">,
  environment: Environment,
  passphrase: string | undefined,
): Promise<TlsCredentials> {
  const directory = defaultDirectory(environment);
  const [trust, client] = await Promise.all([
    loadTrust(tls, sslmode, environment, directory),
    loadClient(tls, environment, directory),
  ]);
  const { minVersion, maxVersion } = tls;
  return { trust, ...client, passphrase, minVersion, maxVersion };
}

/** `~/.postgresql/`, on Windows `%APPDATA%\postgresql\`. */
function defaultDirectory(environment: Environment): string | undefined {
  if (environment.windows) {
    const directory = environment.variable("APPDATA");
    return directory && `${directory}\\postgresql\\`;
  }
  const home = environment.homeDirectory();
  return home && `${home}/.postgresql/`;
}

async function loadTrust(
  tls: ResolvedOptions["tls"],
  sslmode: ResolvedOptions["sslmode"],
  environment: Environment,
  directory: string | undefined,
): Promise<TlsCredentials["trust"]> {
  if (tls.rootCertificate === "system") return { roots: "system", revocationList: undefined };
  const path = tls.rootCertificate ?? (directory && `${directory}root.crt`);
  const file = path && await environment.readFile(path);
  if (!file) {
    await checkAbsent(tls.rootCertificate, "sslrootcert", environment);
    if (!sslmode.startsWith("verify")) return undefined;
    throw new ConfigurationError(
      `Cannot verify the server's certificate: ${
        path
          ? `the root certificate file "${path}" is not there or cannot be read`
          : "there is no home directory"
      } (set sslrootcert to a file, or to "system", or choose an sslmode that does not verify)`,
    );
  }
  if (!file.text.includes("-----BEGIN ")) {
    throw new ConfigurationError(`Cannot use the root certificate file "${path}": it holds no certificate`);
  }
  const list = tls.revocationList ?? (directory && `${directory}root.crl`);
  const revoked = list && await environment.readFile(list) || undefined;
  if (!revoked) await checkAbsent(tls.revocationList, "sslcrl", environment);
  return { roots: file.text, revocationList: revoked?.text };
}

async function checkAbsent(
  path: string | undefined,
  keyword: string,
  environment: Environment,
): Promise<void> {
  if (path === undefined || !await environment.mayExist(path)) return;
  throw new ConfigurationError(
    `Cannot use ${keyword}: "${path}" cannot be read, or is no plain file (Deno needs --allow-read for it)`,
  );
}

async function loadClient(
  tls: ResolvedOptions["tls"],
  environment: Environment,
  directory: string | undefined,
): Promise<Pick<TlsCredentials, "certificate" | "key">> {
  const none = { certificate: undefined, key: undefined };
  if (tls.certificateMode === "disable") return none;
  const path = tls.certificate ?? (directory && `${directory}postgresql.crt`);
  const certificate = path && await environment.readFile(path);
  if (!certificate) {
    await checkAbsent(tls.certificate, "sslcert", environment);
    return none;
  }
  const keyPath = tls.key ?? (directory && `${directory}postgresql.key`);
  if (tls.key !== undefined && tls.key.includes(":") && !environment.windows) {
    throw new ConfigurationError("Cannot use sslkey: keys in an OpenSSL engine are not supported");
  }
  const key = keyPath && await environment.readFile(keyPath);
  if (!key) {
    throw new ConfigurationError(
      `Cannot use the client certificate "${path}": its private key file ${
        keyPath ? `"${keyPath}" is not there or cannot be read` : "is not named"
      }`,
    );
  }
  checkKeyFile(keyPath, key);
  return { certificate: certificate.text, key: key.text };
}

/** Nobody else may read a key; but a group may read one that belongs to root. */
function checkKeyFile(path: string, { mode, owner }: FileText): void {
  const forbidden = owner === 0 ? 0o037 : 0o077;
  if (mode === undefined || (mode & forbidden) === 0) return;
  throw new ConfigurationError(
    `Cannot use the private key file "${path}": it has group or world access, its permissions should be 0600 or ` +
      "less, or 0640 or less if it is owned by root",
  );
}
