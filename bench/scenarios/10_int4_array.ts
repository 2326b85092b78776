import { answerOf } from "../harness/answers.ts";
import type { Execute, Rows } from "../harness/driver.ts";
import type { Scenario } from "../harness/scenario.ts";

const TEXT = "select numbers from pipegres_bench.arrays where id > $1::int4";
const VALUES = [0];

const scenario: Scenario<Execute> = {
  name: "int4[] 10x50k",
  title: "ten arrays of 50,000 int4",
  unit: "500,000 numbers",
  queries: 1,
  needs: ["prepare"],
  expect: { rows: 10, columns: ["numbers"] },
  setup: ({ session }) => session.prepare!(TEXT, VALUES),
  run: (execute) => execute(VALUES),
  check: (result) => answerOf([result as Rows]),
};
export default scenario;
