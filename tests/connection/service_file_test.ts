import assert from "node:assert/strict";
import { test } from "node:test";
import { parseService, readService } from "../../src/connection/service_file.ts";
import { ConfigurationError } from "../../src/errors.ts";
import { limit } from "../_support/limit.ts";
import { fakeEnvironment, type FakeSystem } from "./fake_environment.ts";

function parse(text: string, service = "s"): Record<string, string> | undefined {
  const settings = parseService(text, service, "/f");
  return settings && Object.fromEntries([...settings].map(([keyword, { value }]) => [keyword, value]));
}

function refuses(text: string, part: RegExp): void {
  assert.throws(() => parse(text), (error) => {
    assert.ok(error instanceof ConfigurationError, String(error));
    assert.match(error.message, part);
    return true;
  });
}

test("parseService() reads the first section of that name", () => {
  const text =
    "user=outside\n# comment\n[other]\nuser=a\n\n[s]\n  host=h  \r\nport=1\n# x=y\n[s]\nuser=late\n[t]\nport=2";
  assert.deepEqual(parse(text), { host: "h", port: "1" });
  assert.deepEqual(parse(text, "other"), { user: "a" });
  assert.deepEqual(parse(text, "t"), { port: "2" });
  assert.equal(parse(text, "none"), undefined);
  assert.equal(parse("[ss]\nuser=a", "s"), undefined);
  assert.deepEqual(parse("[s]"), {});
});

test("parseService() takes values as they are, the first one of a keyword", () => {
  assert.deepEqual(parse("[s]\npassword=a=b 'c' \\d #e\nuser=x\nuser=y\ndbname="), {
    password: "a=b 'c' \\d #e",
    user: "x",
    dbname: "",
  });
});

test("parseService() does not show what may be the rest of a password", () => {
  assert.throws(() => parse("[s]\npassword=abc\nport=1\nhunter2=1"), (error) => {
    assert.match(String(error), /line 4 .*not shown/);
    assert.doesNotMatch(String(error), /hunter2/);
    return true;
  });
});

test("parseService() names the line that is wrong", () => {
  refuses("[s]\n\nuser", /line 3 of the service file "\/f": it has no "="/);
  refuses("[s]\nfoo=1", /line 2 of .*unknown keyword "foo"/);
  refuses("[s]\nuser =a", /line 2 .*keyword that libpq does not know/);
  refuses("[s]\nservice=t", /line 2 .*cannot name another service/);
  refuses("[s]\ngssencmode=require", /gssencmode in line 2 .*GSSAPI/);
  assert.deepEqual(parse("[t]\nnonsense\n[s]\nuser=a"), { user: "a" });
});

test("readService() looks where libpq looks", async () => {
  const read = async (system: FakeSystem) => {
    const settings = await limit(readService("s", fakeEnvironment(system)));
    return settings.get("host")?.value;
  };
  const home = { "/home/u/.pg_service.conf": { text: "[s]\nhost=home" } };
  const system = { "/etc/pg/pg_service.conf": { text: "[s]\nhost=system" } };
  const own = { "/own": { text: "[s]\nhost=own" } };
  const HOME = "/home/u";
  const PGSYSCONFDIR = "/etc/pg";
  assert.equal(await read({ variables: { HOME }, files: home }), "home");
  assert.equal(await read({ variables: { HOME, PGSYSCONFDIR }, files: { ...home, ...system } }), "home");
  assert.equal(await read({ variables: { HOME, PGSYSCONFDIR }, files: system }), "system");
  const elsewhere = { "/home/u/.pg_service.conf": { text: "[t]\nhost=home" }, ...system };
  assert.equal(await read({ variables: { HOME, PGSYSCONFDIR }, files: elsewhere }), "system");
  assert.equal(await read({ variables: { HOME, PGSERVICEFILE: "/own" }, files: { ...home, ...own } }), "own");
  await assert.rejects(read({ variables: { HOME } }), /Cannot find the definition of service "s"/);
  await assert.rejects(read({}), /Cannot find the definition/);
  await assert.rejects(
    read({ variables: { HOME, PGSERVICEFILE: "/gone" }, files: home }),
    /Cannot read the service file "\/gone"/,
  );
});
