import { answerOf } from "../harness/answers.ts";
import type { Rows, Session, Values } from "../harness/driver.ts";
import { extendedAll, type Scenario, valuesList } from "../harness/scenario.ts";

const TEXT = "select $1::int4 as n, $2::text as t";
const POINTS = [1, 10, 100, 1_000, 10_000];

interface State {
  readonly session: Session;
  readonly list: readonly Values[];
}

const scenario: Scenario<State> = {
  name: "concurrency",
  title: "So many queries at once on one connection",
  unit: "concurrent queries",
  queries: 1,
  needs: ["extended"],
  points: POINTS,
  expect: { rows: 1, columns: ["n", "t"] },
  async setup({ session, point }) {
    const list = valuesList(point, (i) => [i, `text ${i}`]);
    await session.extended!(TEXT, list[0]!);
    return { session, list };
  },
  run: ({ session, list }) => extendedAll(session, TEXT, list),
  // The first and the number of the others: what is expected must not depend on the point.
  check(result, { list }) {
    const parts = result as readonly Rows[];
    const all = answerOf(parts);
    if (all.rows !== list.length) return all;
    const first = parts[0]!;
    return answerOf(["counted" in first ? { counted: 1 } : first]);
  },
};
export default scenario;
