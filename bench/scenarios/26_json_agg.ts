import { answerOfJson } from "../harness/answers.ts";
import { type Held, type Session, takeRows } from "../harness/driver.ts";
import type { Scenario } from "../harness/scenario.ts";

// As text, so that no driver parses it.
const TEXT = "select json_agg(r)::text as rows from " +
  "(select i2, i4, f8, vc, j, jb from pipegres_bench.mixed where i4 > $1::int4) r";
const VALUES = [-1];

const scenario: Scenario<Session> = {
  name: "json_agg",
  title: "1,000 rows as JSON text: json_agg on the server",
  unit: "1,000 rows",
  queries: 1,
  needs: ["extended"],
  needsValues: true,
  expect: { rows: 1000, columns: ["i2", "i4", "f8", "vc", "j", "jb"] },
  setup: ({ session }) => session,
  run: async (session) => takeRows(await session.extended!(TEXT, VALUES) as Held)[0]!["rows"],
  check: (result) => answerOfJson(result as string),
};
export default scenario;
