/** TLS with a real server: who is let in how, client certificates, channel binding, cancels, and much data. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { chmod, copyFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { connect, type Connection, type ConnectOptions, createPool, TimeoutError } from "../../mod.ts";
import { issueCertificate, type SignatureAlgorithm } from "../_support/certificates.ts";
import { startProxy } from "../_support/proxy.ts";
import { startTlsFront } from "../_support/tls_front.ts";
import { limit, TLS_ROLES, tlsFile, type TlsRoleName, tlsTarget, until } from "../_support/tls_target.ts";

const isDeno = "Deno" in globalThis;

/** Options for a role, with the authority's certificate at hand. */
function optionsFor(role: TlsRoleName, more: ConnectOptions = {}): ConnectOptions {
  const { host, port } = tlsTarget();
  return {
    host: "localhost",
    hostaddr: host,
    port,
    user: role,
    password: TLS_ROLES[role].password,
    database: "postgres",
    sslrootcert: tlsFile("ca.crt"),
    connectTimeout: 30_000,
    applicationName: "tls_test",
    ...more,
  };
}

async function use<T>(options: ConnectOptions, body: (conn: Connection) => Promise<T>): Promise<T> {
  const conn = await limit(connect(options), 40_000, "connect");
  try {
    return await limit(body(conn), 60_000, "the test's body");
  } finally {
    await limit(conn.close(), 10_000, "close");
  }
}

async function failure(options: ConnectOptions): Promise<Error & { code?: string; cause?: unknown }> {
  const outcome = await limit(
    connect(options).then((conn) => ({ conn }), (error) => ({ error })),
    40_000,
    "connect",
  );
  if ("error" in outcome) return outcome.error;
  await outcome.conn.close();
  return assert.fail("connected");
}

/** The TLS version of a session, or that it has none. */
const versionOf = async (conn: Connection) =>
  await conn.sql<string>`select coalesce(version, 'clear') from pg_stat_ssl where pid = pg_backend_pid()`
    .scalar();

const WAYS: readonly (readonly [TlsRoleName, ConnectOptions["sslmode"], "clear" | "tls" | string])[] = [
  ["tls_any", "disable", "clear"],
  ["tls_any", "allow", "clear"],
  ["tls_any", "prefer", "tls"],
  ["tls_any", undefined, "tls"],
  ["tls_any", "require", "tls"],
  ["tls_any", "verify-ca", "tls"],
  ["tls_any", "verify-full", "tls"],
  ["tls_only", "disable", "28000"],
  ["tls_only", "allow", "tls"],
  ["tls_only", "prefer", "tls"],
  ["tls_only", "require", "tls"],
  ["tls_never", "disable", "clear"],
  ["tls_never", "allow", "clear"],
  ["tls_never", "prefer", "clear"],
  ["tls_never", "require", "28000"],
  ["tls_never", "verify-full", "28000"],
];

for (const [role, sslmode, expected] of WAYS) {
  test(`sslmode=${sslmode ?? "(default)"} as ${role}: ${expected}`, async () => {
    const options = optionsFor(role, { sslmode });
    if (/^\d/.test(expected)) {
      assert.equal((await failure(options)).code, expected);
      return;
    }
    await use(options, async (conn) => {
      assert.match(await versionOf(conn), expected === "tls" ? /^TLSv1\.[23]$/ : /^clear$/);
    });
  });
}

test("a wrong password is the server's error, in both ways of prefer", async () => {
  for (const sslmode of ["prefer", "allow", "require"] as const) {
    const error = await failure(optionsFor("tls_only", { sslmode, password: "wrong" }));
    assert.equal(error.name, "PostgresError");
    assert.equal(error.code, "28P01");
  }
});

test("verify-full heeds the name: wildcards, addresses, and neither", async () => {
  const { port } = tlsTarget();
  const base = { sslmode: "verify-full" as const, port };
  for (const host of ["LOCALHOST", "db.pipegres.test"]) {
    await use(
      optionsFor("tls_any", { ...base, host }),
      async (conn) => assert.match(await versionOf(conn), /^TLS/),
    );
  }
  await use(optionsFor("tls_any", { ...base, host: "127.0.0.1", hostaddr: undefined }), async (conn) => {
    assert.match(await versionOf(conn), /^TLS/);
  });
  for (const host of ["pipegres.test", "a.b.pipegres.test", "example.org"]) {
    assert.match(
      (await failure(optionsFor("tls_any", { ...base, host }))).message,
      new RegExp(`not for "${host}"`),
    );
  }
});

test("versions of TLS are kept within bounds", async () => {
  for (
    const [bounds, version] of [
      [{ sslMinProtocolVersion: "TLSv1.3" }, "TLSv1.3"],
      [{ sslMaxProtocolVersion: "TLSv1.2" }, "TLSv1.2"],
    ] as const
  ) {
    await use(
      optionsFor("tls_any", { sslmode: "require", ...bounds }),
      async (conn) => assert.equal(await versionOf(conn), version),
    );
  }
  const error = await failure(
    optionsFor("tls_any", {
      sslmode: "require",
      sslMinProtocolVersion: "TLSv1",
      sslMaxProtocolVersion: "TLSv1.1",
    }),
  );
  assert.match(error.message, /TLS/);
});

test("a client certificate lets in, its key encrypted or not", async () => {
  const { passphrase } = tlsTarget();
  const sslcert = tlsFile("client.crt");
  for (
    const more of [
      { sslcert, sslkey: tlsFile("client.key") },
      { sslcert, sslkey: tlsFile("client_encrypted.key"), sslpassword: passphrase },
    ]
  ) {
    await use(optionsFor("app_cert", { sslmode: "verify-full", ...more }), async (conn) => {
      assert.equal(
        await conn.sql<string>`select client_dn from pg_stat_ssl where pid = pg_backend_pid()`.scalar(),
        "/CN=app_cert",
      );
    });
  }
  await use(
    optionsFor("tls_both", { sslmode: "require", sslcert, sslkey: tlsFile("client.key") }),
    async (conn) => assert.equal(await conn.sql`select current_user`.scalar(), "tls_both"),
  );
});

test("without the right client certificate nobody is let in", async () => {
  const cert = { sslcert: tlsFile("client.crt"), sslkey: tlsFile("client.key") };
  const none = { sslcert: "/nonexistent/postgresql.crt" };
  for (const role of ["app_cert", "tls_both"] as const) {
    assert.equal((await failure(optionsFor(role, { sslmode: "require", ...none }))).code, "28000");
    assert.equal(
      (await failure(optionsFor(role, { sslmode: "require", ...cert, sslcertmode: "disable" }))).code,
      "28000",
    );
    const stranger = { sslcert: tlsFile("stranger.crt"), sslkey: tlsFile("stranger.key") };
    // The server breaks off, or says why within the handshake.
    assert.equal(
      (await failure(optionsFor(role, { sslmode: "require", ...stranger }))).name,
      "ConnectionError",
    );
  }
});

test("a key that cannot be used is a ConfigurationError that names its file or option", async () => {
  const directory = await mkdtemp(join(tmpdir(), "pipegres-key-"));
  try {
    const open = join(directory, "open.key");
    await copyFile(tlsFile("client.key"), open);
    await chmod(open, 0o644);
    const cases: readonly (readonly [ConnectOptions, RegExp])[] = [
      [{ sslkey: open }, /open\.key": it has group or world access/],
      [{ sslkey: join(directory, "none.key") }, /none\.key" is not there/],
      [{ sslkey: tlsFile("client_encrypted.key"), sslpassword: "n0t the passphrase" }, /sslkey, sslpassword/],
      [{ sslkey: tlsFile("client_encrypted.key") }, /sslkey, sslpassword/],
      [{ sslkey: "engine:id" }, /OpenSSL engine/],
    ];
    for (const [more, message] of cases) {
      for (const sslmode of ["prefer", "verify-full"] as const) {
        const options = optionsFor("app_cert", { sslmode, sslcert: tlsFile("client.crt"), ...more });
        const error = await failure(options);
        assert.equal(error.name, "ConfigurationError", String(error));
        assert.match(error.message, message);
        assert.ok(!error.message.includes("n0t the passphrase"));
      }
    }
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("sslcrl: a revoked certificate is refused; a runtime that cannot tell refuses the option", async () => {
  const revoked = await failure(
    optionsFor("tls_any", { sslmode: "verify-ca", sslcrl: tlsFile("revoked.crl") }),
  );
  if (isDeno) {
    assert.equal(revoked.name, "ConfigurationError");
    assert.match(revoked.message, /sslcrl.*Deno does not check it/);
    return;
  }
  assert.match(revoked.message, /revoked/i);
  await use(
    optionsFor("tls_any", { sslmode: "verify-ca", sslcrl: tlsFile("empty.crl") }),
    async (conn) => assert.match(await versionOf(conn), /^TLS/),
  );
});

test("SCRAM is bound to the channel, and cannot be done without where that is required", async () => {
  const required = { sslmode: "require", channelBinding: "require" } as const;
  await use(optionsFor("tls_any", required), async (conn) => assert.match(await versionOf(conn), /^TLS/));
  for (const channelBinding of ["disable", "prefer"] as const) {
    await use(
      optionsFor("tls_any", { sslmode: "require", channelBinding }),
      async (conn) => assert.match(await versionOf(conn), /^TLS/),
    );
  }
  for (const role of ["tls_trust", "tls_password", "tls_md5"] as const) {
    assert.match((await failure(optionsFor(role, required))).message, /channel binding is required/);
  }
  assert.match(
    (await failure(optionsFor("tls_any", { sslmode: "disable", channelBinding: "require" }))).message,
    /channel binding is required, but the connection has no TLS/,
  );
});

const ALGORITHMS: readonly SignatureAlgorithm[] = [
  "ecdsa-sha256",
  "ecdsa-sha384",
  "rsa-sha1",
  "rsa-sha256",
  "rsa-sha512",
  "rsa-pss-sha384",
  "ed25519",
];

for (const algorithm of ALGORITHMS) {
  test(`somebody in the middle with an ${algorithm} certificate is found out by channel binding`, async () => {
    const certificate = await issueCertificate({ name: "localhost", algorithm });
    const { host, port } = tlsTarget();
    const front = await startTlsFront({
      answer: "accept",
      certificate,
      upstream: { host, port },
      encryptAgain: true,
    });
    try {
      const options = optionsFor("tls_any", {
        sslmode: "require",
        port: front.port,
        sslrootcert: "/nonexistent",
      });
      // Nothing but the binding tells.
      await use({ ...options, channelBinding: "disable" }, async (conn) => {
        assert.match(await versionOf(conn), /^TLS/);
      });
      for (const channelBinding of ["prefer", "require"] as const) {
        const error = await failure({ ...options, channelBinding });
        if (algorithm === "ed25519") {
          assert.match(error.message, /signed with 1\.3\.101\.112, for which no hash/);
        } else assert.match(error.message, /^SCRAM channel binding check failed$/);
      }
    } finally {
      await limit(front.close());
    }
  });
}

test("sslsni names the host in the handshake, or not", async () => {
  const { host, port } = tlsTarget();
  for (const sslsni of [true, false]) {
    const proxy = await startProxy({ target: { host, port }, record: true });
    const options = optionsFor("tls_any", {
      sslmode: "require",
      host: "sni.pipegres.test",
      port: proxy.port,
      sslsni,
    });
    await use(options, async (conn) => assert.match(await versionOf(conn), /^TLS/));
    const sent = proxy.recorded.filter(({ from }) => from === "frontend").map(({ bytes }) =>
      String.fromCharCode(...bytes)
    );
    assert.equal(sent.join("").includes("sni.pipegres.test"), sslsni);
    await proxy.close();
  }
});

test("sslnegotiation=direct with a server that knows it, or does not", async () => {
  const options = optionsFor("tls_any", { sslmode: "verify-full", sslnegotiation: "direct" });
  if (tlsTarget().version >= 17) {
    await use(options, async (conn) => assert.match(await versionOf(conn), /^TLS/));
  } else {
    assert.match((await failure(options)).message, /TLS|lost|closed/i);
  }
});

test("a cancel goes through TLS, too", async () => {
  const { host, port } = tlsTarget();
  const proxy = await startProxy({ target: { host, port }, record: true });
  for (const more of [{}, ...tlsTarget().version >= 17 ? [{ sslnegotiation: "direct" as const }] : []]) {
    const options = optionsFor("tls_any", { sslmode: "verify-full", port: proxy.port, ...more });
    await use(options, async (conn) => {
      await assert.rejects(conn.sql`select pg_sleep(60)`.with({ timeout: 100 }), TimeoutError);
      assert.equal(await conn.sql<number>`select 1`.scalar(), 1);
    });
  }
  const begins = new Map<number, number[]>();
  for (const { connection, from, bytes } of proxy.recorded) {
    if (from === "frontend") begins.set(connection, [...begins.get(connection) ?? [], ...bytes]);
  }
  assert.equal(begins.size, tlsTarget().version >= 17 ? 4 : 2);
  for (const bytes of begins.values()) {
    const negotiated = bytes[0] === 0;
    // SSLRequest or nothing, then a TLS handshake record.
    assert.equal(bytes[negotiated ? 8 : 0], 0x16);
    assert.ok(!String.fromCharCode(...bytes.slice(0, 20_000)).includes("tls_any"));
  }
  await proxy.close();
});

test("much data both ways, and many queries at once", async () => {
  await use(optionsFor("tls_any", { sslmode: "verify-full" }), async (conn) => {
    const text = "äöü€😀".repeat(200_000);
    assert.equal(await conn.sql<string>`select ${text}::text`.scalar(), text);
    const many = Array.from({ length: 500 }, (_, i) => conn.sql<number>`select ${i}::int4 + 1`.scalar());
    assert.deepEqual(await Promise.all(many), Array.from({ length: 500 }, (_, i) => i + 1));
    let sum = 0;
    for await (
      const row of conn.sql<{ i: number; filler: string }>`
      select i, repeat('x', 1000) as filler from generate_series(1, 20000) as i`
    ) sum += row.i;
    assert.equal(sum, 200_010_000);
  });
});

test("a server that ends in the middle of a query rejects it", async () => {
  const options = optionsFor("tls_any", { sslmode: "require" });
  await use(options, async (conn) => {
    const slow = conn.sql`select pg_sleep(60)`.then(() => undefined, (error) => error);
    await use({ ...options, user: "postgres", password: tlsTarget().password }, (other) =>
      until(
        async () =>
          (await other.sql`select pg_terminate_backend(${conn.processId!}::int4) from pg_stat_activity
            where pid = ${conn.processId!}::int4 and state = 'active'`).length === 1,
        10_000,
        "the query to run",
      ));
    const error = await limit(slow, 10_000) as { code?: string; cause?: { code?: string } };
    assert.equal(error.code, "CONNECTION_LOST");
    assert.equal(error.cause?.code, "57P01");
  });
});

test("a Unix-domain socket has no TLS, whatever sslmode says", async () => {
  const { socketDirectory } = tlsTarget();
  for (const sslmode of ["prefer", "require", "verify-full"] as const) {
    const options = optionsFor("tls_any", { sslmode, host: socketDirectory, hostaddr: undefined });
    await use(options, async (conn) => assert.equal(await versionOf(conn), "clear"));
  }
});

test("a pool works with TLS and leaves nothing behind", async () => {
  const pool = createPool({ ...optionsFor("tls_any", { sslmode: "verify-full" }), max: 4 });
  const found = await limit(
    Promise.all(Array.from({ length: 40 }, (_, i) => pool.sql<number>`select ${i}::int4`.scalar())),
  );
  assert.equal(found.length, 40);
  await limit(pool.close());
});

test("every session of this file is closed", () =>
  use(
    optionsFor("tls_any", { user: "postgres", password: tlsTarget().password, applicationName: "watcher" }),
    (conn) =>
      until(
        async () =>
          await conn.sql<bigint>`select count(*) from pg_stat_activity where application_name = 'tls_test'`
            .scalar() === 0n,
        10_000,
        "the end of all sessions",
      ),
  ));

test("keepalives are sent on TCP, as the options say", async (t) => {
  if (process.platform !== "linux") return t.skip("read from Linux' /proc/net/tcp");
  const port = tlsTarget().port.toString(16).toUpperCase().padStart(4, "0");
  // The timer of established connections to the server: 02 is a keepalive, in hundredths of a second.
  const timers = async () =>
    (await readFile("/proc/net/tcp", "utf8")).split("\n").map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[2]?.endsWith(`:${port}`) && fields[3] === "01")
      .map((fields) => fields[5]!);
  const seconds = (timer: string) => parseInt(timer.split(":")[1]!, 16) / 100;
  for (const sslmode of ["disable", "require"] as const) {
    const settled = async (
      options: ConnectOptions,
      holds: (timers: readonly string[]) => boolean,
      what: string,
    ) =>
      await use(
        optionsFor("tls_any", { sslmode, ...options }),
        () => until(async () => holds(await timers()), 10_000, what),
      );
    // No other connection of any test has this long an idle time.
    await settled({}, (all) => all.some((timer) => timer.startsWith("02:")), "a keepalive timer");
    if (!isDeno) {
      await settled(
        { keepalivesIdle: 3_333_000 },
        (all) => all.some((timer) => timer.startsWith("02:") && Math.abs(seconds(timer) - 3_330) < 10),
        "a keepalive timer of 3333 s",
      );
    }
    await settled({ keepalives: false }, (all) => all.some((timer) => timer.startsWith("00:")), "no timer");
  }
});
