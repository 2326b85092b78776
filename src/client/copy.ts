/** COPY as Web streams: data of any format in, data of any format out. */

import { describeValue } from "../codecs/text_form.ts";
import { PipegresError, ValueError } from "../errors.ts";
import { CopyOperation, isHighSurrogate } from "./copy_operation.ts";
import { openCopyRows } from "./copy_to_rows.ts";
import type { Executor } from "./executor.ts";
import type { Row } from "./result.ts";
import { RowStream } from "./row_stream.ts";
import { checkText } from "./sql.ts";

/** Takes the data of a COPY FROM STDIN. */
export class CopyFromStream extends WritableStream<Uint8Array | string> {
  #rowCount: number | undefined = undefined;

  /** Use `copyFrom()` of a connection or a pool. */
  constructor(executor: Executor, text: string) {
    const operation = new CopyOperation(executor, text, "in", () => {});
    const joiner = new SurrogateJoiner();
    super({
      async start(controller): Promise<void> {
        // The stream itself waits for a write that waits for the server; who aborts it does not want to.
        controller.signal?.addEventListener("abort", () => void operation.giveUp(controller.signal.reason));
        await operation.start();
        // The server may refuse a row long before the data ends.
        operation.settled.then(() => {
          try {
            operation.throwIfFailed();
          } catch (error) {
            controller.error(error);
          }
        });
      },
      async write(chunk): Promise<void> {
        try {
          const congested = operation.write(joiner.join(checkChunk(chunk)));
          if (congested !== undefined) await congested;
        } catch (error) {
          // A stream that its sink fails is not aborted: the server would wait for data for ever.
          await operation.giveUp(error);
          throw error;
        }
      },
      close: async (): Promise<void> => {
        const rest = joiner.rest();
        if (rest !== "") operation.write(rest);
        this.#rowCount = await operation.end();
      },
      abort: (reason): Promise<void> => operation.giveUp(reason),
    }, new ChunkLength(HIGH_WATER_MARK));
  }

  /** Rows stored; `undefined` until the stream is closed. */
  get rowCount(): number | undefined {
    return this.#rowCount;
  }
}

/** Bytes that a stream holds before it asks its source to wait. */
const HIGH_WATER_MARK = 262_144;

/** Counts a chunk's bytes, a string's units. */
class ChunkLength implements QueuingStrategy<Uint8Array | string> {
  readonly highWaterMark: number;

  constructor(highWaterMark: number) {
    this.highWaterMark = highWaterMark;
  }

  size(chunk: Uint8Array | string): number {
    // What is no chunk at all is refused when it is written.
    return chunk?.length ?? 0;
  }
}

function checkChunk(chunk: unknown): Uint8Array | string {
  if (typeof chunk === "string" || chunk instanceof Uint8Array) return chunk;
  throw new ValueError(`Expected a Uint8Array or a string as COPY data, received ${describeValue(chunk)}`);
}

/** Joins the halves of characters outside the BMP that stand in two chunks. */
class SurrogateJoiner {
  #high: string = "";

  /** The chunk with what was kept before it, without the half that it ends with. */
  join(chunk: Uint8Array | string): Uint8Array | string {
    if (typeof chunk !== "string") {
      // A half before bytes has no other half: it stays what it is, an error of the source.
      if (this.#high === "") return chunk;
      const [rest, bytes] = [new TextEncoder().encode(this.rest()), chunk];
      const joined = new Uint8Array(rest.length + bytes.length);
      joined.set(rest);
      joined.set(bytes, rest.length);
      return joined;
    }
    if (chunk === "") return chunk;
    const text = this.#high + chunk;
    this.#high = isHighSurrogate(text.charCodeAt(text.length - 1)) ? text.slice(-1) : "";
    return this.#high === "" ? text : text.slice(0, -1);
  }

  /** A half that nothing followed. */
  rest(): string {
    const rest = this.#high;
    this.#high = "";
    return rest;
  }
}

/**
 * Starts a COPY TO STDOUT when it is first read from, collects the pieces that come in one go into few chunks, and
 * stops the socket while nobody takes them.
 */
class CopyOutSource implements UnderlyingDefaultSource<Uint8Array> {
  readonly #executor: Executor;
  readonly #text: string;
  readonly #onFinished: (rowCount: number) => void;
  /** `undefined` until the first read. */
  #operation: CopyOperation | undefined = undefined;
  #chunks: Uint8Array[] = [];
  /** Bytes in them. */
  #waiting: number = 0;
  #buffer: Uint8Array = NOTHING;
  #length: number = 0;
  #flushing: boolean = false;
  #stopped: boolean = false;
  #ended: boolean = false;
  #wake: (() => void) | undefined = undefined;

  constructor(executor: Executor, text: string, onFinished: (rowCount: number) => void) {
    this.#executor = executor;
    this.#text = text;
    this.#onFinished = onFinished;
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const operation = this.#operation ?? await this.#start();
    while (this.#chunks.length === 0 && !this.#ended) {
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    operation.throwIfFailed();
    const chunk = this.#chunks.shift();
    if (chunk === undefined) {
      this.#onFinished(await operation.finish());
      return controller.close();
    }
    this.#waiting -= chunk.length;
    if (this.#stopped && this.#waiting < LOW_WATER_MARK) this.#setStopped(false);
    controller.enqueue(chunk);
  }

  async cancel(reason: unknown): Promise<void> {
    this.#chunks = [];
    this.#ended = true;
    this.#wake?.();
    const operation = this.#operation;
    if (operation === undefined) return;
    if (this.#stopped) this.#setStopped(false);
    await operation.giveUp(reason ?? new PipegresError("COPY was given up"));
  }

  async #start(): Promise<CopyOperation> {
    const onData = (bytes: Uint8Array, start: number, end: number) => this.#onData(bytes, start, end);
    const operation = this.#operation = new CopyOperation(this.#executor, this.#text, "out", onData);
    await operation.start();
    operation.settled.then(() => {
      this.#flush();
      this.#ended = true;
      this.#wake?.();
    });
    return operation;
  }

  #onData(bytes: Uint8Array, start: number, end: number): void {
    const size = end - start;
    if (this.#length + size > this.#buffer.length) {
      this.#flush();
      this.#buffer = new Uint8Array(Math.max(BUFFER_SIZE, size));
    }
    const buffer = this.#buffer;
    if (size > COPIED_BY_LOOP) buffer.set(bytes.subarray(start, end), this.#length);
    else for (let from = start, to = this.#length; from < end; from++, to++) buffer[to] = bytes[from]!;
    this.#length += size;
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(() => {
      this.#flushing = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#length === 0 || this.#ended) return;
    let filled = this.#buffer.subarray(0, this.#length);
    // A buffer that is full is given away; of one that is mostly empty a copy is: each chunk has a buffer of its own.
    if (this.#length * 2 < this.#buffer.length) filled = filled.slice();
    else this.#buffer = NOTHING;
    this.#length = 0;
    this.#chunks.push(filled);
    this.#waiting += filled.length;
    this.#wake?.();
    if (this.#waiting >= HIGH_WATER_MARK && !this.#stopped) this.#setStopped(true);
  }

  #setStopped(stopped: boolean): void {
    this.#stopped = stopped;
    this.#operation!.setReading(!stopped);
  }
}

const NOTHING: Uint8Array = new Uint8Array(0);
const BUFFER_SIZE = 65_536;
/** Bytes that may still wait when the socket is read from again. */
const LOW_WATER_MARK = 131_072;
/** Below this many bytes a loop beats a view and a copy: see bench/micro. */
const COPIED_BY_LOOP = 48;

/** Gives the data of a COPY TO STDOUT. */
export class CopyToStream extends ReadableStream<Uint8Array> {
  readonly #executor: Executor;
  readonly #text: string;
  #rowCount: number | undefined = undefined;

  /** Use `copyTo()` of a connection or a pool. */
  constructor(executor: Executor, text: string) {
    checkText(text);
    const source = new CopyOutSource(executor, text, (rowCount) => this.#rowCount = rowCount);
    super(source, { highWaterMark: 0 });
    this.#executor = executor;
    this.#text = text;
  }

  /** Rows sent; `undefined` until the stream has ended. */
  get rowCount(): number | undefined {
    return this.#rowCount;
  }

  /**
   * The rows as typed objects in place of the bytes: as quick as COPY, as exact as a query.
   *
   * A statement without options is run in binary format, or in text format where a column's type is read as text only;
   * with `(format binary)`, or `(format text)` and nothing else, it is run as it is. The stream itself is locked.
   *
   * @throws {PipegresError} from the first `next`, when the options are others, or the query or table is not found in
   * the text
   * @throws {TypeError} when the stream is being read
   */
  rows<T = Row>(): RowStream<T> {
    this.getReader();
    return new RowStream<T>(() => openCopyRows(this.#executor, this.#text));
  }
}
