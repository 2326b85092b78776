/** A reply means the same in one piece, where it may be worked off at once, and cut, where it never is. */

import { test } from "node:test";
import assert from "node:assert/strict";
import {
  COMMAND_COMPLETE,
  COMMAND_COMPLETE_AND_READY,
  endOfOnlyRow,
  ONE_ROW_TAG,
} from "../../src/engine/short_reply.ts";
import { type Request, type RowPlanner, SYNC_SHARED } from "../../src/engine/request.ts";
import { ValueError } from "../../src/errors.ts";
import { Framer } from "../../src/wire/framer.ts";
import * as backend from "../_support/backend_writer.ts";
import { createPlanner, failureOf, Harness, type Outcome } from "./harness.ts";
import { firstUse } from "./transcripts.ts";

const { bindComplete, commandComplete, concat, dataRow, readyForQuery } = backend;

const oneRow = concat(bindComplete, dataRow(["1"]), commandComplete(ONE_ROW_TAG), readyForQuery());
const notice = backend.noticeResponse({ S: "NOTICE", C: "00000", M: "remark" });
const error = backend.errorResponse({ S: "ERROR", V: "ERROR", C: "22012", M: "division by zero" });

/** A reply with some of its bytes replaced. */
function changed(at: number, ...bytes: readonly number[]): Uint8Array {
  const copy = oneRow.slice();
  copy.set(bytes, at < 0 ? copy.length + at : at);
  return copy;
}

/** Replies of a statement of one column that is known already. */
const REPLIES: Readonly<Record<string, Uint8Array>> = {
  "one row": oneRow,
  "no row": concat(bindComplete, commandComplete("SELECT 0"), readyForQuery()),
  "two rows": concat(
    bindComplete,
    dataRow(["1"]),
    dataRow(["2"]),
    commandComplete("SELECT 2"),
    readyForQuery(),
  ),
  "a NULL": concat(bindComplete, dataRow([null]), commandComplete(ONE_ROW_TAG), readyForQuery()),
  "another tag of one length": concat(
    bindComplete,
    dataRow(["1"]),
    commandComplete("SELECT 7"),
    readyForQuery(),
  ),
  "a row of another command": concat(
    bindComplete,
    dataRow(["1"]),
    commandComplete("INSERT 0 1"),
    readyForQuery(),
  ),
  "a block that opens": concat(
    bindComplete,
    dataRow(["1"]),
    commandComplete(ONE_ROW_TAG),
    readyForQuery("T"),
  ),
  "a notice in front": concat(notice, oneRow),
  "a notice behind the row": concat(
    bindComplete,
    dataRow(["1"]),
    notice,
    commandComplete(ONE_ROW_TAG),
    readyForQuery(),
  ),
  "a notice behind the tag": concat(
    bindComplete,
    dataRow(["1"]),
    commandComplete(ONE_ROW_TAG),
    notice,
    readyForQuery(),
  ),
  "an error in front": concat(error, oneRow),
  "an error behind the row": concat(bindComplete, dataRow(["1"]), error, readyForQuery()),
  "an error of the commit": concat(
    bindComplete,
    dataRow(["1"]),
    commandComplete(ONE_ROW_TAG),
    error,
    readyForQuery(),
  ),
  "a row of two columns": concat(
    bindComplete,
    dataRow(["1", "2"]),
    commandComplete(ONE_ROW_TAG),
    readyForQuery(),
  ),
  "a row without its tag": concat(bindComplete, dataRow(["1"]), readyForQuery()),
  "a tag without ReadyForQuery": concat(bindComplete, dataRow(["1"]), commandComplete(ONE_ROW_TAG)),
  "a BindComplete that is not empty": concat(backend.message("2", Uint8Array.of(0)), oneRow.subarray(5)),
  "a DataRow whose length is too small": changed(6, 0, 0, 0, 3),
  "a DataRow that is longer than the limit": changed(6, 0x7f, 0xff, 0xff, 0xff),
  "a tag without its zero": changed(-7, 0x20),
  "a ReadyForQuery that is too long": concat(changed(-2, 6), Uint8Array.of(0)),
  "a status that there is not": changed(-1, 0x58),
  "two replies": concat(oneRow, oneRow),
};

/** A planner whose rows are looked at first. */
function watched(
  look: (harness: Harness, request: Request) => void,
  of: () => [Harness, Request],
): RowPlanner {
  const plain = createPlanner();
  return {
    formats: plain.formats.bind(plain),
    plan(fields) {
      const decode = plain.plan(fields);
      return (bytes, start, end) => {
        look(...of());
        return decode(bytes, start, end);
      };
    },
  };
}

/** What codecs do while a row is decoded. */
const LOOKS: Readonly<Record<string, (harness: Harness, request: Request) => void>> = {
  "decoded as usual": () => {},
  "refused by a codec": () => {
    throw new ValueError("Expected something else");
  },
  "given up while it is decoded": (_, request) => {
    request.aborted = true;
    request.fail(() => new Error("given up"));
  },
  "decoded by a codec that submits": (harness) => void harness.extended("inner"),
  "decoded by a codec that ends the session": (harness) => {
    harness.engine.abandon(() => new Error("ended"));
  },
};

/** Which Syncs follow two requests for one statement. */
type Syncs = "one each" | "one for a batch" | "one shared";

function submitTwo(harness: Harness, planner: RowPlanner, syncs: Syncs): Outcome[] {
  const requests = [{ text: "known", planner }, { text: "known" }];
  if (syncs === "one for a batch") return harness.batch(...requests);
  const set = syncs === "one shared" ? { sync: SYNC_SHARED } : {};
  return requests.map((each) => harness.submit({ ...each, set }));
}

/** Everything that shows after a reply of two requests for one statement. */
function replay(
  reply: Uint8Array,
  look: (typeof LOOKS)[string],
  cut: number,
  status: "I" | "T",
  syncs: Syncs = "one each",
): unknown {
  const harness = new Harness();
  let current: Outcome | undefined = undefined;
  const planner = watched(look, () => [harness, current!.request]);
  const first = harness.submit({ text: "known" });
  harness.receive(firstUse(["a"], ["0"]).subarray(0, -1), Uint8Array.of(status.charCodeAt(0)));
  const outcomes = submitTwo(harness, planner, syncs);
  current = outcomes[0];
  harness.output();
  let thrown: unknown;
  try {
    for (let at = 0; at < reply.length; at += cut) harness.receive(reply.subarray(at, at + cut));
  } catch (error) {
    // What comes behind an end of ours is of no interest.
    if (failureOf(outcomes[0]!) !== "Error: ended") thrown = `${error}`;
  }
  return {
    thrown,
    first: first.settled,
    outcomes: outcomes.map((outcome) => {
      const { rows, tag, fields, phase, notices, settled } = outcome.request;
      const times = outcome.settled;
      return { rows, tag, fields, phase, notices, settled, times, failure: failureOf(outcome) };
    }),
    order: harness.order,
    notices: harness.notices,
    undone: harness.undone,
    load: harness.engine.load,
    status: harness.session.transactionStatus,
    sent: harness.sent(),
  };
}

test("a short reply is found where it is one, and nowhere else", () => {
  const found = Object.entries(REPLIES).filter(([, reply]) => {
    const framer = new Framer(1 << 20);
    framer.feed(reply);
    framer.next();
    return endOfOnlyRow(framer, COMMAND_COMPLETE_AND_READY) !== 0;
  });
  assert.deepEqual(found.map(([name]) => name), [
    "one row",
    "a NULL",
    "a block that opens",
    "a row of two columns",
    "a status that there is not",
    "two replies",
  ]);
});

test("its row ends where its DataRow does, if all that is to follow is there", () => {
  const find = (bytes: Uint8Array, limit: number, following: Uint8Array) => {
    const framer = new Framer(limit);
    framer.feed(bytes);
    framer.next();
    return endOfOnlyRow(framer, following);
  };
  const end = bindComplete.length + dataRow(["1"]).length;
  for (const following of [COMMAND_COMPLETE, COMMAND_COMPLETE_AND_READY]) {
    assert.equal(find(oneRow, 1 << 20, following), end);
    assert.equal(find(oneRow, 10, following), 0, "a row past the limit");
    for (let length = 6; length < end + following.length; length++) {
      assert.equal(find(oneRow.subarray(0, length), 1 << 20, following), 0, `${length} bytes`);
    }
  }
});

for (const [name, reply] of Object.entries(REPLIES)) {
  test(`in one piece as byte by byte: ${name}`, () => {
    const ready = reply.lastIndexOf(0x5a);
    for (const status of ["I", "T"] as const) {
      const told = reply.slice();
      // In a block the server goes on saying so.
      if (status === "T" && told[ready + 5] === 0x49) told[ready + 5] = 0x54;
      const whole = replay(told, () => {}, told.length, status);
      for (const cut of [1, 7]) assert.deepEqual(whole, replay(told, () => {}, cut, status));
    }
  });
}

for (const [name, look] of Object.entries(LOOKS)) {
  test(`in one piece as byte by byte: a row ${name}`, () => {
    const whole = replay(concat(oneRow, oneRow), look, 1000, "I");
    for (const cut of [1, 7, oneRow.length]) {
      assert.deepEqual(whole, replay(concat(oneRow, oneRow), look, cut, "I"));
    }
  });
}

/** The same reply without the ReadyForQuery that may end it. */
function withoutReady(reply: Uint8Array): Uint8Array {
  const ready = reply.length - readyForQuery().length;
  return reply[ready] === 0x5a /* 'Z' */ ? reply.subarray(0, ready) : reply;
}

for (const syncs of ["one for a batch", "one shared"] as const) {
  for (const [name, reply] of Object.entries(REPLIES)) {
    test(`in one piece as byte by byte, ${syncs}: ${name}, before another one and behind it`, () => {
      const short = withoutReady(oneRow);
      const orders = [concat(withoutReady(reply), oneRow), concat(short, reply), concat(reply, oneRow)];
      for (const both of orders) {
        for (const status of ["I", "T"] as const) {
          const whole = replay(both, () => {}, both.length, status, syncs);
          for (const cut of [1, 7, short.length]) {
            assert.deepEqual(whole, replay(both, () => {}, cut, status, syncs));
          }
        }
      }
    });
  }

  for (const [name, look] of Object.entries(LOOKS)) {
    test(`in one piece as byte by byte, ${syncs}: a row ${name}`, () => {
      const both = concat(withoutReady(oneRow), oneRow);
      const whole = replay(both, look, both.length, "I", syncs);
      for (const cut of [1, 7]) assert.deepEqual(whole, replay(both, look, cut, "I", syncs));
    });
  }
}

test("a codec that throws is not asked again", () => {
  let calls = 0;
  const look = () => {
    if (++calls === 1) throw new ValueError("not yet");
  };
  const { outcomes } = replay(oneRow, look, 1000, "I") as { outcomes: { rows: unknown; failure: unknown }[] };
  assert.equal(calls, 1);
  assert.deepEqual(outcomes[0]?.rows, []);
  assert.equal(outcomes[0]?.failure, "ValueError: not yet");
});
