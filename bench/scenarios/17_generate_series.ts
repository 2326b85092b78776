import { answerOf } from "../harness/answers.ts";
import type { Rows, Session } from "../harness/driver.ts";
import type { Scenario } from "../harness/scenario.ts";

const scenario: Scenario<Session> = {
  name: "generate_series",
  title: "1,000 rows of generate_series, as the authors of pg-native measure it",
  unit: "1,000 rows",
  queries: 1,
  needs: ["simple"],
  expect: { rows: 1000, columns: ["i"] },
  setup: ({ session }) => session,
  run: (session) => session.simple!("SELECT generate_series AS i FROM generate_series(1, 1000)"),
  check: (result) => answerOf([result as Rows]),
};
export default scenario;
