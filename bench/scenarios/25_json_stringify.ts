import { answerOfJson } from "../harness/answers.ts";
import { type Held, type Session, takeRows } from "../harness/driver.ts";
import type { Scenario } from "../harness/scenario.ts";

const TEXT = "select i2, i4, f8, vc, j, jb from pipegres_bench.mixed where i4 > $1::int4";
const VALUES = [-1];

const scenario: Scenario<Session> = {
  name: "json stringify",
  title: "1,000 rows as JSON text: JSON.stringify of the rows",
  unit: "1,000 rows",
  queries: 1,
  needs: ["extended"],
  needsValues: true,
  expect: { rows: 1000, columns: ["i2", "i4", "f8", "vc", "j", "jb"] },
  setup: ({ session }) => session,
  run: async (session) => JSON.stringify(takeRows(await session.extended!(TEXT, VALUES) as Held)),
  check: (result) => answerOfJson(result as string),
};
export default scenario;
