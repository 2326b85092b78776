/** Every phase against every backend message: the table of src/engine/phase.ts, row by row. */

import { test } from "node:test";
import assert from "node:assert/strict";
import * as phase from "../../src/engine/phase.ts";
import { CLOSE, DESCRIBE, EXTENDED, FETCH, SIMPLE, STREAM } from "../../src/engine/request.ts";
import { IN_TRANSACTION } from "../../src/wire/message_types.ts";
import * as backend from "../_support/backend_writer.ts";
import { assertSettled, failureOf, Harness, type Outcome } from "./harness.ts";

const MESSAGES: Readonly<Record<string, Uint8Array>> = {
  Authentication: backend.authenticationOk,
  BackendKeyData: backend.backendKeyData(1, new Uint8Array(4)),
  BindComplete: backend.bindComplete,
  CloseComplete: backend.closeComplete,
  CommandComplete: backend.commandComplete("SELECT 0"),
  CopyBothResponse: backend.copyBothResponse(0, []),
  CopyData: backend.copyData("x\n"),
  CopyDone: backend.copyDone,
  CopyInResponse: backend.copyInResponse(0, [0]),
  CopyOutResponse: backend.copyOutResponse(0, [0]),
  DataRow: backend.dataRow(["1"]),
  EmptyQueryResponse: backend.emptyQueryResponse,
  FunctionCallResponse: backend.message("V", backend.int32(-1)),
  NegotiateProtocolVersion: backend.negotiateProtocolVersion(0x0003_0000),
  NoData: backend.noData,
  ParameterDescription: backend.parameterDescription([]),
  ParseComplete: backend.parseComplete,
  PortalSuspended: backend.portalSuspended,
  ReadyForQuery: backend.readyForQuery(),
  RowDescription: backend.rowDescription(["a"]),
  "an unknown type": backend.message("?"),
  "a type that is zero": backend.message("\0"),
};

interface Row {
  readonly name: string;
  readonly phase: number;
  /** Brings one request into the phase. */
  readonly enter: (harness: Harness) => Outcome;
  /** The messages that may come, and the phase after each; `settled` for a ReadyForQuery. */
  readonly next: Readonly<Record<string, number | "settled">>;
}

const DESCRIBED = [
  MESSAGES["ParseComplete"]!,
  MESSAGES["ParameterDescription"]!,
  MESSAGES["RowDescription"]!,
];

/** Submits and plays the messages that lead to a phase. */
function enter(submission: Parameters<Harness["submit"]>[0], ...names: string[]): Row["enter"] {
  return (harness) => {
    const outcome = harness.submit(submission);
    harness.output();
    harness.receive(...names.map((name) => MESSAGES[name]!));
    return outcome;
  };
}

const TO_BIND = ["ParseComplete", "ParameterDescription", "RowDescription"];
const STREAM_SUBMISSION = { kind: STREAM, set: { maxRows: 1, portal: "p" } };

function enterStream(...names: string[]): Row["enter"] {
  return (harness) => {
    const outcome = harness.create(STREAM_SUBMISSION);
    outcome.request.onSuspended = () => {};
    harness.engine.submit(outcome.request);
    harness.output();
    harness.receive(...names.map((name) => MESSAGES[name]!));
    return outcome;
  };
}

const ROWS: readonly Row[] = [
  {
    name: "CLOSE",
    phase: phase.CLOSE,
    enter(harness) {
      // The cache holds one statement: the second one evicts the first.
      harness.submit({ text: "first" });
      harness.receive(
        ...DESCRIBED,
        MESSAGES["BindComplete"]!,
        MESSAGES["CommandComplete"]!,
        backend.readyForQuery(),
      );
      return harness.submit({ text: "second" });
    },
    next: { CloseComplete: phase.PARSE },
  },
  {
    name: "PARSE",
    phase: phase.PARSE,
    enter: enter({ kind: EXTENDED }),
    next: { ParseComplete: phase.PARAMETERS },
  },
  {
    name: "PARAMETERS",
    phase: phase.PARAMETERS,
    enter: enter({ kind: EXTENDED }, "ParseComplete"),
    next: { ParameterDescription: phase.FIELDS },
  },
  {
    name: "FIELDS",
    phase: phase.FIELDS,
    enter: enter({ kind: EXTENDED }, "ParseComplete", "ParameterDescription"),
    next: { RowDescription: phase.BIND, NoData: phase.BIND },
  },
  {
    name: "FIELDS of a description",
    phase: phase.FIELDS,
    enter: enter({ kind: DESCRIBE }, "ParseComplete", "ParameterDescription"),
    next: { RowDescription: phase.DONE, NoData: phase.DONE },
  },
  {
    name: "BIND",
    phase: phase.BIND,
    enter: enter({ kind: EXTENDED }, ...TO_BIND),
    next: { BindComplete: phase.ROWS },
  },
  {
    name: "ROWS",
    phase: phase.ROWS,
    enter: enter({ kind: EXTENDED }, ...TO_BIND, "BindComplete"),
    next: {
      DataRow: phase.ROWS,
      CommandComplete: phase.DONE,
      EmptyQueryResponse: phase.DONE,
      CopyInResponse: phase.COPY_IN,
      CopyOutResponse: phase.COPY_OUT,
    },
  },
  {
    name: "ROWS without a description of rows",
    phase: phase.ROWS,
    enter: enter({ kind: EXTENDED }, "ParseComplete", "ParameterDescription", "NoData", "BindComplete"),
    next: {
      CommandComplete: phase.DONE,
      EmptyQueryResponse: phase.DONE,
      CopyInResponse: phase.COPY_IN,
      CopyOutResponse: phase.COPY_OUT,
    },
  },
  {
    name: "ROWS of a limited Execute",
    phase: phase.ROWS,
    enter: enter({ kind: FETCH, set: { maxRows: 1, portal: "p" } }),
    // A portal made elsewhere: its columns are the owner's to know.
    next: {
      CommandComplete: phase.DONE,
      EmptyQueryResponse: phase.DONE,
      PortalSuspended: phase.DONE,
      CopyInResponse: phase.COPY_IN,
      CopyOutResponse: phase.COPY_OUT,
    },
  },
  {
    name: "ROWS of a stream",
    phase: phase.ROWS,
    enter: enterStream(...TO_BIND, "BindComplete"),
    next: {
      DataRow: phase.ROWS,
      CommandComplete: phase.DONE,
      EmptyQueryResponse: phase.DONE,
      PortalSuspended: phase.SUSPENDED,
      CopyInResponse: phase.COPY_IN,
      CopyOutResponse: phase.COPY_OUT,
    },
  },
  {
    name: "SUSPENDED",
    phase: phase.SUSPENDED,
    enter: enterStream(...TO_BIND, "BindComplete", "DataRow", "PortalSuspended"),
    next: {},
  },
  {
    name: "CLOSE_TARGET",
    phase: phase.CLOSE_TARGET,
    enter: enter({ kind: CLOSE, set: { portal: "p" } }),
    next: { CloseComplete: phase.DONE },
  },
  {
    name: "SIMPLE",
    phase: phase.SIMPLE,
    enter: enter({ kind: SIMPLE }),
    next: {
      RowDescription: phase.SIMPLE_ROWS,
      CommandComplete: phase.SIMPLE,
      EmptyQueryResponse: phase.SIMPLE,
      CopyInResponse: phase.COPY_IN,
      CopyOutResponse: phase.COPY_OUT,
      ReadyForQuery: "settled",
    },
  },
  {
    name: "SIMPLE_ROWS",
    phase: phase.SIMPLE_ROWS,
    enter: enter({ kind: SIMPLE }, "RowDescription"),
    next: { DataRow: phase.SIMPLE_ROWS, CommandComplete: phase.SIMPLE },
  },
  {
    name: "COPY_IN",
    phase: phase.COPY_IN,
    enter: enter({ kind: SIMPLE }, "CopyInResponse"),
    next: {},
  },
  {
    name: "COPY_OUT of a simple query",
    phase: phase.COPY_OUT,
    enter: enter({ kind: SIMPLE }, "CopyOutResponse"),
    next: { CopyData: phase.COPY_OUT, CopyDone: phase.SIMPLE },
  },
  {
    name: "COPY_OUT of an extended query",
    phase: phase.COPY_OUT,
    enter: enter({ kind: EXTENDED }, ...TO_BIND, "BindComplete", "CopyOutResponse"),
    next: { CopyData: phase.COPY_OUT, CopyDone: phase.ROWS },
  },
  {
    name: "DONE",
    phase: phase.DONE,
    enter: enter({ kind: EXTENDED }, ...TO_BIND, "BindComplete", "CommandComplete"),
    next: { ReadyForQuery: "settled" },
  },
];

for (const row of ROWS) {
  const start = () => {
    const harness = new Harness({ statementCache: 1 });
    const outcome = row.enter(harness);
    assert.equal(outcome.request.phase, row.phase, "the phase to begin with");
    return { harness, outcome };
  };

  for (const [name, wanted] of Object.entries(row.next)) {
    test(`${row.name}: ${name} may come`, () => {
      const { harness, outcome } = start();
      harness.receive(MESSAGES[name]!);
      if (wanted === "settled") assertSettled([outcome]);
      else {
        assert.equal(outcome.request.phase, wanted);
        assert.equal(outcome.settled, 0);
      }
    });
  }

  test(`${row.name}: every other message is a ProtocolError that fails every request`, () => {
    for (const [name, message] of Object.entries(MESSAGES)) {
      if (row.next[name] !== undefined) continue;
      const { harness, outcome } = start();
      const behind = [harness.simple("written behind"), harness.extended("also behind")];
      assert.throws(() => harness.receive(message), { name: "ProtocolError" }, `${row.name}, ${name}`);
      assertSettled([outcome, ...behind]);
      for (const each of behind) assert.match(failureOf(each)!, /^ProtocolError: /, name);
      const later = harness.simple("later");
      assertSettled([later]);
      assert.match(failureOf(later)!, /^ProtocolError: /);
    }
  });

  test(`${row.name}: notices, parameters and notifications pass`, () => {
    const { harness, outcome } = start();
    harness.receive(
      backend.noticeResponse({ M: "look" }),
      backend.parameterStatus("TimeZone", "UTC"),
      backend.notificationResponse(7, "jobs", "1"),
    );
    assert.equal(outcome.request.phase, row.phase);
    assert.equal(outcome.settled, 0);
    assert.deepEqual(harness.notices, ["look"]);
    assert.deepEqual(harness.statuses, ["TimeZone=UTC"]);
    assert.deepEqual(harness.notifications, ["jobs: 1"]);
    assert.equal(harness.session.parameters.get("TimeZone"), "UTC");
  });

  if (row.phase === phase.SUSPENDED) continue;
  test(`${row.name}: ErrorResponse fails this request alone`, () => {
    const { harness, outcome } = start();
    harness.output();
    const behind = harness.simple("behind");
    harness.receive(backend.errorResponse({ C: "22012", M: "division by zero" }));
    assert.equal(outcome.settled, 0, "it settles at ReadyForQuery");
    for (const [name, message] of Object.entries(MESSAGES)) {
      if (name === "ReadyForQuery") continue;
      // What follows an error up to ReadyForQuery is nothing.
      const other = start();
      other.harness.receive(backend.errorResponse());
      assert.throws(() => other.harness.receive(message), { name: "ProtocolError" }, name);
      assertSettled([other.outcome]);
    }
    harness.receive(backend.readyForQuery());
    assertSettled([outcome]);
    assert.equal(behind.settled, 0);
    const copied = row.phase === phase.COPY_IN || row.phase === phase.COPY_OUT;
    if (!copied) assert.equal(failureOf(outcome), "PostgresError: division by zero");
    harness.receive(backend.commandComplete("OK"), backend.readyForQuery());
    assertSettled([behind]);
    assert.equal(failureOf(behind), undefined);
  });
}

test("QUEUED: with nothing written, every message but the asynchronous ones is a ProtocolError", () => {
  for (const [name, message] of Object.entries(MESSAGES)) {
    const harness = new Harness();
    assert.throws(() => harness.receive(message), { name: "ProtocolError" }, name);
  }
  const harness = new Harness();
  assert.throws(() => harness.receive(backend.errorResponse()), { name: "ProtocolError" });
});

test("ReadyForQuery with an unknown transaction status is a ProtocolError", () => {
  const harness = new Harness({}, IN_TRANSACTION);
  const outcome = harness.simple("a");
  assert.throws(() => harness.receive(backend.message("Z", Uint8Array.of(0x58))), { name: "ProtocolError" });
  assertSettled([outcome]);
});

test("what may undo LISTEN is told: the end of a block, UNLISTEN, DISCARD ALL", () => {
  const harness = new Harness();
  const steps = [
    ["BEGIN", "T", []],
    ["SELECT 1", "T", []],
    ["COMMIT", "I", ["end"]],
    ["SELECT 1", "I", []],
    ["BEGIN", "T", []],
    ["UNLISTEN", "T", ["UNLISTEN"]],
    ["SELECT 1", "E", []],
    ["ROLLBACK", "I", ["end"]],
    ["DISCARD ALL", "I", ["DISCARD ALL"]],
    ["DISCARD TEMP", "I", []],
  ] as const;
  for (const [tag, status, undone] of steps) {
    const outcome = harness.simple(tag);
    harness.receive(backend.commandComplete(tag), backend.readyForQuery(status));
    assertSettled([outcome]);
    assert.deepEqual(harness.undone.splice(0), undone, tag);
  }
});
