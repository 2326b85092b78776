/**
 * The parameter keywords of libpq 18 (PostgreSQL manual, 32.1.2) and their environment variables (32.15), with what
 * becomes of each: supported, ignored because nothing here could act on it, or refused because ignoring it would
 * give less than was asked for. None is ever forwarded to the server as a run-time setting.
 */

/** What a keyword means here. */
export interface Keyword {
  /** The environment variable that stands in for it. */
  readonly variable?: string;
  /** Why a value that asks for something is refused; see {@linkcode Keyword.harmless}. */
  readonly refused?: string;
  /** The values that are accepted although the keyword is refused: they ask for nothing. Empty always is. */
  readonly harmless?: readonly string[];
}

const NO_GSSAPI = "GSSAPI is not supported";
const NO_SCRAM_KEYS = "SCRAM keys in place of a password are not supported";

/** By keyword. */
export const KEYWORDS: ReadonlyMap<string, Keyword> = new Map<string, Keyword>(Object.entries({
  service: { variable: "PGSERVICE" },
  user: { variable: "PGUSER" },
  password: { variable: "PGPASSWORD" },
  passfile: { variable: "PGPASSFILE" },
  channel_binding: { variable: "PGCHANNELBINDING" },
  connect_timeout: { variable: "PGCONNECT_TIMEOUT" },
  dbname: { variable: "PGDATABASE" },
  host: { variable: "PGHOST" },
  hostaddr: { variable: "PGHOSTADDR" },
  port: { variable: "PGPORT" },
  // PGCLIENTENCODING is not read: strings are Unicode, and what their bytes are on the wire is this driver's matter.
  client_encoding: {
    refused: "strings are Unicode and travel as UTF-8",
    harmless: ["utf8", "utf-8", "unicode", "auto"],
  },
  options: { variable: "PGOPTIONS" },
  application_name: { variable: "PGAPPNAME" },
  fallback_application_name: {},
  keepalives: {},
  keepalives_idle: {},
  keepalives_interval: {},
  keepalives_count: {},
  tcp_user_timeout: {},
  sslmode: { variable: "PGSSLMODE" },
  sslnegotiation: { variable: "PGSSLNEGOTIATION" },
  // Ignored as libpq with today's OpenSSL ignores it: there is no compression.
  sslcompression: { variable: "PGSSLCOMPRESSION" },
  sslcert: { variable: "PGSSLCERT" },
  sslkey: { variable: "PGSSLKEY" },
  sslcertmode: {
    variable: "PGSSLCERTMODE",
    refused: "no runtime tells whether the server asked for a certificate",
    harmless: ["disable", "allow"],
  },
  sslpassword: {},
  sslrootcert: { variable: "PGSSLROOTCERT" },
  sslcrl: { variable: "PGSSLCRL" },
  sslcrldir: {
    variable: "PGSSLCRLDIR",
    refused: "use sslcrl: no runtime reads a directory of revocation lists",
  },
  sslsni: { variable: "PGSSLSNI" },
  requirepeer: {
    variable: "PGREQUIREPEER",
    refused: "no runtime tells which user is behind a Unix-domain socket",
  },
  require_auth: { variable: "PGREQUIREAUTH" },
  min_protocol_version: { variable: "PGMINPROTOCOLVERSION" },
  max_protocol_version: { variable: "PGMAXPROTOCOLVERSION" },
  ssl_min_protocol_version: { variable: "PGSSLMINPROTOCOLVERSION" },
  ssl_max_protocol_version: { variable: "PGSSLMAXPROTOCOLVERSION" },
  // `prefer` asks for GSSAPI encryption only where there are credentials, and here there never are.
  gssencmode: { variable: "PGGSSENCMODE", refused: NO_GSSAPI, harmless: ["disable", "prefer"] },
  // The next three only tune a GSSAPI authentication, so a variable that is set for other programs does no harm and
  // is not read.
  krbsrvname: { refused: NO_GSSAPI },
  gsslib: { refused: NO_GSSAPI },
  gssdelegation: { refused: NO_GSSAPI, harmless: ["0"] },
  replication: {},
  target_session_attrs: { variable: "PGTARGETSESSIONATTRS" },
  load_balance_hosts: { variable: "PGLOADBALANCEHOSTS" },
  scram_client_key: { refused: NO_SCRAM_KEYS },
  scram_server_key: { refused: NO_SCRAM_KEYS },
  // For the function that gets the token.
  oauth_issuer: {},
  oauth_client_id: {},
  oauth_client_secret: {},
  oauth_scope: {},
  sslkeylogfile: { refused: "TLS session keys are not written to files" },
}));

/**
 * Why `value` of a known keyword cannot be used, or `undefined` when it can.
 */
export function refusal(keyword: string, value: string): string | undefined {
  const known = KEYWORDS.get(keyword);
  if (known?.refused === undefined || value === "" || known.harmless?.includes(value.toLowerCase())) {
    return undefined;
  }
  return known.refused;
}
