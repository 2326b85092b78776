import { answerOf } from "../harness/answers.ts";
import type { Rows, Session } from "../harness/driver.ts";
import type { Scenario } from "../harness/scenario.ts";

const TEXT = "select 42 as n, 'forty-two' as t";

const scenario: Scenario<Session> = {
  name: "simple",
  title: "one query without parameters after the other",
  unit: "query",
  queries: 1,
  needs: ["simple"],
  expect: { rows: 1, columns: ["n", "t"] },
  setup: ({ session }) => session,
  run: (session) => session.simple!(TEXT),
  check: (result) => answerOf([result as Rows]),
};
export default scenario;
