import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConnectOptions } from "../../src/connection/options.ts";
import { type ResolvedOptions, resolveOptions } from "../../src/connection/options.ts";
import { ConfigurationError } from "../../src/errors.ts";
import { limit } from "../_support/limit.ts";
import { fakeEnvironment, type FakeSystem } from "./fake_environment.ts";

type Input = string | URL | ConnectOptions | undefined;

function resolve(
  input: Input,
  overrides?: ConnectOptions,
  system: FakeSystem = {},
): Promise<ResolvedOptions> {
  return limit(resolveOptions(input, overrides, fakeEnvironment({ user: "os-user", ...system })));
}

/** Asserts that options are refused, and gives the message. */
async function refuses(
  input: Input,
  part: RegExp,
  overrides?: ConnectOptions,
  system?: FakeSystem,
): Promise<string> {
  let message = "";
  await assert.rejects(resolve(input, overrides, system), (error) => {
    assert.ok(error instanceof ConfigurationError, String(error));
    assert.match(error.message, part);
    assert.doesNotMatch(error.message, /\.$/);
    message = error.message;
    return true;
  });
  return message;
}

/** Hosts as short texts. */
async function hosts(input: Input, overrides?: ConnectOptions, system?: FakeSystem): Promise<string[]> {
  const resolved = await resolve(input, overrides, system);
  return resolved.hosts.map(({ host, port, path, name }) =>
    (path ?? `${host} ${port}`) + (name === host ? "" : ` (${name})`)
  );
}

test("resolveOptions() fills in the defaults", async () => {
  const resolved = await resolve(undefined);
  assert.deepEqual(resolved.hosts, [{ host: "localhost", port: 5432, name: "localhost" }]);
  assert.equal(resolved.user, "os-user");
  assert.equal(resolved.database, "os-user");
  assert.deepEqual({ ...resolved.startupParameters }, {
    user: "os-user",
    database: "os-user",
    client_encoding: "UTF8",
  });
  assert.equal(resolved.sslmode, "prefer");
  assert.equal(resolved.connectTimeout, 10_000);
  assert.equal(resolved.queryTimeout, 0);
  assert.deepEqual(resolved.pipeline, { maxQueries: 1000, maxBytes: 1_048_576 });
  assert.equal(resolved.statementCache, 256);
  assert.equal(resolved.scramMaxIterations, 10_000_000);
  assert.equal(resolved.allowCleartextPassword, false);
  assert.equal(resolved.requireAuth, undefined);
  assert.equal(resolved.channelBinding, "prefer");
  assert.equal(resolved.targetSessionAttrs, "any");
  assert.equal(resolved.loadBalanceHosts, "disable");
  assert.equal(resolved.minProtocolVersion, 0x30000);
  assert.equal(resolved.maxProtocolVersion, 0x30000);
  assert.deepEqual(resolved.keepalive, { enabled: true, idle: 0, interval: 0, count: 0, userTimeout: 0 });
  assert.deepEqual([resolved.int8, resolved.temporal, resolved.transport], ["bigint", false, undefined]);
  assert.equal(await limit(resolved.password(resolved.hosts[0]!)), undefined);
});

test("resolveOptions() takes options over the string, the service, the environment and the password file", async () => {
  const system: FakeSystem = {
    variables: {
      PGUSER: "env-user",
      PGDATABASE: "env-db",
      PGHOST: "env-host",
      PGPORT: "1",
      PGAPPNAME: "env-app",
      PGPASSWORD: "env-password",
      PGSERVICE: "s",
      HOME: "/home/u",
    },
    files: {
      "/home/u/.pg_service.conf": {
        text: "[s]\nuser=service-user\ndbname=service-db\nhost=service-host\nport=2\n",
      },
      "/home/u/.pgpass": { text: "*:*:*:*:file-password\n" },
    },
  };
  const resolved = await resolve("host=string-host port=3 dbname=string-db", { host: "option-host" }, system);
  assert.deepEqual(resolved.hosts, [{ host: "option-host", port: 3, name: "option-host" }]);
  assert.equal(resolved.database, "string-db");
  assert.equal(resolved.user, "service-user");
  assert.equal(resolved.startupParameters["application_name"], "env-app");
  assert.equal(await limit(resolved.password(resolved.hosts[0]!)), "env-password");

  delete system.variables!["PGPASSWORD"];
  const fromFile = await resolve(undefined, {}, system);
  assert.equal(await limit(fromFile.password(fromFile.hosts[0]!)), "file-password");
  const explicit = await resolve({ user: "a" }, { user: "b" }, system);
  assert.equal(explicit.user, "b");
  const absent = await resolve({ user: "a", password: "" }, { user: undefined }, system);
  assert.equal(absent.user, "a");
  assert.equal(await limit(absent.password(absent.hosts[0]!)), "file-password");
});

test("resolveOptions() lets an empty value of the string ask for the default", async () => {
  const system = {
    variables: { PGHOST: "env-host", PGDATABASE: "env-db", PGPORT: "9", PGSSLMODE: "require" },
  };
  const resolved = await resolve("host='' dbname='' port=''", {}, system);
  assert.deepEqual(resolved.hosts, [{ host: "localhost", port: 5432, name: "localhost" }]);
  assert.equal(resolved.database, "os-user");
  assert.equal(resolved.sslmode, "require");
  assert.equal((await resolve("user=''", {}, { variables: { PGUSER: "env-user" } })).user, "os-user");
  assert.equal((await resolve({}, {}, { variables: { PGUSER: "" } })).user, "os-user");
});

test("resolveOptions() takes a URL object", async () => {
  const url = new URL("postgres://u:p%40%2F%20s@[::1]:5433/db%20x?application_name=a%2Bb");
  const resolved = await resolve(url);
  assert.deepEqual(resolved.hosts, [{ host: "::1", port: 5433, name: "::1" }]);
  assert.equal(resolved.user, "u");
  assert.equal(resolved.database, "db x");
  assert.equal(resolved.startupParameters["application_name"], "a+b");
  assert.equal(await limit(resolved.password(resolved.hosts[0]!)), "p@/ s");
});

test("resolveOptions() expands a database that is a connection string", async () => {
  const resolved = await resolve({ database: "postgres://u@h:1/db", port: 2 });
  assert.deepEqual(resolved.hosts, [{ host: "h", port: 2, name: "h" }]);
  assert.deepEqual([resolved.user, resolved.database], ["u", "db"]);
  assert.equal((await resolve({ database: "dbname=x user=y" })).database, "x");
  assert.equal((await resolve({ database: "/tmp" })).database, "/tmp");
  // Only there: not within a string, not from the environment.
  assert.equal((await resolve("dbname=postgres://u@h/db")).database, "postgres://u@h/db");
  assert.equal((await resolve(undefined, {}, { variables: { PGDATABASE: "a=b" } })).database, "a=b");
});

test("resolveOptions() expands hosts, addresses and ports", async () => {
  assert.deepEqual(await hosts("postgres://h1:1,h2:2,h3/db"), ["h1 1", "h2 2", "h3 5432"]);
  assert.deepEqual(await hosts("postgres://h1,h2/db?port=7"), ["h1 7", "h2 7"]);
  assert.deepEqual(await hosts("host=h1,,h3 port=7"), ["h1 7", "localhost 7", "h3 7"]);
  assert.deepEqual(await hosts({ host: ["h1", "/run/pg"], port: [1, "2"] }), ["h1 1", "/run/pg/.s.PGSQL.2"]);
  assert.deepEqual(await hosts({ host: "h1,h2", port: "1,2" }), ["h1 1", "h2 2"]);
  assert.deepEqual(await hosts({ host: "::1" }), ["::1 5432"]);
  assert.deepEqual(await hosts({ host: "fe80::1%lo", port: 65535 }), ["fe80::1%lo 65535"]);
  assert.deepEqual(await hosts("postgres://u@[fe80::1%25lo],[::2]:7/db"), ["fe80::1%lo 5432", "::2 7"]);
  assert.deepEqual(await hosts("host=h hostaddr=127.0.0.1"), ["127.0.0.1 5432 (h)"]);
  assert.deepEqual(await hosts("hostaddr=127.0.0.1,::1"), ["127.0.0.1 5432", "::1 5432"]);
  assert.deepEqual(await hosts("host=h1,h2 hostaddr=,10.0.0.1"), ["h1 5432", "10.0.0.1 5432 (h2)"]);
  assert.deepEqual(await hosts("hostaddr=fe80::1%eth0"), ["fe80::1%eth0 5432"]);
  assert.deepEqual(await hosts(undefined, {}, { variables: { PGHOST: "/run/pg", PGPORT: "5" } }), [
    "/run/pg/.s.PGSQL.5",
  ]);
  await refuses("host=h1,h2 port=1,2,3", /match 3 ports to 2 hosts/);
  await refuses("host=h1,h2 hostaddr=::1", /match 2 hosts to 1 addresses/);
  await refuses("hostaddr=example.com", /hostaddr in the connection string: wanted a numeric/);
  await refuses({ host: ["a,b"] }, /option "host": an element of the list holds a comma/);
  for (const port of ["0", "65536", "-1", "x", "5432x", "1e3", "5.4", "0x10"]) {
    await refuses({ port }, /option "port": wanted a number from 1 to 65535/);
  }
  assert.deepEqual(await hosts({ port: " 5433 " }), ["localhost 5433"]);
});

test("resolveOptions() knows Unix-domain sockets in every spelling, and nothing else for one", async () => {
  const path = ["/run/pg/.s.PGSQL.5432"];
  assert.deepEqual(await hosts("postgres://u@%2Frun%2Fpg:5432/db"), path);
  assert.deepEqual(await hosts("postgres://u@%2Frun%2Fpg/db"), path);
  assert.deepEqual(await hosts("postgres:///db?host=/run/pg&port=5432"), path);
  assert.deepEqual(await hosts("postgres:///db?host=%2Frun%2Fpg"), path);
  assert.deepEqual(await hosts("host=/run/pg"), path);
  assert.deepEqual(await hosts({ host: "/run/pg" }), path);
  assert.deepEqual(await hosts({ host: "@pg", port: 1 }), ["@pg/.s.PGSQL.1"]);
  assert.deepEqual(await hosts("postgres://h/tmp"), ["h 5432"]);
  assert.deepEqual(await hosts("postgres:///tmp"), ["localhost 5432"]);
  const longest = "/" + "x".repeat(107 - "/.s.PGSQL.5432".length - 1);
  assert.deepEqual(await hosts({ host: longest }), [`${longest}/.s.PGSQL.5432`]);
  await refuses({ host: longest + "x" }, /at most 107 bytes, this one has 108/);
});

test("resolveOptions() sends exactly the startup parameters that were asked for", async () => {
  const everything =
    "postgres://u:p@h:1/db?application_name=app&fallback_application_name=fb&connect_timeout=3" +
    "&options=-c%20geqo%3Doff&replication=database&sslmode=disable&sslcompression=0&sslcert=c&sslkey=k" +
    "&sslpassword=s&sslrootcert=r&sslcrl=l&sslsni=1&sslcertmode=allow&sslnegotiation=postgres&keepalives=1" +
    "&keepalives_idle=1&keepalives_interval=1&keepalives_count=1&tcp_user_timeout=1&require_auth=md5" +
    "&channel_binding=disable&min_protocol_version=3.0&max_protocol_version=3.2&gssencmode=disable" +
    "&ssl_min_protocol_version=TLSv1&ssl_max_protocol_version=TLSv1.3&target_session_attrs=primary" +
    "&load_balance_hosts=random&passfile=/x&client_encoding=utf8&hostaddr=::1";
  const resolved = await resolve(everything, {
    parameters: { search_path: "a, b", geqo: false, work_mem: 64 },
  });
  assert.deepEqual(Object.entries(resolved.startupParameters), [
    ["user", "u"],
    ["database", "db"],
    ["replication", "database"],
    ["options", "-c geqo=off"],
    ["application_name", "app"],
    ["client_encoding", "UTF8"],
    ["search_path", "a, b"],
    ["geqo", "false"],
    ["work_mem", "64"],
  ]);
  assert.equal(resolved.connectTimeout, 3000);
  assert.deepEqual(resolved.keepalive, {
    enabled: true,
    idle: 1000,
    interval: 1000,
    count: 1,
    userTimeout: 1,
  });
  assert.equal(resolved.maxProtocolVersion, 0x30002);
  assert.deepEqual(resolved.tls, {
    negotiation: "postgres",
    rootCertificate: "r",
    revocationList: "l",
    certificate: "c",
    key: "k",
    certificateMode: "allow",
    serverName: true,
    minVersion: "TLSv1",
    maxVersion: "TLSv1.3",
  });
  const fallback = await resolve({ fallbackApplicationName: "fb" });
  assert.equal(fallback.startupParameters["application_name"], "fb");
});

test("resolveOptions() takes the environment's run-time settings, except what changes values", async () => {
  const variables = { PGTZ: "UTC", PGGEQO: "default", PGDATESTYLE: "German", PGCLIENTENCODING: "LATIN1" };
  const { startupParameters } = await resolve({}, { parameters: { TimeZone: "Asia/Tokyo" } }, { variables });
  assert.deepEqual({ ...startupParameters }, {
    user: "os-user",
    database: "os-user",
    client_encoding: "UTF8",
    TimeZone: "Asia/Tokyo",
  });
  assert.equal((await resolve({}, {}, { variables })).startupParameters["timezone"], "UTC");
});

test("resolveOptions() refuses parameters that are not run-time settings", async () => {
  for (const name of ["user", "USER", "database", "options", "replication", "client_encoding"]) {
    await refuses({ parameters: { [name]: "x" } }, new RegExp(`parameter "${name}": wanted`));
  }
  await refuses({ parameters: { "_pq_.x": "1" } }, /no run-time setting/);
  await refuses({ parameters: { "": "1" } }, /no run-time setting/);
  await refuses({ parameters: { a: "s3cr3t\0" } }, /parameter "a": it holds a NUL character/);
  await refuses({ user: "a\0b" }, /parameter "user": it holds a NUL/);
  const odd = await resolve({ parameters: { ["__proto__"]: "1", a: undefined } });
  assert.deepEqual(Object.keys(odd.startupParameters), ["user", "database", "client_encoding", "__proto__"]);
});

test("resolveOptions() checks the words of each keyword", async () => {
  const wrong =
    "sslmode sslnegotiation sslcertmode channel_binding target_session_attrs load_balance_hosts " +
    "min_protocol_version max_protocol_version ssl_min_protocol_version ssl_max_protocol_version require_auth " +
    "connect_timeout keepalives keepalives_idle keepalives_count tcp_user_timeout sslsni port hostaddr";
  for (const keyword of wrong.split(" ")) {
    const message = await refuses(
      `${keyword}=s3cr3t`,
      new RegExp(`^Cannot use ${keyword} in the connection string: `),
    );
    assert.ok(!message.includes("s3cr3t"), message);
  }
  await refuses("sslmode=Disable", /"disable", "allow"/);
  await refuses("connect_timeout=9999999999", /whole number/);
  assert.equal((await resolve("connect_timeout=0")).connectTimeout, 0);
  assert.equal((await resolve("connect_timeout=-5")).connectTimeout, 0);
  assert.equal((await resolve("connect_timeout=' 7 '")).connectTimeout, 7000);
  assert.equal((await resolve("connect_timeout=7", { connectTimeout: 70 })).connectTimeout, 70);
  assert.equal((await resolve({}, {}, { variables: { PGCONNECT_TIMEOUT: "2" } })).connectTimeout, 2000);
  for (const attrs of ["any", "read-write", "read-only", "primary", "standby", "prefer-standby"] as const) {
    assert.equal((await resolve({ targetSessionAttrs: attrs })).targetSessionAttrs, attrs);
  }
  await refuses("min_protocol_version=3.2 max_protocol_version=3.0", /newer than max_protocol_version/);
  assert.equal((await resolve("min_protocol_version=3.2")).maxProtocolVersion, 0x30002);
  assert.equal((await resolve("max_protocol_version=latest")).maxProtocolVersion, 0x30002);
  assert.equal((await resolve("ssl_min_protocol_version=tlsv1.3")).tls.minVersion, "TLSv1.3");
  await refuses("ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.2", /range is empty/);
});

test("resolveOptions() reads require_auth as libpq does", async () => {
  const methods = async (requireAuth: string | string[]) =>
    (await resolve({ requireAuth })).requireAuth?.join(" ");
  assert.equal(await methods("scram-sha-256"), "scram-sha-256");
  assert.equal(await methods("none,md5"), "md5 none");
  assert.equal(await methods(["md5", "password"]), "password md5");
  assert.equal(await methods("!password,!md5"), "gss sspi scram-sha-256 oauth none");
  assert.equal(await methods("!none"), "password md5 gss sspi scram-sha-256 oauth");
  assert.equal(await methods(""), undefined);
  await refuses({ requireAuth: "md5,!password" }, /either methods to allow/);
  await refuses({ requireAuth: "!md5,password" }, /either methods to allow/);
  await refuses({ requireAuth: "md5,md5" }, /"md5" is there twice/);
  await refuses({ requireAuth: "md5," }, /wanted a list of/);
  await refuses({ requireAuth: "MD5" }, /wanted a list of/);
});

test("resolveOptions() keeps what is asked for of TLS", async () => {
  for (const sslmode of ["require", "verify-ca", "verify-full"] as const) {
    assert.equal((await resolve({ sslmode })).sslmode, sslmode);
    assert.equal((await resolve(`postgres://h/db?sslmode=${sslmode}`)).sslmode, sslmode);
    assert.equal((await resolve({}, {}, { variables: { PGSSLMODE: sslmode } })).sslmode, sslmode);
    assert.equal((await resolve({ sslmode, sslnegotiation: "direct" })).tls.negotiation, "direct");
  }
  for (const sslmode of ["disable", "allow", "prefer"] as const) {
    assert.equal((await resolve({ sslmode })).sslmode, sslmode);
    await refuses({ sslmode, sslnegotiation: "direct" }, /with sslnegotiation=direct: wanted require/);
    await refuses({ sslmode, sslrootcert: "system" }, /with sslrootcert=system: wanted verify-full/);
  }
  assert.equal((await resolve({})).sslmode, "prefer");
  assert.equal((await resolve({ sslrootcert: "system" })).sslmode, "verify-full");
  assert.equal((await resolve({ channelBinding: "require" })).channelBinding, "require");
  assert.equal((await resolve("requiressl=1")).sslmode, "require");
  assert.equal((await resolve("postgres://h/?ssl=true")).sslmode, "require");
  assert.equal((await resolve({}, {}, { variables: { PGREQUIRESSL: "1" } })).sslmode, "require");
  await refuses({ sslcertmode: "require" as "allow" }, /"sslcertmode": wanted "disable", "allow"/);
  await refuses("sslcertmode=require", /no runtime tells whether the server asked/);
});

test("resolveOptions() refuses contradictions about encryption", async () => {
  await refuses(
    "postgres://h/db?sslmode=require",
    /option "sslmode" with another value than sslmode in the connection URI/,
    {
      sslmode: "disable",
    },
  );
  assert.equal((await resolve("sslmode=disable", { sslmode: "disable" })).sslmode, "disable");
  await refuses({}, /PGGSSENCMODE of the environment: GSSAPI/, {}, {
    variables: { PGGSSENCMODE: "require" },
  });
  await refuses({}, /PGREQUIREPEER of the environment/, {}, { variables: { PGREQUIREPEER: "postgres" } });
  await resolve({}, {}, { variables: { PGGSSENCMODE: "prefer", PGKRBSRVNAME: "x", PGGSSLIB: "gssapi" } });
});

test("resolveOptions() names unknown options and what they are called here", async () => {
  await refuses({ max: 3 } as ConnectOptions, /^Unknown option "max"$/);
  await refuses({ dbname: "x" } as ConnectOptions, /"dbname": use database/);
  await refuses({ ssl: true } as ConnectOptions, /"ssl": use sslmode/);
  await refuses({ application_name: "x" } as ConnectOptions, /"application_name": use applicationName/);
  await refuses({ ["toString"]: 1 } as unknown as ConnectOptions, /^Unknown option "toString"$/);
  await refuses(3 as unknown as ConnectOptions, /received number/);
  assert.equal((await resolve({ max: undefined } as ConnectOptions)).user, "os-user");
});

test("resolveOptions() checks the types and limits of options", async () => {
  const wrong: [object, RegExp][] = [
    [{ user: 1 }, /"user": wanted a string, received number/],
    [{ host: [1] }, /"host": wanted a string, received number/],
    [{ user: ["a"] }, /"user": wanted a string, received an array/],
    [{ keepalives: "x" }, /"keepalives": wanted a boolean, received string/],
    [{ connectTimeout: -1 }, /"connectTimeout": wanted a whole number from 0 to 2147483647, received -1/],
    [{ connectTimeout: 1.5 }, /received 1.5/],
    [{ connectTimeout: NaN }, /received NaN/],
    [{ connectTimeout: Infinity }, /received Infinity/],
    [{ connectTimeout: "10" }, /received a string/],
    [{ queryTimeout: 2 ** 31 }, /"queryTimeout"/],
    [{ statementCache: -1 }, /"statementCache"/],
    [{ maxMessageBytes: 5 }, /"maxMessageBytes": wanted a whole number from 1024/],
    [{ scramMaxIterations: 0 }, /"scramMaxIterations": wanted a whole number from 1/],
    [{ pipeline: { maxQueries: 0 } }, /"maxQueries": wanted a whole number from 1/],
    [{ pipeline: { maxBytes: "x" } }, /"maxBytes"/],
    [{ pipeline: 3 }, /"pipeline": wanted false or limits/],
    [{ int8: "float" }, /"int8": wanted "bigint", "number", "string"/],
    [{ temporal: 1 }, /"temporal": wanted true or false/],
  ];
  for (const [options, part] of wrong) await refuses(options as ConnectOptions, part);
  assert.equal((await resolve({ pipeline: false })).pipeline, false);
  assert.deepEqual((await resolve({ pipeline: { maxQueries: 3 } })).pipeline, {
    maxQueries: 3,
    maxBytes: 1_048_576,
  });
  assert.deepEqual((await resolve({ pipeline: true })).pipeline, { maxQueries: 1000, maxBytes: 1_048_576 });
  assert.equal((await resolve({ statementCache: 0 })).statementCache, 0);
  const keepalive = { keepalives: false, keepalivesIdle: 1500, keepalivesInterval: 2, keepalivesCount: 3 };
  assert.deepEqual((await resolve({ ...keepalive, tcpUserTimeout: 4 })).keepalive, {
    enabled: false,
    idle: 1500,
    interval: 2,
    count: 3,
    userTimeout: 4,
  });
});

test("resolveOptions() needs a user from somewhere", async () => {
  await refuses({}, /Cannot choose a user/, {}, { user: undefined });
  assert.equal((await resolve({}, {}, { variables: { PGUSER: "p" } })).user, "p");
});

test("ResolvedOptions asks a password function for each connection", async () => {
  let calls = 0;
  const resolved = await resolve("password=unused", { password: () => Promise.resolve(`token-${++calls}`) });
  const host = resolved.hosts[0]!;
  assert.equal(calls, 0);
  assert.equal(await limit(resolved.password(host)), "token-1");
  assert.equal(await limit(resolved.password(host)), "token-2");
  const plain = await resolve({ password: () => "sync" });
  assert.equal(await limit(plain.password(host)), "sync");
  const none = await resolve({ password: () => "" });
  assert.equal(await limit(none.password(host)), undefined);
  const wrong = await resolve({ password: (() => 3) as unknown as () => string });
  await assert.rejects(limit(wrong.password(host)), /wanted a string, it gave number/);
  const failing = new Error("no token today");
  const broken = await resolve({ password: () => Promise.reject(failing) });
  await assert.rejects(limit(broken.password(host)), failing);
});

test("ResolvedOptions looks up the password file by host, and says why it did not", async () => {
  const text = "h1:5432:db:u:one\nh2:5432:db:u:two\nlocalhost:*:*:*:socket\n10.0.0.1:*:*:*:address\n";
  const files = { "/home/u/.pgpass": { text } };
  const system: FakeSystem = { variables: { HOME: "/home/u" }, files };
  const passwords = async (conninfo: string, over: FakeSystem = system) => {
    const resolved = await resolve(conninfo, {}, over);
    return await Promise.all(resolved.hosts.map((host) => limit(resolved.password(host))));
  };
  assert.deepEqual(await passwords("host=h1,h2,h3 user=u dbname=db"), ["one", "two", undefined]);
  assert.deepEqual(await passwords("user=u"), ["socket"]);
  assert.deepEqual(await passwords("host=/tmp"), ["socket"]);
  assert.deepEqual(await passwords("host=/run/other"), [undefined]);
  assert.deepEqual(await passwords("hostaddr=10.0.0.1"), ["address"]);
  assert.deepEqual(await passwords("host=h1 hostaddr=10.0.0.1 user=u dbname=db"), ["one"]);
  assert.deepEqual(await passwords("host=h1 user=u dbname=db passfile=/none"), [undefined]);
  const elsewhere = { variables: { PGPASSFILE: "/p" }, files: { "/p": { text: "*:*:*:*:x" } } };
  assert.deepEqual(await passwords("", elsewhere), ["x"]);
  const windows = {
    windows: true,
    variables: { APPDATA: "C:\\A" },
    files: { "C:\\A\\postgresql\\pgpass.conf": { text: "*:*:*:*:w" } },
  };
  assert.deepEqual(await passwords("", windows), ["w"]);

  const open = await resolve("user=u", {}, {
    ...system,
    files: { "/home/u/.pgpass": { text, mode: 0o644 } },
  });
  assert.equal(await limit(open.password(open.hosts[0]!)), undefined);
  assert.match(
    String(open.passwordFileProblem),
    /"\/home\/u\/\.pgpass" is ignored: it has group or world access/,
  );
});

const SECRET = "s3cr3t-XYZ";

test("ResolvedOptions shows a password to nobody", async () => {
  const { inspect } = await import("node:util");
  const system: FakeSystem = {
    variables: { HOME: "/h", PGPASSWORD: SECRET },
    files: { "/h/.pgpass": { text: `*:*:*:*:${SECRET}` } },
  };
  const sources: [Input, ConnectOptions?][] = [
    [`postgres://u:${SECRET}@h/db`],
    [`password='${SECRET}' sslpassword='${SECRET}'`],
    [{ password: SECRET, sslpassword: SECRET }],
    [{ database: `postgres://u:${SECRET}@h/db` }],
    [undefined, { password: () => SECRET }],
    [undefined],
  ];
  for (const [input, overrides] of sources) {
    const resolved = await resolve(input, overrides, system);
    assert.equal(await limit(resolved.password(resolved.hosts[0]!)), SECRET);
    const shown = [
      inspect(resolved, { depth: Infinity, showHidden: true }),
      inspect(resolved, { depth: Infinity, showHidden: true, customInspect: false }),
      inspect({ ...resolved }, { depth: Infinity, showHidden: true }),
      JSON.stringify(resolved),
      JSON.stringify({ ...resolved }),
      String(resolved),
      Object.keys(resolved).join(),
    ];
    const deno = (globalThis as { Deno?: { inspect(value: unknown, options: object): string } }).Deno;
    if (deno !== undefined) shown.push(deno.inspect(resolved, { depth: 100, showHidden: true }));
    for (const text of shown) assert.ok(!text.includes("s3cr3t"), text);
  }
});

test("resolveOptions() shows no piece of a password that was not percent-encoded", async () => {
  for (
    const uri of [
      `postgres://u:${SECRET}/x@h/db`,
      `postgres://u:x@${SECRET}@h/db`,
      `postgres://u:[${SECRET}/x`,
      `postgres://u:x@h:${SECRET}@h2/db`,
      `postgres://u:x@h,${SECRET}@h2/db`,
    ]
  ) {
    const message = await refuses(uri, /./);
    assert.ok(!message.includes("s3cr3t"), message);
  }
});
