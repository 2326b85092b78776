import assert from "node:assert/strict";
import { test } from "node:test";
import { findPassword, passwordFileProblem } from "../../src/connection/password_file.ts";

const KEY = { host: "h", port: 5432, database: "db", user: "u" };

test("findPassword() takes the first line that matches", () => {
  const text = [
    "# h:5432:db:u:comment",
    "",
    "other:5432:db:u:a",
    "h:1:db:u:b",
    "h:5432:other:u:c",
    "h:5432:db:other:d",
    "h:5432:db:u:right",
    "*:*:*:*:late",
  ].join("\n");
  assert.equal(findPassword(text, KEY), "right");
  assert.equal(findPassword(text, { ...KEY, user: "x" }), "late");
  assert.equal(findPassword("", KEY), undefined);
  assert.equal(findPassword("\n\n", KEY), undefined);
});

test("findPassword() undoes escapes in every field", () => {
  const line = "*:*:test\\:db:test\\\\:4\\:K1";
  assert.equal(findPassword(line, { ...KEY, database: "test:db", user: "test\\" }), "4:K1");
  assert.equal(findPassword(line, { ...KEY, database: "test\\:db", user: "test\\" }), undefined);
  assert.equal(findPassword("h\\\\:5432:db:u:p", { ...KEY, host: "h\\" }), "p");
  assert.equal(findPassword("h:5432:db:\\u:\\p\\\\\\:", KEY), "p\\:");
  assert.equal(findPassword("*:*:*:*:p\\", KEY), "p\\");
  assert.equal(findPassword("\\:\\:1:*:*:*:p", { ...KEY, host: "::1" }), "p");
  // As libpq: a colon that the wanted text has at this place needs no escape.
  assert.equal(findPassword("::1:*:*:*:p", { ...KEY, host: "::1" }), "p");
});

test("findPassword() takes * for anything only where it is the whole field", () => {
  assert.equal(findPassword("*:*:*:*:p", KEY), "p");
  assert.equal(findPassword("h*:*:*:*:p", KEY), undefined);
  assert.equal(findPassword("*h:*:*:*:p", KEY), undefined);
  assert.equal(findPassword("\\*:*:*:*:p", { ...KEY, host: "*" }), "p");
  assert.equal(findPassword("\\*:*:*:*:p", KEY), undefined);
});

test("findPassword() ends the password at the line, a CR before its end or an unescaped colon", () => {
  assert.equal(findPassword("*:*:*:*:p\r\nx", KEY), "p");
  assert.equal(findPassword("*:*:*:*:p:q", KEY), "p");
  assert.equal(findPassword("*:*:*:*: p q ", KEY), " p q ");
  assert.equal(findPassword("*:*:*:*:", KEY), "");
  assert.equal(findPassword("*:*:*:*", KEY), undefined);
  assert.equal(findPassword("h:5432:db", KEY), undefined);
  assert.equal(findPassword("h", KEY), undefined);
  assert.equal(findPassword("*:*:*:*:#p", KEY), "#p");
  assert.equal(findPassword(" # x\n*:*:*:*:p", KEY), "p");
});

test("findPassword() looks up the default socket directories as localhost", () => {
  for (const host of ["", "localhost", "/tmp", "/run/postgresql", "/var/run/postgresql"]) {
    assert.equal(findPassword("localhost:*:*:*:p", { ...KEY, host }), "p", host);
  }
  assert.equal(findPassword("localhost:*:*:*:p", { ...KEY, host: "/run/pg" }), undefined);
  assert.equal(findPassword("/run/pg:*:*:*:p", { ...KEY, host: "/run/pg" }), "p");
});

test("passwordFileProblem() wants the file to be its owner's alone, where there are modes", () => {
  for (const mode of [0o600, 0o400, 0o700, 0, undefined]) {
    assert.equal(passwordFileProblem("/p", mode), undefined);
  }
  for (const mode of [0o640, 0o604, 0o610, 0o644, 0o601]) {
    assert.match(String(passwordFileProblem("/p", mode)), /"\/p" is ignored.*0600/);
  }
});

test("findPassword() takes any text, in time proportional to its length", () => {
  const long = 200_000;
  for (const piece of ["*:", "\\", ":", "h:5432:db:u", "\n", "*:*:*:*\n"]) {
    const before = performance.now();
    findPassword(piece.repeat(long), KEY);
    const elapsed = performance.now() - before;
    assert.ok(elapsed < 5_000, `${elapsed} ms for ${JSON.stringify(piece)}`);
  }
});
