/** Order, windows, waiting, and what holds the queue. */

import { test } from "node:test";
import assert from "node:assert/strict";
import * as backend from "../_support/backend_writer.ts";
import { assertSettled, createParameters, failureOf, Harness } from "./harness.ts";
import { described, executed, failed, firstUse, simpleAnswer } from "./transcripts.ts";

const ambiguous = (...values: (string | Error)[]) => createParameters(values, { ambiguous: true });

test("requests of all kinds are written and answered in the order of submission", () => {
  const harness = new Harness();
  const outcomes = [harness.simple("a"), harness.extended("b"), harness.simple("c"), harness.extended("b")];
  assert.equal(
    harness.sent(),
    "Query Parse Describe Bind Execute Sync Query Parse Describe Bind Execute Sync",
  );
  harness.receive(simpleAnswer("1"), firstUse(["a"], ["2"]), simpleAnswer("3"), firstUse(["a"], ["4"]));
  assertSettled(outcomes);
  assert.deepEqual(harness.order, ["a", "b", "c", "b"]);
  assert.deepEqual(outcomes.map(({ request }) => request.results?.[0]?.rows ?? request.rows), [
    [["1"]],
    [["2"]],
    [["3"]],
    [["4"]],
  ]);
});

test("a failing request fails alone", () => {
  const harness = new Harness();
  const outcomes = [harness.extended("a"), harness.extended("b"), harness.extended("c")];
  harness.output();
  harness.receive(firstUse(["x"], ["1"]), failed("42P01", "no table"), firstUse(["x"], ["3"]));
  assertSettled(outcomes);
  assert.deepEqual(outcomes.map(failureOf), [undefined, "PostgresError: no table", undefined]);
  assert.deepEqual(outcomes[2]?.request.rows, [["3"]]);
});

test("an error of the commit belongs to the request before it, not to the one behind", () => {
  const harness = new Harness();
  const outcomes = [harness.extended("insert"), harness.extended("select")];
  harness.output();
  harness.receive(described([]), executed(), failed("23505", "duplicate"), firstUse(["x"], ["1"]));
  assertSettled(outcomes);
  assert.deepEqual(outcomes.map(failureOf), ["PostgresError: duplicate", undefined]);
  assert.deepEqual(outcomes[1]?.request.rows, [["1"]]);
});

test("an error of the commit of the last request does not end the connection", () => {
  const harness = new Harness();
  const outcome = harness.extended("insert");
  harness.receive(described([]), executed(), failed("40001", "could not serialize"));
  assertSettled([outcome]);
  assert.equal(failureOf(outcome), "PostgresError: could not serialize");
});

test("a notice of the commit belongs to the request before it", () => {
  const harness = new Harness();
  const outcomes = [harness.extended("insert"), harness.extended("select")];
  harness.receive(
    described([]),
    executed(),
    backend.noticeResponse({ M: "deferred" }),
    backend.readyForQuery(),
  );
  harness.receive(firstUse([]));
  assert.deepEqual(outcomes.map(({ request }) => request.notices?.length ?? 0), [1, 0]);
});

test("isAnswering() is true for one request at a time, up to its ReadyForQuery", () => {
  const harness = new Harness();
  const [first, second] = [harness.extended("a"), harness.extended("b")];
  const answering = () =>
    [first, second].map((outcome) => harness.engine.isAnswering(outcome!.request) ? 1 : 0).join("");
  assert.equal(answering(), "10");
  harness.receive(described([]), backend.bindComplete);
  assert.equal(answering(), "10");
  harness.receive(backend.commandComplete("SELECT 0"));
  assert.equal(answering(), "10", "its commit is still to come");
  harness.receive(backend.readyForQuery());
  assert.equal(answering(), "01");
  harness.receive(firstUse([]));
  assert.equal(answering(), "00");
});

test("first use is not overtaken", () => {
  const harness = new Harness();
  const outcomes = [harness.extended("a"), harness.simple("b")];
  harness.receive(described(["x"]));
  outcomes.push(harness.extended("c"));
  assert.equal(
    harness.sent(),
    "Parse Describe Bind Execute Sync Query Parse Describe Bind Execute Sync",
  );
  harness.receive(executed(["1"]), backend.readyForQuery(), simpleAnswer("2"), firstUse(["x"], ["3"]));
  assertSettled(outcomes);
  assert.deepEqual(harness.order, ["a", "b", "c"]);
});

test("an ambiguous parameter holds the queue until its types are known, and is not overtaken", () => {
  const harness = new Harness();
  const before = harness.simple("before");
  const held = harness.submit({ text: "held", parameters: ambiguous("{1}") });
  const behind = [harness.simple("behind"), harness.extended("further behind")];
  assert.equal(harness.sent(), "Query Parse Describe Flush");
  harness.receive(simpleAnswer("0"));
  assert.equal(harness.sent(), "");
  harness.receive(described(["x"], [1007]));
  assert.equal(harness.sent(), "Bind Execute Sync Query Parse Describe Bind Execute Sync");
  harness.receive(executed(["1"]), backend.readyForQuery(), simpleAnswer("2"), firstUse(["x"], ["3"]));
  assertSettled([before, held, ...behind]);
  assert.deepEqual(harness.order, ["before", "held", "behind", "further behind"]);
});

test("an ambiguous parameter of a prepared statement holds nothing", () => {
  const harness = new Harness();
  harness.submit({ text: "q", parameters: ambiguous("{1}") });
  harness.output();
  harness.receive(described([], [1007]));
  harness.output();
  harness.receive(executed(), backend.readyForQuery());
  harness.submit({ text: "q", parameters: ambiguous("{2}") });
  harness.simple("behind");
  assert.equal(harness.sent(), "Bind Execute Sync Query");
});

test("a held request whose Parse fails lets the queue go on", () => {
  const harness = new Harness();
  const held = harness.submit({ text: "held", parameters: ambiguous("{1}") });
  const behind = harness.simple("behind");
  harness.output();
  harness.receive(backend.errorResponse({ M: "syntax error" }));
  assert.equal(harness.sent(), "Sync Query");
  harness.receive(backend.readyForQuery(), simpleAnswer("1"));
  assertSettled([held, behind]);
  assert.equal(failureOf(held), "PostgresError: syntax error");
  assert.equal(failureOf(behind), undefined);
});

test("a value that does not fit leaves nothing in the output", () => {
  const harness = new Harness();
  const bad = new RangeError("does not fit");
  const outcomes = [harness.extended("a"), harness.extended("b", "fits", bad), harness.extended("c")];
  assertSettled([outcomes[1]!]);
  assert.equal(failureOf(outcomes[1]!), "RangeError: does not fit");
  const messages = harness.output();
  assert.deepEqual(messages.flatMap((message) => message.type === "Parse" ? [message.text] : []), ["a", "c"]);
  harness.receive(firstUse([]), firstUse([]));
  assertSettled(outcomes);
  harness.extended("b", "fits");
  assert.equal(harness.sent(), "Parse Describe Bind Execute Sync", "b was not prepared");
});

test("a value that does not fit, alone, leaves the engine idle and silent", () => {
  const harness = new Harness();
  const outcome = harness.extended("a", new Error("no"));
  assertSettled([outcome]);
  assert.equal(harness.engine.takeOutput(), null);
  assert.equal(harness.engine.idle, true);
});

test("a value that turns out not to fit the described type ends its request only", () => {
  const harness = new Harness();
  const held = harness.submit({ text: "held", parameters: ambiguous(new Error("no array")) });
  const behind = harness.simple("behind");
  assert.equal(harness.sent(), "Parse Describe Flush");
  harness.receive(described(["x"], [1007]));
  assert.equal(harness.sent(), "Sync Query");
  harness.receive(backend.readyForQuery(), simpleAnswer("1"));
  assertSettled([held, behind]);
  assert.equal(failureOf(held), "Error: no array");
  assert.equal(failureOf(behind), undefined);
});

test("maxQueries bounds what is in flight", () => {
  const harness = new Harness({ maxQueries: 2 });
  const outcomes = ["a", "b", "c", "d", "e"].map((text) => harness.simple(text));
  assert.equal(harness.sent(), "Query Query");
  assert.equal(harness.engine.load, 5);
  harness.receive(simpleAnswer("1"));
  assert.equal(harness.sent(), "Query");
  harness.receive(simpleAnswer("2"), simpleAnswer("3"));
  assert.equal(harness.sent(), "Query Query");
  harness.receive(simpleAnswer("4"), simpleAnswer("5"));
  assertSettled(outcomes);
  assert.deepEqual(harness.order, ["a", "b", "c", "d", "e"]);
  assert.equal(harness.engine.idle, true);
});

test("maxBytes bounds what is in flight, but never stops a single request", () => {
  const harness = new Harness({ maxBytes: 100 });
  const outcomes = ["x".repeat(500), "y".repeat(60), "z".repeat(60), "w".repeat(60)].map((text) =>
    harness.simple(text)
  );
  assert.equal(harness.sent(), "Query");
  harness.receive(simpleAnswer("1"));
  assert.equal(harness.sent(), "Query Query", "less than 100 bytes were in flight before the second");
  harness.receive(simpleAnswer("2"));
  assert.equal(harness.sent(), "Query");
  harness.receive(simpleAnswer("3"), simpleAnswer("4"));
  assertSettled(outcomes);
});

test("bytes in flight come back to nothing whatever became of the requests", () => {
  const harness = new Harness({ maxBytes: 200 });
  for (let round = 0; round < 50; round++) {
    harness.extended(`ok ${round}`);
    harness.output();
    harness.receive(firstUse([]));
    harness.extended(`value ${round}`, new Error("no"));
    harness.submit({ text: `held ${round}`, parameters: ambiguous(new Error("no")) });
    harness.output();
    harness.receive(described([], [1]), backend.readyForQuery());
    harness.output();
    harness.extended(`error ${round}`);
    harness.output();
    harness.receive(failed("42601", "no"));
    harness.batch({ text: `one ${round}` }, {
      text: `two ${round}`,
      parameters: createParameters([new Error("no")]),
    });
  }
  assert.equal(harness.engine.idle, true);
  harness.simple("x");
  harness.simple("y");
  assert.equal(harness.sent(), "Query Query", "both fit");
});

test("withdraw() takes out what waits, and nothing else", () => {
  const harness = new Harness({ maxQueries: 1 });
  const [first, second, third] = ["a", "b", "c"].map((text) => harness.simple(text));
  assert.equal(harness.engine.withdraw(first!.request), false);
  assert.equal(harness.engine.withdraw(second!.request), true);
  assert.equal(harness.engine.withdraw(second!.request), false);
  harness.output();
  harness.receive(simpleAnswer("1"));
  assert.deepEqual(harness.output().map((message) => message.type === "Query" && message.text), ["c"]);
  harness.receive(simpleAnswer("3"));
  assertSettled([first!, third!]);
  assert.equal(second!.settled, 0, "its owner settles it");
});

test("block() lets nothing be written until unblock() is called as often", () => {
  const harness = new Harness();
  harness.engine.block();
  harness.engine.block();
  harness.simple("a");
  assert.equal(harness.sent(), "");
  harness.engine.unblock();
  assert.equal(harness.sent(), "");
  harness.engine.unblock();
  assert.equal(harness.sent(), "Query");
});

test("parameters of a request that waits are those of the moment it was submitted", () => {
  const harness = new Harness({ maxQueries: 1 });
  harness.simple("before");
  const values = ["old"];
  harness.submit({ text: "q", parameters: createParameters(values) });
  values[0] = "new";
  harness.output();
  harness.receive(simpleAnswer("1"));
  const bind = harness.output().find(({ type }) => type === "Bind");
  assert.deepEqual(
    bind?.type === "Bind" && bind.parameters.map((bytes) => new TextDecoder().decode(bytes!)),
    ["old"],
  );
});

test("a request submitted while an answer is being taken finds its place at the end", () => {
  const harness = new Harness({ maxQueries: 2 });
  const outcomes = [harness.simple("a"), harness.simple("b"), harness.simple("c")];
  harness.receive(simpleAnswer("1"));
  outcomes.push(harness.simple("d"));
  harness.receive(simpleAnswer("2"));
  harness.receive(simpleAnswer("3"), simpleAnswer("4"));
  assertSettled(outcomes);
  assert.deepEqual(harness.order, ["a", "b", "c", "d"]);
});

test("parameters of a request that waits for its types are those of the moment it was submitted, in a batch too", () => {
  const harness = new Harness();
  const values = ["old"];
  const submission = { text: "q", parameters: createParameters(values, { ambiguous: true }) };
  harness.batch(submission, { text: "r", parameters: createParameters(values) });
  values[0] = "new";
  harness.output();
  harness.receive(described([], [17]));
  const binds = harness.output().flatMap((message) =>
    message.type === "Bind" ? [message.parameters[0]!] : []
  );
  assert.deepEqual(binds.map((bytes) => new TextDecoder().decode(bytes)), ["old", "old"]);
});
