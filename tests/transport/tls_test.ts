/** What every transport must do, inside TLS; and a handler that follows another. */

import assert from "node:assert/strict";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import tls from "node:tls";
import { createMemoryPair } from "../../src/transport/memory.ts";
import { createNodeTransport } from "../../src/transport/node.ts";
import { selectTransport } from "../../src/transport/select.ts";
import { startTls } from "../../src/transport/tls.ts";
import type { TlsCredentials, TransportFactory } from "../../src/transport/transport.ts";
import { type Certificate, issueCertificate } from "../_support/certificates.ts";
import { conform, pattern } from "./conformance.ts";
import { type Listen, netPeer } from "./peers.ts";
import { record, turn, within } from "./recorder.ts";

let issued: Promise<Certificate> | undefined;

async function credentials(): Promise<TlsCredentials> {
  const { certificate } = await (issued ??= issueCertificate({ name: "localhost", dnsNames: ["localhost"] }));
  return {
    trust: { roots: certificate, revocationList: undefined },
    certificate: undefined,
    key: undefined,
    passphrase: undefined,
    minVersion: "TLSv1.2",
    maxVersion: undefined,
  };
}

/**
 * A server with TLS, and a factory that starts TLS on what `factory` opens. The server's TLS is behind a socket of its
 * own, which can stop to read and break off: not every runtime's TLS can.
 */
function listenTls(factory: TransportFactory): Listen {
  return async (onPeer) => {
    const ours = await credentials();
    const { certificate, key } = await issued!;
    const sockets = new Set<Socket>();
    const fronts = new Map<number, Socket>();
    const keep = (socket: Socket) => {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => sockets.delete(socket));
      return socket;
    };
    const inside = tls.createServer({ cert: certificate, key, ALPNProtocols: ["test"] }, (socket) => {
      const front = fronts.get(socket.remotePort!)!;
      const peer = netPeer(keep(socket));
      onPeer(Object.assign(peer, {
        pause: () => void front.pause(),
        resume: () => void front.resume(),
        breakOff: () => void front.resetAndDestroy(),
      }));
    });
    inside.on("tlsClientError", () => {});
    const outside = createServer((front) => {
      const onward = keep(connect({ host: "127.0.0.1", port: (inside.address() as AddressInfo).port }));
      onward.once("connect", () => fronts.set(onward.localPort!, front));
      for (const [from, to] of [[keep(front), onward], [onward, front]] as const) {
        from.on("data", (chunk: Uint8Array) => {
          if (!to.destroyed) to.write(chunk);
        });
        from.on("end", () => void to.end());
        from.on("close", () => void to.destroySoon());
      }
    });
    for (const server of [inside, outside]) {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    }
    return {
      factory: {
        ...factory,
        name: `${factory.name} tls`,
        async connect(target) {
          const transport = await factory.connect(target);
          const options = { serverName: "localhost", alpnProtocol: "test", credentials: ours };
          const secured = await startTls(transport, options, target.signal);
          assert.equal(secured.alpnProtocol, "test");
          assert.equal(secured.peerCertificate?.length, (await issued!).der.length);
          return secured;
        },
      },
      target: { host: "127.0.0.1", port: (outside.address() as AddressInfo).port },
      open: () => sockets.size,
      async close() {
        for (const socket of sockets) socket.destroy();
        for (const server of [inside, outside]) {
          await new Promise<void>((resolve) => server.close(() => resolve()));
        }
      },
    };
  };
}

// Under Node.js both are the same: a file has the same tests everywhere.
conform("native tls", listenTls(await selectTransport()), false);
conform("node tls", listenTls(createNodeTransport()), false);

test("detach() keeps bytes and the end for the next handler", async () => {
  const [client, server] = createMemoryPair();
  const first = record(client);
  first.onChunk = () => client.detach();
  server.write(pattern(3));
  await first.until(() => first.received === 3, "the first bytes");
  server.write(pattern(4, 3));
  server.close();
  await turn(20);
  assert.equal(first.received, 3);
  assert.equal(first.ends, 0);
  const second = record(client);
  await second.ended();
  assert.deepEqual(second.bytes(), pattern(4, 3));
  assert.equal(first.ends, 0);
});

test("detach() after the end lets the next handler hear of it, too", async () => {
  const [client, server] = createMemoryPair();
  const first = record(client);
  server.close();
  await first.ended();
  client.detach();
  const second = record(client);
  await second.ended();
});

test("a handshake that is given up closes the transport, and rejects with the signal's reason", async () => {
  const [client, server] = createMemoryPair();
  const peer = record(server);
  const controller = new AbortController();
  const options = { serverName: "localhost", alpnProtocol: "test", credentials: await credentials() };
  const attempt = startTls(client, options, controller.signal).then(
    () => assert.fail("done"),
    (error) => error,
  );
  await peer.until(() => peer.received > 100, "the ClientHello");
  const reason = new Error("enough");
  controller.abort(reason);
  assert.equal(await within(attempt, "the attempt"), reason);
  await peer.ended();
});

test("a peer that ends in the handshake is told of", async () => {
  const [client, server] = createMemoryPair();
  const peer = record(server);
  const options = { serverName: undefined, alpnProtocol: "test", credentials: await credentials() };
  const attempt = startTls(client, options).then(() => assert.fail("done"), (error) => error);
  await peer.until(() => peer.received > 100, "the ClientHello");
  server.close();
  const error = await within(attempt, "the attempt");
  assert.match(String(error.message), /^Cannot establish TLS: /);
});
