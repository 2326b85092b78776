/** Segments of several requests: one Sync, one fate. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { PipelineAbortedError } from "../../src/errors.ts";
import { SYNC_SHARED } from "../../src/engine/request.ts";
import { IN_TRANSACTION } from "../../src/wire/message_types.ts";
import * as backend from "../_support/backend_writer.ts";
import { assertSettled, createParameters, failureOf, Harness, type Outcome } from "./harness.ts";
import { described, executed, failed, firstUse, simpleAnswer } from "./transcripts.ts";

const NEVER_RAN = "PipelineAbortedError: Never ran: an earlier query of the same batch failed";
const ROLLED_BACK = "PipelineAbortedError: Rolled back: a later query of the same batch failed";

const first = backend.concat(described(["x"]), executed(["1"]));
const ambiguous = (...values: (string | Error)[]) => createParameters(values, { ambiguous: true });

test("a batch is one segment with one Sync, and settles at its ReadyForQuery in order", () => {
  const harness = new Harness();
  const outcomes = harness.batch({ text: "a" }, { text: "b" }, { text: "c" });
  assert.equal(
    harness.sent(),
    "Parse Describe Bind Execute Parse Describe Bind Execute Parse Describe Bind Execute Sync",
  );
  harness.receive(first, first, first);
  assert.deepEqual(outcomes.map(({ settled }) => settled), [0, 0, 0]);
  harness.receive(backend.readyForQuery());
  assertSettled(outcomes);
  assert.deepEqual(harness.order, ["a", "b", "c"]);
  assert.deepEqual(outcomes.map(failureOf), [undefined, undefined, undefined]);
});

for (const culprit of [0, 1, 2]) {
  test(`query ${culprit + 1} of a batch of three fails: those before are rolled back, those after never ran`, () => {
    const harness = new Harness();
    const outcomes = harness.batch({ text: "a" }, { text: "b" }, { text: "c" });
    const behind = harness.simple("behind");
    harness.output();
    harness.receive(...[first, first].slice(0, culprit), failed("23505", "duplicate"), simpleAnswer("9"));
    assertSettled([...outcomes, behind]);
    assert.deepEqual(
      outcomes.map(failureOf),
      [0, 1, 2].map((i) => i < culprit ? ROLLED_BACK : i > culprit ? NEVER_RAN : "PostgresError: duplicate"),
    );
    for (const [i, { request }] of outcomes.entries()) {
      if (i === culprit) continue;
      const error = request.failure!() as PipelineAbortedError;
      assert.ok(error instanceof PipelineAbortedError);
      assert.equal(error.executed, i < culprit);
      assert.equal((error.cause as Error).message, "duplicate");
    }
    assert.equal(failureOf(behind), undefined);
  });
}

test("a batch that fails at its commit is rolled back whole", () => {
  const harness = new Harness();
  const outcomes = harness.batch({ text: "a" }, { text: "b" });
  const behind = harness.simple("behind");
  harness.receive(first, first, failed("23505", "deferred"), simpleAnswer("1"));
  assertSettled([...outcomes, behind]);
  assert.deepEqual(outcomes.map(failureOf), [ROLLED_BACK, "PostgresError: deferred"]);
  assert.equal(failureOf(behind), undefined);
});

test("inside a transaction block the queries before the failing one keep their results", () => {
  const harness = new Harness({}, IN_TRANSACTION);
  const outcomes = harness.batch({ text: "a" }, { text: "b" }, { text: "c" });
  harness.receive(first, failed("23505", "duplicate", "E"));
  assertSettled(outcomes);
  assert.deepEqual(outcomes.map(failureOf), [undefined, "PostgresError: duplicate", NEVER_RAN]);
});

test("a value of a batch that does not fit leaves nothing of the batch in the output", () => {
  for (const culprit of [0, 1, 2]) {
    const harness = new Harness();
    const before = harness.extended("before");
    const outcomes = harness.batch(
      ...[0, 1, 2].map((i) => ({
        text: `q${i}`,
        parameters: createParameters([i === culprit ? new RangeError("unfit") : "fits"]),
      })),
    );
    assertSettled(outcomes);
    assert.deepEqual(
      outcomes.map(failureOf),
      [0, 1, 2].map((i) => i === culprit ? "RangeError: unfit" : NEVER_RAN),
    );
    assert.equal(harness.sent(), "Parse Describe Bind Execute Sync");
    harness.receive(firstUse([]));
    assertSettled([before]);
    // What the batch would have prepared is unknown to the server.
    harness.extended("q0", "1");
    assert.equal(harness.sent(), "Parse Describe Bind Execute Sync");
  }
});

test("a batch stops before an ambiguous value and goes on with the description", () => {
  const harness = new Harness();
  const outcomes = harness.batch(
    { text: "a" },
    { text: "b", parameters: ambiguous("{1}") },
    { text: "c" },
    { text: "d", parameters: ambiguous("{2}") },
    { text: "e" },
  );
  const behind = harness.simple("behind");
  assert.equal(harness.sent(), "Parse Describe Bind Execute Parse Describe Flush");
  harness.receive(first, described(["x"], [1007]));
  assert.equal(harness.sent(), "Bind Execute Parse Describe Bind Execute Parse Describe Flush");
  harness.receive(executed(["2"]), first, described(["x"], [1007]));
  assert.equal(harness.sent(), "Bind Execute Parse Describe Bind Execute Sync Query");
  harness.receive(executed(["4"]), first, backend.readyForQuery(), simpleAnswer("6"));
  assertSettled([...outcomes, behind]);
  assert.deepEqual([...outcomes, behind].map(failureOf), new Array(6).fill(undefined));
  assert.deepEqual(harness.order, ["a", "b", "c", "d", "e", "behind"]);
});

test("a batch whose ambiguous query fails to parse settles whole", () => {
  const harness = new Harness();
  const outcomes = harness.batch({ text: "a" }, { text: "b", parameters: ambiguous("{1}") }, { text: "c" });
  const behind = harness.simple("behind");
  harness.output();
  harness.receive(first, backend.errorResponse({ M: "no function" }));
  assert.equal(harness.sent(), "Sync Query");
  harness.receive(backend.readyForQuery(), simpleAnswer("1"));
  assertSettled([...outcomes, behind]);
  assert.deepEqual(outcomes.map(failureOf), [ROLLED_BACK, "PostgresError: no function", NEVER_RAN]);
});

test("a batch whose earlier query fails while a later one waits for its description settles whole", () => {
  const harness = new Harness();
  const outcomes = harness.batch({ text: "a" }, { text: "b", parameters: ambiguous("{1}") }, { text: "c" });
  const behind = harness.simple("behind");
  assert.equal(harness.sent(), "Parse Describe Bind Execute Parse Describe Flush");
  // The server skips the rest up to a Sync, the description too.
  harness.receive(described([]), backend.errorResponse({ M: "division by zero" }));
  assert.equal(harness.sent(), "Sync Query");
  harness.receive(backend.readyForQuery(), simpleAnswer("1"));
  assertSettled([...outcomes, behind]);
  assert.deepEqual(outcomes.map(failureOf), ["PostgresError: division by zero", NEVER_RAN, NEVER_RAN]);
  assert.equal(failureOf(behind), undefined);
});

for (const culprit of [1, 2]) {
  test(`a batch whose value ${culprit + 1} turns out unfit after a description is rolled back and settles whole`, () => {
    const harness = new Harness();
    const value = (i: number) => i === culprit ? new RangeError("unfit") : "fits";
    const outcomes = harness.batch(
      { text: "a" },
      { text: "b", parameters: ambiguous(value(1)) },
      { text: "c", parameters: createParameters([value(2)]) },
    );
    const behind = harness.simple("behind");
    harness.output();
    harness.receive(first, described(["x"], [1007]));
    // Something must make the server roll back what ran: a Sync alone would commit it.
    const messages = harness.output();
    assert.deepEqual(messages.map(({ type }) => type), ["Bind", "Sync", "Query"]);
    assert.notEqual(messages[0]?.type === "Bind" && messages[0].statement, "");
    harness.receive(failed("26000", "prepared statement does not exist"), simpleAnswer("1"));
    assertSettled([...outcomes, behind]);
    assert.equal(failureOf(outcomes[0]!), ROLLED_BACK);
    assert.equal(failureOf(outcomes[culprit]!), "RangeError: unfit");
    assert.equal(failureOf(outcomes[3 - culprit]!), NEVER_RAN);
    assert.equal(failureOf(behind), undefined);
  });
}

test("a batch is settled whole when the connection ends while it waits for a description", () => {
  const harness = new Harness();
  const outcomes = harness.batch({ text: "a" }, { text: "b", parameters: ambiguous("{1}") }, { text: "c" });
  const behind = harness.simple("behind");
  harness.output();
  harness.engine.receiveEnd();
  assertSettled([...outcomes, behind]);
  for (const outcome of outcomes) assert.match(failureOf(outcome)!, /^ConnectionError: /);
});

/** Requests as they are submitted inside a transaction block. */
function shared(harness: Harness, text: string, parameters = createParameters([])): Outcome {
  return harness.submit({ text, parameters, set: { sync: SYNC_SHARED } });
}

test("requests of one turn inside a transaction block share a Sync", () => {
  const harness = new Harness({}, IN_TRANSACTION);
  const outcomes = [shared(harness, "a"), shared(harness, "b")];
  assert.equal(harness.sent(), "Parse Describe Bind Execute Parse Describe Bind Execute Sync");
  outcomes.push(shared(harness, "c"));
  assert.equal(harness.sent(), "Parse Describe Bind Execute Sync");
  harness.receive(first, first, backend.readyForQuery("T"), first, backend.readyForQuery("T"));
  assertSettled(outcomes);
  assert.deepEqual(outcomes.map(failureOf), [undefined, undefined, undefined]);
});

test("a shared Sync is paid before another kind of request", () => {
  const harness = new Harness({}, IN_TRANSACTION);
  const outcomes = [shared(harness, "a"), harness.simple("savepoint s"), shared(harness, "b")];
  assert.equal(harness.sent(), "Parse Describe Bind Execute Sync Query Parse Describe Bind Execute Sync");
  harness.receive(
    first,
    backend.readyForQuery("T"),
    backend.commandComplete("SAVEPOINT"),
    backend.readyForQuery("T"),
    first,
    backend.readyForQuery("T"),
  );
  assertSettled(outcomes);
});

test("an unfit value among requests that share a Sync fails alone", () => {
  const harness = new Harness({}, IN_TRANSACTION);
  const outcomes = [
    shared(harness, "a"),
    shared(harness, "b", createParameters([new RangeError("unfit")])),
    shared(harness, "c"),
  ];
  assert.equal(harness.sent(), "Parse Describe Bind Execute Parse Describe Bind Execute Sync");
  harness.receive(first, first, backend.readyForQuery("T"));
  assertSettled(outcomes);
  assert.deepEqual(outcomes.map(failureOf), [undefined, "RangeError: unfit", undefined]);
});

test("an ambiguous request among those that share a Sync is not left waiting when one before it fails", () => {
  const harness = new Harness({}, IN_TRANSACTION);
  const outcomes = [shared(harness, "a"), shared(harness, "b", ambiguous("{1}")), shared(harness, "c")];
  const sent = harness.output().map(({ type }) => type);
  harness.receive(described([]), backend.errorResponse({ M: "division by zero" }));
  const syncs =
    [...sent, ...harness.output().map(({ type }) => type)].filter((type) => type === "Sync").length;
  assert.ok(syncs >= 1, `the server waits for a Sync, behind ${sent.join()}`);
  harness.receive(backend.readyForQuery("E"));
  // What has a segment of its own is refused by the failed block.
  for (let i = 0; i < 5 && !harness.engine.idle; i++) {
    const messages = harness.output().map(({ type }) => type);
    if (messages.includes("Sync") || sent.lastIndexOf("Flush") > sent.lastIndexOf("Sync")) {
      harness.receive(failed("25P02", "transaction is aborted", "E"));
    }
  }
  assertSettled(outcomes);
  assert.equal(failureOf(outcomes[0]!), "PostgresError: division by zero");
});

test("a Sync never stands between a description and its execution", () => {
  const harness = new Harness({}, IN_TRANSACTION);
  const outcomes = [shared(harness, "a"), shared(harness, "b", ambiguous("{1}"))];
  const sent = harness.sent();
  assert.match(sent, /Describe Flush$/);
  harness.receive(
    first,
    ...(sent.includes("Sync") ? [backend.readyForQuery("T")] : []),
    described([], [1007]),
  );
  assert.equal(harness.sent(), "Bind Execute Sync");
  harness.receive(executed(), backend.readyForQuery("T"));
  assertSettled(outcomes);
});
