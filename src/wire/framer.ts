/**
 * Cuts the byte stream into messages.
 *
 * A message that lies whole in the chunk is shown in place. Only one that a chunk cuts is copied: its parts are
 * gathered in a buffer of the framer's own, which grows at once up to a bound and by doubling from there on, so that a
 * large message costs linear time and a lying length little memory.
 */

import { ProtocolError } from "../errors.ts";
import { unfilledBytes } from "./own_buffer.ts";

/** Bytes of a message's type and length. */
export const HEADER = 5;
/** A buffer up to this size is kept for the next message that a chunk cuts. */
const KEPT_CAPACITY = 1 << 22;
/** An announced length up to this is believed. */
const TRUSTED_LENGTH = 1 << 22;
/** A message that long, up to the length that is believed, gets a buffer of its own, which is given away with it. */
const OWN_BUFFER = 1 << 17;

let givenAway: Uint8Array | undefined = undefined;

/**
 * Whether `bytes`, which a framer shows, hold the current message alone and will never be written over: a part of them
 * may be kept instead of a copy.
 */
export function isGivenAway(bytes: Uint8Array): boolean {
  return bytes === givenAway;
}

/** Usage: `feed(chunk)`, then `while (next())` look at `type` and `bytes[start, end)`, the message's body. */
export class Framer {
  /** Type byte of the current message. */
  type: number = 0;
  /** Holds the current message's body; borrowed until the next call of `next` or `feed`. */
  bytes: Uint8Array;
  /** First byte of the body. */
  start: number = 0;
  /** One past the last byte of the body. */
  end: number = 0;

  #chunk: Uint8Array;
  #at: number = 0;
  #partial: Uint8Array;
  #partialLength: number = 0;
  /** What to go on with when a buffer is given away. */
  #spare: Uint8Array;
  readonly #maxMessageBytes: number;

  /** @param maxMessageBytes the longest message accepted, in bytes, its length field included */
  constructor(maxMessageBytes: number) {
    this.#maxMessageBytes = maxMessageBytes;
    this.#partial = this.#spare = new Uint8Array(1024);
    this.#chunk = this.#partial.subarray(0, 0);
    this.bytes = this.#chunk;
  }

  /** Gives the next bytes of the stream; everything before must have been taken with `next`. */
  feed(chunk: Uint8Array): void {
    this.#chunk = chunk;
    this.#at = 0;
    givenAway = undefined;
  }

  /** Whether the stream ended in the middle of a message. */
  get midMessage(): boolean {
    return this.#partialLength > 0;
  }

  /**
   * Steps to the next message; false when the chunk holds no further whole one.
   *
   * @throws {ProtocolError} for a length below 4 or past the limit
   */
  next(): boolean {
    if (this.#partialLength > 0) return this.#completePartial();
    const chunk = this.#chunk;
    const at = this.#at;
    const available = chunk.length - at;
    if (available < HEADER) return this.#keepTail(available);
    const length = (chunk[at + 1]! << 24) | (chunk[at + 2]! << 16) | (chunk[at + 3]! << 8) | chunk[at + 4]!;
    if (length < 4 || length > this.#maxMessageBytes) this.#failLength(chunk[at]!, length);
    if (available <= length) return this.#keepTail(available);
    this.type = chunk[at]!;
    this.bytes = chunk;
    this.start = at + HEADER;
    this.#at = this.end = at + 1 + length;
    return true;
  }

  /** Where the message ends that begins at `at` of `bytes`; 0 when the chunk does not hold it whole. */
  endAt(at: number): number {
    const chunk = this.#chunk;
    if (this.bytes !== chunk || at + HEADER > chunk.length) return 0;
    const length = (chunk[at + 1]! << 24) | (chunk[at + 2]! << 16) | (chunk[at + 3]! << 8) | chunk[at + 4]!;
    if (length < 4 || length > this.#maxMessageBytes || at + length >= chunk.length) return 0;
    return at + 1 + length;
  }

  /** Steps over the messages up to `at`, an end that {@linkcode endAt} gave. */
  skipTo(at: number): void {
    this.#at = at;
  }

  #keepTail(available: number): false {
    if (available > 0) this.#append(available, Math.max(available, HEADER));
    return false;
  }

  /** Copies `count` bytes of the chunk behind the partial message; `capacity` is the most that may be needed. */
  #append(count: number, capacity: number): void {
    const needed = this.#partialLength + count;
    if (needed > this.#partial.length) {
      // At once as long as announced, up to a bound: a length that lies must not cost memory.
      const size = Math.max(needed, Math.min(capacity, Math.max(this.#partial.length * 2, TRUSTED_LENGTH)));
      const grown = new Uint8Array(size);
      grown.set(this.#partial.subarray(0, this.#partialLength));
      this.#partial = grown;
    }
    this.#partial.set(this.#chunk.subarray(this.#at, this.#at + count), this.#partialLength);
    this.#partialLength = needed;
    this.#at += count;
  }

  #completePartial(): boolean {
    if (this.#partialLength < HEADER) {
      this.#append(Math.min(HEADER - this.#partialLength, this.#chunk.length - this.#at), HEADER);
      if (this.#partialLength < HEADER) return false;
    }
    const head = this.#partial;
    const length = (head[1]! << 24) | (head[2]! << 16) | (head[3]! << 8) | head[4]!;
    if (length < 4 || length > this.#maxMessageBytes) this.#failLength(head[0]!, length);
    const total = 1 + length;
    if (total >= OWN_BUFFER && total <= TRUSTED_LENGTH && head.length !== total) this.#takeOwnBuffer(total);
    this.#append(Math.min(total - this.#partialLength, this.#chunk.length - this.#at), total);
    if (this.#partialLength < total) return false;
    this.type = this.#partial[0]!;
    this.bytes = this.#partial;
    this.start = HEADER;
    this.end = total;
    this.#partialLength = 0;
    if (total >= OWN_BUFFER && this.#partial.length === total) {
      givenAway = this.#partial;
      this.#partial = this.#spare;
    } // A buffer that one huge message needed is not kept for ever.
    else if (this.#partial.length > KEPT_CAPACITY) this.#partial = new Uint8Array(1024);
    return true;
  }

  #takeOwnBuffer(size: number): void {
    const own = unfilledBytes(size);
    own.set(this.#partial.subarray(0, this.#partialLength));
    this.#spare = this.#partial;
    this.#partial = own;
  }

  #failLength(type: number, length: number): never {
    const name = type > 0x20 && type < 0x7f ? `"${String.fromCharCode(type)}"` : `0x${type.toString(16)}`;
    throw new ProtocolError(
      length < 4
        ? `Cannot read a message of type ${name}: its length ${length} is below 4`
        : `Cannot read a message of type ${name}: its length ${length} is past maxMessageBytes ${this.#maxMessageBytes}`,
    );
  }
}
