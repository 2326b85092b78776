import { answerOf } from "../harness/answers.ts";
import type { OpenTransaction, Rows, Session } from "../harness/driver.ts";
import { type Scenario, valuesList } from "../harness/scenario.ts";

const TEXT = "select $1::int4 as n, 'constant' as t";
const LIST = valuesList(50, (i) => [i]);

/** Operations in one transaction: the server becomes slower in a long one, and BEGIN and ROLLBACK count as little. */
const OPERATIONS = 20;

interface State {
  readonly session: Session;
  transaction: OpenTransaction;
  operations: number;
}

const scenario: Scenario<State> = {
  name: "open tx 50",
  title:
    "50 executions of one statement at once, inside a transaction that is open (and renewed every 20 times)",
  unit: "50 queries",
  queries: 50,
  needs: ["openTransaction"],
  expect: { rows: 50, columns: ["n", "t"] },
  setup: async ({ session }) => ({ session, transaction: await session.openTransaction!(), operations: 0 }),
  async run(state) {
    if (++state.operations % OPERATIONS === 0) {
      await state.transaction.end();
      state.transaction = await state.session.openTransaction!();
    }
    return await state.transaction.run(TEXT, LIST);
  },
  check: (result) => answerOf(result as readonly Rows[]),
  teardown: async ({ transaction }) => void await transaction.end(),
};
export default scenario;
