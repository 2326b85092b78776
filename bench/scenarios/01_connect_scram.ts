import { answerOfCount } from "../harness/answers.ts";
import { SCRAM_PASSWORD, SCRAM_USER } from "../harness/database.ts";
import type { Context, Scenario } from "../harness/scenario.ts";

const scenario: Scenario<Context> = {
  name: "connect scram",
  title: "connect, authenticate by SCRAM-SHA-256, close",
  unit: "connection",
  queries: 1,
  needs: [],
  needsValues: true, // the floor knows no password
  expect: { rows: 1, columns: [] },
  setup: ({ target, ...context }) => ({
    ...context,
    target: { ...target, user: SCRAM_USER, password: SCRAM_PASSWORD },
  }),
  async run({ driver, target }) {
    const session = await driver.open(target);
    await session.close();
    return 1;
  },
  check: (result) => answerOfCount(result as number),
};
export default scenario;
