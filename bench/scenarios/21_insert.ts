import { answerOf } from "../harness/answers.ts";
import type { Column, Session } from "../harness/driver.ts";
import { type Scenario, valuesList } from "../harness/scenario.ts";

const COLUMNS: readonly Column[] = [
  { name: "id", type: "int4" },
  { name: "name", type: "text" },
  { name: "score", type: "float8" },
];
const ROWS = valuesList(10_000, (i) => [i, `name ${i}`, i / 4]);

const scenario: Scenario<Session> = {
  name: "insert 10k",
  title: "insert 10,000 rows of three columns into an emptied temporary table",
  unit: "10,000 rows",
  queries: 1,
  needs: ["insert", "simple"],
  expect: { rows: 1, columns: ["count", "sum", "last"] },
  async setup({ session }) {
    await session.simple!("create temporary table bench_insert (id int4, name text, score float8)");
    return session;
  },
  async run(session) {
    await session.simple!("truncate bench_insert");
    return await session.insert!("bench_insert", COLUMNS, ROWS);
  },
  check: async (_, session) =>
    answerOf([
      await session.simple!(
        "select count(*)::int4 as count, sum(score) as sum, max(name) as last from bench_insert",
      ),
    ]),
};
export default scenario;
