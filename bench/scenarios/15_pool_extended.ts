import { answerOf } from "../harness/answers.ts";
import type { Rows, Session } from "../harness/driver.ts";
import { extendedAll, type Scenario, valuesList } from "../harness/scenario.ts";

const TEXT = "select $1::int4 as n, $2::text as t";
const LIST = valuesList(1000, (i) => [i, `text ${i}`]);

const scenario: Scenario<Session> = {
  name: "pool extended 1000",
  title: "1,000 queries with parameters at once, on a pool of ten connections",
  unit: "1,000 queries",
  queries: 1000,
  needs: ["extended"],
  pool: 10,
  expect: { rows: 1000, columns: ["n", "t"] },
  setup: ({ session }) => session,
  run: (session) => extendedAll(session, TEXT, LIST),
  check: (result) => answerOf(result as readonly Rows[]),
};
export default scenario;
