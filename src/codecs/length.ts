/** The check every fixed-width binary decoder makes. */

import { ValueError } from "../errors.ts";

/** @throws {ValueError} unless `[start, end)` is `wanted` bytes long */
export function checkLength(wanted: number, start: number, end: number): void {
  if (end - start !== wanted) failLength(wanted, end - start);
}

function failLength(wanted: number, length: number): never {
  throw new ValueError(`Expected ${wanted} ${wanted === 1 ? "byte" : "bytes"}, received ${length}`);
}
