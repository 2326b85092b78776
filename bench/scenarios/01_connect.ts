import { answerOfCount } from "../harness/answers.ts";
import type { Context, Scenario } from "../harness/scenario.ts";

const scenario: Scenario<Context> = {
  name: "connect",
  title: "connect, authenticate, close",
  unit: "connection",
  queries: 1,
  needs: [],
  expect: { rows: 1, columns: [] },
  setup: (context) => context,
  async run({ driver, target }) {
    const session = await driver.open(target);
    await session.close();
    return 1;
  },
  check: (result) => answerOfCount(result as number),
};
export default scenario;
