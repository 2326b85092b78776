import { answerOfCount } from "../harness/answers.ts";
import type { Session } from "../harness/driver.ts";
import type { Scenario } from "../harness/scenario.ts";

const ROW_COUNT = 1_000_000;
const TEXT = `copy (select i, 'name ' || i from generate_series(0, ${ROW_COUNT - 1}) i) to stdout`;

/** Of all lines: two numbers of equal length, `name `, a tab and the end of the line. */
function totalBytes(): number {
  let digits = 0;
  for (let i = 0; i < ROW_COUNT; i++) digits += String(i).length;
  return 2 * digits + 7 * ROW_COUNT;
}

const scenario: Scenario<Session> = {
  name: "copy out 1M",
  title: "COPY TO STDOUT of 1,000,000 rows of two columns, bytes only counted",
  unit: "1,000,000 rows",
  queries: 1,
  needs: ["copyOut"],
  expect: { rows: totalBytes(), columns: [] },
  setup: ({ session }) => session,
  run: (session) => session.copyOut!(TEXT),
  check: (result) => answerOfCount(result as number),
};
export default scenario;
