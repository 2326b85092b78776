/** The server with TLS that `deno task test` starts for the files which import this one. */

import { readFileSync } from "node:fs";
import process from "node:process";

export { limit, until } from "./limit.ts";

interface TlsRole {
  readonly password: string;
  /** How its password is kept. */
  readonly encryption: "md5" | "scram-sha-256";
  /** Lines of `pg_hba.conf`: type and method. Whatever they do not let in is rejected. */
  readonly rule: readonly (readonly ["host" | "hostssl" | "hostnossl" | "local", string])[];
}

const scram = { encryption: "scram-sha-256" } as const;

/** Roles that the server treats by name. */
export const TLS_ROLES = {
  tls_any: {
    ...scram,
    password: "any secret äß",
    rule: [["host", "scram-sha-256"], ["local", "scram-sha-256"]],
  },
  tls_only: { ...scram, password: "tls secret", rule: [["hostssl", "scram-sha-256"]] },
  tls_never: { ...scram, password: "plain secret", rule: [["hostnossl", "scram-sha-256"]] },
  tls_trust: { ...scram, password: "", rule: [["host", "trust"], ["local", "trust"]] },
  tls_password: { ...scram, password: "cleartext secret", rule: [["host", "password"]] },
  tls_md5: { encryption: "md5", password: "md5 secret", rule: [["host", "md5"]] },
  // Named like the client's certificate.
  app_cert: { ...scram, password: "", rule: [["hostssl", "cert"]] },
  tls_both: { ...scram, password: "both secret", rule: [["hostssl", "scram-sha-256 clientcert=verify-ca"]] },
} as const satisfies Readonly<Record<string, TlsRole>>;

/** One of {@linkcode TLS_ROLES}. */
export type TlsRoleName = keyof typeof TLS_ROLES;

/** Where the server is. */
export interface TlsTarget {
  readonly host: string;
  readonly port: number;
  /** The superuser's. */
  readonly password: string;
  readonly socketDirectory: string;
  readonly version: number;
  /** Of `client_encrypted.key`. */
  readonly passphrase: string;
}

function directory(): string {
  const found = process.env["PIPEGRES_TEST_TLS"];
  if (found) return found;
  throw new Error("No test server with TLS: run `deno task test`");
}

/** Path of a certificate, key or list made for this run. */
export function tlsFile(name: string): string {
  return `${directory()}/${name}`;
}

/** Where the server is. */
export function tlsTarget(): TlsTarget {
  return JSON.parse(readFileSync(tlsFile("server.json"), "utf8"));
}
