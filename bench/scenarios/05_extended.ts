import { answerOf } from "../harness/answers.ts";
import type { Rows, Session } from "../harness/driver.ts";
import type { Scenario } from "../harness/scenario.ts";

const TEXT = "select $1::int4 as n, $2::text as t";
const VALUES = [42, "forty-two"];

const scenario: Scenario<Session> = {
  name: "extended",
  title: "one query with parameters after the other",
  unit: "query",
  queries: 1,
  needs: ["extended"],
  expect: { rows: 1, columns: ["n", "t"] },
  setup: ({ session }) => session,
  run: (session) => session.extended!(TEXT, VALUES),
  check: (result) => answerOf([result as Rows]),
};
export default scenario;
