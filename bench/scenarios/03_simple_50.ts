import { answerOf } from "../harness/answers.ts";
import type { Rows, Session } from "../harness/driver.ts";
import { type Scenario, simpleAll } from "../harness/scenario.ts";

const TEXTS = new Array<string>(50).fill("select 42 as n, 'forty-two' as t");

const scenario: Scenario<Session> = {
  name: "simple x50",
  title: "50 queries without parameters at once, on one connection",
  unit: "50 queries",
  queries: 50,
  needs: ["simple"],
  expect: { rows: 50, columns: ["n", "t"] },
  setup: ({ session }) => session,
  run: (session) => simpleAll(session, TEXTS),
  check: (result) => answerOf(result as readonly Rows[]),
};
export default scenario;
