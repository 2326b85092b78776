/** What stands between a measurement and its publication. Pure functions, so that tests can break each on purpose. */

import type { Answer } from "./answers.ts";
import type { Control, Mark, Measurement } from "./results.ts";

/** An answer and who gave it. */
export interface GivenAnswer {
  readonly who: string;
  readonly answer: Answer;
  /** Whether it counts only. */
  readonly counts: boolean;
}

/** What a scenario wants. */
export interface Expected {
  readonly rows: number;
  readonly columns: readonly string[];
}

/**
 * Compares all answers with what the scenario wants and with each other; what most agree on is right.
 *
 * @returns by name, why an answer is wrong; nobody there passed. When no digest has a majority of two or more where
 * two or more were given, everybody is wrong: nobody knows who is right
 */
export function compareAnswers(given: readonly GivenAnswer[], expected: Expected): Map<string, string> {
  const wrong = new Map<string, string>();
  const comparable: GivenAnswer[] = [];
  for (const each of given) {
    const problem = shapeProblem(each, expected);
    if (problem !== undefined) wrong.set(each.who, problem);
    else if (!each.counts && expected.columns.length > 0) comparable.push(each);
  }
  const votes = new Map<string, GivenAnswer[]>();
  for (const each of comparable) {
    const voters = votes.get(each.answer.digest) ?? [];
    voters.push(each);
    votes.set(each.answer.digest, voters);
  }
  if (votes.size <= 1) return wrong;
  const [first, second] = [...votes.values()].sort((a, b) => b.length - a.length);
  const undecided = first!.length === second!.length;
  for (const each of comparable) {
    if (undecided) wrong.set(each.who, "drivers disagree about the values, and none has a majority");
    else if (!first!.includes(each)) wrong.set(each.who, valueProblem(each.answer, first![0]!));
  }
  return wrong;
}

function shapeProblem({ answer, counts }: GivenAnswer, expected: Expected): string | undefined {
  if (answer.rows !== expected.rows) return `answered ${answer.rows} rows, wanted ${expected.rows}`;
  if (counts || expected.columns.length === 0) return undefined;
  const [received, wanted] = [answer.columns.join(", "), expected.columns.join(", ")];
  return received === wanted ? undefined : `answered columns (${received}), wanted (${wanted})`;
}

function valueProblem(answer: Answer, right: GivenAnswer): string {
  const at = answer.sample.findIndex((value, i) => value !== right.answer.sample[i]);
  if (at < 0) return `answered other values than ${right.who} after the first row`;
  const [received, wanted] = [answer.sample[at]!, right.answer.sample[at] ?? ""].map((text) =>
    text.slice(0, 60)
  );
  return `answered ${received} in column ${answer.columns[at]} of the first row, ${right.who} ${wanted}`;
}

/** How far the repetition is from the first measurement: 0.03 is 3 %. The worse of CPU and wall time counts. */
export function driftOf(control: Control): number {
  const { first, last } = control;
  const drift = Math.max(Math.abs(last.cpu / first.cpu - 1), Math.abs(last.wall / first.wall - 1));
  return Number.isFinite(drift) ? drift : Infinity;
}

/** How far the floor's bytes may be from ours: 0.02 is 2 %. */
const FLOOR_TOLERANCE = 0.02;

/** Where the floor does not send or get what `ours` does, so that it is no floor for it. */
export function floorMismatches(measurements: readonly Measurement[], ours: string, floor: string): string[] {
  const found: string[] = [];
  for (const own of measurements) {
    if (own.driver !== ours || own.network === null || own.status !== "measured") continue;
    const low = measurements.find(({ driver, scenario, point, runtime, status }) =>
      driver === floor && scenario === own.scenario && point === own.point && runtime === own.runtime &&
      status === "measured"
    );
    if (!low?.network) continue;
    for (const way of ["sent", "received"] as const) {
      const [a, b] = [low.network[way], own.network[way]];
      if (Math.abs(a - b) > FLOOR_TOLERANCE * Math.max(a, b)) {
        found.push(
          `${own.scenario} on ${own.runtime}: ${floor} ${way} ${a} bytes an operation, ${ours} ${b}`,
        );
      }
    }
  }
  return found;
}

/** What gates look at besides answers. */
export interface Circumstances {
  readonly control: Control | null;
  /** 0.03 is 3 %. */
  readonly driftLimit: number;
  /** Changed files of the work tree. */
  readonly dirty: readonly string[];
  /** Whether the server was built with assertions (`debug_assertions`). */
  readonly debugServer: boolean;
  /** Competitors that were excluded or failed, with the reason. */
  readonly excluded: readonly string[];
  /** Where the floor is none. */
  readonly mismatches: readonly string[];
  /** Whether `--quick` or few rounds make intervals wide. */
  readonly rounds: number;
}

/** Below this, intervals of 95 % are no more than the extremes. */
const MIN_ROUNDS = 6;

/** All marks that a run deserves. */
export function marksOf(circumstances: Circumstances): Mark[] {
  const marks: Mark[] = [];
  const { control, driftLimit, dirty, debugServer, excluded, mismatches, rounds } = circumstances;
  if (control === null) {
    marks.push({ kind: "NOT PUBLISHABLE", text: "the run was broken off before its control was repeated" });
  } else if (!(driftOf(control) <= driftLimit)) {
    marks.push({
      kind: "NOT PUBLISHABLE",
      text: `drift ${percent(driftOf(control))} between the first measurement and its repetition, ` +
        `allowed ${percent(driftLimit)}`,
    });
  }
  if (dirty.length > 0) {
    marks.push({
      kind: "NOT PUBLISHABLE",
      text: `dirty work tree: ${dirty.slice(0, 5).join(", ")}${dirty.length > 5 ? ", …" : ""}`,
    });
  }
  if (debugServer) {
    marks.push({ kind: "NOT PUBLISHABLE", text: "the server is a debug build (debug_assertions is on)" });
  }
  for (const reason of [...excluded, ...mismatches]) marks.push({ kind: "note", text: reason });
  if (rounds < MIN_ROUNDS) {
    marks.push({ kind: "note", text: `${rounds} rounds only: intervals are the extremes of the rounds` });
  }
  return marks;
}

/** Whether nothing forbids publication. */
export function isPublishable(marks: readonly Mark[]): boolean {
  return marks.every((mark) => mark.kind === "note");
}

/** `3.4 %`. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
