import { answerOf } from "../harness/answers.ts";
import type { Rows, Session } from "../harness/driver.ts";
import type { Scenario } from "../harness/scenario.ts";

const scenario: Scenario<Session> = {
  name: "simple fetch 1000",
  title: "1,000 rows of ten types in the simple protocol",
  unit: "1,000 rows",
  queries: 1,
  needs: ["simple"],
  expect: { rows: 1000, columns: ["i2", "i4", "f4", "f8", "vc", "j", "jb", "ts", "tz", "by"] },
  setup: ({ session }) => session,
  run: (session) => session.simple!("select * from pipegres_bench.mixed"),
  check: (result) => answerOf([result as Rows]),
};
export default scenario;
