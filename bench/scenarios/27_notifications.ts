import { answerOfCount } from "../harness/answers.ts";
import type { Session } from "../harness/driver.ts";
import type { Scenario } from "../harness/scenario.ts";

const COUNT = 1000;
const TEXT = "select count(pg_notify($1, i::text))::int4 as n from generate_series(1, $2::int4) i";

interface State {
  readonly sender: Session;
  readonly channel: string;
  unsubscribe: () => Promise<void>;
  received: number;
  wanted: number;
  resolve: (() => void) | undefined;
}

const scenario: Scenario<State> = {
  name: "notifications 1000",
  title: "1,000 notifications sent by another session of the same driver and received",
  unit: "1,000 notifications",
  queries: 1000,
  needs: ["subscribe", "extended"],
  expect: { rows: COUNT, columns: [] },
  async setup({ driver, target, session }) {
    const channel = `bench_${Math.random().toString(36).slice(2)}`;
    const state: State = {
      sender: await driver.open(target),
      channel,
      unsubscribe: () => Promise.resolve(),
      received: 0,
      wanted: 1,
      resolve: undefined,
    };
    state.unsubscribe = await session.subscribe!(channel, () => {
      if (++state.received === state.wanted) state.resolve?.();
    });
    // A subscription may be on its way: the first notification that arrives shows that it is in place.
    for (let attempt = 0; state.received === 0; attempt++) {
      if (attempt === 200) throw new Error("No notification arrived within 200 attempts");
      await state.sender.extended!(TEXT, [channel, 1]);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return state;
  },
  async run(state) {
    state.received = 0;
    state.wanted = COUNT;
    const all = new Promise<void>((resolve) => state.resolve = resolve);
    await state.sender.extended!(TEXT, [state.channel, COUNT]);
    await all;
    return state.received;
  },
  check: (result) => answerOfCount(result as number),
  async teardown({ sender, unsubscribe }) {
    await unsubscribe();
    await sender.close();
  },
};
export default scenario;
