/** The options of a connection, as a user writes them. */

import type { ChannelBindingMode } from "../auth/authenticator.ts";
import type { TypeOverrides } from "../codecs/registry.ts";
import type { Notice } from "../errors.ts";
import type { TransportFactory } from "../transport/transport.ts";

/** Whether a connection is encrypted and the server checked (PostgreSQL manual, 32.19.2), as in libpq. */
export type SslMode = "disable" | "allow" | "prefer" | "require" | "verify-ca" | "verify-full";

/** Which servers of a host list are acceptable (PostgreSQL manual, 32.1.2, `target_session_attrs`). */
export type TargetSessionAttrs =
  | "any"
  | "read-write"
  | "read-only"
  | "primary"
  | "standby"
  | "prefer-standby";

/** A version of TLS. */
export type TlsVersion = "TLSv1" | "TLSv1.1" | "TLSv1.2" | "TLSv1.3";

/** What a function that gets an OAuth token is told. */
export interface OAuthRequest {
  /** Host as it was given. */
  readonly host: string;
  /** TCP port. */
  readonly port: number;
  /** User name that the session is for. */
  readonly user: string;
  /** Database name. */
  readonly database: string;
  /** `oauth_issuer` of the connection string. */
  readonly issuer: string | undefined;
  /** `oauth_client_id` of the connection string. */
  readonly clientId: string | undefined;
  /** `oauth_client_secret` of the connection string. */
  readonly clientSecret: string | undefined;
  /** `oauth_scope` of the connection string. */
  readonly scope: string | undefined;
}

/** How many queries may be on the way at once. */
export interface PipelineOptions {
  /** Queries sent and not answered; 1 or more, default 1000. */
  readonly maxQueries?: number | undefined;
  /** Bytes sent for them; 1 or more, default 1_048_576. One query may be larger. */
  readonly maxBytes?: number | undefined;
}

/**
 * Options of a connection. `undefined` is as good as absent, and so is an empty string.
 *
 * What is absent is looked for in the connection string, the service file, the environment (`PGHOST` …) and, for
 * passwords, the password file, in this order; then the default holds. Most options have libpq's keyword of the same
 * name (PostgreSQL manual, 32.1.2) and mean what it means.
 */
export interface ConnectOptions {
  /**
   * Host name, address, or directory of a Unix-domain socket (starting with `/`, or `@` for an abstract one); several
   * as an array or separated by commas are tried in order. Default `localhost`.
   */
  readonly host?: string | readonly string[] | undefined;
  /** Numeric address to connect to instead of looking up `host`; as many as there are hosts. */
  readonly hostaddr?: string | readonly string[] | undefined;
  /** Port, 1 to 65535; one for all hosts or one for each. Default 5432. */
  readonly port?: number | string | readonly (number | string)[] | undefined;
  /** User name. Default: the operating system's name of the user that runs the process. */
  readonly user?: string | undefined;
  /**
   * The password, or a function that is called for each new connection whose server asks for one (a token that
   * rotates). Default: the password file's entry for the host.
   */
  readonly password?: string | (() => string | Promise<string>) | undefined;
  /** Password file. Default `~/.pgpass`, on Windows `%APPDATA%\postgresql\pgpass.conf`. */
  readonly passfile?: string | undefined;
  /**
   * Database name. Default: the user name. A connection URI or a text with `=` is taken as a connection string, as
   * libpq does with `dbname`; so never pass a name from an untrusted source.
   */
  readonly database?: string | undefined;
  /** Name of a service in the service file, which holds further settings. */
  readonly service?: string | undefined;

  /** Default `prefer`; ignored on Unix-domain sockets. Different values here and in the connection string are an error. */
  readonly sslmode?: SslMode | undefined;
  /** `postgres` asks the server for TLS first, `direct` starts with it (PostgreSQL 17). Default `postgres`. */
  readonly sslnegotiation?: "postgres" | "direct" | undefined;
  /** File of trusted certificates, or `system`. Default `~/.postgresql/root.crt`. */
  readonly sslrootcert?: string | undefined;
  /** File of revoked certificates. Default `~/.postgresql/root.crl`. Not under Deno, which cannot check it. */
  readonly sslcrl?: string | undefined;
  /** File of the client's certificate. Default `~/.postgresql/postgresql.crt`. */
  readonly sslcert?: string | undefined;
  /** File of the client's private key. Default `~/.postgresql/postgresql.key`. */
  readonly sslkey?: string | undefined;
  /** Passphrase of the private key. */
  readonly sslpassword?: string | undefined;
  /** Whether to send a client certificate: `allow` when asked and there is one. Default `allow`. */
  readonly sslcertmode?: "disable" | "allow" | undefined;
  /** Whether to name the host in the TLS handshake. Default `true`. */
  readonly sslsni?: boolean | undefined;
  /** Default `TLSv1.2`. */
  readonly sslMinProtocolVersion?: TlsVersion | undefined;
  /** Default: the newest. */
  readonly sslMaxProtocolVersion?: TlsVersion | undefined;

  /**
   * Authentication methods the server may use: `password`, `md5`, `gss`, `sspi`, `scram-sha-256`, `oauth`, `none`, as
   * an array or separated by commas; or, each with `!` before it, those it may not. Default: any.
   */
  readonly requireAuth?: string | readonly string[] | undefined;
  /**
   * The bearer token for servers that ask for OAuth (PostgreSQL 18), or a function that is called for each new
   * connection whose server does. `undefined` asks the server what it wants, which its refusal tells.
   */
  readonly oauthToken?:
    | string
    | ((request: OAuthRequest) => string | undefined | Promise<string | undefined>);
  /** Whether SCRAM is bound to the TLS channel. Default `prefer`. */
  readonly channelBinding?: ChannelBindingMode | undefined;
  /** Whether a password or token may be sent in clear without TLS to another machine. Default `false`. */
  readonly allowCleartextPassword?: boolean | undefined;
  /** The greatest SCRAM iteration count accepted from a server, 1 to 2_147_483_647. Default 10_000_000. */
  readonly scramMaxIterations?: number | undefined;

  /** Which of the hosts are acceptable. Default `any`. */
  readonly targetSessionAttrs?: TargetSessionAttrs | undefined;
  /** `random` tries hosts and addresses in random order. Default `disable`. */
  readonly loadBalanceHosts?: "disable" | "random" | undefined;
  /**
   * Milliseconds for establishing a connection to one host, from looking up its name to the first ReadyForQuery; 0:
   * no limit. Default 10_000. (`connect_timeout` and `PGCONNECT_TIMEOUT` are in seconds.)
   */
  readonly connectTimeout?: number | undefined;
  /** Whether to send TCP keepalives. Default `true`. */
  readonly keepalives?: boolean | undefined;
  /** Milliseconds without traffic before the first keepalive; 0: the system's default, as always under Deno. Default 0. */
  readonly keepalivesIdle?: number | undefined;
  /** Milliseconds between keepalives. No runtime can set it: the system's default holds. */
  readonly keepalivesInterval?: number | undefined;
  /** Lost keepalives that end the connection. No runtime can set it: the system's default holds. */
  readonly keepalivesCount?: number | undefined;
  /** Milliseconds that sent bytes may stay unacknowledged. No runtime can set it: the system's default holds. */
  readonly tcpUserTimeout?: number | undefined;
  /** Oldest protocol version accepted. Default `3.0`. */
  readonly minProtocolVersion?: "3.0" | "3.2" | "latest" | undefined;
  /** Protocol version asked for. Default `3.0`, which every server and proxy speaks. */
  readonly maxProtocolVersion?: "3.0" | "3.2" | "latest" | undefined;

  /** `application_name` of the session. */
  readonly applicationName?: string | undefined;
  /** `application_name` where nothing else sets it. */
  readonly fallbackApplicationName?: string | undefined;
  /** Command-line options for the server (`-c geqo=off`); a backslash escapes a space. */
  readonly options?: string | undefined;
  /** `true` or `database`: a replication connection. */
  readonly replication?: string | undefined;
  /** Run-time settings of the session, by name (`{ search_path: "app" }`). */
  readonly parameters?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;

  /** Milliseconds that a query may run; 0: no limit. Default 0. */
  readonly queryTimeout?: number | undefined;
  /** Queries on the way at once; `false`: one. Default `{ maxQueries: 1000, maxBytes: 1_048_576 }`. */
  readonly pipeline?: boolean | PipelineOptions | undefined;
  /** Prepared statements kept per connection; 0: unnamed statements only. Default 256. */
  readonly statementCache?: number | undefined;
  /** Bytes of the longest message accepted from the server, 1024 to 2_147_483_647. Default 1_073_741_824. */
  readonly maxMessageBytes?: number | undefined;

  /** JavaScript type of int8. Default `bigint`. */
  readonly int8?: "bigint" | "number" | "string" | undefined;
  /** Dates and times as Temporal objects. Default `false`. */
  readonly temporal?: boolean | undefined;
  /**
   * What to change about the codecs of types, by type name (`"int8"`, `"mood"`, `"schema.mood"`) or OID; `"text"`: every
   * value is read as its text. Default: nothing.
   */
  readonly types?: TypeOverrides | undefined;
  /** What opens sockets. Default: the runtime's own. */
  readonly transport?: TransportFactory | undefined;
  /** Called for each NoticeResponse. Default: nothing. */
  readonly onNotice?: ((notice: Notice) => void) | undefined;
  /** Called for each ParameterStatus after the session is established. Default: nothing. */
  readonly onParameterStatus?: ((name: string, value: string) => void) | undefined;
}
