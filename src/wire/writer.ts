/**
 * The output slab: frontend messages are appended here, and `take()` gives the filled part away.
 *
 * What was taken is never written over (a transport may hold it until the socket accepts it); writing goes on
 * behind it in the same slab, and a new slab is made only when one is full.
 */

const SLAB_SIZE = 65_536;
const MAX_MESSAGE = 0x7fff_ffff;
/** Up to so many bytes a loop beats a call of the typed array's own methods. */
const SHORT = 24;

const encoder: TextEncoder = new TextEncoder();

/** Appends protocol fields in network byte order (PostgreSQL manual, 53.6 "Message Data Types"). */
export class Writer {
  #bytes: Uint8Array;
  #view: DataView;
  /** Start of what has not been taken yet. */
  #start: number = 0;
  #end: number = 0;

  /** Starts with a slab of `size` bytes. */
  constructor(size: number = SLAB_SIZE) {
    this.#bytes = new Uint8Array(size);
    this.#view = new DataView(this.#bytes.buffer);
  }

  /** Bytes written and not taken yet. */
  get length(): number {
    return this.#end - this.#start;
  }

  /** A position to come back to with {@linkcode rewind}; it stays right when the slab is replaced. */
  mark(): number {
    return this.#end - this.#start;
  }

  /** Forgets everything written since `mark`. */
  rewind(mark: number): void {
    this.#end = this.#start + mark;
  }

  /** Gives away the bytes written since the last call: a view of the slab, never written over. */
  take(): Uint8Array {
    const taken = this.#bytes.subarray(this.#start, this.#end);
    this.#start = this.#end;
    return taken;
  }

  /** Makes room for `size` more bytes. */
  ensure(size: number): void {
    if (this.#end + size > this.#bytes.length) this.#replaceSlab(size);
  }

  #replaceSlab(size: number): void {
    const kept = this.#end - this.#start;
    // Doubling what is kept makes a message of n bytes cost O(n) however it is appended.
    const slab = new Uint8Array(Math.max(SLAB_SIZE, kept * 2, kept + size));
    slab.set(this.#bytes.subarray(this.#start, this.#end));
    this.#bytes = slab;
    this.#view = new DataView(slab.buffer);
    this.#start = 0;
    this.#end = kept;
  }

  /** Opens a message: its type byte and a length to be filled in. Returns the mark for {@linkcode endMessage}. */
  beginMessage(type: number): number {
    this.ensure(5);
    this.#bytes[this.#end++] = type;
    const mark = this.#end - this.#start;
    this.#end += 4;
    return mark;
  }

  /** Opens a message by its first bytes, the length among them to be filled in. Returns the mark. */
  beginWith(head: Uint8Array): number {
    const mark = this.#end + 1 - this.#start;
    const length = head.length;
    this.ensure(length);
    const bytes = this.#bytes;
    let at = this.#end;
    for (let i = 0; i < length; i++) bytes[at++] = head[i]!;
    this.#end = at;
    return mark;
  }

  /** Closes the message opened at `mark`, whose last bytes are the first `inside` of these; the others follow it. */
  endWith(mark: number, rest: Uint8Array, inside: number): void {
    const length = rest.length;
    this.ensure(length);
    const bytes = this.#bytes;
    let at = this.#end;
    const size = at + inside - this.#start - mark;
    if (size > MAX_MESSAGE) failLength(size);
    this.#view.setInt32(this.#start + mark, size);
    for (let i = 0; i < length; i++) bytes[at++] = rest[i]!;
    this.#end = at;
  }

  /** Closes the message opened at `mark`: its length counts itself but not the type byte. */
  endMessage(mark: number): void {
    const length = this.#end - this.#start - mark;
    if (length > MAX_MESSAGE) failLength(length);
    this.#view.setInt32(this.#start + mark, length);
  }

  /** Int8 or Byte1. */
  uint8(value: number): void {
    this.ensure(1);
    this.#bytes[this.#end++] = value;
  }

  /** Int16, signed or unsigned: -32768 to 65535. */
  int16(value: number): void {
    if (value < -32_768 || value > 65_535) failRange("Int16", value);
    this.ensure(2);
    this.#view.setInt16(this.#end, value);
    this.#end += 2;
  }

  /** Int32, signed or unsigned: -2^31 to 2^32-1. */
  int32(value: number): void {
    if (value < -0x8000_0000 || value > 0xffff_ffff) failRange("Int32", value);
    this.ensure(4);
    this.#view.setInt32(this.#end, value);
    this.#end += 4;
  }

  /** Eight bytes, two's complement. */
  int64(value: bigint): void {
    this.ensure(8);
    this.#view.setBigInt64(this.#end, value);
    this.#end += 8;
  }

  /** IEEE 754 single precision. */
  float32(value: number): void {
    this.ensure(4);
    this.#view.setFloat32(this.#end, value);
    this.#end += 4;
  }

  /** IEEE 754 double precision. */
  float64(value: number): void {
    this.ensure(8);
    this.#view.setFloat64(this.#end, value);
    this.#end += 8;
  }

  /** Bytes as they are, copied now. */
  bytes(value: Uint8Array): void {
    const length = value.length;
    this.ensure(length);
    if (length <= SHORT) {
      const bytes = this.#bytes;
      let at = this.#end;
      for (let i = 0; i < length; i++) bytes[at++] = value[i]!;
      this.#end = at;
      return;
    }
    this.#bytes.set(value, this.#end);
    this.#end += length;
  }

  /** UTF-8 without terminator; lone surrogates become U+FFFD. */
  utf8(text: string): void {
    const length = text.length;
    // An ASCII loop beats encodeInto for short texts; see bench/micro/writer.
    if (length <= 48) {
      this.ensure(length * 3);
      const bytes = this.#bytes;
      let at = this.#end;
      for (let i = 0; i < length; i++) {
        const unit = text.charCodeAt(i);
        if (unit > 0x7f) return this.#encodeInto(text);
        bytes[at++] = unit;
      }
      this.#end = at;
      return;
    }
    this.#encodeInto(text);
  }

  /** Int32 length in bytes, then UTF-8 as {@linkcode utf8} writes it. */
  sized(text: string): void {
    const mark = this.beginSized();
    this.utf8(text);
    this.endSized(mark);
  }

  /** Leaves room for the length of what follows. Returns the mark for {@linkcode endSized}. */
  beginSized(): number {
    this.ensure(4);
    const mark = this.#end - this.#start;
    this.#end += 4;
    return mark;
  }

  /** Fills the length in at `mark`; it does not count itself. */
  endSized(mark: number): void {
    const at = this.#start + mark;
    this.#view.setInt32(at, this.#end - at - 4);
  }

  /**
   * Bind's parameter format codes and the number of its values, which is theirs.
   *
   * @param binary bit `i` for the binary format of value `i`; text for those past 31
   * @returns the mark of the first code
   */
  formatCodes(count: number, binary: number): number {
    this.ensure(4 + 2 * count);
    const bytes = this.#bytes;
    let at = this.#end;
    const mark = at + 2 - this.#start;
    bytes[at++] = count >> 8;
    bytes[at++] = count;
    for (let i = 0; i < count; i++) {
      bytes[at++] = 0;
      bytes[at++] = i > 31 ? 0 : binary >>> i & 1;
    }
    bytes[at++] = count >> 8;
    bytes[at++] = count;
    this.#end = at;
    return mark;
  }

  #encodeInto(text: string): void {
    // Three bytes a unit is the most; ask for it only where it fits cheaply, else encode first.
    if (text.length > 16_384) return this.bytes(encoder.encode(text));
    this.ensure(text.length * 3);
    this.#end += encoder.encodeInto(text, this.#bytes.subarray(this.#end)).written;
  }

  /** String: UTF-8 and a zero byte. The caller has made sure that `text` holds no NUL. */
  cstring(text: string): void {
    this.utf8(text);
    this.uint8(0);
  }

  /** Overwrites an Int32 at `mark`, as {@linkcode mark} gave it. */
  patchInt32(mark: number, value: number): void {
    this.#view.setInt32(this.#start + mark, value);
  }

  /** Overwrites an Int16 at `mark`. */
  patchInt16(mark: number, value: number): void {
    this.#view.setInt16(this.#start + mark, value);
  }
}

function failLength(length: number): never {
  throw new RangeError(`Cannot write a message of ${length} bytes: the protocol's limit is ${MAX_MESSAGE}`);
}

function failRange(field: string, value: number): never {
  throw new RangeError(`Cannot write ${value} as ${field}`);
}
