/** Random traffic: valid, mutated, and no traffic at all. */

import { test } from "node:test";
import assert from "node:assert/strict";
import process from "node:process";
import { DESCRIBE, EXTENDED, SIMPLE } from "../../src/engine/request.ts";
import { ProtocolError } from "../../src/errors.ts";
import { seededRandom } from "../_support/proxy.ts";
import {
  assertSettled,
  createParameters,
  failureOf,
  Harness,
  type Outcome,
  type Submission,
} from "./harness.ts";
import { ServerModel } from "./server_model.ts";

const SEED: number = Number(process.env["PIPEGRES_SEED"] ?? Math.floor(Math.random() * 1e9));
const WORDS = [
  "rows 3",
  "rows 0",
  "plain",
  "error",
  "unparsable",
  "unbindable",
  "notice rows 1",
  "empty",
  "",
];

type Random = () => number;

const below = (random: Random, n: number): number => Math.floor(random() * n);
const pick = <T>(random: Random, list: readonly T[]): T => list[below(random, list.length)]!;

function randomSubmission(random: Random): Submission {
  const kind = pick(random, [SIMPLE, EXTENDED, EXTENDED, EXTENDED, DESCRIBE]);
  // Few texts, so that many are used again.
  const text = `${pick(random, WORDS)} ${below(random, 3)}`;
  if (kind === SIMPLE) return { kind, text };
  const values = random() < 0.05 ? [new RangeError("unfit")] : ["x"];
  return { kind, text, parameters: createParameters(values, { ambiguous: random() < 0.2 }) };
}

/** Submits up to eight requests, some in batches. */
function submitSome(harness: Harness, random: Random, outcomes: Outcome[]): void {
  for (let left = below(random, 8); left > 0; left--) {
    if (random() < 0.2) {
      const batch = Array.from(
        { length: 1 + below(random, 4) },
        () => ({ ...randomSubmission(random), kind: EXTENDED }),
      );
      outcomes.push(...harness.batch(...batch));
    } else outcomes.push(harness.submit(randomSubmission(random)));
  }
}

/** What a request of this text must have become, if nothing was disturbed. */
function assertPlausible(outcome: Outcome, label: string): void {
  const { request } = outcome;
  const failure = failureOf(outcome);
  const fails = /error|unparsable|unbindable/.test(request.text) && request.kind !== DESCRIBE ||
    request.text.includes("unparsable");
  if (failure === undefined) {
    assert.equal(fails, false, label);
    if (request.kind === DESCRIBE) return;
    const rows = (request.results?.[0]?.rows ?? request.rows) as (string | null)[][];
    const count = Number(/rows (\d+)/.exec(request.text)?.[1] ?? 0);
    // Every row bears its query's text: no answer went to somebody else.
    assert.deepEqual(
      rows.map((row) => row[0]),
      Array.from({ length: count }, (_, i) => `${request.text} ${i}`),
      label,
    );
  } else {assert.match(
      failure,
      /^(PostgresError: division by zero|RangeError: unfit|PipelineAbortedError: )/,
      label,
    );}
}

function runValid(seed: number): void {
  const random = seededRandom(seed);
  const harness = new Harness({
    maxQueries: 1 + below(random, 20),
    statementCache: pick(random, [0, 1, 3, 256]),
  });
  const server = new ServerModel();
  const outcomes: Outcome[] = [];
  for (let round = 0; round < 6 || !harness.engine.idle; round++) {
    assert.ok(round < 500, `seed ${seed}: it does not come to an end`);
    if (round < 6) submitSome(harness, random, outcomes);
    let replies = server.answer(harness.output());
    while (replies.length > 0) {
      const size = 1 + below(random, random() < 0.3 ? 4 : replies.length);
      harness.receive(replies.subarray(0, size));
      replies = replies.subarray(size);
      if (round < 6 && random() < 0.1) submitSome(harness, random, outcomes);
    }
  }
  assertSettled(outcomes);
  for (const outcome of outcomes) assertPlausible(outcome, `seed ${seed}, ${outcome.request.text}`);
}

test("any mix of requests, in any chunks, ends with every answer at its request", () => {
  console.log(`seed ${SEED} (PIPEGRES_SEED)`);
  for (let i = 0; i < 400; i++) runValid(SEED + i);
});

type Mutate = (bytes: Uint8Array, random: Random) => Uint8Array;

const MUTATIONS: Readonly<Record<string, Mutate>> = {
  "a flipped bit": (bytes, random) => {
    const copy = bytes.slice();
    copy[below(random, copy.length)]! ^= 1 << below(random, 8);
    return copy;
  },
  "another byte": (bytes, random) => {
    const copy = bytes.slice();
    copy[below(random, copy.length)] = below(random, 256);
    return copy;
  },
  "a missing piece": (bytes, random) => {
    const at = below(random, bytes.length);
    const end = at + 1 + below(random, 12);
    return Uint8Array.of(...bytes.subarray(0, at), ...bytes.subarray(end));
  },
  "a repeated piece": (bytes, random) => {
    const at = below(random, bytes.length);
    return Uint8Array.of(...bytes.subarray(0, at), ...bytes.subarray(Math.max(0, at - 30)));
  },
  "noise in between": (bytes, random) => {
    const at = below(random, bytes.length);
    const noise = Array.from({ length: 1 + below(random, 20) }, () => below(random, 256));
    return Uint8Array.of(...bytes.subarray(0, at), ...noise, ...bytes.subarray(at));
  },
  "nothing but noise": (bytes, random) => Uint8Array.from(bytes, () => below(random, 256)),
};

/** Runs until the peer is found out or stops; returns whether it was found out. */
function runMutated(seed: number, mutate: Mutate): boolean {
  const random = seededRandom(seed);
  const harness = new Harness({ statementCache: pick(random, [0, 2, 256]) });
  const server = new ServerModel();
  const outcomes: Outcome[] = [];
  const disturbed = below(random, 4);
  let broken = false;
  for (let round = 0; round < 8 && !broken; round++) {
    submitSome(harness, random, outcomes);
    let replies: Uint8Array = server.answer(harness.output());
    if (round === disturbed && replies.length > 0) replies = mutate(replies, random);
    try {
      while (replies.length > 0) {
        const size = 1 + below(random, replies.length);
        harness.receive(replies.subarray(0, size));
        replies = replies.subarray(size);
      }
    } catch (error) {
      assert.ok(error instanceof ProtocolError, `seed ${seed}: ${error}`);
      // The frontend's half of the exchange never throws.
      assert.doesNotMatch(error.message, /^Cannot go on/, `seed ${seed}: ${String(error.cause)}`);
      broken = true;
      assertSettled(outcomes);
    }
  }
  harness.engine.receiveEnd();
  assertSettled(outcomes);
  outcomes.push(harness.simple("after the end"));
  assertSettled(outcomes);
  return broken;
}

for (const [name, mutate] of Object.entries(MUTATIONS)) {
  test(`a stream with ${name} ends in a ProtocolError or not at all, and every request settles`, () => {
    console.log(`seed ${SEED} (PIPEGRES_SEED)`);
    let found = 0;
    for (let i = 0; i < 300; i++) if (runMutated(SEED + i, mutate)) found++;
    assert.ok(found > 30, `only ${found} of 300 disturbances were found out`);
  });
}
