import { answerOf } from "../harness/answers.ts";
import type { Rows, Session } from "../harness/driver.ts";
import type { Scenario } from "../harness/scenario.ts";

const scenario: Scenario<Session> = {
  name: "select 1 loop",
  title: "SELECT 1, 100 times one after the other, as the authors of pg-native measure it",
  unit: "100 queries",
  queries: 100,
  needs: ["simple"],
  expect: { rows: 100, columns: ["one"] },
  setup: ({ session }) => session,
  async run(session) {
    const results: Rows[] = [];
    for (let i = 0; i < 100; i++) results.push(await session.simple!("SELECT 1 AS one"));
    return results;
  },
  check: (result) => answerOf(result as readonly Rows[]),
};
export default scenario;
