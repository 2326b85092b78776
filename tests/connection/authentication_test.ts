/** Every authentication method, and servers that lie, end to end. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { ConnectionError, PostgresError, ProtocolError } from "../../mod.ts";
import * as backend from "../_support/backend_writer.ts";
import { readPassword } from "../_support/frontend_reader.ts";
import type { Script, ScriptedSession } from "../_support/scripted_backend.ts";
import { assertNoSecret, fail, SECRET, succeed } from "./attempts.ts";
import { playScram, type ScramLies } from "./scram_backend.ts";

const READY = [
  backend.authenticationOk,
  backend.backendKeyData(1, new Uint8Array(4)),
  backend.readyForQuery(),
];
const SALT = Uint8Array.of(1, 2, 3, 255);

async function expectPassword(session: ScriptedSession): Promise<string> {
  return readPassword((await session.expect("Password")).data);
}

function md5(...parts: (string | Uint8Array)[]): string {
  const hash = createHash("md5");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}

test("trust: no password is sent", () =>
  succeed(async (session) => {
    await session.expect("StartupMessage");
    session.send(...READY);
    await session.expectEnd();
  }));

test("a cleartext password is given to a local server", () =>
  succeed(async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.authenticationCleartextPassword);
    assert.equal(await expectPassword(session), SECRET);
    session.send(...READY);
    await session.expectEnd();
  }));

for (const host of ["db.example", "127.0.0.1.example", "127.example", "128.0.0.1", "::2"]) {
  test(`a cleartext password is not given to ${host} without TLS`, async () => {
    const error = await fail(async (session) => {
      await session.expect("StartupMessage");
      session.send(backend.authenticationCleartextPassword);
    }, { host });
    assert.ok(error instanceof ConnectionError, String(error));
    assert.equal(error.code, "AUTHENTICATION_FAILED");
    assert.match(error.message, /in clear/);
  });
}

for (const host of ["127.0.0.1", "127.255.0.3", "::1", "localhost", "/run/postgresql"]) {
  test(`a cleartext password is given to ${host}`, () =>
    succeed(async (session) => {
      await session.expect("StartupMessage");
      session.send(backend.authenticationCleartextPassword);
      assert.equal(await expectPassword(session), SECRET);
      session.send(...READY);
      await session.expectEnd();
    }, { host }));
}

test("allowCleartextPassword gives it to any server", () =>
  succeed(async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.authenticationCleartextPassword);
    assert.equal(await expectPassword(session), SECRET);
    session.send(...READY);
    await session.expectEnd();
  }, { host: "db.example", allowCleartextPassword: true }));

const playMd5: Script = async (session) => {
  await session.expect("StartupMessage");
  session.send(backend.authenticationMd5Password(SALT));
  assert.equal(await expectPassword(session), `md5${md5(md5(SECRET, "scripted"), SALT)}`);
  session.send(...READY);
  await session.expectEnd();
};

test("an md5 password is hashed with user name and salt", () => succeed(playMd5));

test("require_auth=md5 takes an md5 exchange to its end", () => succeed(playMd5, { requireAuth: "md5" }));

test("require_auth=password takes a cleartext exchange to its end", () =>
  succeed(async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.authenticationCleartextPassword);
    await expectPassword(session);
    session.send(...READY);
    await session.expectEnd();
  }, { requireAuth: "password" }));

for (const length of [0, 3, 5]) {
  test(`an md5 salt of ${length} bytes is a ProtocolError, and nothing is sent`, async () => {
    const error = await fail(async (session) => {
      await session.expect("StartupMessage");
      session.send(backend.authenticationMd5Password(new Uint8Array(length)));
      assert.equal(await session.receive(), undefined);
    });
    assert.ok(error instanceof ProtocolError, String(error));
    assert.equal(error.message, `Cannot authenticate: the md5 salt has ${length} bytes, wanted 4`);
  });
}

for (
  const [request, shown] of Object.entries({
    1: "1",
    2: "Kerberos V5",
    4: "4",
    6: "6",
    7: "GSSAPI",
    8: "8",
    9: "SSPI",
    11: "11",
    12: "12",
    999: "999",
  })
) {
  test(`authentication method ${request} is refused with its number or name`, async () => {
    const error = await fail(async (session) => {
      await session.expect("StartupMessage");
      session.send(backend.authentication(Number(request)));
      assert.equal(await session.receive(), undefined);
    });
    assert.ok(error instanceof ConnectionError, String(error));
    assert.equal(error.code, "UNSUPPORTED");
    assert.ok(error.message.includes(shown), error.message);
  });
}

test("an Authentication message without a request code is a ProtocolError", async () => {
  const error = await fail(async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.message("R", Uint8Array.of(0, 0)));
  });
  assert.ok(error instanceof ProtocolError, String(error));
});

test("SCRAM-SHA-256, end to end", () => succeed(playScram(), {}, (connection) => assertNoSecret(connection)));

test("SCRAM-SHA-256 under require_auth", () => succeed(playScram(), { requireAuth: "scram-sha-256" }));

test("SCRAM-SHA-256 is found among unknown mechanisms", () =>
  succeed(playScram({ mechanisms: ["X-FOO", "SCRAM-SHA-1", "SCRAM-SHA-256"] })));

const LIES: Readonly<Record<string, ScramLies>> = {
  "an empty list of mechanisms": { mechanisms: [] },
  "only SCRAM-SHA-256-PLUS without TLS": { mechanisms: ["SCRAM-SHA-256-PLUS"] },
  "SCRAM-SHA-256-PLUS too without TLS": { mechanisms: ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"] },
  "only an unknown mechanism": { mechanisms: ["X-FOO"] },
  "a nonce that is only the client's": { nonce: (own) => own },
  "a shorter nonce": { nonce: (own) => own.slice(0, -1) },
  "a foreign nonce": { nonce: () => "foreign" },
  "an empty nonce": { nonce: () => "" },
  "an iteration count of zero": { iterations: "0" },
  "a negative iteration count": { iterations: "-1" },
  "an iteration count past the limit": { iterations: "10000001" },
  "an iteration count that is no number": { iterations: "many" },
  "an empty salt": { salt: "" },
  "a salt that is not base64": { salt: "???" },
  "a wrong signature": { final: () => `v=${btoa("x".repeat(32))}` },
  "an empty signature": { final: () => "v=" },
  "no signature": { final: () => "" },
  "an error in the final message": { final: () => "e=other-error" },
  "a signature of another password": { password: "another" },
  "AuthenticationOk in place of the first challenge": { okInsteadOf: "first" },
  "AuthenticationOk in place of the continuation": { okInsteadOf: "continue" },
  "AuthenticationOk in place of the signature": { okInsteadOf: "final" },
};

for (const [name, lies] of Object.entries(LIES)) {
  test(`SASL with ${name} is refused`, async () => {
    const error = await fail(playScram(lies));
    assert.ok(error instanceof ProtocolError || error instanceof ConnectionError, String(error));
    assert.match(error.message, /^Cannot (authenticate|read)/);
  });
}

for (
  const [name, bytes] of [["without terminator", "SCRAM-SHA-256\0"], ["with a cut name", "SCRAM"]] as const
) {
  test(`a SASL list ${name} is a ProtocolError`, async () => {
    const error = await fail(async (session) => {
      await session.expect("StartupMessage");
      session.send(backend.authentication(10, new TextEncoder().encode(bytes)));
    });
    assert.ok(error instanceof ProtocolError, String(error));
  });
}

test("a SASL list with bytes behind its end is a ProtocolError", async () => {
  const error = await fail(async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.authentication(10, new TextEncoder().encode("SCRAM-SHA-256\0\0X")));
  });
  assert.ok(error instanceof ProtocolError, String(error));
});

test("another method in the middle of SASL is a ProtocolError", async () => {
  const error = await fail(async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.authenticationSasl("SCRAM-SHA-256"));
    await session.expect("Password");
    session.send(backend.authenticationCleartextPassword);
    assert.equal(await session.receive(), undefined, "no password is given away");
  });
  assert.ok(error instanceof ProtocolError, String(error));
});

test("an ErrorResponse in the middle of SASL is the server's error", async () => {
  const error = await fail(async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.authenticationSasl("SCRAM-SHA-256"));
    await session.expect("Password");
    session.send(
      backend.errorResponse({ S: "FATAL", V: "FATAL", C: "28P01", M: "password authentication failed" }),
    );
    session.end();
  });
  assert.ok(error instanceof PostgresError, String(error));
  assert.equal(error.code, "28P01");
});

for (
  const [method, message] of Object.entries({
    none: backend.authenticationOk,
    md5: backend.authenticationMd5Password(SALT),
  })
) {
  test(`require_auth=scram-sha-256 refuses ${method}`, async () => {
    const error = await fail(async (session) => {
      await session.expect("StartupMessage");
      session.send(message);
      assert.equal(await session.receive(), undefined);
    }, { requireAuth: "scram-sha-256" });
    assert.ok(error instanceof ConnectionError, String(error));
    assert.equal(error.code, "AUTHENTICATION_FAILED");
    assert.match(error.message, /require_auth/);
  });
}

test("a server that wants a password when none is set is told so by the error", async () => {
  const error = await fail(async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.authenticationCleartextPassword);
  }, { password: undefined, passfile: "/nonexistent/pgpass" });
  assert.ok(error instanceof ConnectionError, String(error));
  assert.match(error.message, /asks for a password and none is set/);
});

test("a password with NUL is refused before it is sent", async () => {
  const error = await fail(async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.authenticationCleartextPassword);
    assert.equal(await session.receive(), undefined);
  }, { password: "a\0b" });
  assert.ok(error instanceof ConnectionError, String(error));
});

test("a password function is asked when the server asks, and not before", async () => {
  const calls: string[] = [];
  const password = () => {
    calls.push("asked");
    return Promise.resolve(SECRET);
  };
  await succeed(async (session) => {
    await session.expect("StartupMessage");
    assert.deepEqual(calls, []);
    session.send(backend.authenticationCleartextPassword);
    assert.equal(await expectPassword(session), SECRET);
    session.send(...READY);
    await session.expectEnd();
  }, { password });
  await succeed((session) => session.establish().then(() => session.expectEnd()), { password });
  assert.deepEqual(calls, ["asked"]);
});

test("what a password function throws is the reason", async () => {
  const reason = new Error("no token");
  const error = await fail(async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.authenticationCleartextPassword);
  }, { password: () => Promise.reject(reason) });
  assert.equal(error, reason);
});
