import { answerOfJson } from "../harness/answers.ts";
import type { Session } from "../harness/driver.ts";
import type { Scenario } from "../harness/scenario.ts";

// bytea and times have no common JSON form among drivers.
const TEXT = "select i2, i4, f8, vc, j, jb from pipegres_bench.mixed";

const scenario: Scenario<Session> = {
  name: "json 1000",
  title: "1,000 rows as JSON text: .json() where there is one, else JSON.stringify of the rows",
  unit: "1,000 rows",
  queries: 1,
  needs: ["json"],
  expect: { rows: 1000, columns: ["i2", "i4", "f8", "vc", "j", "jb"] },
  setup: ({ session }) => session,
  run: (session) => session.json!(TEXT),
  check: (result) => answerOfJson(result as string),
};
export default scenario;
