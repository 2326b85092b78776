import { answerOf } from "../harness/answers.ts";
import type { Rows, Session } from "../harness/driver.ts";
import { extendedAll, type Scenario, valuesList } from "../harness/scenario.ts";

const TEXT = "select $1::int4 as n, $2::text as t";
const LIST = valuesList(50, (i) => [i, `text ${i}`]);

const scenario: Scenario<Session> = {
  name: "extended x50",
  title: "50 queries with parameters at once, on one connection",
  unit: "50 queries",
  queries: 50,
  needs: ["extended"],
  expect: { rows: 50, columns: ["n", "t"] },
  async setup({ session }) {
    await session.extended!(TEXT, LIST[0]!);
    return session;
  },
  run: (session) => extendedAll(session, TEXT, LIST),
  check: (result) => answerOf(result as readonly Rows[]),
};
export default scenario;
