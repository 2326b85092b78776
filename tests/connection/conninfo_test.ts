import assert from "node:assert/strict";
import { test } from "node:test";
import { parseConninfo } from "../../src/connection/conninfo.ts";
import { ConfigurationError } from "../../src/errors.ts";

/** Keyword and value as one text: `user=u host=h`; or what the message of the refusal says. */
type Case = readonly [conninfo: string, expected: Readonly<Record<string, string>> | RegExp];

/** What PQconninfoParse of libpq 18 makes of the same strings, except where a comment says otherwise. */
const URIS: readonly Case[] = [
  ["postgres://", {}],
  ["postgresql://", {}],
  ["postgres:///", {}],
  ["postgres://h", { host: "h" }],
  ["postgres://h/", { host: "h" }],
  ["postgres://h/db", { host: "h", dbname: "db" }],
  ["postgresql://u:p@h:1234/db", { user: "u", password: "p", host: "h", port: "1234", dbname: "db" }],
  ["postgres://u@h", { user: "u", host: "h" }],
  ["postgres://u:@h", { user: "u", host: "h" }],
  ["postgres://:p@h", { password: "p", host: "h" }],
  ["postgres://@h", { host: "h" }],
  ["postgres://:@h", { host: "h" }],
  ["postgres://u@", { user: "u" }],
  ["postgres://u:a:b@h", { user: "u", password: "a:b", host: "h" }],
  ["postgres://u:p?s@h/db", { user: "u", password: "p?s", host: "h", dbname: "db" }],
  ["postgres://u:p#s@h/db", { user: "u", password: "p#s", host: "h", dbname: "db" }],
  ["postgres://u:p@ss@h/db", { user: "u", password: "p", host: "ss@h", dbname: "db" }],
  ["postgres://u:p/s@h/db", { host: "u", port: "p", dbname: "s@h/db" }],
  ["postgres://u%40x:p%3A%2f%25@h", { user: "u@x", password: "p:/%", host: "h" }],
  ["postgres://%C3%A9:%E2%82%AC@h", { user: "é", password: "€", host: "h" }],
  ["postgres://é:€@h/ü", { user: "é", password: "€", host: "h", dbname: "ü" }],
  ["postgres://h/a+b?application_name=x+y", { host: "h", dbname: "a+b", application_name: "x+y" }],
  ["postgres://h/a%2Fb", { host: "h", dbname: "a/b" }],
  ["postgres://h/a/b", { host: "h", dbname: "a/b" }],
  ["postgres://h//a", { host: "h", dbname: "/a" }],
  ["postgres://h/db#f", { host: "h", dbname: "db#f" }],
  ["postgres://h/a=b", { host: "h", dbname: "a=b" }],
  ["postgres://h:/db", { host: "h", dbname: "db" }],
  ["postgres://:5433/db", { port: "5433", dbname: "db" }],
  ["postgres://h:x/db", { host: "h", port: "x", dbname: "db" }],
  ["postgres://h:%35/db", { host: "h", port: "5", dbname: "db" }],
  ["postgres://h1,h2/db", { host: "h1,h2", port: ",", dbname: "db" }],
  ["postgres://h1:1,h2:2,h3/db", { host: "h1,h2,h3", port: "1,2,", dbname: "db" }],
  ["postgres://,h2/db", { host: ",h2", port: ",", dbname: "db" }],
  ["postgres://h1%2Ch2/db", { host: "h1,h2", dbname: "db" }],
  ["postgres://u:p@h1,u@h2/db", { user: "u", password: "p", host: "h1,u@h2", port: ",", dbname: "db" }],
  ["postgres://[::1]", { host: "::1" }],
  ["postgres://[::1]:5/db", { host: "::1", port: "5", dbname: "db" }],
  ["postgres://[::1]?user=x", { host: "::1", user: "x" }],
  ["postgres://u:p@[::1],[::2]:7/db", {
    user: "u",
    password: "p",
    host: "::1,::2",
    port: ",7",
    dbname: "db",
  }],
  ["postgres://[fe80::1%25lo]/db", { host: "fe80::1%lo", dbname: "db" }],
  ["postgres://[fe80::1%lo]/db", /host holds a "%"/],
  ["postgres://fe80::1/db", { host: "fe80", port: ":1", dbname: "db" }],
  ["postgres://[::1", /has no "\]"/],
  ["postgres://[", /has no "\]"/],
  ["postgres://[]/x", /is empty/],
  ["postgres://[::1]x", /followed by something else/],
  ["postgres://h1,[::1]5/db", /followed by something else/],
  ["postgres://%2Ftmp:55/db", { host: "/tmp", port: "55", dbname: "db" }],
  ["postgres://u@%2Frun%2Fpg/db", { user: "u", host: "/run/pg", dbname: "db" }],
  ["postgres:///db?host=/run/pg&port=1", { dbname: "db", host: "/run/pg", port: "1" }],
  ["postgres:///?host=h", { host: "h" }],
  ["postgres://?host=h", { host: "h" }],
  ["postgres://h?dbname=x", { host: "h", dbname: "x" }],
  ["postgres://h/y?dbname=x", { host: "h", dbname: "x" }],
  ["postgres://h/y?host=g", { host: "g", dbname: "y" }],
  ["postgres://h/db?", { host: "h", dbname: "db" }],
  ["postgres://h/db?user=x&", { host: "h", dbname: "db", user: "x" }],
  ["postgres://h/db?user=", { host: "h", dbname: "db", user: "" }],
  ["postgres://h/db?user=x&user=y", { host: "h", dbname: "db", user: "y" }],
  ["postgres://h/db?user=a%26b%3Dc", { host: "h", dbname: "db", user: "a&b=c" }],
  ["postgres://h/db?u%73er=z", { host: "h", dbname: "db", user: "z" }],
  ["postgres://h/db?user=a?b", { host: "h", dbname: "db", user: "a?b" }],
  ["postgres://h/db?user=a/b", { host: "h", dbname: "db", user: "a/b" }],
  ["postgres://h/db?password=p@ss", { host: "h", dbname: "db", password: "p@ss" }],
  ["postgres://?user=a@b", { user: "?user=a", host: "b" }],
  ["postgres://h/db?ssl=true", { host: "h", dbname: "db", sslmode: "require" }],
  ["postgres://h/db?requiressl=1", { host: "h", dbname: "db", sslmode: "require" }],
  ["postgres://h/db?requiressl=0", { host: "h", dbname: "db", sslmode: "prefer" }],
  ["postgres://h/db?options=-c%20geqo%3Doff", { host: "h", dbname: "db", options: "-c geqo=off" }],
  ["postgres://h/ a", { host: "h", dbname: "a" }],
  ["postgres://h/a ", { host: "h", dbname: "a" }],
  ["postgres://h/db?user= x ", { host: "h", dbname: "db", user: "x" }],
  ["postgres://%20h%20/db", { host: " h ", dbname: "db" }],
  ["postgres://h\t/db", { host: "h\t", dbname: "db" }],
  ["postgres://h/a b", /database name holds a space/],
  ["postgres://h/%zz", /database name holds a "%"/],
  ["postgres://h/%0", /database name holds a "%"/],
  ["postgres://h/%", /database name holds a "%"/],
  ["postgres://h/%00", /database name holds %00/],
  ["postgres://h/%41%00", /database name holds %00/],
  // libpq takes any bytes.
  ["postgres://h/%FF", /database name is not UTF-8/],
  ["postgres://u%:p@h", /user name holds a "%"/],
  ["postgres://u:100%@h", /password holds a "%"/],
  ["postgres://u:p%C3@h", /password is not UTF-8/],
  ["postgres://u:p\0@h", /password holds a NUL/],
  ["postgres://h/db?user", /has no "="/],
  ["postgres://h/db?&user=x", /has no "="/],
  ["postgres://h/db?user=x&&port=1", /has no "="/],
  ["postgres://h/db?user=a=b", /more than one "="/],
  ["postgres://h/db?=x", /keyword that libpq does not know/],
  ["postgres://h/db?schema=x", /unknown keyword "schema"/],
  ["postgres://h/db?pgbouncer=true", /unknown keyword "pgbouncer"/],
  ["postgres://h/db?ssl=false", /unknown keyword "ssl"/],
  ["postgres://h/db?User=x", /unknown keyword "User"/],
  ["postgres://h/db?krbsrvname=x", /krbsrvname .*GSSAPI is not supported/],
  ["POSTGRES://h/db", /not followed by "="/],
  [" postgres://h/a", /not followed by "="/],
  ["postgres:/x", /not followed by "="/],
  ["mysql://h/db", /not followed by "="/],
];

const STRINGS: readonly Case[] = [
  ["", {}],
  [" \t\n\v\f\r", {}],
  ["user=a", { user: "a" }],
  ["user=a dbname=b", { user: "a", dbname: "b" }],
  ["  user  =  a  dbname=  b  ", { user: "a", dbname: "b" }],
  ["user=a\ndbname=b\tport=1\vhost=h\fsslmode=disable\rhostaddr=::1", {
    user: "a",
    dbname: "b",
    port: "1",
    host: "h",
    sslmode: "disable",
    hostaddr: "::1",
  }],
  ["user='a b' dbname='c'", { user: "a b", dbname: "c" }],
  ["user='a'dbname=b", { user: "a", dbname: "b" }],
  ["user='' dbname=b", { user: "", dbname: "b" }],
  ["user=", { user: "" }],
  ["user= ", { user: "" }],
  ["user= dbname=b", { user: "dbname=b" }],
  ["user==a", { user: "=a" }],
  ["user=a=b", { user: "a=b" }],
  ["user=a'b'", { user: "a'b'" }],
  ["user=a\\ b", { user: "a b" }],
  ["user=a\\'b\\\\c", { user: "a'b\\c" }],
  ["user='a\\'b\\\\c'", { user: "a'b\\c" }],
  ["user='a\\nb'", { user: "anb" }],
  ["user=a\\", { user: "a" }],
  ["user=\\", { user: "" }],
  ["user=\\\\", { user: "\\" }],
  ["user=a user=b", { user: "b" }],
  ["user=é dbname='ö ü'", { user: "é", dbname: "ö ü" }],
  ["user=%41+b", { user: "%41+b" }],
  ["dbname=postgres://x/y", { dbname: "postgres://x/y" }],
  ["host=h1,h2 port=1,2", { host: "h1,h2", port: "1,2" }],
  ["host=/run/pg", { host: "/run/pg" }],
  ["host=@abstract", { host: "@abstract" }],
  ["requiressl=1", { sslmode: "require" }],
  ["requiressl=0 user=a", { sslmode: "prefer", user: "a" }],
  ["gssencmode=prefer sslcompression=1 client_encoding=UTF8", {
    gssencmode: "prefer",
    sslcompression: "1",
    client_encoding: "UTF8",
  }],
  ["krbsrvname='' requirepeer=", { krbsrvname: "", requirepeer: "" }],
  ["user='a", /quote at character 6 is not closed/],
  ["user='a\\'", /quote at character 6 is not closed/],
  ["user='a\\", /quote at character 6 is not closed/],
  ["user='", /quote at character 6 is not closed/],
  ["user", /word at character 1 is not followed by "="/],
  ["user a", /word at character 1 is not followed by "="/],
  ["user=a b", /word at character 8 is not followed by "="/],
  ["user=a\0", /NUL/],
  ["=a", /keyword that libpq does not know/],
  ["user=a foo=1", /unknown keyword "foo"/],
  ["USER=a", /unknown keyword "USER"/],
  ["user\u00a0=a", /keyword that libpq does not know/],
  ["__proto__=a", /keyword that libpq does not know/],
  ["constructor=a", /unknown keyword "constructor"/],
  // libpq knows these; they are refused by name.
  ["gssencmode=require", /gssencmode .*GSSAPI is not supported/],
  ["gsslib=gssapi", /gsslib .*GSSAPI is not supported/],
  ["gssdelegation=1", /gssdelegation .*GSSAPI is not supported/],
  ["krbsrvname=postgres", /krbsrvname .*GSSAPI is not supported/],
  ["requirepeer=postgres", /requirepeer .*which user is behind/],
  ["sslcrldir=/x", /sslcrldir .*use sslcrl/],
  ["sslkeylogfile=/x", /sslkeylogfile .*not written/],
  ["client_encoding=LATIN1", /client_encoding .*UTF-8/],
  ["scram_client_key=AAAA", /scram_client_key .*not supported/],
  ["scram_server_key=AAAA", /scram_server_key .*not supported/],
  ["sslcertmode=require", /sslcertmode .*no runtime tells/],
  ["oauth_issuer=https://x oauth_client_id=x", { oauth_issuer: "https://x", oauth_client_id: "x" }],
  ["oauth_client_secret=x oauth_scope=y", { oauth_client_secret: "x", oauth_scope: "y" }],
];

function outcome(conninfo: string): Record<string, string> | string {
  try {
    return Object.fromEntries([...parseConninfo(conninfo)].map(([keyword, { value }]) => [keyword, value]));
  } catch (error) {
    assert.ok(error instanceof ConfigurationError, String(error));
    assert.equal(error.cause, undefined);
    return error.message;
  }
}

function check(cases: readonly Case[]): void {
  for (const [conninfo, expected] of cases) {
    const result = outcome(conninfo);
    if (expected instanceof RegExp) assert.match(String(result), expected, JSON.stringify(conninfo));
    else assert.deepEqual(result, expected, JSON.stringify(conninfo));
  }
}

test("parseConninfo() reads URIs as libpq does", () => check(URIS));

test("parseConninfo() reads keyword/value strings as libpq does", () => check(STRINGS));

test("parseConninfo() knows every keyword of libpq 18", () => {
  const keywords =
    "service user password passfile channel_binding connect_timeout dbname host hostaddr port " +
    "client_encoding options application_name fallback_application_name keepalives keepalives_idle " +
    "keepalives_interval keepalives_count tcp_user_timeout sslmode sslnegotiation sslcompression sslcert sslkey " +
    "sslcertmode sslpassword sslrootcert sslcrl sslcrldir sslsni requirepeer require_auth min_protocol_version " +
    "max_protocol_version ssl_min_protocol_version ssl_max_protocol_version gssencmode krbsrvname gsslib " +
    "gssdelegation replication target_session_attrs load_balance_hosts scram_client_key scram_server_key " +
    "oauth_issuer oauth_client_id oauth_client_secret oauth_scope sslkeylogfile";
  for (const keyword of keywords.split(" ")) {
    assert.deepEqual(outcome(`${keyword}=''`), { [keyword]: "" });
  }
});

const SECRET = "s3cr3t-XYZ";

test("parseConninfo() never shows a piece of a password", () => {
  const mistakes = [
    `postgres://u:${SECRET}%@h`,
    `postgres://u:%${SECRET}@h`,
    `postgres://u:a ${SECRET}@h`,
    `postgres://u:${SECRET}%C3@h`,
    `postgres://[${SECRET}/x@h`,
    `postgres://[u]${SECRET}/@h`,
    `postgres://h/db?password=a&${SECRET}`,
    `postgres://h/db?password=a&${SECRET.replaceAll("-", "_")}=x`,
    `postgres://h/db?password=a&port=1&${SECRET.replaceAll("-", "_")}=x`,
    `postgres://u:p@h/db?oauth_client_secret=a&${SECRET.replaceAll("-", "_")}=x`,
    `host=h password=a port=1 ${SECRET.replaceAll("-", "_")}=x`,
    `host=h oauth_client_secret=a ${SECRET.replaceAll("-", "_")}=x`,
    `postgres://h/db?password=a&${SECRET}=b`,
    `postgres://h/db?password=a&s3cr3t=b`,
    `postgres://h/db?password==${SECRET}`,
    `password=a ${SECRET}`,
    `password=a ${SECRET}=b`,
    `password=a s3cr3t=b`,
    `sslpassword=a s3cr3t=b`,
    `password='a' b ${SECRET}=`,
    `password='${SECRET}`,
    `password=${SECRET} user`,
    `user=a ${SECRET}=x`,
    SECRET,
  ];
  for (const conninfo of mistakes) {
    const message = outcome(conninfo);
    assert.equal(typeof message, "string", `${conninfo} is refused`);
    assert.ok(!String(message).includes("s3cr3t"), String(message));
  }
});

test("parseConninfo() takes time in proportion to the length", () => {
  const long = 200_000;
  const strings = [
    "postgres://" + "a".repeat(long),
    "postgres://" + "h,".repeat(long),
    "postgres://" + " ".repeat(long) + "x",
    "postgres://h/" + " ".repeat(long) + "x" + " ".repeat(long) + "y",
    "postgres://h/" + "%41".repeat(long),
    "postgres://h/" + "%".repeat(long),
    "postgres://h/?" + "user=x&".repeat(long),
    "postgres://" + "[::1],".repeat(long),
    "postgres://" + "[".repeat(long),
    "postgres://" + "@".repeat(long),
    "user=" + "\\a".repeat(long),
    "user='" + "\\'".repeat(long),
    "user=x ".repeat(long),
    " ".repeat(long) + "x",
    "a".repeat(long),
  ];
  for (const text of strings) {
    const before = performance.now();
    outcome(text);
    const elapsed = performance.now() - before;
    assert.ok(elapsed < 5_000, `${elapsed} ms for ${JSON.stringify(text.slice(0, 40))}`);
  }
});

test("parseConninfo() gives settings or a ConfigurationError for any text, and reads back what is escaped", () => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const random = generator(seed);
  const pieces =
    "postgres:// postgresql:// u : @ / ? & = [ ] , %41 %2F % %4 %00 %FF h 5432 user dbname password # é ' \\ ::1"
      .split(" ").concat(" ", "\t", "\n", "\0", "\ud800", "😀");
  const note = `seed ${seed}`;
  for (let i = 0; i < 20_000; i++) {
    let text = ["", "postgres://", "user="][i % 3]!;
    for (let length = random(14); length > 0; length--) text += pieces[random(pieces.length)];
    const result = outcome(text);
    if (typeof result === "string") assert.ok(result.length < 400, `${note}: ${result}`);

    const value = text.replaceAll("\0", "").toWellFormed();
    const quoted = `user='${value.replace(/['\\]/g, "\\$&")}'`;
    assert.deepEqual(outcome(quoted), { user: value }, `${note}: ${JSON.stringify(quoted)}`);
    if (value === "") continue;
    const encoded = `postgres://${encodeURIComponent(value)}:${encodeURIComponent(value)}@h/${
      encodeURIComponent(value)
    }`;
    const parts = { user: value, password: value, host: "h", dbname: value };
    assert.deepEqual(outcome(encoded), parts, `${note}: ${JSON.stringify(encoded)}`);
  }
});

/** Whole numbers below a bound, the same for the same seed. */
function generator(seed: number): (bound: number) => number {
  let state = seed | 0;
  return (bound) => {
    state = state + 0x6d2b79f5 | 0;
    let mixed = Math.imul(state ^ state >>> 15, 1 | state);
    mixed = mixed + Math.imul(mixed ^ mixed >>> 7, 61 | mixed) ^ mixed;
    return ((mixed ^ mixed >>> 14) >>> 0) % bound;
  };
}
