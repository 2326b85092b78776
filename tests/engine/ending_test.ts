/** How a session ends, and that nothing waits for ever then. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { ConnectionError, PostgresError, ProtocolError } from "../../src/errors.ts";
import * as backend from "../_support/backend_writer.ts";
import { assertSettled, createParameters, failureOf, Harness, type Outcome } from "./harness.ts";
import { described, simpleAnswer } from "./transcripts.ts";

function errorOf(outcome: Outcome): ConnectionError {
  const error = outcome.request.failure!();
  assert.ok(error instanceof ConnectionError, String(error));
  return error;
}

test("the end of the stream fails everything, and says what may have been sent", () => {
  const harness = new Harness({ maxQueries: 2 });
  const outcomes = [harness.simple("taken")];
  harness.output();
  outcomes.push(harness.simple("written, not taken"), harness.simple("waiting"));
  harness.engine.receiveEnd();
  assertSettled(outcomes);
  assert.deepEqual(harness.order, ["taken", "written, not taken", "waiting"]);
  assert.deepEqual(outcomes.map((outcome) => errorOf(outcome).sent), ["unknown", false, false]);
  assert.equal(errorOf(outcomes[0]!).message, "Connection lost: the server closed it");
  assert.equal(errorOf(outcomes[0]!).code, "CONNECTION_LOST");
  const later = harness.simple("later");
  assertSettled([later]);
  assert.equal(errorOf(later).sent, false);
  assert.equal(harness.engine.takeOutput() === null || harness.engine.idle, true);
});

test("a part of a pipeline that was answered before the end keeps its results", () => {
  const harness = new Harness();
  const outcomes = [harness.simple("a"), harness.simple("b")];
  harness.output();
  harness.receive(simpleAnswer("1"));
  harness.engine.receiveEnd();
  assertSettled(outcomes);
  assert.equal(failureOf(outcomes[0]!), undefined);
  assert.equal(errorOf(outcomes[1]!).sent, "unknown");
});

test("the transport's reason is the cause", () => {
  const harness = new Harness();
  const outcome = harness.simple("a");
  const cause = new Error("read ECONNRESET");
  harness.engine.receiveEnd(cause);
  assert.equal(errorOf(outcome).cause, cause);
  assert.equal(errorOf(outcome).message, "Connection lost: read ECONNRESET");
});

test("an end inside a message is called so", () => {
  const harness = new Harness();
  const outcome = harness.simple("a");
  harness.receive(simpleAnswer("1").subarray(0, 9));
  harness.engine.receiveEnd();
  assertSettled([outcome]);
  assert.ok(errorOf(outcome).cause instanceof ProtocolError);
});

test("FATAL, then the end: everything unsettled fails alike, with the server's error as the cause", () => {
  const harness = new Harness();
  const outcomes = [harness.simple("a"), harness.simple("b")];
  harness.output();
  outcomes.push(harness.simple("c"));
  harness.receive(
    backend.errorResponse({ S: "FATAL", V: "FATAL", C: "57P01", M: "terminating connection" }),
  );
  assert.ok(harness.engine.doomed);
  harness.engine.receiveEnd();
  assertSettled(outcomes);
  for (const outcome of outcomes) {
    const error = errorOf(outcome);
    assert.equal(error.message, "Connection lost: terminating connection");
    assert.ok(error.cause instanceof PostgresError);
    assert.equal(error.cause.code, "57P01");
  }
  assert.deepEqual(outcomes.map((outcome) => errorOf(outcome).sent), ["unknown", "unknown", false]);
});

test("FATAL while nothing runs is no breach of the protocol, and names the end", () => {
  const harness = new Harness();
  harness.receive(backend.errorResponse({ S: "FATAL", V: "FATAL", C: "57P01", M: "terminating connection" }));
  const outcome = harness.simple("a");
  harness.engine.receiveEnd();
  assertSettled([outcome]);
  assert.equal((errorOf(outcome).cause as PostgresError).code, "57P01");
});

test("FATAL from a server that does not send V is recognised by S", () => {
  const harness = new Harness();
  harness.receive(
    backend.message(
      "E",
      backend.concat(backend.cstring("SFATAL"), backend.cstring("C57P01"), backend.int8(0)),
    ),
  );
  const outcome = harness.simple("a");
  harness.engine.receiveEnd();
  assert.equal((errorOf(outcome).cause as PostgresError).code, "57P01");
});

test("a second error behind a first is a breach, unless it is FATAL", () => {
  const harness = new Harness();
  const outcomes = [harness.simple("a"), harness.simple("b")];
  harness.receive(backend.errorResponse({ M: "first" }));
  assert.throws(() => harness.receive(backend.errorResponse({ M: "second" })), ProtocolError);
  assertSettled(outcomes);
  assert.equal(failureOf(outcomes[0]!), "PostgresError: first");
  assert.match(failureOf(outcomes[1]!)!, /^ProtocolError: /);
});

test("abandon() fails everything with what it is given, once", () => {
  const harness = new Harness({ maxQueries: 1 });
  const outcomes = [harness.simple("a"), harness.simple("b")];
  harness.output();
  harness.engine.abandon((sent) => new Error(`gone: ${sent}`));
  harness.engine.abandon(() => new Error("again"));
  harness.engine.receiveEnd();
  assertSettled(outcomes);
  assert.deepEqual(outcomes.map(failureOf), ["Error: gone: unknown", "Error: gone: false"]);
});

test("bytes after a breach of the protocol are refused again, and settle nothing twice", () => {
  const harness = new Harness();
  const outcome = harness.simple("a");
  assert.throws(() => harness.receive(backend.bindComplete), ProtocolError);
  try {
    harness.receive(simpleAnswer("1"));
  } catch (error) {
    assert.ok(error instanceof ProtocolError);
  }
  harness.engine.receiveEnd();
  assertSettled([outcome]);
  assert.match(failureOf(outcome)!, /^ProtocolError: /);
});

test("each failure is an error of its own", () => {
  const harness = new Harness();
  const outcome = harness.simple("a");
  harness.engine.receiveEnd();
  assert.notEqual(outcome.request.failure!(), outcome.request.failure!());
});

test("a request that waits for a description is settled at the end, with those behind it", () => {
  const harness = new Harness();
  const held = harness.submit({ text: "held", parameters: createParameters(["{1}"], { ambiguous: true }) });
  const behind = harness.simple("behind");
  harness.output();
  harness.receive(described([]).subarray(0, 5));
  harness.engine.receiveEnd();
  assertSettled([held, behind]);
  assert.deepEqual([held, behind].map((outcome) => errorOf(outcome).sent), ["unknown", false]);
});

test("a decoder that throws fails its request and lets the connection go on", () => {
  const harness = new Harness();
  let rows = 0;
  const planner = {
    formats: () => [],
    plan: () => () => {
      if (++rows === 2) throw new RangeError("row 2");
      return rows;
    },
  };
  const outcome = harness.submit({ text: "a", planner });
  const behind = harness.simple("b");
  harness.receive(described(["x"]), backend.bindComplete);
  harness.receive(...["1", "2", "3"].map((value) => backend.dataRow([value])));
  harness.receive(backend.dataRow(["4"]), backend.commandComplete("SELECT 4"), backend.readyForQuery());
  harness.receive(simpleAnswer("1"));
  assertSettled([outcome, behind]);
  assert.equal(failureOf(outcome), "RangeError: row 2");
  assert.equal(rows, 2, "nothing is decoded in vain");
  assert.deepEqual(outcome.request.rows, []);
  assert.deepEqual(behind.request.results?.[0]?.rows, [["1"]]);
});

test("a planner that throws fails its request and lets the connection go on", () => {
  const harness = new Harness();
  const planner = {
    formats: () => [],
    plan(): never {
      throw new RangeError("no such type");
    },
  };
  const outcome = harness.submit({ text: "a", planner });
  const second = harness.submit({ kind: 0, text: "b", planner });
  const behind = harness.simple("c");
  harness.receive(described(["x"]), backend.bindComplete, backend.dataRow(["1"]));
  harness.receive(
    backend.commandComplete("SELECT 1"),
    backend.readyForQuery(),
    simpleAnswer("2"),
    simpleAnswer("3"),
  );
  assertSettled([outcome, second, behind]);
  assert.deepEqual([outcome, second, behind].map(failureOf), [
    "RangeError: no such type",
    "RangeError: no such type",
    undefined,
  ]);
});
