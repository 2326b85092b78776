/** COPY as Web streams: data of any format in, data of any format out. */

import type { ServerConnection } from "../connection/server_connection.ts";
import { NO_PARAMETERS, Request, SIMPLE } from "../engine/request.ts";
import { PipegresError } from "../errors.ts";
import type { CopyResponse } from "../wire/backend.ts";
import { type Attachment, chainObserver, type Executor, throwIfFailed } from "./executor.ts";
import { readCommandTag } from "./result.ts";
import { checkText } from "./sql.ts";

/** One COPY on its way: a request, and the connection that has it. */
export class CopyOperation {
  readonly #executor: Executor;
  readonly #request: Request;
  readonly #site: Error | undefined;
  #attachment: Attachment | undefined = undefined;
  /** Resolves with the request, settled. */
  readonly settled: Promise<Request>;
  #ready!: (response: CopyResponse | undefined) => void;
  readonly #response: Promise<CopyResponse | undefined> = new Promise((resolve) => this.#ready = resolve);

  /**
   * @param direction whether data goes to the server or comes from it
   * @param onData takes data of the server; borrowed bytes
   */
  constructor(
    executor: Executor,
    text: string,
    direction: "in" | "out",
    onData: (bytes: Uint8Array, start: number, end: number) => void,
  ) {
    checkText(text);
    this.#executor = executor;
    this.#site = executor.keepsStacks ? new Error() : undefined;
    let settle!: (request: Request) => void;
    this.settled = new Promise((resolve) => settle = resolve);
    this.#request = new Request(SIMPLE, text, NO_PARAMETERS, executor.types.objects, settle);
    this.#request.last = true;
    this.#request.copy = {
      direction,
      onCopyResponse: (response) => this.#ready(response),
      onCopyData: onData,
    };
    chainObserver(this.#request, () => {
      this.#ready(undefined);
      this.#attachment?.release();
    });
  }

  /**
   * Starts the COPY; resolves when the server is ready for data, or to send some.
   *
   * @throws what the statement fails with
   */
  async start(): Promise<CopyResponse> {
    const attachment = await this.#executor.attach();
    this.#attachment = attachment;
    attachment.submit(this.#request);
    const response = await this.#response;
    if (response !== undefined) return response;
    throwIfFailed(this.#request, this.#site);
    throw new PipegresError(
      "Statement is not the COPY that was announced: it neither asked for data nor gave any",
    );
  }

  /** The connection, once started. */
  get connection(): ServerConnection {
    return this.#attachment!.connection;
  }

  /** Sends data; a promise when the connection takes no more for the moment. Throws when the COPY has failed. */
  write(data: Uint8Array | string): Promise<void> | undefined {
    this.throwIfFailed();
    return this.connection.copyData(this.#request, data);
  }

  /** Ends the data; resolves with the number of rows stored. */
  async end(): Promise<number> {
    this.connection.copyEnd(this.#request);
    return await this.finish();
  }

  /** Waits for the server's last word; resolves with the number of rows. */
  async finish(): Promise<number> {
    const request = await this.settled;
    throwIfFailed(request, this.#site);
    return readCommandTag(request.results?.[0]?.tag ?? "").rowCount ?? 0;
  }

  /** Gives up; resolves when the connection is free again. Nothing is stored. */
  async giveUp(reason: unknown): Promise<void> {
    if (!this.#request.settled) {
      this.#request.aborted = true;
      this.#request.fail(() => reason as Error);
      this.#attachment?.connection.giveUp(this.#request);
    }
    if (this.#attachment !== undefined) await this.settled;
  }

  /** Throws the failure, if there is one. */
  throwIfFailed(): void {
    throwIfFailed(this.#request, this.#site);
  }
}

/** Takes the data of a COPY FROM STDIN. */
export class CopyFromStream extends WritableStream<Uint8Array | string> {
  #rowCount: number | undefined = undefined;

  /** Use `copyFrom()` of a connection or a pool. */
  constructor(executor: Executor, text: string) {
    const operation = new CopyOperation(executor, text, "in", () => {});
    super({
      async start(controller): Promise<void> {
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
      write: (chunk): Promise<void> | undefined => operation.write(chunk),
      close: async (): Promise<void> => {
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
    return chunk.length;
  }
}

/** Collects the pieces that come in one go into few chunks, and stops the socket while nobody reads them. */
class CopyOutSource implements UnderlyingDefaultSource<Uint8Array> {
  readonly operation: CopyOperation;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #buffer: Uint8Array = new Uint8Array(BUFFER_SIZE);
  #length: number = 0;
  #flushing: boolean = false;
  #stopped: boolean = false;

  constructor(executor: Executor, text: string) {
    this.operation = new CopyOperation(
      executor,
      text,
      "out",
      (bytes, start, end) => this.#onData(bytes, start, end),
    );
  }

  async start(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#controller = controller;
    await this.operation.start();
    this.operation.settled.then(() => this.#onSettled());
  }

  pull(): void {
    if (!this.#stopped) return;
    this.#stopped = false;
    this.operation.connection.setReading(true);
  }

  async cancel(reason: unknown): Promise<void> {
    this.pull();
    await this.operation.giveUp(reason ?? new PipegresError("COPY was given up"));
  }

  #onData(bytes: Uint8Array, start: number, end: number): void {
    const size = end - start;
    if (this.#length + size > this.#buffer.length) this.#flush();
    if (size > this.#buffer.length) {
      this.#enqueue(new Uint8Array(bytes.subarray(start, end)));
      return;
    }
    this.#buffer.set(bytes.subarray(start, end), this.#length);
    this.#length += size;
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(() => {
      this.#flushing = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#length === 0) return;
    const filled = this.#buffer.subarray(0, this.#length);
    // A full buffer is given away; of one that is mostly empty a copy is.
    if (this.#length * 2 < BUFFER_SIZE) this.#enqueue(filled.slice());
    else {
      this.#enqueue(filled);
      this.#buffer = new Uint8Array(BUFFER_SIZE);
    }
    this.#length = 0;
  }

  #enqueue(chunk: Uint8Array): void {
    try {
      this.#controller.enqueue(chunk);
    } catch {
      return; // cancelled
    }
    if (this.#stopped || (this.#controller.desiredSize ?? 1) > 0) return;
    this.#stopped = true;
    this.operation.connection.setReading(false);
  }

  #onSettled(): void {
    this.#flush();
    try {
      this.operation.throwIfFailed();
      this.#controller.close();
    } catch (error) {
      try {
        this.#controller.error(error);
      } catch {
        // Cancelled before.
      }
    }
  }
}

const BUFFER_SIZE = 65_536;

/** Gives the data of a COPY TO STDOUT. */
export class CopyToStream extends ReadableStream<Uint8Array> {
  #rowCount: number | undefined = undefined;

  /** Use `copyTo()` of a connection or a pool. */
  constructor(executor: Executor, text: string) {
    const source = new CopyOutSource(executor, text);
    super(
      source,
      new ByteLengthQueuingStrategy({ highWaterMark: HIGH_WATER_MARK }) as QueuingStrategy<Uint8Array>,
    );
    source.operation.settled.then((request) => {
      if (request.failure === null) {
        this.#rowCount = readCommandTag(request.results?.[0]?.tag ?? "").rowCount ?? 0;
      }
    });
  }

  /** Rows sent; `undefined` until the last one has come. */
  get rowCount(): number | undefined {
    return this.#rowCount;
  }
}
