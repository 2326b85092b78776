import { answerOf } from "../harness/answers.ts";
import { type Execute, type Rows, takeRows, type Values } from "../harness/driver.ts";
import type { Scenario } from "../harness/scenario.ts";

const TEXT = "select i as n, 'row ' || i as t from generate_series(1, $1::int4) i";
const POINTS = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];

interface State {
  readonly execute: Execute;
  readonly values: Values;
}

const scenario: Scenario<State> = {
  name: "rows",
  title: "So many rows of a number and a text from one query",
  unit: "rows",
  queries: 1,
  needs: ["prepare"],
  points: POINTS,
  expect: { rows: 1, columns: ["n", "t"] },
  async setup({ session, point }) {
    const values = [point];
    return { execute: await session.prepare!(TEXT, values), values };
  },
  run: ({ execute, values }) => execute(values),
  // The last and the number of the others: what is expected must not depend on the point.
  check(result, { values }) {
    const rows = result as Rows;
    if ("counted" in rows) return answerOf([{ counted: rows.counted / (values[0] as number) }]);
    const all = takeRows(rows);
    return all.length === values[0] ? answerOf([all.slice(-1)]) : answerOf([all]);
  },
};
export default scenario;
