/**
 * Decodes every frontend message (PostgreSQL manual, 53.7 "Message Formats"): the half of the protocol that the
 * driver does not have. It shares no code with the driver and checks that each message ends where its length says.
 */

/** What a frontend can send. */
export type FrontendMessage =
  | { readonly type: "Bind" } & BindFields
  | { readonly type: "CancelRequest"; readonly processId: number; readonly secretKey: Uint8Array }
  | { readonly type: "Close" | "Describe"; readonly target: "statement" | "portal"; readonly name: string }
  | { readonly type: "CopyData"; readonly data: Uint8Array }
  | { readonly type: "CopyDone" | "Flush" | "GSSENCRequest" | "SSLRequest" | "Sync" | "Terminate" }
  | { readonly type: "CopyFail"; readonly reason: string }
  | { readonly type: "Execute"; readonly portal: string; readonly maxRows: number }
  | { readonly type: "FunctionCall"; readonly data: Uint8Array }
  | {
    readonly type: "Parse";
    readonly statement: string;
    readonly text: string;
    readonly parameterTypes: readonly number[];
  }
  | { readonly type: "Password"; readonly data: Uint8Array }
  | { readonly type: "Query"; readonly text: string }
  | {
    readonly type: "StartupMessage";
    readonly version: number;
    readonly parameters: Readonly<Record<string, string>>;
  };

/** The fields of a Bind. */
export interface BindFields {
  readonly portal: string;
  readonly statement: string;
  readonly parameterFormats: readonly number[];
  /** `null` for NULL. */
  readonly parameters: readonly (Uint8Array | null)[];
  readonly resultFormats: readonly number[];
}

const CANCEL_REQUEST = 80_877_102;
const SSL_REQUEST = 80_877_103;
const GSSENC_REQUEST = 80_877_104;

/** Cuts a stream of bytes into messages. */
export class FrontendReader {
  #bytes: Uint8Array = new Uint8Array(0);
  #typed: boolean;

  /** @param typed false while the messages without type byte are expected, until a StartupMessage */
  constructor(typed: boolean = false) {
    this.#typed = typed;
  }

  /** Bytes that no complete message has used yet. */
  get pending(): number {
    return this.#bytes.length;
  }

  /** Takes bytes, whose memory stays the caller's, and returns the messages that are complete now. */
  push(chunk: Uint8Array): FrontendMessage[] {
    const bytes = new Uint8Array(this.#bytes.length + chunk.length);
    bytes.set(this.#bytes);
    bytes.set(chunk, this.#bytes.length);
    const messages: FrontendMessage[] = [];
    let at = 0;
    for (;;) {
      const header = this.#typed ? 1 : 0;
      if (bytes.length - at < header + 4) break;
      const length = new DataView(bytes.buffer).getInt32(at + header);
      if (length < 4) throw new Error(`A frontend message announces ${length} bytes`);
      const end = at + header + length;
      if (bytes.length < end) break;
      const fields = new Fields(bytes.subarray(at + header + 4, end));
      const type = String.fromCharCode(bytes[at]!);
      const message = this.#typed ? readTyped(type, fields) : readUntyped(fields);
      fields.done(message.type);
      if (message.type === "StartupMessage") this.#typed = true;
      messages.push(message);
      at = end;
    }
    this.#bytes = bytes.subarray(at);
    return messages;
  }
}

/** The text of a PasswordMessage. */
export function readPassword(data: Uint8Array): string {
  const fields = new Fields(data);
  const password = fields.cstring();
  fields.done("PasswordMessage");
  return password;
}

/** The fields of a SASLInitialResponse; the response is undefined when none was sent. */
export function readSaslInitialResponse(
  data: Uint8Array,
): { mechanism: string; response: string | undefined } {
  const fields = new Fields(data);
  const mechanism = fields.cstring();
  const length = fields.int32();
  const response = length < 0 ? undefined : new TextDecoder().decode(fields.bytes(length));
  fields.done("SASLInitialResponse");
  return { mechanism, response };
}

/** The text of a SASLResponse. */
export function readSaslResponse(data: Uint8Array): string {
  return new TextDecoder().decode(data);
}

function readUntyped(fields: Fields): FrontendMessage {
  const code = fields.int32();
  switch (code) {
    case CANCEL_REQUEST:
      return { type: "CancelRequest", processId: fields.int32(), secretKey: fields.rest() };
    case SSL_REQUEST:
      return { type: "SSLRequest" };
    case GSSENC_REQUEST:
      return { type: "GSSENCRequest" };
  }
  const parameters: Record<string, string> = {};
  for (let name = fields.cstring(); name !== ""; name = fields.cstring()) parameters[name] = fields.cstring();
  return { type: "StartupMessage", version: code, parameters };
}

function readTyped(type: string, fields: Fields): FrontendMessage {
  switch (type) {
    case "B":
      return { type: "Bind", ...readBind(fields) };
    case "C":
      return { type: "Close", ...readTarget(fields) };
    case "d":
      return { type: "CopyData", data: fields.rest() };
    case "c":
      return { type: "CopyDone" };
    case "f":
      return { type: "CopyFail", reason: fields.cstring() };
    case "D":
      return { type: "Describe", ...readTarget(fields) };
    case "E":
      return { type: "Execute", portal: fields.cstring(), maxRows: fields.int32() };
    case "F":
      return { type: "FunctionCall", data: fields.rest() };
    case "H":
      return { type: "Flush" };
    case "P":
      return {
        type: "Parse",
        statement: fields.cstring(),
        text: fields.cstring(),
        parameterTypes: fields.list(() => fields.int32() >>> 0),
      };
    case "p":
      return { type: "Password", data: fields.rest() };
    case "Q":
      return { type: "Query", text: fields.cstring() };
    case "S":
      return { type: "Sync" };
    case "X":
      return { type: "Terminate" };
  }
  throw new Error(`Unknown frontend message type ${JSON.stringify(type)}`);
}

function readBind(fields: Fields): BindFields {
  return {
    portal: fields.cstring(),
    statement: fields.cstring(),
    parameterFormats: fields.list(() => fields.int16()),
    parameters: fields.list(() => {
      const length = fields.int32();
      return length < 0 ? null : fields.bytes(length);
    }),
    resultFormats: fields.list(() => fields.int16()),
  };
}

function readTarget(fields: Fields): { target: "statement" | "portal"; name: string } {
  const target = String.fromCharCode(fields.int8());
  if (target !== "S" && target !== "P") {
    throw new Error(`Describe or Close aims at ${JSON.stringify(target)}`);
  }
  return { target: target === "S" ? "statement" : "portal", name: fields.cstring() };
}

class Fields {
  #bytes: Uint8Array;
  #view: DataView;
  #at: number = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  int8(): number {
    return this.#view.getUint8(this.#at++);
  }

  int16(): number {
    return this.#view.getUint16((this.#at += 2) - 2);
  }

  int32(): number {
    return this.#view.getInt32((this.#at += 4) - 4);
  }

  bytes(length: number): Uint8Array {
    if (this.#at + length > this.#bytes.length) throw new Error("A field is longer than its message");
    this.#at += length;
    return this.#bytes.slice(this.#at - length, this.#at);
  }

  rest(): Uint8Array {
    return this.bytes(this.#bytes.length - this.#at);
  }

  cstring(): string {
    const end = this.#bytes.indexOf(0, this.#at);
    if (end < 0) throw new Error("A string has no end");
    const text = new TextDecoder("utf-8", { fatal: true }).decode(this.#bytes.subarray(this.#at, end));
    this.#at = end + 1;
    return text;
  }

  /** Values behind their Int16 count. */
  list<T>(read: () => T): T[] {
    const values: T[] = [];
    for (let left = this.int16(); left > 0; left--) values.push(read());
    return values;
  }

  done(message: string): void {
    if (this.#at !== this.#bytes.length) {
      throw new Error(`${this.#bytes.length - this.#at} bytes are left over in ${message}`);
    }
  }
}
