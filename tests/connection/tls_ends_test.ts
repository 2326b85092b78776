/** Every step of establishing inside TLS cut, stalled or closed; and secrets in every option, which nobody may see. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { connect, type ConnectOptions, createPool } from "../../mod.ts";
import { resolveOptions } from "../../src/connection/options.ts";
import * as backend from "../_support/backend_writer.ts";
import { type Certificate, encryptKey, issueCertificate } from "../_support/certificates.ts";
import { limit } from "../_support/limit.ts";
import { type Script, startScriptedBackend } from "../_support/scripted_backend.ts";
import { startTlsFront } from "../_support/tls_front.ts";

let certificate: Promise<Certificate> | undefined;
const own = () => certificate ??= issueCertificate({ name: "localhost", dnsNames: ["localhost"] });

/** What a server says, step by step, before it stops. */
const STEPS: Readonly<Record<string, readonly Uint8Array[]>> = {
  "the StartupMessage": [],
  "half a message": [backend.authenticationSasl("SCRAM-SHA-256").subarray(0, 9)],
  "the SASL mechanisms": [backend.authenticationSasl("SCRAM-SHA-256")],
  "AuthenticationOk": [backend.authenticationOk],
  "the key": [backend.authenticationOk, backend.backendKeyData(1, new Uint8Array(4))],
};

async function behindTls(script: Script, body: (options: ConnectOptions) => Promise<void>): Promise<void> {
  const tcp = await startScriptedBackend(script);
  const front = await startTlsFront({ answer: "accept", certificate: await own(), upstream: tcp });
  try {
    await body({
      host: "localhost",
      hostaddr: front.host,
      port: front.port,
      user: "u",
      password: "p",
      sslmode: "require",
      sslrootcert: "/nonexistent",
      connectTimeout: 20_000,
    });
    for (const deadline = Date.now() + 10_000; !front.connections.every(({ closed }) => closed);) {
      assert.ok(Date.now() < deadline, "a connection is left open");
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  } finally {
    await limit(front.close());
    await tcp.close();
  }
}

const rejection = (promise: Promise<unknown>) =>
  limit(promise.then(() => assert.fail("connected"), (error) => error as Error), 15_000);

for (const [name, messages] of Object.entries(STEPS)) {
  const say: Script = async (session) => {
    await session.expect("StartupMessage");
    session.send(...messages);
  };

  for (const how of ["end", "reset"] as const) {
    test(`inside TLS, the connection's ${how} behind ${name} rejects the attempt`, () =>
      behindTls(async (session, index) => {
        await say(session, index);
        session[how]();
      }, async (options) => {
        assert.match((await rejection(connect(options))).message, /lost|closed|reset|ended/i);
      }));
  }

  test(`inside TLS, connectTimeout and signal end the wait behind ${name}`, () =>
    behindTls(async (session, index) => {
      await say(session, index);
      await session.drain();
    }, async (options) => {
      assert.equal((await rejection(connect({ ...options, connectTimeout: 600 }))).name, "TimeoutError");
      const controller = new AbortController();
      const attempt = rejection(connect(options, { signal: controller.signal }));
      await new Promise((resolve) => setTimeout(resolve, 300));
      controller.abort(new Error("enough"));
      assert.equal((await attempt).message, "enough");
    }));
}

test("bytes that are no TLS record break an established connection, and its query rejects", () =>
  behindTls(async (session) => {
    await session.establish();
    await session.expect("Query");
    session.reset();
  }, async (options) => {
    const conn = await limit(connect(options));
    assert.match((await rejection(conn.exec("select 1"))).message, /lost|closed|reset/i);
    await limit(conn.close());
  }));

/** In every form in which it might show. */
const SECRET = "pl4nted-Sécret";
const FORMS = [
  SECRET,
  encodeURIComponent(SECRET),
  "pl4nted",
  btoa(encodeURIComponent(SECRET)),
  btoa("pl4nted-S"),
];

function assertHidden(value: unknown, what: string): void {
  const shown = [
    String(value),
    inspect(value, { depth: 20, showHidden: true, maxStringLength: Infinity, getters: true }),
    JSON.stringify(value) ?? "",
    value instanceof Error ? `${value.stack}${inspect(value.cause, { depth: 20, showHidden: true })}` : "",
  ].join("\n");
  for (const form of FORMS) {
    assert.ok(!shown.includes(form), `${what}: the secret is shown: ${shown.slice(0, 2_000)}`);
  }
}

const token = "pl4nted-S/token";

test("a secret in any option is in no error, inspection or JSON", async () => {
  const directory = await mkdtemp(join(tmpdir(), "pipegres-secret-"));
  try {
    const { certificate, key } = await own();
    const files = { sslcert: join(directory, "c.crt"), sslkey: join(directory, "c.key") };
    await writeFile(files.sslcert, certificate);
    await writeFile(files.sslkey, await encryptKey(key, "another"), { mode: 0o600 });
    const secrets: ConnectOptions = { password: SECRET, sslpassword: SECRET, oauthToken: token };
    const conninfo = "oauth_client_id=x oauth_client_secret=pl4nted-Sécret oauth_issuer=https://x";
    const answers: Script[] = [
      (session) => Promise.resolve(session.end()),
      async (session) => {
        await session.expect("StartupMessage");
        session.send(backend.authenticationCleartextPassword);
        await session.expect("Password");
        session.send(backend.errorResponse({ S: "FATAL", V: "FATAL", C: "28P01", M: "no" }));
        session.end();
      },
      async (session) => {
        await session.expect("StartupMessage");
        session.send(backend.authenticationSasl("OAUTHBEARER"));
        await session.expect("Password");
        session.send(backend.authenticationSaslContinue('{"status":"invalid_token"}'));
        await session.expect("Password");
        session.send(backend.errorResponse({ S: "FATAL", V: "FATAL", C: "28000", M: "no" }));
        session.end();
      },
      async (session) => {
        await session.expect("StartupMessage");
        session.send(backend.authenticationSasl("SCRAM-SHA-256"));
        await session.expect("Password");
        session.send(backend.authenticationSaslContinue("r=x,s=x,i=x"));
        await session.drain();
      },
    ];
    for (const [i, script] of answers.entries()) {
      // The pool tries again and again, and leaves when its time is over.
      const patient: Script = (session, index) => script(session, index).catch(() => session.end());
      await behindTls(patient, async (options) => {
        const all = { ...options, ...secrets };
        assertHidden(await rejection(connect(conninfo, all)), `answer ${i}`);
        const pool = createPool({ ...all, max: 1, acquireTimeout: 500 });
        assertHidden(await rejection(pool.exec("select 1")), `pool ${i}`);
        assertHidden(pool, "the pool");
        await limit(pool.close());
      });
    }
    await behindTls((session) => session.drain(), async (options) => {
      const error = await rejection(connect({ ...options, ...secrets, ...files }));
      assert.equal(error.name, "ConfigurationError", String(error));
      assertHidden(error, "a wrong passphrase");
    });
    const wrong: readonly (readonly [string | undefined, ConnectOptions])[] = [
      [`postgres://u:${SECRET} x@h/db`, {}],
      [`postgres://u:${SECRET}%zz@h/db`, {}],
      [`postgres://u:${SECRET}/x@h:y/db`, {}],
      [`password=${SECRET} and more`, {}],
      [`password='${SECRET}`, {}],
      [`host=h password=a ${SECRET}=b`, {}],
      [`sslpassword=${SECRET} sslmode=nonsense`, {}],
      [undefined, { password: [SECRET] as unknown as string }],
      [undefined, { sslpassword: { SECRET } as unknown as string }],
      [undefined, { oauthToken: { SECRET } as unknown as string }],
      [undefined, { ...secrets, port: "x" }],
    ];
    for (const [text, options] of wrong) {
      const attempt = text === undefined ? connect(options) : connect(text, options);
      assertHidden(await rejection(attempt), text ?? inspect(options));
    }
    const resolved = await resolveOptions(conninfo, { ...secrets, ...files, user: "u" });
    assertHidden(resolved, "resolved options");
    assertHidden({ ...resolved }, "a copy of resolved options");
    await resolved.tlsCredentials();
    assertHidden(resolved, "resolved options that have read their files");
    await behindTls(async (session) => {
      await session.establish();
      await session.expectEnd();
    }, async (options) => {
      const conn = await limit(connect({ ...options, ...secrets }));
      assertHidden(conn, "a connection");
      await limit(conn.close());
    });
  } finally {
    await rm(directory, { recursive: true });
  }
});
