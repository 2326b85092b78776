/**
 * Encodes every backend message (PostgreSQL manual, 53.7 "Message Formats"), in the manual's order: the half of the
 * protocol that the driver does not have. It shares no code with the driver.
 */

const encoder = new TextEncoder();

/** Joins byte arrays. */
export function concat(...parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/** One byte. */
export function int8(value: number): Uint8Array {
  return new Uint8Array([value]);
}

/** Two bytes in network order. */
export function int16(value: number): Uint8Array {
  const bytes = new Uint8Array(2);
  new DataView(bytes.buffer).setInt16(0, value);
  return bytes;
}

/** Four bytes in network order. */
export function int32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setInt32(0, value);
  return bytes;
}

/** UTF-8 with a closing NUL. */
export function cstring(text: string): Uint8Array {
  return encoder.encode(`${text}\0`);
}

/** A message of any type; `length` replaces the true one, for malformed messages. */
export function message(
  type: string,
  body: Uint8Array = new Uint8Array(0),
  length: number = body.length + 4,
): Uint8Array {
  return concat(encoder.encode(type), int32(length), body);
}

/** An authentication request of any code. */
export function authentication(request: number, data: Uint8Array = new Uint8Array(0)): Uint8Array {
  return message("R", concat(int32(request), data));
}

export const authenticationOk: Uint8Array = authentication(0);
export const authenticationKerberosV5: Uint8Array = authentication(2);
export const authenticationCleartextPassword: Uint8Array = authentication(3);

/** @param salt four bytes */
export function authenticationMd5Password(salt: Uint8Array): Uint8Array {
  return authentication(5, salt);
}

export const authenticationGss: Uint8Array = authentication(7);

export function authenticationSasl(...mechanisms: readonly string[]): Uint8Array {
  return authentication(10, concat(...mechanisms.map(cstring), int8(0)));
}

export function authenticationSaslContinue(data: string): Uint8Array {
  return authentication(11, encoder.encode(data));
}

export function authenticationSaslFinal(data: string): Uint8Array {
  return authentication(12, encoder.encode(data));
}

export function backendKeyData(processId: number, secretKey: Uint8Array): Uint8Array {
  return message("K", concat(int32(processId), secretKey));
}

export const bindComplete: Uint8Array = message("2");
export const closeComplete: Uint8Array = message("3");

/** @param tag such as `SELECT 1` */
export function commandComplete(tag: string): Uint8Array {
  return message("C", cstring(tag));
}

export function copyData(data: Uint8Array | string): Uint8Array {
  return message("d", typeof data === "string" ? encoder.encode(data) : data);
}

export const copyDone: Uint8Array = message("c");

export function copyInResponse(format: number, columnFormats: readonly number[]): Uint8Array {
  return message("G", concat(int8(format), list(int16, columnFormats)));
}

export function copyOutResponse(format: number, columnFormats: readonly number[]): Uint8Array {
  return message("H", concat(int8(format), list(int16, columnFormats)));
}

export function copyBothResponse(format: number, columnFormats: readonly number[]): Uint8Array {
  return message("W", concat(int8(format), list(int16, columnFormats)));
}

/** A column's value: text, bytes, or null for NULL. */
export type ColumnValue = string | Uint8Array | null;

export function dataRow(values: readonly ColumnValue[]): Uint8Array {
  const columns = values.map((value) => {
    if (value === null) return int32(-1);
    const bytes = typeof value === "string" ? encoder.encode(value) : value;
    return concat(int32(bytes.length), bytes);
  });
  return message("D", concat(int16(values.length), ...columns));
}

export const emptyQueryResponse: Uint8Array = message("I");

/** @param fields values by their one-letter codes; severity, SQLSTATE and text have defaults */
export function errorResponse(fields: Readonly<Record<string, string>> = {}): Uint8Array {
  return message("E", responseFields({ S: "ERROR", V: "ERROR", C: "XX000", M: "scripted error", ...fields }));
}

export function negotiateProtocolVersion(
  version: number,
  unrecognizedOptions: readonly string[] = [],
): Uint8Array {
  const options = unrecognizedOptions.map(cstring);
  return message("v", concat(int32(version), int32(options.length), ...options));
}

export const noData: Uint8Array = message("n");

/** @param fields as for {@linkcode errorResponse} */
export function noticeResponse(fields: Readonly<Record<string, string>> = {}): Uint8Array {
  return message(
    "N",
    responseFields({ S: "NOTICE", V: "NOTICE", C: "00000", M: "scripted notice", ...fields }),
  );
}

export function notificationResponse(processId: number, channel: string, payload: string): Uint8Array {
  return message("A", concat(int32(processId), cstring(channel), cstring(payload)));
}

export function parameterDescription(typeOids: readonly number[]): Uint8Array {
  return message("t", list(int32, typeOids));
}

export function parameterStatus(name: string, value: string): Uint8Array {
  return message("S", concat(cstring(name), cstring(value)));
}

export const parseComplete: Uint8Array = message("1");
export const portalSuspended: Uint8Array = message("s");

export function readyForQuery(status: "I" | "T" | "E" = "I"): Uint8Array {
  return message("Z", encoder.encode(status));
}

/** A column; what is left out is 0, and the modifier -1. */
export interface ColumnDescription {
  readonly name: string;
  readonly tableOid?: number;
  readonly columnNumber?: number;
  /** Default 25, text. */
  readonly typeOid?: number;
  /** Default -1, variable. */
  readonly typeSize?: number;
  readonly typeModifier?: number;
  readonly format?: number;
}

/** @param columns a string is a text column of that name */
export function rowDescription(columns: readonly (string | ColumnDescription)[]): Uint8Array {
  const fields = columns.map((column) => {
    const field = typeof column === "string" ? { name: column } : column;
    return concat(
      cstring(field.name),
      int32(field.tableOid ?? 0),
      int16(field.columnNumber ?? 0),
      int32(field.typeOid ?? 25),
      int16(field.typeSize ?? -1),
      int32(field.typeModifier ?? -1),
      int16(field.format ?? 0),
    );
  });
  return message("T", concat(int16(columns.length), ...fields));
}

function list(encode: (value: number) => Uint8Array, values: readonly number[]): Uint8Array {
  return concat(int16(values.length), ...values.map(encode));
}

function responseFields(fields: Readonly<Record<string, string>>): Uint8Array {
  const entries = Object.entries(fields).map(([code, value]) => cstring(code + value));
  return concat(...entries, int8(0));
}
