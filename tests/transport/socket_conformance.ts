/** What only a transport over the system's sockets can and must do, beside `conformance.ts`. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import dns from "node:dns/promises";
import net from "node:net";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ConnectionError } from "../../src/errors.ts";
import type { ConnectTarget, TransportFactory } from "../../src/transport/transport.ts";
import { conform } from "./conformance.ts";
import { listenTcp, listenUnix } from "./peers.ts";
import { record, turn, within } from "./recorder.ts";

/** Runs every case over TCP and Unix-domain sockets. */
export function conformSockets(factory: TransportFactory): void {
  conform(`${factory.name} tcp`, listenTcp(factory));
  conform(`${factory.name} unix`, listenUnix(factory), false);
  conformRefusals(factory);
  conformNames(factory);
  conformProcess(factory);
  conformExtras(factory);
}

async function unusedPort(host: string): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject);
    server.listen(0, host, resolve);
  });
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function conformRefusals(factory: TransportFactory): void {
  const refuses = (
    title: string,
    code: string,
    target: () => Promise<ConnectTarget> | ConnectTarget,
  ): void => {
    test(`${factory.name}: rejects with ${code} for ${title}`, async () => {
      const { host, port, path } = await target();
      const attempt = within(factory.connect({ host, port, path }), "connect");
      await assert.rejects(attempt, (error: ConnectionError) => {
        assert.ok(error instanceof ConnectionError);
        assert.equal(error.code, code);
        assert.ok(error.message.startsWith("Cannot connect to "), error.message);
        assert.ok(error.message.includes(path ?? host), error.message);
        if (path === undefined) assert.ok(error.message.includes(String(port)), error.message);
        assert.match(error.message, new RegExp(code), "the message must name the code");
        assert.ok(error.cause instanceof Error);
        return true;
      });
    });
  };
  refuses("a closed port", "ECONNREFUSED", async () => {
    return { host: "127.0.0.1", port: await unusedPort("127.0.0.1") };
  });
  refuses("a closed port of localhost", "ECONNREFUSED", async () => {
    return { host: "localhost", port: await unusedPort("127.0.0.1") };
  });
  refuses("an unknown name", "ENOTFOUND", () => ({ host: "no-such-name.invalid", port: 5432 }));
  refuses("a missing Unix-domain socket", "ENOENT", () => ({ host: "", port: 1, path: "/tmp/no/such.sock" }));
}

function conformNames(factory: TransportFactory): void {
  for (const address of ["127.0.0.1", "::1"]) {
    test(`${factory.name}: reaches localhost with only ${address} listening`, async (t) => {
      const known = await dns.lookup("localhost", { all: true });
      if (!known.some((entry) => entry.address === address)) {
        return t.skip?.(`localhost is not ${address} on this machine`);
      }
      const listener = await listenTcp(factory, address)(() => {});
      try {
        const target = { host: "localhost", port: listener.target.port };
        const transport = await within(factory.connect(target), "connect");
        transport.close();
      } finally {
        await listener.close();
      }
    });
  }

  test(`${factory.name}: reaches an IPv6 address`, async (t) => {
    let listener;
    try {
      listener = await listenTcp(factory, "::1")(() => {});
    } catch {
      return t.skip?.("this machine has no ::1");
    }
    try {
      const transport = await within(factory.connect(listener.target), "connect");
      transport.close();
    } finally {
      await listener.close();
    }
  });
}

function conformProcess(factory: TransportFactory): void {
  test(`${factory.name}: setKeepAlive(false) lets the process end`, async () => {
    assert.equal(await runChild(factory, "release"), "ended by itself");
  });

  test(`${factory.name}: an open transport keeps the process alive`, async () => {
    assert.equal(await runChild(factory, "keep"), "ended by the server");
  });
}

/** Starts this runtime on a script that connects and stops working; the server closes after half a second. */
async function runChild(factory: TransportFactory, mode: "keep" | "release"): Promise<string> {
  const listener = await listenTcp(factory)((peer) => {
    peer.onData = () => {
      if (mode === "keep") setTimeout(() => peer.end(), 500); // long enough for a process to end by mistake
    };
  });
  const script = fileURLToPath(new URL("../_support/keep_alive_child.ts", import.meta.url));
  const runtimeArguments = "Deno" in globalThis ? ["run", "--allow-all", "--no-check"] : [];
  const child = spawn(
    process.execPath,
    [...runtimeArguments, script, factory.name, String(listener.target.port), mode],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  try {
    let output = "";
    child.stdout!.on("data", (chunk) => output += chunk);
    const exit = new Promise<number | null>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", resolve);
    });
    assert.equal(await within(exit, "the child's end", 30_000), 0);
    assert.match(output, /connected/);
    return output.includes("ended") ? "ended by the server" : "ended by itself";
  } finally {
    child.kill("SIGKILL");
    await listener.close();
  }
}

function conformExtras(factory: TransportFactory): void {
  test(`${factory.name}: utf8Slice makes the text TextDecoder makes`, () => {
    const { utf8Slice } = factory;
    assert.ok(utf8Slice);
    const bytes = new TextEncoder().encode("..Grüße, 世界 🐘!..");
    assert.equal(utf8Slice(bytes, 2, bytes.length - 2), "Grüße, 世界 🐘!");
    assert.equal(utf8Slice(bytes, 5, 5), "");
    assert.equal(utf8Slice(Uint8Array.of(0x61, 0xff, 0x62, 0xc3), 0, 4), "a\ufffdb\ufffd");
    assert.equal(utf8Slice(bytes.subarray(2), 0, 3), "Gr\ufffd");
  });

  test(`${factory.name}: unfilled makes plain arrays with memory of their own`, () => {
    const { unfilled } = factory;
    // Deno's is no quicker than a cleared one.
    if (factory.name === "deno") return assert.equal(unfilled, undefined);
    assert.ok(unfilled);
    const [one, other] = [unfilled(200_000), unfilled(200_000)];
    for (const bytes of [one!, other!]) {
      assert.equal(Object.getPrototypeOf(bytes), Uint8Array.prototype);
      assert.deepEqual([bytes.length, bytes.buffer.byteLength], [200_000, 200_000]);
    }
    assert.notEqual(one!.buffer, other!.buffer);
  });

  test(`${factory.name}: asyncStacks says what stacks show`, async () => {
    const thenable = {
      then(resolve: (error: Error) => void): void {
        later().then(resolve);
      },
    };
    async function later(): Promise<Error> {
      await turn(1);
      return new Error("made later");
    }
    async function awaitingCaller(): Promise<Error> {
      return await thenable;
    }
    const { stack } = await awaitingCaller();
    assert.equal(stack!.includes("awaitingCaller"), factory.asyncStacks, stack);
  });

  test(`${factory.name}: many connections at once keep their bytes apart`, async () => {
    const listener = await listenTcp(factory)((peer) => {
      peer.onData = (chunk) => peer.write(new Uint8Array(chunk));
    });
    try {
      await Promise.all(Array.from({ length: 20 }, async (_, i) => {
        const transport = await within(factory.connect(listener.target), "connect");
        const recorder = record(transport);
        const wanted = `connection ${i};`.repeat(1 + i * 50);
        transport.write(new TextEncoder().encode(wanted));
        await recorder.until(() => recorder.received >= wanted.length, "the echo");
        assert.equal(recorder.text(), wanted);
        transport.close();
        await recorder.ended();
      }));
      await turn();
    } finally {
      await listener.close();
    }
  });
}

/**
 * What the peer said before it reset is read even after a write has failed. `node:net` cannot: it destroys the socket
 * with the failed write.
 */
export function conformLastWords(factory: TransportFactory): void {
  test(`${factory.name}: reads what came before a failed write`, async () => {
    let gone: () => void = () => {};
    const peerGone = new Promise<void>((resolve) => gone = resolve);
    const listener = await listenTcp(factory)((peer) => {
      peer.closed.then(gone);
      peer.onData = () => {
        peer.write(new TextEncoder().encode("FATAL"));
        setTimeout(() => peer.breakOff(), 30); // the bytes are at the client's socket by then
      };
    });
    try {
      const transport = await within(factory.connect(listener.target), "connect");
      transport.pauseReading();
      const recorder = record(transport);
      transport.write(new Uint8Array(5));
      await within(peerGone, "the peer's end");
      const waits: (Promise<void> | undefined)[] = [];
      for (let i = 0; i < 3; i++) {
        await turn(10); // each write finds out what became of the one before
        waits.push(transport.write(new Uint8Array(5)));
      }
      transport.resumeReading();
      await recorder.ended();
      // Who waits because nothing can be written goes on at the end.
      await within(Promise.all(waits), "the writers");
      assert.equal(recorder.text(), "FATAL");
      assert.ok(recorder.cause instanceof Error);
    } finally {
      await listener.close();
    }
  });
}
