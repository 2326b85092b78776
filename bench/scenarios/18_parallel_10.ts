import { answerOf } from "../harness/answers.ts";
import type { Rows, Session } from "../harness/driver.ts";
import { extendedAll, type Scenario, valuesList } from "../harness/scenario.ts";

const TEXT = "SELECT $1::int4 AS num";
const LIST = valuesList(10, (i) => [i]);

const scenario: Scenario<Session> = {
  name: "parallel 10",
  title: "10 queries with a parameter at once, as the authors of pg-native measure their pipeline()",
  unit: "10 queries",
  queries: 10,
  needs: ["extended"],
  expect: { rows: 10, columns: ["num"] },
  async setup({ session }) {
    await session.extended!(TEXT, LIST[0]!);
    return session;
  },
  run: (session) => extendedAll(session, TEXT, LIST),
  check: (result) => answerOf(result as readonly Rows[]),
};
export default scenario;
