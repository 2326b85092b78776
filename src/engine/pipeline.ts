/**
 * The queue of requests: write order = queue order = reply order.
 *
 *     | settled | in flight: being answered … written | pending |
 *               ^ head        ^ cursor                ^ tail
 *
 * Requests between two Syncs are a *segment* and share a fate. When one fails, the server skips the rest up to the
 * Sync: later ones never run (PipelineAbortedError), and outside a transaction block the earlier ones are rolled
 * back although they were answered. So a request settles at its segment's ReadyForQuery, never before.
 */

import type { Request } from "./request.ts";

const COMPACT_AT = 256;
/** What a slot holds that is not in use: what has settled must not be kept alive. */
const NOTHING = undefined as unknown as Request;

/** Requests in flight, in write order, and those that wait to be written. */
export class Pipeline {
  /** In flight from `#head` up to `#tail`; what is before and behind is empty. */
  #ring: Request[] = [];
  #head: number = 0;
  #tail: number = 0;
  /** The request that the server answers now. */
  #cursor: number = 0;
  /** Where the requests begin whose bytes have not been handed out. */
  #untaken: number = 0;
  /** Heads of segments that wait. */
  #pending: Request[] = [];
  #pendingHead: number = 0;

  /** Requests in flight. */
  get inFlight(): number {
    return this.#tail - this.#head;
  }

  /** Segments that wait. */
  get waiting(): number {
    return this.#pending.length - this.#pendingHead;
  }

  /**
   * The request that the server is busy with, or `undefined`. The last one of a segment remains so, although it is
   * answered, until ReadyForQuery: its Sync commits, which can fail.
   */
  get current(): Request | undefined {
    const at = this.#cursor;
    if (at > this.#head) {
      const answered = this.#ring[at - 1]!;
      if (answered.segmentEnd) return answered;
    }
    return this.#ring[at];
  }

  /** The request that the server is busy with, when it is a segment by itself. */
  get single(): Request | undefined {
    const at = this.#head;
    if (this.#cursor !== at) return undefined;
    const request = this.#ring[at];
    return request !== undefined && request.segmentEnd ? request : undefined;
  }

  /** The request answered last, while its segment has not settled. */
  get answered(): Request | undefined {
    return this.#cursor > this.#head ? this.#ring[this.#cursor - 1] : undefined;
  }

  /** The request written last and not settled, or `undefined`. */
  get last(): Request | undefined {
    return this.#tail > this.#head ? this.#ring[this.#tail - 1] : undefined;
  }

  /** A request has been written. */
  push(request: Request): void {
    this.#ring[this.#tail++] = request;
  }

  /** Takes back the requests written last, which were pushed when `count` were in flight. */
  truncate(count: number): void {
    const tail = this.#head + count;
    while (this.#tail > tail) this.#ring[--this.#tail] = NOTHING;
  }

  /** A request has been written that is answered before the last one, whose description has come. */
  pushBeforeLast(request: Request): void {
    const at = this.#tail++ - 1;
    if (this.#untaken > at) this.#untaken++;
    // Not inserted: those that leave with their segment would let the ring grow for good.
    this.#ring[at + 1] = this.#ring[at]!;
    this.#ring[at] = request;
  }

  /** The request answered last leaves the queue before its segment. */
  removeAnswered(): void {
    this.#ring.splice(--this.#cursor, 1);
    this.#tail--;
    if (this.#untaken > this.#cursor) this.#untaken--;
  }

  /** Whether a request of the segment that is being answered has ended with this command. */
  hasAnswered(tag: string): boolean {
    for (let at = this.#head; at < this.#cursor; at++) if (this.#ring[at]!.tag === tag) return true;
    return false;
  }

  /** Whether a request is of the segment that is being answered. */
  isAnswering(request: Request): boolean {
    for (let at = this.#head; at < this.#tail; at++) {
      if (this.#ring[at] === request) return true;
      if (this.#ring[at]!.segmentEnd) return false;
    }
    return false;
  }

  /** The current request is answered: its successor is next. */
  advance(): void {
    this.#cursor++;
  }

  /** All written bytes have been handed out. */
  markTaken(): void {
    this.#untaken = this.#tail;
  }

  /** Requests in flight whose bytes have been handed out, at least in part. */
  get taken(): number {
    return Math.max(0, this.#untaken - this.#head);
  }

  /** The requests of the segment that is being answered, oldest first; they leave the queue. */
  takeSegment(): Request[] | undefined {
    const ring = this.#ring;
    let end = this.#head;
    while (end < this.#tail && !ring[end]!.segmentEnd) end++;
    if (end >= this.#tail) return undefined;
    return this.#take(end + 1 - this.#head);
  }

  /** The oldest segment when it is a single request, which then leaves the queue; else `undefined`. */
  takeSingle(): Request | undefined {
    const request = this.#ring[this.#head];
    if (request === undefined || !request.segmentEnd) return undefined;
    this.#ring[this.#head] = NOTHING;
    this.#settledTo(this.#head + 1);
    return request;
  }

  /** All requests in flight, oldest first; they leave the queue. */
  takeInFlight(): Request[] {
    return this.#take(this.#tail - this.#head);
  }

  #take(count: number): Request[] {
    const end = this.#head + count;
    const taken = this.#ring.slice(this.#head, end);
    this.#ring.fill(NOTHING, this.#head, end);
    this.#settledTo(end);
    return taken;
  }

  #settledTo(head: number): void {
    this.#head = this.#cursor = head;
    if (head === this.#tail) {
      // The usual end of a burst: nothing to move.
      this.#head =
        this.#cursor =
        this.#tail =
        this.#untaken =
          0;
    } else if (head >= COMPACT_AT && head * 2 >= this.#tail) {
      this.#ring.splice(0, head);
      this.#tail -= head;
      this.#untaken -= head;
      this.#head = this.#cursor = 0;
    }
  }

  /** A segment has to wait. */
  enqueue(segment: Request): void {
    this.#pending.push(segment);
  }

  /** A segment that starts again goes before all that wait. */
  enqueueFirst(segment: Request): void {
    this.#pending.splice(this.#pendingHead, 0, segment);
  }

  /** The segment that waits longest, or `undefined`. */
  get firstPending(): Request | undefined {
    return this.#pending[this.#pendingHead];
  }

  /** The first pending segment leaves the waiting line. */
  dequeue(): void {
    this.#pending[this.#pendingHead++] = undefined as unknown as Request;
    if (this.#pendingHead === this.#pending.length) this.#pending.length = this.#pendingHead = 0;
    else if (this.#pendingHead >= COMPACT_AT && this.#pendingHead * 2 >= this.#pending.length) {
      this.#pending.splice(0, this.#pendingHead);
      this.#pendingHead = 0;
    }
  }

  /** Takes a waiting segment out of the line; false when it does not wait. */
  removePending(segment: Request): boolean {
    const index = this.#pending.indexOf(segment, this.#pendingHead);
    if (index < 0) return false;
    this.#pending.splice(index, 1);
    return true;
  }

  /** All waiting segments, in order; they leave the queue. */
  takePending(): Request[] {
    const pending = this.#pending.slice(this.#pendingHead);
    this.#pending.length = this.#pendingHead = 0;
    return pending;
  }
}
