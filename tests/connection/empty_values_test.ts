/** Values that are there and empty: where they ask for the default, and where they are refused. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConnectOptions } from "../../mod.ts";
import { type ResolvedOptions, resolveOptions } from "../../src/connection/options.ts";
import { fakeEnvironment, type FakeSystem } from "./fake_environment.ts";

function resolve(
  input: string | ConnectOptions,
  overrides: ConnectOptions = {},
  system: FakeSystem = {},
): Promise<ResolvedOptions> {
  return resolveOptions(input, overrides, fakeEnvironment({ user: "u", ...system }));
}

test("resolveOptions() refuses an empty word or number, as libpq does: it would hide what a lower source asks for", async () => {
  const system = { variables: { PGSSLMODE: "verify-full", PGCHANNELBINDING: "require" } };
  const keywords = [
    "sslmode",
    "channel_binding",
    "sslnegotiation",
    "sslcertmode",
    "target_session_attrs",
    "load_balance_hosts",
    "min_protocol_version",
    "max_protocol_version",
    "connect_timeout",
    "keepalives_idle",
    "keepalives_count",
    "tcp_user_timeout",
  ];
  for (const keyword of keywords) {
    await assert.rejects(resolve(`${keyword}=''`, {}, system), new RegExp(`Cannot use ${keyword} in`));
    await assert.rejects(
      resolve(`postgres://h/d?${keyword}=`, {}, system),
      new RegExp(`Cannot use ${keyword} in`),
    );
  }
  await assert.rejects(
    resolve({}, {}, { variables: { PGSSLMODE: "" } }),
    /Cannot use PGSSLMODE of the environment/,
  );
  // An option that is not set is often written so.
  assert.equal((await resolve({ sslmode: "" as "require" }, {}, system)).sslmode, "verify-full");
  assert.equal((await resolve("ssl_min_protocol_version='' require_auth=''")).tls.minVersion, "TLSv1.2");
});
