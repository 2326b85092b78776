/** What the examples of README.md call in place of `console.log`. */

import assert from "node:assert/strict";

/** Numbers of the checks that an example has reached. */
export const reached: Set<number> = new Set();

/** Compares what an example would print with what README.md says that it prints. */
export function check(number: number, actual: readonly unknown[], expected: readonly unknown[]): void {
  reached.add(number);
  assert.deepEqual(actual, expected);
}
