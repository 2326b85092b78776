/** COPY that nobody gives data to or takes data from. */

import { test } from "node:test";
import assert from "node:assert/strict";
import * as backend from "../_support/backend_writer.ts";
import { assertSettled, failureOf, Harness } from "./harness.ts";
import { described, failed, simpleAnswer } from "./transcripts.ts";

const REFUSED_IN = "PipegresError: Cannot run COPY FROM STDIN as a plain query: use copyFrom()";
const REFUSED_OUT = "PipegresError: Cannot run COPY TO STDOUT as a plain query: use copyTo()";

test("COPY FROM STDIN as a simple query is answered with CopyFail", () => {
  const harness = new Harness();
  const outcome = harness.submit({ kind: 0, text: "copy t from stdin", set: { alone: true } });
  const behind = harness.simple("select");
  assert.equal(harness.sent(), "Query");
  harness.receive(backend.copyInResponse(0, [0]));
  assert.equal(harness.sent(), "CopyFail");
  harness.receive(failed("57014", "COPY from stdin failed"));
  assert.equal(harness.sent(), "Query");
  harness.receive(simpleAnswer("1"));
  assertSettled([outcome, behind]);
  assert.equal(failureOf(outcome), REFUSED_IN);
  assert.equal(failureOf(behind), undefined);
});

test("COPY FROM STDIN as an extended query is answered with CopyFail and the Sync that the server skipped", () => {
  const harness = new Harness();
  const outcome = harness.submit({ text: "copy t from stdin", set: { alone: true } });
  harness.output();
  harness.receive(described([]), backend.bindComplete, backend.copyInResponse(0, [0]));
  assert.equal(harness.sent(), "CopyFail Sync");
  harness.receive(failed("57014", "COPY from stdin failed"));
  assertSettled([outcome]);
  assert.equal(failureOf(outcome), REFUSED_IN);
  assert.equal(harness.engine.idle, true);
});

for (const kind of [0, 1]) {
  test(`COPY TO STDOUT by kind ${kind} is passed over, and its data too`, () => {
    const harness = new Harness();
    const outcome = harness.submit({ kind, text: "copy t to stdout" });
    const behind = harness.simple("select");
    if (kind === 1) harness.receive(described([]), backend.bindComplete);
    harness.receive(backend.copyOutResponse(0, [0]));
    for (let i = 0; i < 3; i++) harness.receive(backend.copyData("1\n"));
    harness.receive(backend.copyDone, backend.commandComplete("COPY 3"), backend.readyForQuery());
    harness.receive(simpleAnswer("1"));
    assertSettled([outcome, behind]);
    assert.equal(failureOf(outcome), REFUSED_OUT);
    assert.equal(failureOf(behind), undefined);
  });
}

test("COPY TO STDOUT that fails midway settles", () => {
  const harness = new Harness();
  const outcome = harness.simple("copy t to stdout");
  harness.receive(backend.copyOutResponse(0, [0]), backend.copyData("1\n"), failed("57014", "cancelled"));
  assertSettled([outcome]);
});
