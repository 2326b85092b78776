/** Readable output: with colours on a terminal, plain elsewhere. */

const COLOURED: boolean = Deno.stdout.isTerminal() && !Deno.env.get("NO_COLOR");

function paint(code: number): (text: string) => string {
  return (text) => COLOURED ? `\x1b[${code}m${text}\x1b[0m` : text;
}

/** For what matters. */
export const bold: (text: string) => string = paint(1);
/** For what does not. */
export const dim: (text: string) => string = paint(2);
/** For code. */
export const cyan: (text: string) => string = paint(36);
/** For errors. */
export const red: (text: string) => string = paint(31);

/** A numbered heading. */
export function heading(title: string): void {
  console.log(`\n${bold(title)}\n${dim("─".repeat(title.length))}`);
}

/** Lines of source, as one would write them; they stand in functions, so that two spaces of each are not theirs. */
export function code(source: string): void {
  for (const line of source.split("\n")) console.log(`  ${cyan(line.replace(/^ {2}/, ""))}`);
}

/** Rows under their column names, numbers to the right. */
export function table(rows: readonly Readonly<Record<string, unknown>>[]): void {
  const columns = Object.keys(rows[0] ?? {});
  const cells = rows.map((row) => columns.map((column) => String(row[column])));
  const widths = columns.map((column, i) =>
    Math.max(column.length, ...cells.map((line) => [...line[i]!].length))
  );
  const toRight = columns.map((column) => rows.every((row) => /^(number|bigint)$/.test(typeof row[column])));
  const print = (line: readonly string[], style: (text: string) => string) => {
    const padded = line.map((cell, i) => {
      const space = " ".repeat(widths[i]! - [...cell].length);
      return toRight[i] ? space + cell : cell + space;
    });
    console.log(`  ${style(padded.join("  ").trimEnd())}`);
  };
  print(columns, dim);
  for (const line of cells) print(line, (text) => text);
}

/** Milliseconds in a readable unit. */
export function duration(milliseconds: number): string {
  return milliseconds < 1000 ? `${milliseconds.toFixed(0)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}

/** 1234567 as 1,234,567. */
export function grouped(value: number | bigint): string {
  return value.toLocaleString("en-US");
}
