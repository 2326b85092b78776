/** The queue of requests by itself, against a plain list. */

import assert from "node:assert/strict";
import { test } from "node:test";
import process from "node:process";
import { Pipeline } from "../../src/engine/pipeline.ts";
import { EXTENDED, NO_PARAMETERS, Request } from "../../src/engine/request.ts";
import { assertLinear } from "../_support/linear.ts";
import { seededRandom } from "../_support/proxy.ts";
import { createPlanner } from "./harness.ts";

const SEED: number = Number(process.env["PIPEGRES_SEED"] ?? Math.floor(Math.random() * 1e9));

const planner = createPlanner();

function createRequest(segmentEnd: boolean): Request {
  const request = new Request(EXTENDED, "", NO_PARAMETERS, planner, () => {});
  request.segmentEnd = segmentEnd;
  return request;
}

test("whatever is done to the queue, it holds what a plain list would hold", () => {
  console.log(`seed ${SEED} (PIPEGRES_SEED)`);
  const random = seededRandom(SEED);
  const pipeline = new Pipeline();
  let list: Request[] = [];
  let answered = 0;
  const leave = (count: number) => {
    list = list.slice(count);
    answered = 0;
  };
  for (let step = 0; step < 50_000; step++) {
    // Grows for a while, then shrinks: past the size at which it is compacted, and down to nothing.
    const grows = random() < (step % 4_000 < 2_000 ? 0.8 : 0.35);
    const end = list.findIndex(({ segmentEnd }) => segmentEnd);
    if (grows) {
      const request = createRequest(random() < 0.6);
      if (list.length > answered && random() < 0.2) {
        request.segmentEnd = false;
        pipeline.pushBeforeLast(request);
        list.splice(list.length - 1, 0, request);
      } else {
        pipeline.push(request);
        list.push(request);
      }
    } else if (random() < 0.01) {
      assert.deepEqual(pipeline.takeInFlight(), list);
      leave(list.length);
    } else if (random() < 0.1 && list.length > answered) {
      const kept = answered + Math.floor(random() * (list.length - answered));
      pipeline.truncate(kept);
      list.length = kept;
    } else if (random() < 0.2 && answered > 0 && !list[answered - 1]!.segmentEnd) {
      pipeline.removeAnswered();
      list.splice(--answered, 1);
    } else if (answered < list.length && answered <= end) {
      pipeline.advance();
      answered++;
    } else if (end === 0 && random() < 0.8) {
      assert.equal(pipeline.takeSingle(), list[0]);
      leave(1);
    } else if (end >= 0) {
      const segment = pipeline.takeSegment()!;
      assert.equal(segment.length, end + 1);
      segment.forEach((request, i) => assert.equal(request, list[i]));
      leave(end + 1);
    } else assert.equal(pipeline.takeSegment(), undefined);
    const last = answered > 0 ? list[answered - 1] : undefined;
    assert.equal(pipeline.inFlight, list.length);
    assert.equal(pipeline.last, list.at(-1));
    assert.equal(pipeline.answered, last);
    assert.equal(pipeline.current, last?.segmentEnd ? last : list[answered]);
  }
});

test("questions that leave with their segment leave nothing behind", async () => {
  const held = createRequest(true);
  const question = createRequest(false);
  await assertLinear(
    (size) => {
      const pipeline = new Pipeline();
      const began = performance.now();
      for (let i = 0; i < size; i++) {
        pipeline.push(held);
        pipeline.pushBeforeLast(question);
        pipeline.takeSegment();
      }
      return performance.now() - began;
    },
    10_000,
    8,
  );
});
