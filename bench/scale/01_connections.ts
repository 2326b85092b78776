import { answerOf } from "../harness/answers.ts";
import type { Rows, Session, Values } from "../harness/driver.ts";
import { extendedAll, type Scenario } from "../harness/scenario.ts";

const TEXT = "select $1::int4 as n, $2::text as t";
const VALUES: Values = [42, "forty-two"];
const POINTS = [1, 2, 4, 8, 16, 32, 64];

const scenario: Scenario<readonly Session[]> = {
  name: "connections",
  title: "One query at once on each of so many connections",
  unit: "connections",
  queries: 1,
  needs: ["extended"],
  points: POINTS,
  expect: { rows: 1, columns: ["n", "t"] },
  async setup({ driver, target, point, session }) {
    const others = Array.from({ length: point - 1 }, () => driver.open(target));
    const sessions = [session, ...await Promise.all(others)];
    for (const each of sessions) await each.extended!(TEXT, VALUES);
    return sessions;
  },
  run: (sessions) => Promise.all(sessions.map((session) => extendedAll(session, TEXT, [VALUES]))),
  check: (result) => answerOf((result as readonly (readonly Rows[])[])[0]!),
  async teardown([, ...others]) {
    await Promise.all(others.map((session) => session.close()));
  },
};
export default scenario;
