/** Every authentication method of a real server, what the options allow of it, protocol versions and cancel keys. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { connect, type Connection, type ConnectOptions, TimeoutError } from "../../mod.ts";
import { openTarget, resolveTarget } from "../../src/connection/open.ts";
import { limit, TLS_ROLES, tlsFile, type TlsRoleName, tlsTarget, until } from "../_support/tls_target.ts";

function optionsFor(role: TlsRoleName, more: ConnectOptions = {}): ConnectOptions {
  const { host, port } = tlsTarget();
  return {
    host,
    port,
    user: role,
    password: TLS_ROLES[role].password,
    database: "postgres",
    sslmode: "disable",
    sslrootcert: tlsFile("ca.crt"),
    passfile: "/nonexistent/pgpass",
    connectTimeout: 30_000,
    applicationName: "authentication_test",
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

const asSuperuser = (more: ConnectOptions = {}) =>
  optionsFor("tls_any", {
    user: "postgres",
    password: tlsTarget().password,
    applicationName: "superuser",
    ...more,
  });

/** The words that require_auth has for what these roles are asked for. */
const METHODS = {
  tls_trust: "none",
  tls_password: "password",
  tls_md5: "md5",
  tls_any: "scram-sha-256",
} as const;
const ALL_METHODS = ["none", "password", "md5", "scram-sha-256", "gss", "sspi", "oauth"];

for (const [role, method] of Object.entries(METHODS) as [keyof typeof METHODS, string][]) {
  for (const sslmode of ["disable", "require"] as const) {
    test(`${role} is let in by ${method} with sslmode=${sslmode}`, () =>
      use(optionsFor(role, { sslmode }), async (conn) => {
        assert.equal(await conn.sql`select current_user`.scalar(), role);
      }));

    test(`require_auth and ${method} with sslmode=${sslmode}`, async () => {
      for (const requireAuth of [method, `!${method === "none" ? "md5" : "none"}`, `gss,${method}`]) {
        await use(optionsFor(role, { sslmode, requireAuth }), async (conn) => {
          assert.equal(await conn.sql`select current_user`.scalar(), role);
        });
      }
      const others = ALL_METHODS.filter((each) => each !== method).join(",");
      for (const requireAuth of [others, `!${method}`]) {
        const error = await limit(
          connect(optionsFor(role, { sslmode, requireAuth })).then(
            () => assert.fail("connected"),
            (error) => error,
          ),
        );
        assert.equal(error.code, "AUTHENTICATION_FAILED", String(error));
        assert.match(error.message, /which require_auth does not allow/);
      }
    });
  }

  if (method !== "none") {
    test(`${role} is not let in with a wrong or without a password`, async () => {
      for (const sslmode of ["disable", "require"] as const) {
        const wrong = await limit(
          connect(optionsFor(role, { sslmode, password: "wr0ng-pässword" })).then(
            () => assert.fail("connected"),
            (error) => error,
          ),
        );
        assert.equal(wrong.code, "28P01");
        assert.equal(wrong.name, "PostgresError");
        const none = await limit(
          connect(optionsFor(role, { sslmode, password: undefined })).then(
            () => assert.fail("connected"),
            (error) => error,
          ),
        );
        assert.match(none.message, /asks for a password and none is set/);
      }
    });
  }
}

test("a password function is called for every connection", async () => {
  const tokens = ["wrong", TLS_ROLES.tls_any.password];
  let calls = 0;
  const options = optionsFor("tls_any", { password: () => Promise.resolve(tokens[calls++]!) });
  const error = await limit(connect(options).then(() => assert.fail("connected"), (error) => error));
  assert.equal(error.code, "28P01");
  await use(options, async (conn) => assert.equal(await conn.sql`select 1 as n`.scalar(), 1));
  assert.equal(calls, 2);
});

test("one iteration is taken, and a limit of iterations kept", async () => {
  if (tlsTarget().version < 16) return; // scram_iterations came with 16
  await use(asSuperuser(), async (conn) => {
    await conn.exec(
      "set scram_iterations = 1; drop role if exists scram_once; create role scram_once login password 'once'",
    );
    try {
      const options = asSuperuser({ user: "scram_once", password: "once" });
      await use(
        options,
        async (other) => assert.equal(await other.sql`select current_user`.scalar(), "scram_once"),
      );
    } finally {
      await conn.exec("drop role scram_once");
    }
  });
  const error = await limit(
    connect(optionsFor("tls_any", { scramMaxIterations: 4095 })).then(
      () => assert.fail("connected"),
      (error) => error,
    ),
  );
  assert.match(error.message, /4096 SCRAM iterations, at most 4095 are accepted/);
});

test("passwords are prepared as the server prepares them", async () => {
  await use(asSuperuser(), async (conn) => {
    const passwords = [
      "I\u00adX",
      "\u2168",
      "e\u0301",
      "\u00a0nbsp\u3000",
      "😀 emoji",
      "\u0007bell",
      "ﬁ",
      "a=b,c",
    ];
    for (const password of passwords) {
      await conn.exec(
        `drop role if exists sasl_role; set password_encryption = 'scram-sha-256';
         create role sasl_role login password '${password}'`,
      );
      await use(
        asSuperuser({ user: "sasl_role", password }),
        async (other) => assert.equal(await other.sql`select current_user`.scalar(), "sasl_role"),
      );
    }
    await conn.exec("drop role sasl_role");
  });
});

for (
  const [asked, wanted] of [["3.0", 0x0003_0000], ["3.2", 0x0003_0002], ["latest", 0x0003_0002]] as const
) {
  test(`protocol ${asked} is asked for, and a cancel works with its key`, async () => {
    for (const sslmode of ["disable", "verify-full"] as const) {
      const target = await resolveTarget(asSuperuser({ sslmode, maxProtocolVersion: asked }), undefined);
      const session = await limit(openTarget(target, undefined));
      const modern = tlsTarget().version >= 18;
      assert.equal(session.session.protocolVersion, modern ? wanted : 0x0003_0000);
      assert.equal(session.session.keyData?.secretKey.length, modern && wanted !== 0x0003_0000 ? 32 : 4);
      await limit(session.close(0));
      await use(asSuperuser({ sslmode, maxProtocolVersion: asked }), async (conn) => {
        const began = performance.now();
        await assert.rejects(conn.sql`select pg_sleep(60)`.with({ timeout: 100 }), TimeoutError);
        assert.equal(
          await conn.sql`select 1 as n`.scalar(),
          1,
          "the session has survived: the cancel was heeded",
        );
        assert.ok(performance.now() - began < 20_000);
      });
    }
  });
}

test("minProtocolVersion 3.2 is kept", async () => {
  const options = asSuperuser({ minProtocolVersion: "3.2" });
  if (tlsTarget().version >= 18) {
    await use(options, async (conn) => assert.equal(await conn.sql`select 1 as n`.scalar(), 1));
    return;
  }
  const error = await limit(connect(options).then(() => assert.fail("connected"), (error) => error));
  assert.match(error.message, /speaks protocol 3\.0 at most, which min_protocol_version forbids/);
});

test("every session of this file is closed", () =>
  use(asSuperuser({ applicationName: "watcher" }), (conn) =>
    until(
      async () =>
        await conn.sql<bigint>`select count(*) from pg_stat_activity
          where application_name in ('authentication_test', 'superuser')`.scalar() === 0n,
      10_000,
      "the end of all sessions",
    )));
