/** Connection strings, compared with what the real libpq 18 makes of them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseConninfo } from "../src/connection/conninfo.ts";
import { KEYWORDS } from "../src/connection/keywords.ts";
import { ConfigurationError } from "../src/errors.ts";
import { seededRandom } from "../tests/_support/proxy.ts";
import { openLibpq } from "./libpq.ts";

const libpq = await openLibpq();
const skip = typeof libpq === "string" ? libpq : false;

type Outcome = Readonly<Record<string, string>> | string;

function ours(conninfo: string): Outcome {
  try {
    return Object.fromEntries([...parseConninfo(conninfo)].map(([keyword, { value }]) => [keyword, value]));
  } catch (error) {
    assert.ok(error instanceof ConfigurationError, `${JSON.stringify(conninfo)}: ${error}`);
    return error.message;
  }
}

/** Where we refuse on purpose what libpq takes: keywords of no use here, and bytes that are no text. */
const OWN_REFUSALS = /not supported|no runtime|use sslcrl|not written to files|travel as UTF-8|not UTF-8/;

function compare(conninfo: string): boolean {
  if (typeof libpq === "string") return false;
  const theirs = libpq.parse(conninfo);
  const mine = ours(conninfo);
  if (typeof mine === "string" && OWN_REFUSALS.test(mine)) return false;
  const shown = `${JSON.stringify(conninfo)}: libpq says ${JSON.stringify(theirs)}`;
  if (typeof theirs === "string") assert.equal(typeof mine, "string", `${shown}, we ${JSON.stringify(mine)}`);
  else assert.deepEqual(mine, theirs, shown);
  return true;
}

/** Parts that users write, put together in every way. */
function table(): string[] {
  const credentials = ["", "u@", "u:p@", ":p@", "u:@", "u%40x:p%3Aq@", "é:ß@", "u:p@ss@", "u:p%zz@", "u: p@"];
  const hosts = [
    "",
    "h",
    "h:1",
    "h:",
    "[::1]",
    "[::1]:5",
    "[fe80::1%25lo]",
    "[::1",
    "[]",
    "a,b",
    "a:1,b:2",
    "%2Ftmp",
    ":5",
  ];
  const ends = [
    "",
    "/",
    "/db",
    "/d%20b",
    "/db?",
    "/db?sslmode=require",
    "?user=x&user=y",
    "?ssl=true",
    "/?a",
    "?host=/x&port=7",
  ];
  const strings: string[] = [];
  for (const prefix of ["postgres://", "postgresql://"]) {
    for (const credential of credentials) {
      for (const host of hosts) for (const end of ends) strings.push(prefix + credential + host + end);
    }
  }
  const pairs = [
    "user=u",
    "user = u",
    "user='u v'",
    "user='it\\'s'",
    "user=a\\ b",
    "user=",
    "user=''",
    "user='",
    "=x",
    "user",
    "requiressl=1",
    "port=1 port=2",
    "sslmode=nonsense",
    "unknown=1",
    "dbname=postgres://x",
    "password=p@:/?#",
  ];
  for (const left of pairs) for (const right of ["", ...pairs]) strings.push(`${left} ${right}`);
  return strings;
}

test("a table of connection strings means what libpq means by it", { skip }, () => {
  const strings = table();
  const compared = strings.filter(compare);
  assert.ok(compared.length > 1500, `${compared.length} of ${strings.length}`);
});

test("random connection strings mean what libpq means by them", { skip }, () => {
  const seed = Date.now() | 0;
  console.log(`seed ${seed}`);
  const random = seededRandom(seed);
  const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)]!;
  const uri = [
    "postgres://",
    "u",
    ":",
    "@",
    "/",
    "?",
    "&",
    "=",
    "[",
    "]",
    ",",
    "%41",
    "%2F",
    "%",
    "%4",
    " ",
    "h",
    "5432",
    "user",
    "dbname",
    "sslmode",
    "+",
    "#",
    "é",
    "::1",
    "password",
  ];
  const words = [
    "user",
    "dbname",
    "port",
    "=",
    "'",
    "\\",
    " ",
    "\t",
    "a",
    "b",
    "é",
    "password",
    "\n",
    "=",
    "'",
  ];
  let compared = 0;
  for (let i = 0; i < 20_000; i++) {
    const parts = i % 2 ? uri : words;
    const text = Array.from({ length: Math.floor(random() * 12) }, () => pick(parts)).join("");
    if (compare(i % 2 ? `postgres://${text}` : text)) compared++;
  }
  assert.ok(compared > 15_000, String(compared));
});

test("every keyword of libpq 18 is known, and its environment variable", { skip }, () => {
  if (typeof libpq === "string") return;
  /** Read nowhere here, and said so where the keywords are listed. */
  const unread = new Set(["PGKRBSRVNAME", "PGGSSLIB", "PGGSSDELEGATION", "PGCLIENTENCODING"]);
  const missing: string[] = [];
  for (const [keyword, variable] of libpq.keywords()) {
    const known = KEYWORDS.get(keyword);
    if (known === undefined) missing.push(keyword);
    else if (variable !== undefined && known.variable !== variable && !unread.has(variable)) {
      missing.push(variable);
    }
  }
  assert.deepEqual(missing, []);
  for (const keyword of KEYWORDS.keys()) assert.ok(libpq.keywords().has(keyword), keyword);
});
