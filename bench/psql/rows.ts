/** The rows that are copied: int4, text, timestamptz. */

export const ROW_COUNT = 1_000_000;
const FIRST = Date.UTC(2024, 1, 29);

/** Row `i`, as `copyRows` takes it. */
export function rowAt(i: number): [number, string, Date] {
  return [i, `row number ${i}`, new Date(FIRST + i * 1_000)];
}

/** All rows as the text of a file for `\copy`. */
export function rowsAsText(): string {
  const lines: string[] = [];
  for (let i = 0; i < ROW_COUNT; i++) {
    const [a, b, c] = rowAt(i);
    lines.push(`${a}\t${b}\t${c.toISOString()}\n`);
  }
  return lines.join("");
}
