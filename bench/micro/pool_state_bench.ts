/**
 * What it costs to choose a connection for each query, by the size of the pool.
 *
 * node bench/micro/pool_state_bench.ts   (or deno run -A, bun run)
 */

import { OWN, type PoolEntry, PoolState, SHARED } from "../../src/pool/pool_state.ts";
import { loadMitata } from "./mitata.ts";

const QUERIES = 1000;
const LIMITS = { minIdle: 0, idleTimeout: 0, maxLifetime: 0 };

/** A pool of `size` open connections without work. */
function createState(size: number): PoolState<number> {
  const state = new PoolState<number>({ ...LIMITS, max: size });
  const opening: PoolEntry<number>[] = [];
  for (let i = 0; i < size; i++) {
    state.wait({ need: SHARED, since: 0, place: 0, grant: (entry) => state.finished(entry, SHARED, 0) });
    const entry = state.startOpening(0);
    if (entry !== undefined) opening.push(entry);
  }
  opening.forEach((entry, i) => state.opened(entry, i, 0, 0));
  if (state.idle !== size) throw new Error(`${state.idle} of ${size} connections are idle`);
  return state;
}

const mitata = await loadMitata();
mitata.group(`${QUERIES} queries`, () => {
  for (const size of [1, 10, 100]) {
    const state = createState(size);
    mitata.bench(`one after the other, ${size} connections`, () => {
      for (let i = 0; i < QUERIES; i++) state.finished(state.take(SHARED, 0)!, SHARED, 0);
    });
    mitata.bench(`all at once, ${size} connections`, () => {
      const taken: PoolEntry<number>[] = [];
      for (let i = 0; i < QUERIES; i++) taken.push(state.take(SHARED, 0)!);
      for (const entry of taken) state.finished(entry, SHARED, 0);
    });
    mitata.bench(`owners in line, ${size} connections`, () => {
      let served = 0;
      const grant = (entry: PoolEntry<number>): void => {
        served++;
        state.finished(entry, OWN, 0);
      };
      const first = state.take(OWN, 0)!;
      for (let i = 0; i < 100; i++) state.wait({ need: OWN, since: 0, place: 0, grant });
      state.finished(first, OWN, 0);
      mitata.do_not_optimize(served);
    });
  }
});
await mitata.run();
