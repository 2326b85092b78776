/** One COPY on its way, whoever gives or takes its data. */

import type { ServerConnection } from "../connection/server_connection.ts";
import { NO_PARAMETERS, Request, SIMPLE } from "../engine/request.ts";
import { PipegresError } from "../errors.ts";
import type { CopyResponse } from "../wire/backend.ts";
import { type Attachment, chainObserver, type Executor, throwIfFailed } from "./executor.ts";
import { readCommandTag } from "./result.ts";
import { checkText } from "./sql.ts";

/** Bytes, or units of a string, that are written at once. */
const PIECE = 262_144;

/** One COPY on its way: a request, and the connection that has it. */
export class CopyOperation {
  readonly #executor: Executor;
  readonly #request: Request;
  readonly #site: Error | undefined;
  #attachment: Attachment | undefined = undefined;
  /** Resolves with the request, settled. */
  readonly settled: Promise<Request>;
  /** Whether the connection is not read from, since nobody takes the data. */
  #paused: boolean = false;
  /** Whether the data has ended. */
  #ended: boolean = false;
  /** Why it was given up behind the end of its data. */
  #late: { readonly reason: unknown } | undefined = undefined;
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
      // Whoever has the connection next needs it read, whatever this one's consumer does.
      this.setReading(true);
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
    // Whoever wanted it may have given up while a connection was waited for.
    if (this.#request.aborted) this.#request.settle();
    else attachment.submit(this.#request);
    const response = await this.#response;
    if (response !== undefined) return response;
    throwIfFailed(this.#request, this.#site);
    throw new PipegresError(
      "Statement is not the COPY that was announced: it neither asked for data nor gave any",
    );
  }

  /** Reads on from the connection, or not; of no effect once the COPY is over. */
  setReading(reading: boolean): void {
    const { settled, failure } = this.#request;
    if (this.#paused === !reading || !reading && (settled || failure !== null)) return;
    this.#paused = !reading;
    this.#connection.setReading(reading);
    // An error behind the data, in the same chunk, has been read nevertheless: ReadyForQuery is nobody's to wait for.
    if (!reading) queueMicrotask(() => this.failed && this.setReading(true));
  }

  /** The session's DateStyle and TimeZone, where the style is not ISO. */
  get dateStyle(): string | undefined {
    const settings = this.#connection.session.dateSettings;
    return settings.startsWith("ISO") ? undefined : settings;
  }

  get #connection(): ServerConnection {
    return this.#attachment!.connection;
  }

  /** Sends data; a promise when the connection takes no more for the moment. Throws when the COPY has failed. */
  write(data: Uint8Array | string): Promise<void> | undefined {
    if (data.length === 0) return undefined;
    if (data.length > PIECE) return this.#writePieces(data);
    this.throwIfFailed();
    return this.#connection.copyData(this.#request, data);
  }

  /** What is too large to be buffered twice goes in pieces, each in a message of its own. */
  async #writePieces(data: Uint8Array | string): Promise<void> {
    for (let at = 0; at < data.length;) {
      let end = Math.min(at + PIECE, data.length);
      // Both halves of a character outside the BMP stay together.
      if (typeof data === "string" && end < data.length && isHighSurrogate(data.charCodeAt(end - 1))) end--;
      await this.write(typeof data === "string" ? data.slice(at, end) : data.subarray(at, end));
      at = end;
    }
  }

  /** Ends the data; resolves with the number of rows stored. */
  async end(): Promise<number> {
    this.#ended = true;
    this.#connection.copyEnd(this.#request);
    return await this.finish();
  }

  /** Waits for the server's last word; resolves with the number of rows. */
  async finish(): Promise<number> {
    const request = await this.settled;
    if (this.#late !== undefined && isCancelled(request)) throw this.#late.reason;
    throwIfFailed(request, this.#site);
    return readCommandTag(request.results?.[0]?.tag ?? "").rowCount ?? 0;
  }

  /**
   * Gives up; resolves when the connection is free again. Nothing is stored, unless the data has ended: then the server
   * may have stored it already, and {@linkcode finish} tells what became of it.
   */
  async giveUp(reason: unknown): Promise<void> {
    if (this.#ended) {
      if (this.#late !== undefined) return void await this.settled;
      this.#late = { reason };
      this.#attachment!.giveUp(this.#request);
    } else if (!this.#request.settled && !this.#request.aborted) {
      this.#request.aborted = true;
      this.#request.fail(() => reason as Error);
      // The answer to the cancel has to be read.
      if (this.#attachment !== undefined) this.setReading(true);
      this.#attachment?.giveUp(this.#request);
    }
    if (this.#attachment !== undefined) await this.settled;
  }

  /** Whether the data has ended, so that only the server knows what becomes of it. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Whether it has failed. */
  get failed(): boolean {
    return this.#request.failure !== null;
  }

  /** Throws the failure, if there is one. */
  throwIfFailed(): void {
    throwIfFailed(this.#request, this.#site);
  }
}

function isCancelled({ serverError }: Request): boolean {
  return serverError?.["C"] === QUERY_CANCELED;
}

const QUERY_CANCELED = "57014";

/** Whether a UTF-16 unit is the first half of a character outside the BMP. */
export function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
