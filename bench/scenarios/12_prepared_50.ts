import { answerOf } from "../harness/answers.ts";
import type { Execute, Rows, Session } from "../harness/driver.ts";
import { preparedAll, type Scenario, valuesList } from "../harness/scenario.ts";

const TEXT = "select $1::int4 as n, $2::text as t";
const LIST = valuesList(50, (i) => [i, `text ${i}`]);

interface State {
  readonly session: Session;
  readonly execute: Execute;
}

const scenario: Scenario<State> = {
  name: "prepared x50",
  title: "50 executions of a prepared statement at once, on one connection",
  unit: "50 queries",
  queries: 50,
  needs: ["prepare"],
  expect: { rows: 50, columns: ["n", "t"] },
  setup: async ({ session }) => ({ session, execute: await session.prepare!(TEXT, LIST[0]!) }),
  run: ({ session, execute }) => preparedAll(session, execute, TEXT, LIST),
  check: (result) => answerOf(result as readonly Rows[]),
};
export default scenario;
