import { answerOf } from "../harness/answers.ts";
import type { Rows, Session } from "../harness/driver.ts";
import { type Scenario, simpleAll } from "../harness/scenario.ts";

const TEXTS = new Array<string>(1000).fill("select 42 as n, 'forty-two' as t");

const scenario: Scenario<Session> = {
  name: "pool simple 1000",
  title: "1,000 queries without parameters at once, on a pool of ten connections",
  unit: "1,000 queries",
  queries: 1000,
  needs: ["simple"],
  pool: 10,
  expect: { rows: 1000, columns: ["n", "t"] },
  setup: ({ session }) => session,
  run: (session) => simpleAll(session, TEXTS),
  check: (result) => answerOf(result as readonly Rows[]),
};
export default scenario;
