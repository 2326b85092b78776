/** From the StartupMessage to the first ReadyForQuery: what may come, what must not, and ends at each step. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { connect, ConnectionError, type ConnectOptions, PostgresError, ProtocolError } from "../../mod.ts";
import * as backend from "../_support/backend_writer.ts";
import { limit } from "../_support/limit.ts";
import { createMemoryBackend, type Script, startScriptedBackend } from "../_support/scripted_backend.ts";
import { simpleAnswer } from "../engine/transcripts.ts";
import { rejectionOf } from "../_support/session.ts";
import { fail, failureOf, SECRET, succeed } from "./attempts.ts";

const KEY = backend.backendKeyData(1, new Uint8Array(4));

/** A script that reads the StartupMessage and sends these bytes. */
function reply(...messages: readonly Uint8Array[]): Script {
  return async (session) => {
    await session.expect("StartupMessage");
    session.send(...messages);
  };
}

test("the StartupMessage asks for 3.0 and carries user, database and parameters, and nothing secret", () =>
  succeed(async (session) => {
    const { version, parameters } = await session.establish();
    assert.equal(version, 0x0003_0000);
    assert.equal(parameters["user"], "scripted");
    assert.equal(parameters["database"], "scripted");
    assert.equal(parameters["search_path"], "app");
    assert.equal(parameters["application_name"], "tests");
    assert.ok(!JSON.stringify(parameters).includes(SECRET));
    await session.expectEnd();
  }, { parameters: { search_path: "app" }, applicationName: "tests" }));

test("parameters, notices and key data may come in any order", async () => {
  const notices: string[] = [];
  await succeed(
    async (session) => {
      await session.expect("StartupMessage");
      session.send(
        backend.noticeResponse({ M: "before" }),
        backend.parameterStatus("a", "1"),
        backend.authenticationOk,
        KEY,
        backend.noticeResponse({ M: "after" }),
        backend.parameterStatus("b", "2"),
        backend.parameterStatus("a", "3"),
        backend.readyForQuery(),
      );
      await session.expectEnd();
    },
    { onNotice: ({ message }) => void notices.push(message) },
    (connection) => {
      assert.deepEqual([...connection.parameters], [["a", "3"], ["b", "2"]]);
      assert.equal(connection.processId, 1);
      assert.equal(connection.transactionStatus, "idle");
    },
  );
  assert.deepEqual(notices, ["before", "after"]);
});

test("a callback for notices that throws does not end the attempt", () =>
  succeed(async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.noticeResponse(), backend.authenticationOk, KEY, backend.readyForQuery());
    await session.expectEnd();
  }, {
    onNotice() {
      throw new Error("the user's own");
    },
  }));

test("a server without BackendKeyData is fine", () =>
  succeed(
    async (session) => {
      await session.expect("StartupMessage");
      session.send(backend.authenticationOk, backend.readyForQuery());
      await session.expectEnd();
    },
    {},
    (connection) => assert.equal(connection.processId, undefined),
  ));

for (const length of [4, 32, 256]) {
  test(`a secret key of ${length} bytes is taken`, () =>
    succeed(
      async (session) => {
        await session.expect("StartupMessage");
        session.send(
          backend.authenticationOk,
          backend.backendKeyData(7, new Uint8Array(length)),
          backend.readyForQuery(),
        );
        await session.expectEnd();
      },
      { maxProtocolVersion: "3.2" },
      (connection) => assert.equal(connection.processId, 7),
    ));
}

test("what the server sends behind the first ReadyForQuery in one chunk is not lost", () =>
  succeed(
    async (session) => {
      await session.expect("StartupMessage");
      session.send(
        backend.authenticationOk,
        KEY,
        backend.readyForQuery(),
        backend.parameterStatus("late", "1"),
      );
      await session.expect("Query");
      session.send(simpleAnswer("x"));
      await session.expectEnd();
    },
    {},
    async (connection) => {
      assert.equal(connection.parameters.get("late"), "1");
      const [result] = await limit(connection.exec("select"));
      assert.deepEqual(result?.rows, [{ a: "x" }]);
    },
  ));

for (const fatal of [false, true]) {
  test(`an end right behind the first ReadyForQuery settles what is asked${fatal ? ", a FATAL error too" : ""}`, async () => {
    const last = fatal ? [backend.errorResponse({ S: "FATAL", V: "FATAL", C: "57P01", M: "going" })] : [];
    const script: Script = async (session) => {
      await session.expect("StartupMessage");
      session.send(backend.authenticationOk, KEY, backend.readyForQuery(), ...last);
      session.end();
      await session.drain();
    };
    const ask = async (options: ConnectOptions) => {
      const connection = await connect({ user: "u", sslmode: "disable", ...options });
      return await connection.query("select 1").finally(() => connection.close());
    };
    const check = async (attempt: Promise<unknown>) => {
      const error = await rejectionOf(attempt);
      assert.ok(error instanceof ConnectionError, String(error));
      assert.equal(error.code, "CONNECTION_LOST");
      if (fatal) assert.match(error.message, /going/);
    };
    // In memory the end comes before anybody has heard of the last bytes; on a socket it depends.
    const memory = createMemoryBackend(script);
    await check(ask({ host: "localhost", transport: memory.factory }));
    await memory.close();
    const server = await startScriptedBackend(script);
    for (let i = 0; i < 20; i++) await check(ask({ host: server.host, port: server.port }));
    await server.close();
  });
}

test("bytes without end that nobody reads end the attempt", async () => {
  const server = await startScriptedBackend(async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.authenticationCleartextPassword);
    for (let i = 0; i < 40; i++) session.send(backend.noticeResponse({ M: "x".repeat(60_000) }));
    await session.drain();
  });
  try {
    const error = await failureOf(connect({
      host: "127.0.0.1",
      port: server.port,
      user: "u",
      sslmode: "disable",
      password: () => new Promise(() => {}),
    }));
    assert.ok(error instanceof ProtocolError, String(error));
    assert.match(error.message, /nobody had asked for/);
  } finally {
    await server.close().catch(() => {});
  }
});

for (const splitAt of [1, 2, 3, 7]) {
  test(`establishing and a query work in chunks of ${splitAt} bytes`, async () => {
    const memory = createMemoryBackend(async (session) => {
      await session.establish({ parameters: { session_authorization: "äöü€😀" } });
      await session.expect("Query");
      session.send(simpleAnswer("äöü€😀"));
      await session.expectEnd();
    }, { splitAt });
    const connection = await limit(
      connect({ host: "localhost", user: "u", sslmode: "disable", transport: memory.factory }),
    );
    assert.equal(connection.parameters.get("session_authorization"), "äöü€😀");
    assert.deepEqual((await limit(connection.exec("select")))[0]?.rows, [{ a: "äöü€😀" }]);
    await limit(connection.close());
    await memory.close();
  });
}

test("NegotiateProtocolVersion to an older minor version goes on with it", () =>
  succeed(async (session) => {
    const { version } = await session.expect("StartupMessage");
    assert.equal(version, 0x0003_0002);
    session.send(backend.negotiateProtocolVersion(0x0003_0000));
    session.send(backend.authenticationOk, KEY, backend.readyForQuery());
    await session.expectEnd();
  }, { maxProtocolVersion: "3.2" }));

test("NegotiateProtocolVersion below minProtocolVersion is refused", async () => {
  const error = await fail(reply(backend.negotiateProtocolVersion(0x0003_0000)), {
    minProtocolVersion: "3.2",
    maxProtocolVersion: "3.2",
  });
  assert.ok(error instanceof ConnectionError, String(error));
  assert.equal(error.code, "UNSUPPORTED");
});

for (const [version, options] of [[0x0003_0002, []], [0x0003_0000, ["_pq_.x"]]] as const) {
  test(`NegotiateProtocolVersion to ${version} with ${options.length} options nobody asked for is a ProtocolError`, async () => {
    const error = await fail(reply(backend.negotiateProtocolVersion(version, options)), {
      maxProtocolVersion: "3.2",
    });
    assert.ok(error instanceof ProtocolError, String(error));
  });
}

for (const version of [0x0003_0003, 0x0004_0000, 0x0002_0000, 0, -1]) {
  test(`NegotiateProtocolVersion to ${version} is a ProtocolError`, async () => {
    const error = await fail(reply(backend.negotiateProtocolVersion(version)), { maxProtocolVersion: "3.2" });
    assert.ok(error instanceof ProtocolError, String(error));
  });
}

test("an ErrorResponse at once is the server's error, SQLSTATE and all", async () => {
  for (const code of ["53300", "57P03", "3D000", "28000"]) {
    const error = await fail(async (session) => {
      await session.expect("StartupMessage");
      session.send(backend.errorResponse({ S: "FATAL", V: "FATAL", C: code, M: "refused" }));
      session.end();
    });
    assert.ok(error instanceof PostgresError, String(error));
    assert.equal(error.code, code);
    assert.equal(error.severity, "FATAL");
  }
});

const BREACHES: Readonly<Record<string, Uint8Array>> = {
  "ReadyForQuery before authentication": backend.readyForQuery(),
  "BackendKeyData before authentication": KEY,
  "a DataRow": backend.dataRow(["1"]),
  "a second AuthenticationOk": backend.concat(backend.authenticationOk, backend.authenticationOk),
  "another authentication request behind AuthenticationOk": backend.concat(
    backend.authenticationOk,
    backend.authenticationCleartextPassword,
  ),
  "an unknown type": backend.concat(backend.authenticationOk, backend.message("?")),
  "CommandComplete": backend.concat(backend.authenticationOk, backend.commandComplete("SELECT 1")),
  "a key of no bytes": backend.concat(backend.authenticationOk, backend.backendKeyData(1, new Uint8Array(0))),
  "a key of 257 bytes": backend.concat(
    backend.authenticationOk,
    backend.backendKeyData(1, new Uint8Array(257)),
  ),
  "an unknown transaction status": backend.concat(
    backend.authenticationOk,
    backend.message("Z", new TextEncoder().encode("X")),
  ),
  "a length of 3": backend.message("R", new Uint8Array(0), 3),
  "a negative length": backend.message("R", new Uint8Array(0), -1),
  "an endless message": backend.message("E", new Uint8Array(100), 0x7fff_ffff),
  "an HTTP server": new TextEncoder().encode("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
  "an SSH server": new TextEncoder().encode("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"),
  "an SMTP server": new TextEncoder().encode("220 mail.example ESMTP ready\r\n"),
  "an error as text of old servers": new TextEncoder().encode("EFATAL:  sorry, too many clients already\n\0"),
  "an ErrorResponse without end": backend.message("E", new TextEncoder().encode("SFATAL\0Mno")),
};

for (const [name, bytes] of Object.entries(BREACHES)) {
  test(`${name} is a ProtocolError`, async () => {
    const error = await fail(reply(bytes));
    assert.ok(error instanceof ProtocolError, `${error.name}: ${error.message}`);
  });
}

test("text without end is found out by its first bytes", async () => {
  const text = new TextEncoder().encode("E" + "lorem ipsum ".repeat(1000));
  const error = await fail(async (session) => {
    await session.expect("StartupMessage");
    for (let i = 0; i < 200; i++) session.send(text);
  });
  assert.ok(error instanceof ProtocolError, String(error));
});

/** What an honest server with md5 says, step by step. */
const STEPS: readonly (readonly [string, Uint8Array])[] = [
  ["nothing", new Uint8Array(0)],
  ["half a message", backend.authenticationMd5Password(new Uint8Array(4)).subarray(0, 7)],
  ["the salt", backend.authenticationMd5Password(new Uint8Array(4))],
  ["AuthenticationOk", backend.authenticationOk],
  ["a parameter", backend.concat(backend.authenticationOk, backend.parameterStatus("a", "1"))],
  ["the key", backend.concat(backend.authenticationOk, KEY)],
];

for (const [name, bytes] of STEPS) {
  for (const how of ["end", "reset"] as const) {
    test(`the connection's ${how} behind ${name} rejects the attempt`, async () => {
      const tcp = await startScriptedBackend(async (session) => {
        await session.expect("StartupMessage");
        session.send(bytes);
        session[how]();
        await session.drain();
      });
      const error = await failureOf(connect(tcp.url, { password: SECRET }));
      assert.ok(
        error instanceof ConnectionError || error instanceof ProtocolError || "code" in error,
        String(error),
      );
      assert.match(error.message, /lost|closed|reset|ECONNRESET|ended|broken/i);
      await tcp.close();
    });
  }
}

test("an error and a reset in one go: the error is told, or the reset, never nothing", async () => {
  const tcp = await startScriptedBackend(async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.errorResponse({ S: "FATAL", V: "FATAL", C: "53300", M: "too many clients" }));
    session.reset();
    await session.drain();
  });
  const error = await failureOf(connect(tcp.url));
  assert.ok(
    error instanceof PostgresError || error instanceof ConnectionError || "code" in error,
    String(error),
  );
  await tcp.close();
});

test("an error cut in two by an orderly end is told", async () => {
  const error = await fail(async (session) => {
    const bytes = backend.errorResponse({ S: "FATAL", V: "FATAL", C: "57P03", M: "starting up" });
    await session.expect("StartupMessage");
    session.send(bytes.subarray(0, 10));
    session.send(bytes.subarray(10));
    session.end();
  });
  assert.ok(error instanceof PostgresError, String(error));
  assert.equal(error.code, "57P03");
});

test("a refused connection names the host and the reason", async () => {
  const tcp = await startScriptedBackend(async () => {});
  await tcp.close();
  const error = await connect(tcp.url, { password: SECRET }).then(() => undefined, (reason) => reason);
  assert.ok(error instanceof ConnectionError, String(error));
  assert.equal(error.code, "ECONNREFUSED");
  assert.ok(error.message.includes(`127.0.0.1:${tcp.port}`), error.message);
  assert.equal(error.sent, false);
});
