/**
 * The examples of README.md as programs.
 *
 * Every block that is marked `ts` is one. A block that imports is a program as it stands; one that does not goes on
 * from the last one that did. What an example prints stands behind it as a JavaScript expression:
 * `console.log(1 + 1, "a"); // 2, "a"`. The SQL in the comment that starts with SETUP runs before each.
 */

/** An example. */
export interface ReadmeExample {
  /** The heading above it, and its number below that heading where there are several. */
  readonly title: string;
  /** What is to be run, with the modules' names replaced. */
  readonly program: string;
  /** The same, with a call of `check` in place of each `console.log` that says what it prints. */
  readonly checkedProgram: string;
  /** How many there are of those. */
  readonly checks: number;
}

const SETUP = "<!-- The tests run this SQL before each example.";
const PRINTS = /^(\s*)console\.log\((.*)\); \/\/ (.+)$/gm;

/** The SQL that runs before each example. */
export function readmeSetup(markdown: string): string {
  const begin = markdown.indexOf(SETUP);
  const end = markdown.indexOf("-->", begin);
  if (begin < 0 || end < 0) throw new Error(`README.md has no comment that starts with ${SETUP}`);
  return markdown.slice(begin + SETUP.length, end);
}

/**
 * All examples, in order.
 *
 * @param moduleUrl stands for the package
 * @param checkUrl a module that exports `check(number, actual, expected)`
 */
export function readmeExamples(markdown: string, moduleUrl: string, checkUrl: string): ReadmeExample[] {
  const examples: ReadmeExample[] = [];
  const titles = new Map<string, number>();
  let heading = "";
  let base = "";
  for (const [, hashes, text, code] of markdown.matchAll(/^(#+) (.+)$|^```ts\n([^]*?)^```$/gm)) {
    if (hashes !== undefined) {
      heading = text!;
      continue;
    }
    const imports = /^import /m.test(code!);
    if (imports) base = code!;
    const source = (imports ? code! : `${base}\n${code}`)
      .replaceAll('"@pipegres/pipegres"', JSON.stringify(moduleUrl));
    let checks = 0;
    const checked = source.replace(
      PRINTS,
      (_, indent, actual, expected) => `${indent}check(${checks++}, [${actual}], [${expected}]);`,
    );
    const number = (titles.get(heading) ?? 0) + 1;
    titles.set(heading, number);
    examples.push({
      title: number === 1 ? heading : `${heading}, ${number}`,
      program: source,
      checkedProgram: `import { check } from ${JSON.stringify(checkUrl)};\n${checked}`,
      checks,
    });
  }
  return examples;
}
