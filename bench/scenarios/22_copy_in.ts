import { answerOfCount } from "../harness/answers.ts";
import { rowCount, type Session } from "../harness/driver.ts";
import type { Scenario } from "../harness/scenario.ts";

const ROW_COUNT = 1_000_000;

interface State {
  readonly session: Session;
  readonly chunks: readonly Uint8Array[];
  readonly table: string;
}

const scenario: Scenario<State> = {
  name: "copy in 1M",
  title: "COPY FROM STDIN of 1,000,000 rows of two columns, from ready text in chunks of 64 KB",
  unit: "1,000,000 rows",
  queries: 1,
  needs: ["copyIn", "simple"],
  expect: { rows: 1, columns: [] },
  async setup({ session }) {
    // Not a temporary table: some drivers copy on a connection of their own. A table for each process.
    const table = `pipegres_bench.copy_${Math.random().toString(36).slice(2)}`;
    await session.simple!(`create unlogged table ${table} (id int4, name text)`);
    return { session, chunks: makeChunks(), table };
  },
  async run(state) {
    const { session, chunks, table } = state;
    await session.simple!(`truncate ${table}`);
    return await session.copyIn!(`copy ${table} from stdin`, chunks);
  },
  async check(_, state) {
    const { session, table } = state;
    const rows = await session.simple!(
      `select 1 as one from ${table} having count(*) = ${ROW_COUNT} and min(name) = 'name 0' and max(id) = ${
        ROW_COUNT - 1
      }`,
    );
    return answerOfCount(rowCount(rows));
  },
  async teardown(state) {
    const { session, table } = state;
    await session.simple!(`drop table ${table}`);
  },
};
export default scenario;

function makeChunks(): Uint8Array[] {
  const encoder = new TextEncoder();
  const chunks: Uint8Array[] = [];
  let text = "";
  for (let i = 0; i < ROW_COUNT; i++) {
    text += `${i}\tname ${i}\n`;
    if (text.length >= 65_536) {
      chunks.push(encoder.encode(text));
      text = "";
    }
  }
  chunks.push(encoder.encode(text));
  return chunks;
}
