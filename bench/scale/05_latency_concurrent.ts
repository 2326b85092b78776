import { answerOf } from "../harness/answers.ts";
import type { Rows, Session } from "../harness/driver.ts";
import { extendedAll, type Scenario, valuesList } from "../harness/scenario.ts";

const TEXT = "select $1::int4 as n, $2::text as t";
const LIST = valuesList(10, (i) => [i, `text ${i}`]);
const POINTS = [0, 1, 20];

const scenario: Scenario<Session> = {
  name: "latency at once",
  title: "Ten queries at once on one connection, with so much latency added",
  unit: "ms of latency",
  queries: 10,
  needs: ["extended"],
  points: POINTS,
  addsLatency: true,
  expect: { rows: 10, columns: ["n", "t"] },
  async setup({ session }) {
    await session.extended!(TEXT, LIST[0]!);
    return session;
  },
  run: (session) => extendedAll(session, TEXT, LIST),
  check: (result) => answerOf(result as readonly Rows[]),
};
export default scenario;
