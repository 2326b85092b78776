import assert from "node:assert/strict";
import { test } from "node:test";
import { saslprep } from "../../src/auth/saslprep.ts";
import * as tables from "../../src/auth/stringprep_tables.gen.ts";

const CASES: readonly (readonly [name: string, input: string, expected: string])[] = [
  // RFC 4013, section 3; where the RFC says error, PostgreSQL uses the text as it is.
  ["SOFT HYPHEN is mapped to nothing", "I\u00adX", "IX"],
  ["no transformation", "user", "user"],
  ["case is preserved", "USER", "USER"],
  ["NFKC, Latin-1", "\u00aa", "a"],
  ["NFKC, Roman numeral", "\u2168", "IX"],
  ["a prohibited ASCII character stays", "\u0007", "\u0007"],
  ["a bidirectional breach stays", "\u0627\u0031", "\u0627\u0031"],
  // What decides beyond these.
  ["empty", "", ""],
  ["ASCII is taken whole, spaces and controls included", " a\tb\u007f ", " a\tb\u007f "],
  ["no-break space becomes a space", "a\u00a0b", "a b"],
  ["ideographic space becomes a space", "a\u3000b", "a b"],
  ["zero width space becomes a space, not nothing", "a\u200bb", "a b"],
  ["zero width joiner is mapped to nothing", "a\u200db\u00e9", "ab\u00e9"],
  ["decomposed is composed", "e\u0301", "\u00e9"],
  ["only characters mapped to nothing: raw", "\u00ad\u200d", "\u00ad\u200d"],
  ["a prohibited character beside others: raw", "\u00e9\u00ad\u0007", "\u00e9\u00ad\u0007"],
  ["a private use character: raw", "\u00ad\ue000", "\u00ad\ue000"],
  ["unassigned in Unicode 3.2: raw", "\u00ad\u{1f600}", "\u00ad\u{1f600}"],
  ["a lone surrogate: raw", "\u00ad\ud800", "\u00ad\ud800"],
  ["right-to-left first and last", "\u0627\u00ad1\u0628", "\u06271\u0628"],
  ["left-to-right beside right-to-left: raw", "\u0627\u00adx\u0628", "\u0627\u00adx\u0628"],
  ["the last character of Unicode: raw", "\u00ad\u{10ffff}", "\u00ad\u{10ffff}"],
  ["astral and assigned", "\u00ad\u{20000}", "\u{20000}"],
];

for (const [name, input, expected] of CASES) {
  test(`saslprep() ${name}`, () => assert.equal(saslprep(input), expected));
}

test("the stringprep tables hold as many characters as RFC 3454 lists", () => {
  const sizes: Record<string, readonly [ranges: number, characters: number]> = {
    NON_ASCII_SPACE: [6, 17],
    MAPPED_TO_NOTHING: [8, 27],
    PROHIBITED: [34, 139_813],
    UNASSIGNED: [396, 879_309],
    RAND_AL_CAT: [34, 1044],
    L_CAT: [360, 229_973],
  };
  assert.deepEqual(Object.keys(tables).sort(), Object.keys(sizes).sort());
  for (const [name, table] of Object.entries(tables)) {
    const numbers = table.split(" ").map((number) => parseInt(number, 36));
    const following = numbers.filter((_, i) => i % 2 === 1);
    assert.deepEqual(
      [following.length, following.reduce((sum, n) => sum + n + 1, 0)],
      sizes[name],
      name,
    );
    assert.ok(numbers.reduce((sum, n) => sum + n) <= 0x10ffff, name);
  }
});
