/** connectTimeout and signal: at each step of establishing, with nothing left open. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { connect, TimeoutError } from "../../mod.ts";
import * as backend from "../_support/backend_writer.ts";
import { limit, until } from "../_support/limit.ts";
import { type Script, startScriptedBackend } from "../_support/scripted_backend.ts";
import { failureOf, SECRET } from "./attempts.ts";

const scram = backend.authenticationSasl("SCRAM-SHA-256");

/** Where a server stops talking; each script ends when the client leaves. */
const SILENCES: Readonly<Record<string, Script>> = {
  "before any answer": async (session) => {
    await session.expect("StartupMessage");
  },
  "inside a message": async (session) => {
    await session.expect("StartupMessage");
    session.send(scram.subarray(0, 8));
  },
  "behind the client's first SASL message": async (session) => {
    await session.expect("StartupMessage");
    session.send(scram);
    await session.expect("Password");
  },
  "behind AuthenticationOk": async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.authenticationOk);
  },
  "before ReadyForQuery": async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.authenticationOk, backend.backendKeyData(1, new Uint8Array(4)));
  },
};

for (const [name, script] of Object.entries(SILENCES)) {
  const silent: Script = async (session, index) => {
    await script(session, index);
    await session.drain();
  };

  test(`connectTimeout ends an attempt with a server that is silent ${name}`, async () => {
    const tcp = await startScriptedBackend(silent);
    const began = performance.now();
    const error = await failureOf(connect(tcp.url, { password: SECRET, connectTimeout: 150 }));
    const spent = performance.now() - began;
    assert.ok(error instanceof TimeoutError, String(error));
    assert.match(
      error.message,
      new RegExp(`127\\.0\\.0\\.1:${tcp.port} within 150 ms \\(connectTimeout\\)$`),
    );
    assert.ok(spent > 100 && spent < 3_000, `${spent} ms`);
    // The script ends with the connection: nothing is left open.
    await tcp.close();
  });

  test(`a signal ends an attempt with a server that is silent ${name}, with its reason`, async () => {
    for (const reason of [new Error("enough"), "enough", undefined]) {
      const controller = new AbortController();
      let silence = () => {};
      const reached = new Promise<void>((resolve) => silence = resolve);
      const tcp = await startScriptedBackend(async (session, index) => {
        await script(session, index);
        silence();
        await session.drain();
      });
      const attempt = connect(tcp.url, { password: SECRET, signal: controller.signal })
        .then(() => assert.fail("connected"), (error) => error);
      await limit(reached, 5_000, "the silence");
      controller.abort(reason);
      assert.equal(await limit(attempt, 2_000, "the attempt"), controller.signal.reason);
      await tcp.close();
    }
  });
}

test("a signal that is aborted already opens nothing", async () => {
  const tcp = await startScriptedBackend((session) => session.drain());
  const reason = new Error("before");
  const error = await limit(
    connect(tcp.url, { signal: AbortSignal.abort(reason) }).then(() => undefined, (error) => error),
  );
  assert.equal(error, reason);
  assert.equal(tcp.connections(), 0);
  await tcp.close();
});

test("connectTimeout and signal end the wait for a password function, too", async () => {
  const script: Script = async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.authenticationCleartextPassword);
    await session.drain();
  };
  const password = () => new Promise<string>(() => {});
  const tcp = await startScriptedBackend(script);
  const error = await failureOf(connect(tcp.url, { password, connectTimeout: 100 }));
  assert.ok(error instanceof TimeoutError, String(error));
  const controller = new AbortController();
  const attempt = connect(tcp.url, { password, signal: controller.signal }).then(
    () => undefined,
    (error) => error,
  );
  await until(() => tcp.connections() === 2, 5_000, "the second connection");
  controller.abort("enough");
  assert.equal(await limit(attempt, 2_000, "the attempt"), "enough");
  await tcp.close();
});

test("a signal aborted after connecting does nothing", async () => {
  const controller = new AbortController();
  const tcp = await startScriptedBackend(async (session) => {
    await session.establish();
    await session.expectEnd();
  });
  const connection = await limit(connect(tcp.url, { signal: controller.signal }));
  controller.abort(new Error("late"));
  assert.equal(connection.closed, false);
  await limit(connection.close());
  await tcp.close();
});

test("connectTimeout 0 sets no limit, and an attempt in time is not ended later", async () => {
  const tcp = await startScriptedBackend(async (session) => {
    await session.establish();
    await session.expect("Query");
    session.send(backend.commandComplete("OK"), backend.readyForQuery());
    await session.expectEnd();
  });
  for (const connectTimeout of [0, 200]) {
    const connection = await limit(connect(tcp.url, { connectTimeout }));
    // Longer than the limit.
    await new Promise((resolve) => setTimeout(resolve, connectTimeout + 50));
    assert.equal((await limit(connection.exec("select")))[0]?.command, "OK");
    await limit(connection.close());
  }
  await tcp.close();
});
