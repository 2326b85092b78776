/** Prepared statements: first use, reuse, eviction, loss. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { DESCRIBE } from "../../src/engine/request.ts";
import * as backend from "../_support/backend_writer.ts";
import type { FrontendMessage } from "../_support/frontend_reader.ts";
import { assertSettled, createParameters, failureOf, Harness } from "./harness.ts";
import { described, executed, failed, firstUse, simpleAnswer } from "./transcripts.ts";

/** Names of statements in messages of one type. */
function names(messages: readonly FrontendMessage[], type: "Parse" | "Bind" | "Close"): string[] {
  return messages.filter((message) => message.type === type).map((message) => {
    if (message.type === "Parse" || message.type === "Bind") return message.statement;
    return message.type === "Close" ? message.name : "";
  });
}

/** Prepares a text by using it once. */
function prepare(harness: Harness, text: string, columns: readonly backend.ColumnDescription[] = []): void {
  const outcome = harness.extended(text);
  harness.output();
  harness.receive(described(columns), executed(), backend.readyForQuery());
  assertSettled([outcome]);
}

test("first use is one round trip: Parse, Describe, Bind, Execute, Sync", () => {
  const harness = new Harness();
  const outcome = harness.extended("select $1", "x");
  const messages = harness.output();
  assert.deepEqual(messages.map(({ type }) => type), ["Parse", "Describe", "Bind", "Execute", "Sync"]);
  const [name] = names(messages, "Parse");
  assert.notEqual(name, "");
  assert.deepEqual(names(messages, "Bind"), [name]);
  harness.receive(firstUse(["a"], ["x"]));
  assertSettled([outcome]);
  assert.deepEqual(outcome.request.rows, [["x"]]);
  assert.equal(outcome.request.tag, "SELECT 1");
});

test("second use binds the name, with the formats that were learned", () => {
  const harness = new Harness();
  prepare(harness, "q", [{ name: "a", typeOid: 23 }, { name: "b" }]);
  const outcome = harness.extended("q");
  const messages = harness.output();
  assert.deepEqual(messages.map(({ type }) => type), ["Bind", "Execute", "Sync"]);
  assert.deepEqual(messages[0]?.type === "Bind" && messages[0].resultFormats, [1, 0]);
  harness.receive(executed([Uint8Array.of(0, 0, 0, 7), "t"]), backend.readyForQuery());
  assert.deepEqual(outcome.request.rows, [["0x00000007", "t"]]);
  assert.deepEqual(outcome.request.fields?.map(({ format }) => format), [1, 0]);
});

test("the same text used twice in one turn: the second is unnamed, both are answered", () => {
  const harness = new Harness();
  const outcomes = [harness.extended("q"), harness.extended("q"), harness.extended("q")];
  const messages = harness.output();
  const parsed = names(messages, "Parse");
  assert.equal(parsed.length, 3);
  assert.deepEqual(parsed.slice(1), ["", ""]);
  assert.notEqual(parsed[0], "");
  harness.receive(firstUse(["a"], ["1"]), firstUse(["a"], ["2"]), firstUse(["a"], ["3"]));
  assert.deepEqual(outcomes.map(({ request }) => request.rows), [[["1"]], [["2"]], [["3"]]]);
  harness.extended("q");
  assert.deepEqual(names(harness.output(), "Bind"), [parsed[0]], "the named one is kept");
});

test("the same text used twice in one turn fails twice with the server's own words", () => {
  const harness = new Harness();
  const outcomes = [harness.extended("selec"), harness.extended("selec")];
  const first = names(harness.output(), "Parse")[0];
  harness.receive(failed("42601", "syntax error"), failed("42601", "syntax error"));
  assertSettled(outcomes);
  for (const outcome of outcomes) assert.equal(failureOf(outcome), "PostgresError: syntax error");
  harness.extended("selec");
  const again = names(harness.output(), "Parse");
  assert.notEqual(again[0], first, "names are never reused");
  assert.notEqual(again[0], "");
});

test("the least recently used statement is closed before the next Parse; names are never reused", () => {
  const harness = new Harness({ statementCache: 2 });
  const used = new Set<string>();
  const parse = (text: string): string => {
    harness.extended(text);
    const messages = harness.output();
    const closed = names(messages, "Close");
    const [name] = names(messages, "Parse");
    assert.ok(name && !used.has(name), text);
    used.add(name);
    harness.receive(...closed.map(() => backend.closeComplete), firstUse([]));
    return closed.join();
  };
  const use = (text: string): string => {
    harness.extended(text);
    const [name] = names(harness.output(), "Bind");
    harness.receive(executed(), backend.readyForQuery());
    return name!;
  };
  assert.equal(parse("a"), "");
  assert.equal(parse("b"), "");
  const [a, b] = [use("a"), use("b")];
  assert.equal(use("a"), a);
  assert.equal(parse("c"), b, "b was used less recently than a");
  assert.equal(use("a"), a);
  assert.notEqual(parse("b"), "");
});

test("a cache of no statements uses the unnamed one only, and never a Close", () => {
  const harness = new Harness({ statementCache: 0 });
  for (let i = 0; i < 5; i++) {
    harness.extended("q");
    const messages = harness.output();
    assert.deepEqual(messages.map(({ type }) => type), ["Parse", "Describe", "Bind", "Execute", "Sync"]);
    assert.deepEqual(names(messages, "Parse"), [""]);
    harness.receive(firstUse([]));
  }
});

test("a very long text is not kept", () => {
  const harness = new Harness();
  harness.extended("select " + "1,".repeat(50_000) + "1");
  assert.deepEqual(names(harness.output(), "Parse"), [""]);
});

test("texts that declare other parameter types are other statements", () => {
  const harness = new Harness();
  const submit = (declared: readonly number[]) => {
    harness.submit({ text: "q", parameters: createParameters(["1"], { declared }) });
    const [name] = names(harness.output(), "Parse");
    harness.receive(name === undefined ? backend.concat(executed(), backend.readyForQuery()) : firstUse([]));
    return name;
  };
  const first = submit([23]);
  const second = submit([25]);
  assert.ok(first && second && first !== second);
  assert.equal(submit([23]), undefined, "no Parse: it is kept");
});

test("describe() executes nothing, whether the statement is prepared or not", () => {
  const harness = new Harness();
  const describe = () => {
    const outcome = harness.submit({ kind: DESCRIBE, text: "delete" });
    const types = harness.output().map(({ type }) => type);
    assert.ok(!types.includes("Execute") && !types.includes("Bind"), types.join());
    assert.equal(types.at(-1), "Sync");
    harness.receive(described(["a"], [23]), backend.readyForQuery());
    assertSettled([outcome]);
    assert.equal(failureOf(outcome), undefined);
    assert.deepEqual(outcome.request.statement?.parameterTypes, [23]);
    assert.deepEqual(outcome.request.statement?.fields?.map(({ name }) => name), ["a"]);
  };
  describe();
  prepare(harness, "delete", [{ name: "a" }]);
  describe();
  describe();
});

for (const code of ["26000", "0A000"]) {
  test(`${code} before BindComplete: prepared again and executed once, outside a transaction block`, () => {
    const harness = new Harness();
    prepare(harness, "q", [{ name: "a" }]);
    const outcome = harness.extended("q");
    const [lost] = names(harness.output(), "Bind");
    harness.receive(failed(code, "lost"));
    assert.equal(outcome.settled, 0);
    const messages = harness.output();
    assert.equal(names(messages, "Parse").length, 1);
    assert.notEqual(names(messages, "Parse")[0], lost);
    assert.deepEqual(names(messages, "Close"), [lost], "an outdated statement is closed");
    harness.receive(backend.closeComplete, firstUse(["a", "b"], ["1", "2"]));
    assertSettled([outcome]);
    assert.deepEqual(outcome.request.rows, [["1", "2"]]);
    assert.equal(failureOf(outcome), undefined);
  });

  test(`${code} for the second time is the request's error`, () => {
    const harness = new Harness();
    prepare(harness, "q");
    const outcome = harness.extended("q");
    harness.output();
    harness.receive(failed(code, "lost"));
    harness.output();
    harness.receive(backend.closeComplete, described([]), failed(code, "lost again"));
    assertSettled([outcome]);
    assert.equal(failureOf(outcome), "PostgresError: lost again");
  });

  test(`${code} inside a transaction block is the request's error`, () => {
    const harness = new Harness();
    prepare(harness, "q");
    const begin = harness.simple("begin");
    harness.receive(backend.commandComplete("BEGIN"), backend.readyForQuery("T"));
    const outcome = harness.extended("q");
    harness.output();
    harness.receive(failed(code, "lost", "E"));
    assertSettled([begin, outcome]);
    assert.equal(failureOf(outcome), "PostgresError: lost");
  });
}

test("0A000 after BindComplete is the request's error: something may have run", () => {
  const harness = new Harness();
  prepare(harness, "q");
  const outcome = harness.extended("q");
  harness.output();
  harness.receive(backend.bindComplete, failed("0A000", "not supported"));
  assertSettled([outcome]);
  assert.equal(failureOf(outcome), "PostgresError: not supported");
});

test("several requests that lost their statements run again in their order", () => {
  const harness = new Harness();
  for (const text of ["a", "b", "c"]) prepare(harness, text);
  const outcomes = ["a", "b", "c"].map((text) => harness.extended(text));
  harness.output();
  const waiting = harness.submit({ text: "d", set: { alone: true } });
  harness.receive(failed("26000", "lost"), failed("26000", "lost"), failed("26000", "lost"));
  const texts: string[] = [];
  for (let i = 0; i < 10 && harness.order.length < 7; i++) {
    const messages = harness.output();
    for (const message of messages) if (message.type === "Parse") texts.push(message.text);
    const closes = names(messages, "Close");
    const parses = names(messages, "Parse");
    harness.receive(...closes.map(() => backend.closeComplete), ...parses.map(() => firstUse([])));
  }
  assertSettled([...outcomes, waiting]);
  assert.deepEqual(texts, ["a", "b", "c", "d"]);
  assert.deepEqual(harness.order.slice(3), ["a", "b", "c", "d"]);
});

test("a request that lost its statement runs behind a block that was opened behind it, and holds nobody up", () => {
  const harness = new Harness();
  for (const text of ["insert", "inside"]) prepare(harness, text);
  const insert = harness.extended("insert");
  const begin = harness.simple("begin");
  harness.output();
  harness.receive(failed("26000", "lost"));
  const inside = harness.extended("inside");
  assert.equal(harness.sent(), "", "what is in flight may open a block, or not");
  harness.receive(backend.commandComplete("BEGIN"), backend.readyForQuery("T"));
  assert.equal(harness.sent(), "Bind Execute Sync", "the block goes on");
  harness.receive(executed(), backend.readyForQuery("T"));
  assert.ok(harness.engine.waitsForCaller);
  const commit = harness.simple("commit");
  assert.equal(harness.sent(), "Query");
  const after = harness.simple("after");
  harness.output();
  harness.receive(backend.commandComplete("COMMIT"), backend.readyForQuery());
  const later = harness.simple("later");
  assert.equal(harness.sent(), "", "what is in flight may open a block again");
  assert.ok(!harness.engine.waitsForCaller);
  harness.receive(simpleAnswer("1"));
  assert.equal(harness.sent(), "Close Parse Describe Bind Execute Sync Query");
  harness.receive(backend.closeComplete, firstUse([]), simpleAnswer("2"));
  assertSettled([insert, begin, inside, commit, after, later]);
  assert.deepEqual(harness.order.slice(2), ["begin", "inside", "commit", "after", "insert", "later"]);
  assert.equal(failureOf(insert), undefined);
  assert.ok(harness.engine.idle);
});

test("a request that would run again behind a block for too long is refused, with the reason", () => {
  const harness = new Harness();
  prepare(harness, "q");
  const lost = harness.extended("q");
  const begin = harness.simple("begin");
  harness.output();
  harness.receive(failed("26000", "lost"), backend.commandComplete("BEGIN"), backend.readyForQuery("T"));
  assert.ok(harness.engine.waitsForCaller && !harness.engine.awaitsServer);
  const other = harness.simple("other");
  harness.engine.refuseWaiting((cause) => new Error("refused", { cause }));
  assertSettled([lost, begin]);
  const failure = lost.request.failure!();
  assert.equal(failure.message, "refused");
  assert.equal((failure.cause as Error).message, "lost");
  assert.equal(other.settled, 0, "what goes into the block is none of its business");
});

test("a request that is to run again can be withdrawn, and ends with the connection as one that was not sent", () => {
  for (const ends of [false, true]) {
    const harness = new Harness();
    for (const text of ["a", "b"]) prepare(harness, text);
    const outcomes = ["a", "b"].map((text) => harness.extended(text));
    const begin = harness.simple("begin");
    harness.output();
    harness.receive(failed("26000", "lost"), failed("26000", "lost"));
    harness.receive(backend.commandComplete("BEGIN"), backend.readyForQuery("T"));
    if (ends) {
      harness.engine.abandon((sent) => new Error(`sent: ${sent}`));
      assertSettled([begin, ...outcomes]);
      assert.deepEqual(outcomes.map(failureOf), ["Error: sent: false", "Error: sent: false"]);
    } else {
      for (const { request } of outcomes) assert.ok(harness.engine.withdraw(request));
      assert.ok(harness.engine.idle);
      assert.ok(!harness.engine.waitsForCaller);
    }
  }
});

test("a block whose every statement was lost runs again as it was; a BEGIN that came too late does not", () => {
  for (const overtaken of [false, true]) {
    const harness = new Harness();
    for (const text of ["begin", "a", "b", "commit"]) prepare(harness, text);
    const outcomes = ["begin", "a", "commit"].map((text) => harness.extended(text));
    const b = overtaken ? harness.extended("b") : undefined;
    harness.output();
    harness.receive(failed("26000", "lost"), failed("26000", "lost"), failed("26000", "lost"));
    if (overtaken) harness.receive(executed(), backend.readyForQuery());
    const parsed = harness.output().flatMap((message) => message.type === "Parse" ? [message.text] : []);
    assert.deepEqual(parsed, overtaken ? ["a", "commit"] : ["begin", "a", "commit"]);
    harness.receive(backend.closeComplete, backend.closeComplete, backend.closeComplete);
    if (!overtaken) {
      harness.receive(described([]), backend.bindComplete, backend.commandComplete("BEGIN"));
      harness.receive(backend.readyForQuery("T"));
    }
    harness.receive(described([]), executed(), backend.readyForQuery(overtaken ? "I" : "T"), firstUse([]));
    assertSettled(b === undefined ? outcomes : [...outcomes, b]);
    assert.deepEqual(outcomes.map(failureOf), [
      overtaken ? "PostgresError: lost" : undefined,
      undefined,
      undefined,
    ]);
  }
});

test("a batch that lost a statement runs again as a whole, in its place, where nothing of it stands", () => {
  const rollable = ["SELECT 1", "INSERT 0 1", "UPDATE 1", "DELETE 0", "MERGE 1"];
  for (const tag of [...rollable, "COMMIT", "CALL", ""]) {
    const harness = new Harness();
    for (const text of ["a", "b"]) prepare(harness, text);
    const batch = harness.batch({ text: "a" }, { text: "b" }, { text: "first use" });
    const waiting = harness.submit({ text: "waiting", set: { alone: true } });
    harness.output();
    harness.receive(backend.bindComplete);
    harness.receive(tag === "" ? backend.emptyQueryResponse : backend.commandComplete(tag));
    harness.receive(failed("0A000", "lost"));
    if (!rollable.includes(tag)) {
      assertSettled(batch);
      assert.equal(failureOf(batch[1]!), "PostgresError: lost", tag);
      continue;
    }
    const first = "Parse Describe Bind Execute";
    assert.equal(harness.sent(), `Close Close ${first} ${first} ${first} Sync`);
    harness.receive(backend.closeComplete, backend.closeComplete);
    harness.receive(described([]), executed(), described([]), executed(), firstUse([]));
    assertSettled(batch);
    assert.deepEqual(batch.map(failureOf), [undefined, undefined, undefined]);
    harness.output();
    harness.receive(firstUse([]));
    assertSettled([waiting]);
  }
});

test("a batch that lost a statement twice, inside a block or after it was given up is not repeated", () => {
  for (const how of ["twice", "inside", "given up"]) {
    const harness = new Harness();
    for (const text of ["a", "b"]) prepare(harness, text);
    if (how === "inside") {
      harness.simple("begin");
      harness.receive(backend.commandComplete("BEGIN"), backend.readyForQuery("T"));
    }
    const batch = harness.batch({ text: "a" }, { text: "b" });
    harness.output();
    if (how === "given up") {
      for (const { request } of batch) {
        request.aborted = true;
        request.fail(() => new Error("given up"));
      }
    }
    harness.receive(executed(), failed("26000", "lost", how === "inside" ? "E" : "I"));
    if (how === "twice") {
      harness.output();
      harness.receive(backend.closeComplete, backend.closeComplete, described([]), executed(), described([]));
      harness.receive(failed("26000", "lost again"));
    }
    assertSettled(batch);
    const wanted = {
      twice: "PostgresError: lost again",
      inside: "PostgresError: lost",
      "given up": "Error: given up",
    };
    assert.equal(failureOf(batch[1]!), wanted[how as keyof typeof wanted]);
    assert.equal(harness.sent(), "");
    assert.ok(harness.engine.idle);
  }
});

for (const tag of ["DISCARD ALL", "DEALLOCATE ALL"]) {
  test(`${tag} makes every text be prepared again`, () => {
    const harness = new Harness();
    prepare(harness, "q");
    const outcome = harness.simple(tag);
    harness.output();
    harness.receive(backend.commandComplete(tag), backend.readyForQuery());
    assertSettled([outcome]);
    harness.extended("q");
    assert.equal(harness.sent(), "Parse Describe Bind Execute Sync");
  });
}

test("a statement whose Bind failed stays prepared", () => {
  const harness = new Harness();
  const outcome = harness.extended("q", "abc");
  const [name] = names(harness.output(), "Parse");
  harness.receive(described([], [23]), failed("22P02", "invalid input"));
  assert.equal(failureOf(outcome), "PostgresError: invalid input");
  harness.extended("q", "1");
  assert.deepEqual(names(harness.output(), "Bind"), [name]);
});

test("declared types and described types reach the parameters", () => {
  const harness = new Harness();
  const log: unknown[] = [];
  const parameters = createParameters(["1"], { declared: [20], log });
  harness.submit({ text: "q", parameters });
  const [parse] = harness.output();
  assert.deepEqual(parse?.type === "Parse" && parse.parameterTypes, [20]);
  harness.receive(described([], [20]), executed(), backend.readyForQuery());
  harness.submit({ text: "q", parameters });
  assert.deepEqual(log, [null, [20]]);
});
