import { answerOf } from "../harness/answers.ts";
import type { Execute, Rows } from "../harness/driver.ts";
import type { Scenario } from "../harness/scenario.ts";

const TEXT = "select data from pipegres_bench.bytes where id > $1::int4";
const VALUES = [0];

const scenario: Scenario<Execute> = {
  name: "bytea 10x1MB",
  title: "ten rows of 1 MB of bytea",
  unit: "10 MB",
  queries: 1,
  needs: ["prepare"],
  expect: { rows: 10, columns: ["data"] },
  setup: ({ session }) => session.prepare!(TEXT, VALUES),
  run: (execute) => execute(VALUES),
  check: (result) => answerOf([result as Rows]),
};
export default scenario;
