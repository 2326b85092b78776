/** sslmode against servers of every kind, as libpq has it, with an eye on what goes over the wire in clear. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { connect, type ConnectOptions } from "../../mod.ts";
import { type Certificate, issueCertificate } from "../_support/certificates.ts";
import { type SslAnswer, startTlsFront, type TlsFront } from "../_support/tls_front.ts";
import { limit, TLS_ROLES, tlsFile, tlsTarget } from "../_support/tls_target.ts";

const { password } = TLS_ROLES.tls_any;

type Certified = Pick<Certificate, "certificate" | "key">;

const certificates: Map<string, Promise<Certified>> = new Map();

/** The server's own certificate, or one that nobody should trust. */
function certificate(kind: "good" | "unknown CA" | "expired" | "self-signed"): Promise<Certified> {
  const make = async (): Promise<Certified> => {
    if (kind === "good") {
      return {
        certificate: readFileSync(tlsFile("server.crt"), "utf8"),
        key: readFileSync(tlsFile("server.key"), "utf8"),
      };
    }
    const issuer = kind === "self-signed"
      ? undefined
      : await issueCertificate({ name: "unknown", authority: true });
    return await issueCertificate({
      name: "localhost",
      ...(issuer && { issuer }),
      dnsNames: ["localhost"],
      ...(kind === "expired" && { days: -1 }),
    });
  };
  if (!certificates.has(kind)) certificates.set(kind, make());
  return certificates.get(kind)!;
}

interface Case {
  readonly answer?: SslAnswer;
  readonly certificate?: "good" | "unknown CA" | "expired" | "self-signed";
  readonly host?: string;
}

const CASES = {
  "a good certificate": {},
  "a certificate for another host": { host: "db.example" },
  "a certificate of an unknown authority": { certificate: "unknown CA" },
  "an expired certificate": { certificate: "expired" },
  "a self-signed certificate": { certificate: "self-signed" },
  "no TLS": { answer: "refuse" },
  "an error": { answer: "error" },
  "a close": { answer: "close" },
  "a close in the handshake": { answer: "close-handshake" },
  "something that is no TLS": { answer: "no-tls" },
  "bytes behind the answer": { answer: "extra" },
  "bytes behind the refusal": { answer: "refuse-extra" },
  "an unknown answer": { answer: "unknown" },
} as const satisfies Readonly<Record<string, Case>>;

type CaseName = keyof typeof CASES;

/** How it ends: encrypted, in clear, or not at all. */
type Outcome = "tls" | "clear" | RegExp;

const NAMES = Object.keys(CASES) as CaseName[];
const all = (outcome: Outcome) =>
  Object.fromEntries(NAMES.map((name) => [name, outcome])) as Record<CaseName, Outcome>;

const NO_ANSWER: Partial<Record<CaseName, Outcome>> = {
  "an error": /answered SSLRequest with an error/,
  "a close": /closed|lost|ended/i,
  "bytes behind the answer": /unencrypted bytes came behind the answer/,
  "bytes behind the refusal": /unencrypted bytes came behind the answer/,
  "an unknown answer": /answered SSLRequest with byte 120/,
};
const BROKEN: Partial<Record<CaseName, Outcome>> = {
  "no TLS": /does not support TLS, but sslmode=\S+ demands it/,
  "a close in the handshake": /Cannot establish TLS/,
  "something that is no TLS": /Cannot establish TLS/,
};
const UNTRUSTED: Partial<Record<CaseName, Outcome>> = {
  "a certificate of an unknown authority": /Cannot establish TLS: .*(verify|self-signed|signed|issuer)/i,
  "an expired certificate": /Cannot establish TLS: .*(expired|verify)/i,
  "a self-signed certificate": /Cannot establish TLS: .*(verify|self-signed|self signed|signed)/i,
};
const clear = (names: object) =>
  Object.fromEntries(Object.keys(names).map((name) => [name, "clear" as const]));

/** What libpq 18 does. `roots`: whether there is a file of trusted certificates. */
const EXPECTED: readonly (readonly [ConnectOptions["sslmode"], boolean, Record<CaseName, Outcome>])[] = [
  ["disable", false, all("clear")],
  ["disable", true, all("clear")],
  ["allow", false, all("clear")],
  ["allow", true, all("clear")],
  ["prefer", false, { ...all("tls"), ...NO_ANSWER, ...clear(BROKEN) }],
  // The certificates are there, so they are heeded; and prefer goes on without TLS.
  ["prefer", true, { ...all("tls"), ...NO_ANSWER, ...clear(BROKEN), ...clear(UNTRUSTED) }],
  ["require", false, { ...all("tls"), ...NO_ANSWER, ...BROKEN }],
  ["require", true, { ...all("tls"), ...NO_ANSWER, ...BROKEN, ...UNTRUSTED }],
  ["verify-ca", true, { ...all("tls"), ...NO_ANSWER, ...BROKEN, ...UNTRUSTED }],
  ["verify-full", true, {
    ...all("tls"),
    ...NO_ANSWER,
    ...BROKEN,
    ...UNTRUSTED,
    "a certificate for another host": /certificate is for "localhost" and 2 more, not for "db\.example"/,
  }],
];

async function withFront(case_: Case, body: (front: TlsFront) => Promise<void>): Promise<void> {
  const { host, port } = tlsTarget();
  const front = await startTlsFront({
    answer: case_.answer ?? "accept",
    certificate: await certificate(case_.certificate ?? "good"),
    upstream: { host, port },
  });
  try {
    await body(front);
  } finally {
    await limit(front.close(), 10_000, "close of the front");
  }
}

function optionsFor(front: TlsFront, host: string, roots: boolean): ConnectOptions {
  return {
    host,
    hostaddr: front.host,
    port: front.port,
    user: "tls_any",
    password,
    database: "postgres",
    sslrootcert: roots ? tlsFile("ca.crt") : "/nonexistent/root.crt",
    connectTimeout: 30_000,
  };
}

for (const [sslmode, roots, outcomes] of EXPECTED) {
  for (const name of NAMES) {
    const expected = outcomes[name];
    const title = `sslmode=${sslmode} ${roots ? "with" : "without"} trusted certificates and ${name}: ${
      expected instanceof RegExp ? "refused" : expected
    }`;
    test(title, () =>
      withFront(CASES[name], async (front) => {
        const { host = "localhost" } = CASES[name] as Case;
        const attempt = connect({ ...optionsFor(front, host, roots), sslmode });
        const outcome = await limit(
          attempt.then((conn) => ({ conn }), (error: Error) => ({ error })),
          40_000,
        );
        const last = front.connections.at(-1)!;
        if ("conn" in outcome) {
          assert.equal(await limit(outcome.conn.sql<string>`select current_user`.scalar()), "tls_any");
          await limit(outcome.conn.close());
          const encrypted = last.begin === "ssl-request" && (CASES[name] as Case).answer !== "refuse";
          assert.equal(encrypted ? "tls" : "clear", expected);
        } else {
          assert.ok(expected instanceof RegExp, `wanted ${expected}, got ${outcome.error.message}`);
          assert.match(outcome.error.message, expected);
        }
        // Nothing is left open, and nothing was said in clear where it must not be.
        await limit(closed(front), 10_000, "the end of all connections");
        if (expected === "clear") assert.match(front.sniffed(), /tls_any/);
        else assert.doesNotMatch(front.sniffed(), /tls_any|postgres\0|SCRAM|secret/);
      }));
  }
}

async function closed(front: TlsFront): Promise<void> {
  while (!front.connections.every((connection) => connection.closed)) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

for (const sslmode of ["verify-ca", "verify-full"] as const) {
  test(`sslmode=${sslmode} without trusted certificates is refused before the handshake`, () =>
    withFront({}, async (front) => {
      const error = await limit(
        connect({ ...optionsFor(front, "localhost", false), sslmode }).then(
          () => assert.fail("connected"),
          (error: Error) => error,
        ),
      );
      assert.equal(error.name, "ConfigurationError");
      assert.match(error.message, /root certificate file "\/nonexistent\/root.crt" is not there/);
      assert.equal(front.connections.flatMap(({ bytes }) => [...bytes]).reduce((n, b) => n + b.length, 0), 8);
    }));
}

for (const [protocols, expected] of [[["postgresql"], "tls"], [[], /no protocol by ALPN/]] as const) {
  test(`sslnegotiation=direct with ${protocols.length} protocols for ALPN`, async () => {
    const { host, port } = tlsTarget();
    const front = await startTlsFront({
      answer: "close",
      certificate: await certificate("good"),
      protocols,
      upstream: { host, port },
    });
    try {
      const options = {
        ...optionsFor(front, "localhost", true),
        sslmode: "verify-full",
        sslnegotiation: "direct",
      } as const;
      const outcome = await limit(connect(options).then((conn) => ({ conn }), (error: Error) => ({ error })));
      if ("conn" in outcome) {
        await outcome.conn.close();
        assert.equal(expected, "tls");
      } else {
        assert.ok(expected instanceof RegExp, outcome.error.message);
        assert.match(outcome.error.message, expected);
      }
      assert.deepEqual(front.connections.map(({ begin }) => begin), ["tls"]);
      assert.doesNotMatch(front.sniffed(), /tls_any|SCRAM/);
    } finally {
      await front.close();
    }
  });
}

test("another protocol chosen by ALPN is refused", async () => {
  const { host, port } = tlsTarget();
  const front = await startTlsFront({
    answer: "accept",
    certificate: await certificate("good"),
    protocols: ["http/1.1"],
    upstream: { host, port },
  });
  try {
    const error = await limit(
      connect({ ...optionsFor(front, "localhost", true), sslmode: "require" }).then(
        () => assert.fail("connected"),
        (error: Error) => error,
      ),
    );
    assert.match(error.message, /Cannot establish TLS/);
  } finally {
    await front.close();
  }
});

for (const answer of ["stall", "stall-handshake"] as const) {
  for (const sslmode of ["prefer", "require"] as const) {
    test(`connectTimeout and signal end an attempt with sslmode=${sslmode} at ${answer}`, () =>
      withFront({ answer }, async (front) => {
        const options = { ...optionsFor(front, "localhost", false), sslmode };
        const late = await limit(
          connect({ ...options, connectTimeout: 400 }).then(
            () => assert.fail("connected"),
            (error: Error) => error,
          ),
        );
        assert.equal(late.name, "TimeoutError", String(late));
        const controller = new AbortController();
        const attempt = connect(options, { signal: controller.signal }).then(
          () => assert.fail("connected"),
          (error: Error) => error,
        );
        while (front.connections.length < 2 || front.connections[1]!.begin === "nothing") {
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        const reason = new Error("enough");
        controller.abort(reason);
        assert.equal(await limit(attempt), reason);
        await limit(closed(front), 10_000, "the end of all connections");
      }));
  }
}
