import { answerOf } from "../harness/answers.ts";
import type { Rows, Session } from "../harness/driver.ts";
import { type Scenario, valuesList } from "../harness/scenario.ts";

const TEXT = "select $1::int4 as n, 'constant' as t";
const LIST = valuesList(50, (i) => [i]);

const scenario: Scenario<Session> = {
  name: "tx 50",
  title: "BEGIN, 50 executions of one statement at once, COMMIT",
  unit: "50 queries",
  queries: 50,
  needs: ["transaction"],
  expect: { rows: 50, columns: ["n", "t"] },
  setup: ({ session }) => session,
  run: (session) => session.transaction!(TEXT, LIST),
  check: (result) => answerOf(result as readonly Rows[]),
};
export default scenario;
