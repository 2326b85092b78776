/** OAUTHBEARER, end to end with servers that take a token, refuse it, or lie. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { ConfigurationError, ConnectionError, ProtocolError } from "../../mod.ts";
import type { OAuthRequest } from "../../src/connection/connect_options.ts";
import * as backend from "../_support/backend_writer.ts";
import { readSaslInitialResponse, readSaslResponse } from "../_support/frontend_reader.ts";
import type { Script, ScriptedSession } from "../_support/scripted_backend.ts";
import { fail, SECRET, succeed } from "./attempts.ts";

const READY = [
  backend.authenticationOk,
  backend.backendKeyData(1, new Uint8Array(4)),
  backend.readyForQuery(),
];
/** It must be nowhere in what a user sees. */
const TOKEN = "s3cr3t-token.~+/==";

async function offer(
  session: ScriptedSession,
  ...mechanisms: string[]
): Promise<{ mechanism: string; response: string }> {
  await session.expect("StartupMessage");
  session.send(backend.authenticationSasl(...mechanisms));
  const { mechanism, response } = readSaslInitialResponse((await session.expect("Password")).data);
  return { mechanism, response: response! };
}

const accept: Script = async (session) => {
  assert.deepEqual(await offer(session, "OAUTHBEARER"), {
    mechanism: "OAUTHBEARER",
    response: `n,,\x01auth=Bearer ${TOKEN}\x01\x01`,
  });
  session.send(...READY);
  await session.expectEnd();
};

test("a token is sent, and nothing else is waited for", () => succeed(accept, { oauthToken: TOKEN }));

test("a function is told where the token is for, and called for each connection", async () => {
  const requests: OAuthRequest[] = [];
  const oauthToken = (request: OAuthRequest) => {
    requests.push(request);
    return Promise.resolve(TOKEN);
  };
  for (let i = 0; i < 2; i++) await succeed(accept, { oauthToken, requireAuth: "oauth" });
  assert.equal(requests.length, 2);
  assert.deepEqual(requests[0], {
    host: "localhost",
    port: 5432,
    user: "scripted",
    database: "scripted",
    issuer: undefined,
    clientId: undefined,
    clientSecret: undefined,
    scope: undefined,
  });
});

test("SCRAM goes before OAuth, unless it is forbidden", async () => {
  const both = ["OAUTHBEARER", "SCRAM-SHA-256"];
  const error = await fail(async (session) => {
    assert.equal((await offer(session, ...both)).mechanism, "SCRAM-SHA-256");
  }, { oauthToken: TOKEN, connectTimeout: 300 });
  assert.equal(error.name, "TimeoutError");
  await succeed(async (session) => {
    assert.equal((await offer(session, ...both)).mechanism, "OAUTHBEARER");
    session.send(...READY);
    await session.expectEnd();
  }, { oauthToken: TOKEN, requireAuth: "!scram-sha-256" });
});

const REFUSAL =
  '{"status":"invalid_token","scope":"openid db","openid-configuration":"https://issuer.example/.well-known"}';

function refuse(json: string, expected: string = `n,,\x01auth=Bearer ${TOKEN}\x01\x01`): Script {
  return async (session) => {
    assert.equal((await offer(session, "OAUTHBEARER")).response, expected);
    session.send(backend.authenticationSaslContinue(json));
    const answer = await session.receive();
    if (answer?.type !== "Password") return;
    assert.equal(readSaslResponse(answer.data), "\x01");
    session.send(
      backend.errorResponse({ S: "FATAL", V: "FATAL", C: "28000", M: "bearer authentication failed" }),
    );
    session.end();
  };
}

test("a refused token is an error that says what the server wants", async () => {
  const error = await fail(refuse(REFUSAL), { oauthToken: TOKEN });
  assert.ok(error instanceof ConnectionError, String(error));
  assert.equal(error.code, "AUTHENTICATION_FAILED");
  assert.match(
    error.message,
    /refused the OAuth token \(status invalid_token, scope "openid db", configuration https:/,
  );
  assert.equal((error.cause as { code: string }).code, "28000");
});

test("a function that gives no token asks the server what it wants", async () => {
  const error = await fail(refuse(REFUSAL, "n,,\x01auth=\x01\x01"), { oauthToken: () => undefined });
  assert.match(error.message, /configuration https:\/\/issuer\.example/);
});

for (const json of ["", "no JSON", "[]", "null", "1", "\xff"]) {
  test(`a refusal of ${JSON.stringify(json)} is a ProtocolError`, async () => {
    assert.ok(await fail(refuse(json), { oauthToken: TOKEN }) instanceof ProtocolError);
  });
}

test("a refusal with nothing in it, and one with too much, are told", async () => {
  assert.match((await fail(refuse("{}"), { oauthToken: TOKEN })).message, /no reason given/);
  const long = JSON.stringify({ status: "\u0007x".repeat(5_000), scope: 1, __proto__: "x" });
  const { message } = await fail(refuse(long), { oauthToken: TOKEN });
  assert.ok(message.length < 1_000 && !message.includes("\u0007"), message);
});

const LIES: Readonly<Record<string, (session: ScriptedSession) => void>> = {
  "AuthenticationSASLFinal": (session) => session.send(backend.authenticationSaslFinal("v=x")),
  "AuthenticationOk behind a refusal": (session) =>
    session.send(backend.authenticationSaslContinue(REFUSAL), ...READY),
  "a second refusal": (session) =>
    session.send(backend.authenticationSaslContinue(REFUSAL), backend.authenticationSaslContinue(REFUSAL)),
  "another method": (session) => session.send(backend.authenticationCleartextPassword),
};

for (const [name, lie] of Object.entries(LIES)) {
  test(`${name} is a ProtocolError`, async () => {
    const error = await fail(async (session) => {
      await offer(session, "OAUTHBEARER");
      lie(session);
    }, { oauthToken: TOKEN });
    assert.ok(error instanceof ProtocolError, String(error));
  });
}

test("AuthenticationOk without a token is not taken for one", async () => {
  const error = await fail(async (session) => {
    await offer(session, "OAUTHBEARER");
    session.send(...READY);
  }, { oauthToken: () => "" });
  assert.ok(error instanceof ProtocolError, String(error));
});

test("no token is sent where it may not be", async () => {
  const silent: Script = async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.authenticationSasl("OAUTHBEARER"));
    assert.equal(await session.receive(), undefined);
  };
  const cases = [
    [{}, /OAuth token and none is set \(option oauthToken\)/],
    [{ oauthToken: TOKEN, host: "db.example" }, /in clear/],
    [{ oauthToken: TOKEN, requireAuth: "scram-sha-256" }, /require_auth does not allow/],
    [{ oauthToken: TOKEN, requireAuth: "!oauth" }, /require_auth does not allow/],
    [{ oauthToken: TOKEN, requireAuth: "md5" }, /require_auth does not allow/],
    [{ oauthToken: TOKEN, channelBinding: "require" as const }, /channel binding is required/],
    [{ oauthToken: () => Promise.reject(new Error("no luck")) }, /no luck/],
  ] as const;
  for (const [options, message] of cases) assert.match((await fail(silent, options)).message, message);
  for (const wrong of ["two words", "a\x01b", "ä", "=x", 5, null, {}]) {
    const error = await fail(silent, { oauthToken: () => wrong as string });
    assert.ok(error instanceof ConfigurationError, String(error));
    assert.match(error.message, /Cannot use the OAuth token/);
  }
  assert.ok(!SECRET.includes(TOKEN));
});
