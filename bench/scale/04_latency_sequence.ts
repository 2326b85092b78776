import { answerOf } from "../harness/answers.ts";
import type { Rows, Session } from "../harness/driver.ts";
import { type Scenario, valuesList } from "../harness/scenario.ts";

const TEXT = "select $1::int4 as n, $2::text as t";
const LIST = valuesList(10, (i) => [i, `text ${i}`]);
const POINTS = [0, 1, 20];

const scenario: Scenario<Session> = {
  name: "latency in sequence",
  title: "Ten queries one after the other, with so much latency added",
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
  async run(session) {
    const results: Rows[] = [];
    for (const values of LIST) results.push(await session.extended!(TEXT, values));
    return results;
  },
  check: (result) => answerOf(result as readonly Rows[]),
};
export default scenario;
