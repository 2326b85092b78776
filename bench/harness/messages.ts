/** What runner and child say to each other: one JSON text a line, every request answered once, in order. */

import type { Answer } from "./answers.ts";
import type { Target } from "./driver.ts";
import type { Round } from "./results.ts";

/** From the runner. */
export type Request =
  /** Opens a driver and prepares a scenario. */
  | {
    readonly do: "open";
    readonly driver: string;
    /** Path below bench/. */
    readonly scenario: string;
    readonly point: number;
    readonly target: Target;
  }
  /** Runs the operation once and tells what it gave. */
  | { readonly do: "answer" }
  /** Runs the operation some times, without measuring; after `limit` milliseconds no further time. */
  | { readonly do: "run"; readonly operations: number; readonly limit: number }
  | { readonly do: "warmUp"; readonly window: number; readonly limit: number }
  | { readonly do: "window"; readonly milliseconds: number }
  | { readonly do: "peakHeap"; readonly milliseconds: number }
  /** Undoes `open`; the child can be used again. */
  | { readonly do: "close" };

/** From the child. */
export type Reply =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly kind: "unsupported" | "failed"; readonly reason: string };

/** What each request is answered with. */
export interface ReplyValues {
  readonly open: null;
  readonly answer: { readonly answer: Answer; readonly counts: boolean };
  /** How often it ran. */
  readonly run: number;
  readonly warmUp: { readonly milliseconds: number; readonly stable: boolean };
  readonly window: Round;
  readonly peakHeap: number;
  readonly close: null;
}
