import { answerOf } from "../harness/answers.ts";
import type { Execute, Rows } from "../harness/driver.ts";
import type { Scenario } from "../harness/scenario.ts";

const TEXT = "select * from pipegres_bench.mixed where i4 > $1::int4";
const VALUES = [-1];

const scenario: Scenario<Execute> = {
  name: "mixed 1000 binary",
  title: "1,000 rows of ten types from a prepared statement, in binary format",
  unit: "1,000 rows",
  queries: 1,
  needs: ["prepareBinary"],
  expect: { rows: 1000, columns: ["i2", "i4", "f4", "f8", "vc", "j", "jb", "ts", "tz", "by"] },
  setup: ({ session }) => session.prepareBinary!(TEXT, VALUES),
  run: (execute) => execute(VALUES),
  check: (result) => answerOf([result as Rows]),
};
export default scenario;
