import { answerOfCount } from "../harness/answers.ts";
import type { Session } from "../harness/driver.ts";
import type { Scenario } from "../harness/scenario.ts";

const TEXT = "select i as n, 'row ' || i as t from generate_series(1, 50000) i";

interface State {
  readonly session: Session;
  /** Keeps the rows from being optimised away. */
  last: unknown;
}

const scenario: Scenario<State> = {
  name: "cursor 50k",
  title: "50,000 rows, 500 at a time",
  unit: "50,000 rows",
  queries: 1,
  needs: ["cursor"],
  expect: { rows: 50_000, columns: [] },
  setup: ({ session }) => ({ session, last: undefined }),
  run: (state) =>
    state.session.cursor!(TEXT, 500, (rows) => {
      state.last = rows[rows.length - 1];
    }),
  check: (result) => answerOfCount(result as number),
};
export default scenario;
