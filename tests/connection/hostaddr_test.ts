import assert from "node:assert/strict";
import { test } from "node:test";
import { resolveOptions } from "../../src/connection/options.ts";
import { fakeEnvironment } from "./fake_environment.ts";

async function addressOf(hostaddr: string): Promise<string> {
  const { hosts } = await resolveOptions({ user: "u", hostaddr }, {}, fakeEnvironment({}));
  assert.equal(hosts[0]!.name, hostaddr);
  return hosts[0]!.host;
}

/** As getaddrinfo(3) reads them with AI_NUMERICHOST. */
const NUMBERS: readonly (readonly [text: string, address: string])[] = [
  ["127.1", "127.0.0.1"],
  ["0x7f.1", "127.0.0.1"],
  ["0X7F000001", "127.0.0.1"],
  ["2130706433", "127.0.0.1"],
  ["0177.0.0.01", "127.0.0.1"],
  ["1.2.3", "1.2.0.3"],
  ["1.2.65535", "1.2.255.255"],
  ["1.16777215", "1.255.255.255"],
  ["4294967295", "255.255.255.255"],
  ["0x0a.0x0b", "10.0.0.11"],
  ["0", "0.0.0.0"],
  ["000000000000001.2.3.4", "1.2.3.4"],
];

test("hostaddr takes an IPv4 address in every form that the system's library takes", async () => {
  for (const [text, address] of NUMBERS) assert.equal(await addressOf(text), address, text);
});

test("hostaddr refuses what only looks like an address", async () => {
  const wrong = "1.2.65536 256.1 1.16777216 4294967296 08.1 0x 1..2 .1 1. 1.2.3.4.5 1.2.3.256 x.1 1x 0x1g -1";
  for (const text of wrong.split(" ")) {
    await assert.rejects(addressOf(text), { name: "ConfigurationError", message: /wanted a numeric/ }, text);
  }
});
