/**
 * Segments that lost a prepared statement, and are to be prepared and run once more.
 *
 * Nothing of them stands, but what was written behind them cannot be called back. So they go in their order, before
 * all that waits, as soon as everything in flight is answered and no block is open: inside one they could be rolled back
 * unseen. While a block is open they wait and hold nobody up.
 */

import type { ResponseFields } from "../errors.ts";
import { beginsBlock } from "./begins_block.ts";
import { type Request, SYNC_EACH, SYNC_LATER } from "./request.ts";

/** A segment, and why it has to run again. */
export interface Retry {
  /** The first request, linked to the others by `next`. */
  readonly segment: Request;
  readonly lost: ResponseFields;
}

/** Commands whose effects end with a segment that is rolled back. */
const ROLLED_BACK = /^(?:SELECT|INSERT|UPDATE|DELETE|MERGE)\b/;

/** Whether nothing stands of a segment that failed outside a block, and it is wanted: it may run once more. */
export function mayRepeat(segment: readonly Request[], culprit: Request): boolean {
  if (!culprit.lostStatement) return false;
  let before = true;
  for (const request of segment) {
    if (request.retried || request.aborted) return false;
    if (request === culprit) before = false;
    else if (before && !ROLLED_BACK.test(request.tag)) return false;
  }
  return true;
}

/** Makes one chain of requests that shared a Sync, however they came to share it. */
export function link(segment: readonly Request[]): void {
  segment.forEach((request, i) => {
    request.next = segment[i + 1] ?? null;
    request.sync = request.next === null ? SYNC_EACH : SYNC_LATER;
  });
}

/** The line of what is to run again. */
export class Retries {
  #line: (Retry & { readonly since: number })[] = [];
  #begun: boolean = false;
  /** How many times something else has been answered. */
  #answers: number = 0;

  /** How many wait. */
  get count(): number {
    return this.#line.length;
  }

  /** Whether the first of the line have been written, and the others are to follow whatever those do. */
  get begun(): boolean {
    return this.#begun;
  }

  /** The one that has waited longest. */
  get first(): Request | undefined {
    return this.#line[0]?.segment;
  }

  add(retry: Retry): void {
    this.#line.push({ ...retry, since: this.#answers });
  }

  /** Something else has been answered. */
  overtake(): void {
    if (!this.#begun) this.#answers++;
  }

  /**
   * The first leaves the line to be written, or to be failed: a BEGIN that others have overtaken would open a block
   * behind what was meant to be in it.
   */
  take(): Retry & { readonly vain: boolean } {
    const { segment, lost, since } = this.#line.shift()!;
    const vain = since !== this.#answers && segment.next === null && beginsBlock(segment.text);
    this.#begun = this.#line.length > 0;
    return { segment, lost, vain };
  }

  /** Takes one out of the line; false when it is not there. */
  remove(segment: Request): boolean {
    const at = this.#line.findIndex((retry) => retry.segment === segment);
    if (at < 0) return false;
    this.#line.splice(at, 1);
    if (this.#line.length === 0) this.#begun = false;
    return true;
  }

  /** All leave the line. */
  takeAll(): Retry[] {
    const all = this.#line;
    this.#line = [];
    this.#begun = false;
    return all;
  }
}
