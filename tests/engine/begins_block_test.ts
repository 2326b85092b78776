/** Statements that would open a transaction block, whatever stands before them. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { beginsBlock } from "../../src/engine/begins_block.ts";

const BEGINNINGS = [
  "begin",
  "BEGIN;",
  "Begin Work",
  "begin/**/",
  "start transaction",
  "START/* */TRANSACTION",
  " \t\r\n\f\v begin",
  ";begin",
  " ; ;; begin",
  "-- a comment\nbegin",
  "--\rbegin",
  "-- one\n-- two\n begin isolation level serializable",
  "/* a comment */begin",
  "/* /* nested */ */ begin",
  "/* -- */begin",
  "-- /*\nbegin",
  "/**//**/;--\n/* * / */ begin",
];

const OTHERS = [
  "",
  ";",
  "select 1",
  "beginning",
  "begin_it",
  "started",
  "select 'begin'",
  "-- begin",
  "-- a comment begin",
  "/* begin",
  "/* begin */",
  "/* /* */ begin",
  "/* /* begin */ */ select 1",
  "- begin",
  "/ begin",
  "commit",
  '"begin"',
];

test("BEGIN and START TRANSACTION are found behind white space, comments and empty statements", () => {
  for (const text of BEGINNINGS) assert.equal(beginsBlock(text), true, JSON.stringify(text));
  for (const text of OTHERS) assert.equal(beginsBlock(text), false, JSON.stringify(text));
});

test("long comments take linear time", () => {
  for (
    const text of [
      "/*".repeat(500_000),
      "--\n".repeat(500_000),
      ";".repeat(2_000_000),
      "/* *".repeat(500_000),
    ]
  ) {
    const began = performance.now();
    assert.equal(beginsBlock(text), false);
    assert.equal(beginsBlock(`${text}begin`), text.startsWith("--") || text.startsWith(";"));
    assert.ok(performance.now() - began < 5_000);
  }
});
