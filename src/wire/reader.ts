/** A bounds-checked cursor over one message's borrowed body. */

import { ProtocolError } from "../errors.ts";
import { keepShape } from "./keep_shape.ts";
import { utf8Slice } from "./utf8.ts";

/** Reads protocol fields in network byte order; every read past the end is a ProtocolError. */
export class Reader {
  /** The message's name, for errors. */
  readonly message: string;
  readonly #bytes: Uint8Array;
  #at: number;
  readonly #end: number;

  constructor(message: string, bytes: Uint8Array, start: number, end: number) {
    this.message = message;
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  /** Bytes not read yet. */
  get remaining(): number {
    return this.#end - this.#at;
  }

  #need(size: number): number {
    const at = this.#at;
    if (at + size > this.#end) this.fail("it ends too early");
    this.#at = at + size;
    return at;
  }

  /** Byte1 or Int8, unsigned. */
  uint8(): number {
    return this.#bytes[this.#need(1)]!;
  }

  /** Int16, unsigned. */
  uint16(): number {
    const at = this.#need(2);
    return (this.#bytes[at]! << 8) | this.#bytes[at + 1]!;
  }

  /** Int16, signed. */
  int16(): number {
    return (this.uint16() << 16) >> 16;
  }

  /** Int32, signed. */
  int32(): number {
    const at = this.#need(4);
    const bytes = this.#bytes;
    return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
  }

  /** Int32, unsigned: an OID. */
  uint32(): number {
    return this.int32() >>> 0;
  }

  /** String: up to its zero byte. */
  cstring(): string {
    const start = this.#at;
    const terminator = this.#bytes.indexOf(0, start);
    if (terminator < 0 || terminator >= this.#end) this.fail("a string has no terminator");
    this.#at = terminator + 1;
    return utf8Slice(this.#bytes, start, terminator);
  }

  /** A copy of `size` bytes. */
  bytes(size: number): Uint8Array {
    const at = this.#need(size);
    // Not slice(): a runtime's own byte arrays may share memory with theirs.
    return new Uint8Array(this.#bytes.subarray(at, at + size));
  }

  /** Checks that the body ends here. */
  done(): void {
    if (this.#at !== this.#end) this.fail(`${this.#end - this.#at} bytes are left over`);
  }

  /** Throws the ProtocolError for this message. */
  fail(reason: string): never {
    throw new ProtocolError(`Cannot read ${this.message}: ${reason}`);
  }
}

keepShape(new Reader("", new Uint8Array(0), 0, 0));
