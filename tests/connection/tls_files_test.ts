/** Which files TLS takes, and which it does not. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { resolveOptions } from "../../src/connection/options.ts";
import { ConfigurationError, type ConnectOptions } from "../../mod.ts";
import { fakeEnvironment, type FakeSystem } from "./fake_environment.ts";

const PEM = "-----BEGIN CERTIFICATE-----\n";
const HOME = { variables: { HOME: "/home/u" }, user: "u" };

async function load(options: ConnectOptions, system: FakeSystem) {
  return (await resolveOptions(options, undefined, fakeEnvironment(system))).tlsCredentials();
}

const root = (path: string, name: string = path) => ({ [path]: { text: `${PEM}${name}`, mode: 0o644 } });

test("root.crt of the home directory is taken when it is there, in every mode", async () => {
  const system = { ...HOME, files: { ...root("/home/u/.postgresql/root.crt"), ...root("/other.crt") } };
  for (const sslmode of ["allow", "prefer", "require", "verify-ca", "verify-full"] as const) {
    assert.deepEqual((await load({ sslmode }, system)).trust, {
      roots: `${PEM}/home/u/.postgresql/root.crt`,
      revocationList: undefined,
    });
    assert.match(String((await load({ sslmode, sslrootcert: "/other.crt" }, system)).trust!.roots), /other/);
    assert.equal(
      (await load({ sslmode: "verify-full", sslrootcert: "system" }, system)).trust!.roots,
      "system",
    );
  }
});

test("without trusted certificates nothing is verified, or verifying is refused", async () => {
  for (const system of [HOME, { user: "u" }]) {
    for (const sslmode of ["allow", "prefer", "require"] as const) {
      assert.equal((await load({ sslmode }, system)).trust, undefined);
      assert.equal((await load({ sslmode, sslrootcert: "/none" }, system)).trust, undefined);
    }
    for (const sslmode of ["verify-ca", "verify-full"] as const) {
      await assert.rejects(load({ sslmode }, system), ConfigurationError);
      await assert.rejects(load({ sslmode, sslrootcert: "/none" }, system), /"\/none" is not there/);
    }
  }
  await assert.rejects(load({ sslmode: "verify-ca" }, { user: "u" }), /there is no home directory/);
  const empty = { ...HOME, files: { "/empty": { text: "\n" } } };
  await assert.rejects(load({ sslmode: "require", sslrootcert: "/empty" }, empty), /holds no certificate/);
});

test("a file that is named, is there and cannot be read is an error, not an absent one", async () => {
  const system = { ...HOME, files: root("/ca"), unreadable: ["/x", "/home/u/.postgresql/root.crt"] };
  for (const sslmode of ["prefer", "require", "verify-full"] as const) {
    await assert.rejects(load({ sslmode, sslrootcert: "/x" }, system), /sslrootcert: "\/x" cannot be read/);
  }
  await assert.rejects(load({ sslrootcert: "/ca", sslcrl: "/x" }, system), /sslcrl: "\/x" cannot be read/);
  await assert.rejects(load({ sslcert: "/x" }, system), /sslcert: "\/x" cannot be read/);
  // Nobody has asked for the file of the home directory.
  assert.equal((await load({ sslmode: "require" }, system)).trust, undefined);
});

test("a list of revoked certificates goes with the trusted ones", async () => {
  const files = {
    ...root("/home/u/.postgresql/root.crt"),
    "/home/u/.postgresql/root.crl": { text: "crl" },
    "/x": { text: "x" },
  };
  assert.equal((await load({}, { ...HOME, files })).trust!.revocationList, "crl");
  assert.equal((await load({ sslcrl: "/x" }, { ...HOME, files })).trust!.revocationList, "x");
  assert.equal((await load({ sslcrl: "/none" }, { ...HOME, files })).trust!.revocationList, undefined);
});

test("the client's certificate is sent when it is there, and must then have its key", async () => {
  const crt = root("/home/u/.postgresql/postgresql.crt", "crt");
  const key = { "/home/u/.postgresql/postgresql.key": { text: "key" } };
  const none = await load({}, HOME);
  assert.equal(none.certificate, undefined);
  assert.equal(none.key, undefined);
  const both = await load({ sslpassword: "p" }, { ...HOME, files: { ...crt, ...key } });
  assert.deepEqual([both.certificate, both.key, both.passphrase], [`${PEM}crt`, "key", "p"]);
  const disabled = await load({ sslcertmode: "disable" }, { ...HOME, files: { ...crt, ...key } });
  assert.equal(disabled.certificate, undefined);
  await assert.rejects(load({}, { ...HOME, files: crt }), /postgresql\.key" is not there/);
  await assert.rejects(load({ sslkey: "/k" }, { ...HOME, files: { ...crt, ...key } }), /"\/k" is not there/);
  // Without a certificate nobody asks for a key.
  assert.equal((await load({ sslkey: "/k" }, HOME)).key, undefined);
});

test("a key that others can read is refused, but for the group of one that belongs to root", async () => {
  const crt = root("/c", "crt");
  const attempt = (mode: number, owner?: number) =>
    load({ sslcert: "/c", sslkey: "/k" }, {
      ...HOME,
      files: { ...crt, "/k": { text: "key", mode, ...(owner !== undefined && { owner }) } },
    });
  for (
    const [mode, owner] of [[0o600, 7], [0o400, 7], [0o600, 0], [0o640, 0], [0o440, 0], [0o700, 7]] as const
  ) {
    assert.equal((await attempt(mode, owner)).key, "key", mode.toString(8));
  }
  for (
    const [mode, owner] of [[0o640, 7], [0o604, 7], [0o644, 0], [0o660, 0], [0o650, 0], [
      0o610,
      undefined,
    ]] as const
  ) {
    await assert.rejects(attempt(mode, owner), /group or world access/, mode.toString(8));
  }
});

test("on Windows files are in %APPDATA% and have no modes", async () => {
  const system = {
    windows: true,
    user: "u",
    variables: { APPDATA: "C:\\A" },
    files: {
      ...root("C:\\A\\postgresql\\root.crt"),
      ...root("C:\\A\\postgresql\\postgresql.crt"),
      "D:\\k": { text: "k" },
    },
  };
  const found = await load({ sslkey: "D:\\k" }, system);
  assert.deepEqual([found.trust?.roots, found.key], [`${PEM}C:\\A\\postgresql\\root.crt`, "k"]);
});

test("credentials are the same object until a file changes", async () => {
  const files: Record<string, { text: string }> = root("/home/u/.postgresql/root.crt");
  const options = await resolveOptions({}, undefined, fakeEnvironment({ ...HOME, files }));
  const first = await options.tlsCredentials();
  assert.equal(await options.tlsCredentials(), first);
  files["/home/u/.postgresql/root.crt"] = { text: `${PEM}new` };
  assert.equal((await options.tlsCredentials()).trust?.roots, `${PEM}new`);
});
