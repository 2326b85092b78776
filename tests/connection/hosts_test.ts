/** Hosts and their addresses: order, limits, what ends the search, and which servers are taken. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { type AddressInfo, createServer } from "node:net";
import process from "node:process";
import { connect, ConnectionError, type ConnectOptions, PostgresError, TimeoutError } from "../../mod.ts";
import type { ConnectTarget, TransportFactory } from "../../src/transport/transport.ts";
import * as backend from "../_support/backend_writer.ts";
import { limit } from "../_support/limit.ts";
import { createMemoryBackend, type Script, startScriptedBackend } from "../_support/scripted_backend.ts";

/** What is at an address: a server that follows a script, or none, in one way or another. */
type Place = Script | "refused" | "silent";

/** A network of names and addresses. */
interface Network {
  readonly factory: TransportFactory;
  /** Addresses in the order they were tried. */
  readonly tried: string[];
  /** Names in the order they were looked up. */
  readonly looked: string[];
  close(): Promise<void>;
}

function network(places: Record<string, Place>, names: Record<string, string[] | "silent"> = {}): Network {
  const tried: string[] = [];
  const looked: string[] = [];
  const scripts: Script[] = [];
  const memory = createMemoryBackend((session, index) => scripts[index]!(session, index));
  return {
    tried,
    looked,
    factory: {
      ...memory.factory,
      lookup(host) {
        looked.push(host);
        const found = names[host] ?? (host in places ? [host] : undefined);
        if (found === "silent") return new Promise(() => {});
        if (found !== undefined) return Promise.resolve(found);
        return Promise.reject(new ConnectionError(`Cannot find "${host}"`, { code: "ENOTFOUND" }));
      },
      connect(target: ConnectTarget) {
        tried.push(target.host);
        const place = places[target.host]!;
        if (place === "refused") {
          return Promise.reject(new ConnectionError(`Refused at ${target.host}`, { code: "ECONNREFUSED" }));
        }
        if (place === "silent") {
          return new Promise((_, reject) =>
            target.signal!.addEventListener("abort", () => reject(target.signal!.reason), { once: true })
          );
        }
        scripts.push(place);
        return memory.factory.connect(target);
      },
    },
    close: () => memory.close(),
  };
}

/** A server of a kind, which tells so as those from 14 on do. */
function server(kind: "primary" | "read-only primary" | "standby"): Script {
  return async (session) => {
    await session.establish({
      parameters: {
        in_hot_standby: kind === "standby" ? "on" : "off",
        default_transaction_read_only: kind === "read-only primary" ? "on" : "off",
      },
    });
    await session.expectEnd();
  };
}

const refuses = (code: string): Script => async (session) => {
  await session.expect("StartupMessage");
  session.send(backend.errorResponse({ S: "FATAL", V: "FATAL", C: code, M: `refused ${code}` }));
  session.end();
  await session.drain();
};

function attempt(
  net: Network,
  host: string | string[],
  options: ConnectOptions & { signal?: AbortSignal } = {},
) {
  const { signal, ...rest } = options;
  return limit(
    connect(
      { host, user: "u", sslmode: "disable", transport: net.factory, connectTimeout: 20_000, ...rest },
      {
        ...(signal && { signal }),
      },
    ).then(async (conn) => {
      await conn.close();
      return undefined;
    }, (error) => error as Error & { code?: string }),
    30_000,
  );
}

test("all addresses of a name are tried in order, then the next host", async () => {
  const net = network(
    { a1: "refused", a2: "refused", b1: "refused", b2: server("primary"), c: server("primary") },
    { a: ["a1", "a2"], b: ["b1", "b2"] },
  );
  assert.equal(await attempt(net, ["a", "b", "c"]), undefined);
  assert.deepEqual(net.tried, ["a1", "a2", "b1", "b2"]);
  assert.deepEqual(net.looked, ["a", "b"]);
  await net.close();
});

test("every failure is in the error, with names and addresses", async () => {
  const net = network({ a1: "refused", a2: "refused", b: "refused" }, { a: ["a1", "a2"] });
  const error = await attempt(net, ["a", "nowhere", "b"], { port: [1, 2, 3] });
  assert.ok(error instanceof ConnectionError);
  for (
    const part of [
      "a:1 (a1): Refused",
      "a:1 (a2): Refused",
      'nowhere:2: Cannot find "nowhere"',
      "b:3: Refused",
    ]
  ) {
    assert.ok(error.message.includes(part), error.message);
  }
  assert.equal((error.cause as AggregateError).errors.length, 4);
});

test("connectTimeout holds for each address, looking up the name included", async () => {
  const net = network({ a1: "silent", a2: server("primary") }, { a: ["a1", "a2"], lost: "silent" });
  const began = performance.now();
  assert.equal(await attempt(net, ["lost", "a"], { connectTimeout: 200 }), undefined);
  assert.ok(performance.now() - began >= 380);
  assert.deepEqual(net.tried, ["a1", "a2"]);
  const error = await attempt(network({ a1: "silent" }), ["a1", "a1"], { connectTimeout: 100 });
  assert.match(error!.message, /within 100 ms.*within 100 ms/);
  const alone = await attempt(network({}, { lost: "silent" }), "lost", { connectTimeout: 100 });
  assert.ok(alone instanceof TimeoutError);
  await net.close();
});

test("a signal ends looking up a name, and the whole search", async () => {
  const net = network({ a1: "silent" }, { lost: "silent" });
  for (const host of [["lost", "a1"], ["a1", "lost"]]) {
    const controller = new AbortController();
    const waiting = attempt(net, host, { signal: controller.signal });
    await new Promise((resolve) => setTimeout(resolve, 20));
    controller.abort(new Error("enough"));
    assert.equal((await waiting)!.message, "enough");
  }
});

test("a server that refuses ends the search, one that is not ready or full does not", async () => {
  for (const code of ["57P03", "57P01", "53300"]) {
    const net = network({ a1: refuses(code), a2: server("primary"), b: server("primary") }, {
      a: ["a1", "a2"],
    });
    assert.equal(await attempt(net, ["a", "b"]), undefined);
    // It has answered: its other addresses are the same server.
    assert.deepEqual(net.tried, ["a1", "b"]);
    await net.close();
  }
  for (const code of ["28P01", "3D000", "28000"]) {
    const net = network({ a: refuses(code), b: server("primary") });
    const error = await attempt(net, ["a", "b"]);
    assert.ok(error instanceof PostgresError);
    assert.equal(error.code, code);
    assert.deepEqual(net.tried, ["a"]);
    await net.close();
  }
});

test("load_balance_hosts=random tries hosts and addresses in every order", async () => {
  const orders = new Set<string>();
  for (let i = 0; i < 300 && orders.size < 8; i++) {
    const net = network({ a1: "refused", a2: "refused", b1: "refused", b2: "refused" }, {
      a: ["a1", "a2"],
      b: ["b1", "b2"],
    });
    await attempt(net, ["a", "b"], { loadBalanceHosts: "random" });
    orders.add(net.tried.join(" "));
  }
  assert.deepEqual([...orders].sort(), [
    "a1 a2 b1 b2",
    "a1 a2 b2 b1",
    "a2 a1 b1 b2",
    "a2 a1 b2 b1",
    "b1 b2 a1 a2",
    "b1 b2 a2 a1",
    "b2 b1 a1 a2",
    "b2 b1 a2 a1",
  ]);
});

const KINDS = ["primary", "read-only primary", "standby"] as const;
const TAKES: Readonly<
  Record<NonNullable<ConnectOptions["targetSessionAttrs"]>, readonly (typeof KINDS)[number][]>
> = {
  any: ["primary", "read-only primary", "standby"],
  "read-write": ["primary"],
  "read-only": ["read-only primary", "standby"],
  primary: ["primary", "read-only primary"],
  standby: ["standby"],
  "prefer-standby": ["standby"],
};

for (const [attributes, taken] of Object.entries(TAKES) as [keyof typeof TAKES, readonly string[]][]) {
  for (const kind of KINDS) {
    test(`target_session_attrs=${attributes} ${taken.includes(kind) ? "takes" : "passes by"} a ${kind}`, async () => {
      const net = network({ a1: server(kind), a2: "refused", down: "refused" }, { a: ["a1", "a2"] });
      const error = await attempt(net, ["a", "down"], { targetSessionAttrs: attributes });
      if (taken.includes(kind)) {
        assert.equal(error, undefined);
        assert.deepEqual(net.tried, ["a1"]);
      } else if (attributes === "prefer-standby") {
        // The second time around any server will do.
        assert.equal(error, undefined);
        assert.deepEqual(net.tried, ["a1", "down", "a1"]);
      } else {
        assert.match(
          error!.message,
          new RegExp(`a:5432 \\(a1\\): .*target_session_attrs=${attributes}; down:5432`),
        );
        assert.deepEqual(net.tried, ["a1", "down"]);
      }
      await net.close();
    });
  }
}

test("servers that do not tell are asked", async () => {
  const asked: string[] = [];
  const old = (answer: string): Script => async (session) => {
    await session.establish();
    const { text } = await session.expect("Query");
    asked.push(text);
    session.send(
      backend.rowDescription([{ name: "x" }]),
      backend.dataRow([answer]),
      backend.commandComplete("SELECT 1"),
      backend.readyForQuery(),
    );
    await session.expectEnd();
  };
  const cases = [["read-write", "off"], ["read-only", "on"], ["primary", "f"], ["standby", "t"]] as const;
  for (const [targetSessionAttrs, right] of cases) {
    const wrong = { on: "off", off: "on", t: "f", f: "t" }[right];
    const net = network({ a: old(wrong), b: old(right) });
    assert.equal(await attempt(net, ["a", "b"], { targetSessionAttrs }), undefined);
    assert.deepEqual(net.tried, ["a", "b"]);
    await net.close();
  }
  assert.deepEqual(
    new Set(asked),
    new Set(["show transaction_read_only", "select pg_catalog.pg_is_in_recovery()"]),
  );
});

test("a cancel goes to the address that the session is at", async () => {
  const places: string[] = [];
  const net = network({
    a1: "refused",
    a2: async (session) => {
      await session.establish();
      await session.expect("Parse");
      await session.drain();
    },
  }, { a: ["a1", "a2"] });
  const factory: TransportFactory = {
    ...net.factory,
    connect(target) {
      places.push(target.host);
      if (places.length < 3) return net.factory.connect(target);
      throw new ConnectionError("seen enough", { code: "ECONNREFUSED" });
    },
  };
  const conn = await limit(connect({ host: "a", user: "u", sslmode: "disable", transport: factory }));
  const query = conn.sql`select 1`.with({ timeout: 50 }).then(() => {}, (error) => error);
  assert.ok(await limit(query) instanceof TimeoutError);
  while (places.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(places, ["a1", "a2", "a2"]);
  await limit(conn.close({ timeout: 0 }));
  await net.close();
});

test("localhost is found wherever it listens", async () => {
  const tcp = await startScriptedBackend(async (session) => {
    await session.establish();
    await session.expectEnd();
  });
  const conn = await limit(connect({ host: "localhost", port: tcp.port, user: "u", sslmode: "disable" }));
  await limit(conn.close());
  await tcp.close();
});

test("an IPv6 address with a zone, in brackets or not", async (t) => {
  const probe = createServer();
  const port = await new Promise<number>((resolve) => {
    probe.on("error", () => resolve(0));
    probe.listen(0, "::1", () => resolve((probe.address() as AddressInfo).port));
  });
  if (port === 0) return t.skip("no IPv6 here");
  let count = 0;
  probe.on("connection", (socket) => {
    count++;
    socket.on("error", () => {}).resume();
    socket.end();
  });
  const zone = process.platform === "linux" ? "%lo" : "";
  for (
    const target of [
      `postgres://u@[::1]:${port}/`,
      `postgres://u@[::1${zone && "%25lo"}]:${port}/`,
      `host=::1${zone} port=${port}`,
    ]
  ) {
    const error = await limit(
      connect(target, { user: "u", sslmode: "disable" }).then(() => {}, (error) => error),
    );
    assert.match(String(error), /closed|lost|reset/i);
    assert.ok(String(error).includes("[::1"), String(error));
  }
  assert.equal(count, 3);
  await new Promise<void>((resolve) => probe.close(() => resolve()));
});

test("a name that does not exist is an error with a code, and soon", async () => {
  const error = await limit(
    connect({ host: "no-such-host.invalid", user: "u", sslmode: "disable" }).then(() => {}, (error) => error),
  );
  assert.ok(error instanceof ConnectionError);
  assert.match(error.code, /^(ENOTFOUND|EAI_AGAIN)$/);
  assert.match(error.message, /no-such-host\.invalid/);
});
