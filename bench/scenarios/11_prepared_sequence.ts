import { answerOf } from "../harness/answers.ts";
import type { Execute, Rows } from "../harness/driver.ts";
import { type Scenario, valuesList } from "../harness/scenario.ts";

const TEXT = "select $1::int4 as n, $2::text as t";
const LIST = valuesList(50, (i) => [i, `text ${i}`]);

const scenario: Scenario<Execute> = {
  name: "prepared seq 50",
  title: "50 executions of a prepared statement, one after the other",
  unit: "50 queries",
  queries: 50,
  needs: ["prepare"],
  expect: { rows: 50, columns: ["n", "t"] },
  setup: ({ session }) => session.prepare!(TEXT, LIST[0]!),
  async run(execute) {
    const results: Rows[] = [];
    for (const values of LIST) results.push(await execute(values));
    return results;
  },
  check: (result) => answerOf(result as readonly Rows[]),
};
export default scenario;
