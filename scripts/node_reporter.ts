/**
 * A reporter for `node --test-reporter`: one line of JSON for each test that ended, and one whenever no test is left
 * to run. It runs under Node.js.
 */

interface TestEvent {
  readonly type: string;
  readonly data: {
    readonly name: string;
    readonly nesting: number;
    readonly skip?: boolean | string;
    readonly todo?: boolean | string;
  };
}

/** Lines of `{ name, outcome }` and `{ idle: true }`. */
export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string, void> {
  let running = 0;
  for await (const { type, data } of source) {
    if (data?.nesting !== 0) continue;
    if (type === "test:enqueue") running++;
    if (type !== "test:pass" && type !== "test:fail") continue;
    running--;
    const skipped = data.skip !== undefined && data.skip !== false;
    const outcome = skipped ? "skipped" : type === "test:pass" ? "passed" : "failed";
    yield `${JSON.stringify({ name: data.name, outcome })}\n`;
    if (running === 0) yield `${JSON.stringify({ idle: true })}\n`;
  }
}
