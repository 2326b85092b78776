/** Reads the bodies of backend messages (PostgreSQL manual, 53.7), in the manual's order. */

import type { ResponseFields } from "../errors.ts";
import { Reader } from "./reader.ts";

/** A column of a RowDescription. */
export interface Field {
  /** Column name. */
  readonly name: string;
  /** OID of the table it comes from, 0 when from none. */
  readonly tableOid: number;
  /** Attribute number in that table, 0 when from none. */
  readonly columnNumber: number;
  /** Type OID. */
  readonly typeOid: number;
  /** `pg_type.typlen`: bytes; negative for variable width. */
  readonly typeSize: number;
  /** `pg_attribute.atttypmod`; -1 for none. */
  readonly typeModifier: number;
  /** Format code of the column's values: 0 text, 1 binary. */
  readonly format: 0 | 1;
}

/** An AuthenticationXXX message: its request code and what follows. */
export interface AuthenticationRequest {
  readonly request: number;
  readonly data: Uint8Array;
}

export function readAuthentication(bytes: Uint8Array, start: number, end: number): AuthenticationRequest {
  const reader = new Reader("Authentication", bytes, start, end);
  return { request: reader.int32(), data: reader.bytes(reader.remaining) };
}

/** What a CancelRequest needs. */
export interface BackendKeyData {
  readonly processId: number;
  /** 4 bytes in protocol 3.0, up to 256 in 3.2; echoed as it is. */
  readonly secretKey: Uint8Array;
}

export function readBackendKeyData(bytes: Uint8Array, start: number, end: number): BackendKeyData {
  const reader = new Reader("BackendKeyData", bytes, start, end);
  const processId = reader.int32();
  const length = reader.remaining;
  if (length < 1 || length > 256) reader.fail(`the secret key has ${length} bytes, wanted 1 to 256`);
  return { processId, secretKey: reader.bytes(length) };
}

/** The command tag: `known` itself, where it says the same, which saves making it anew. */
export function readCommandComplete(bytes: Uint8Array, start: number, end: number, known: string): string {
  return isAscii(known, bytes, start, end) ? known : readOneString("CommandComplete", bytes, start, end);
}

/** Whether the bytes are these ASCII characters and a zero byte. */
function isAscii(text: string, bytes: Uint8Array, start: number, end: number): boolean {
  const { length } = text;
  if (end - start !== length + 1 || bytes[end - 1] !== 0) return false;
  for (let i = 0; i < length; i++) {
    const byte = bytes[start + i]!;
    if (byte === 0 || byte > 0x7f || byte !== text.charCodeAt(i)) return false;
  }
  return true;
}

/** CopyInResponse, CopyOutResponse or CopyBothResponse. */
export interface CopyResponse {
  /** Overall format: 0 text, 1 binary. */
  readonly format: number;
  /** Format code of each column. */
  readonly columnFormats: readonly number[];
}

export function readCopyResponse(bytes: Uint8Array, start: number, end: number): CopyResponse {
  const reader = new Reader("CopyResponse", bytes, start, end);
  const format = reader.uint8();
  const count = reader.uint16();
  const columnFormats: number[] = [];
  for (let i = 0; i < count; i++) columnFormats.push(reader.uint16());
  reader.done();
  return { format, columnFormats };
}

/** ErrorResponse or NoticeResponse: values by their one-letter codes. */
export function readResponseFields(
  message: string,
  bytes: Uint8Array,
  start: number,
  end: number,
): ResponseFields {
  const reader = new Reader(message, bytes, start, end);
  const fields: Record<string, string> = Object.create(null);
  for (;;) {
    const code = reader.uint8();
    if (code === 0) break;
    fields[String.fromCharCode(code)] = reader.cstring();
  }
  reader.done();
  return fields;
}

/** The minor version the server speaks, and the protocol options it does not know. */
export interface NegotiatedProtocol {
  /** Newest protocol version the server supports, major and minor as in a StartupMessage. */
  readonly version: number;
  readonly unrecognizedOptions: readonly string[];
}

export function readNegotiateProtocolVersion(
  bytes: Uint8Array,
  start: number,
  end: number,
): NegotiatedProtocol {
  const reader = new Reader("NegotiateProtocolVersion", bytes, start, end);
  const version = reader.int32();
  const count = reader.int32();
  if (count < 0) reader.fail(`it announces ${count} options`);
  const unrecognizedOptions: string[] = [];
  for (let i = 0; i < count; i++) unrecognizedOptions.push(reader.cstring());
  reader.done();
  return { version, unrecognizedOptions };
}

/** A NotificationResponse. */
export interface Notification {
  /** Process ID of the notifying backend. */
  readonly processId: number;
  readonly channel: string;
  /** Empty when none was given. */
  readonly payload: string;
}

export function readNotificationResponse(bytes: Uint8Array, start: number, end: number): Notification {
  const reader = new Reader("NotificationResponse", bytes, start, end);
  const notification = { processId: reader.int32(), channel: reader.cstring(), payload: reader.cstring() };
  reader.done();
  return notification;
}

/** Parameter type OIDs. */
export function readParameterDescription(bytes: Uint8Array, start: number, end: number): readonly number[] {
  const reader = new Reader("ParameterDescription", bytes, start, end);
  const count = reader.uint16();
  const types: number[] = [];
  for (let i = 0; i < count; i++) types.push(reader.uint32());
  reader.done();
  return types;
}

/** Name and value of a run-time parameter. */
export function readParameterStatus(
  bytes: Uint8Array,
  start: number,
  end: number,
): { readonly name: string; readonly value: string } {
  const reader = new Reader("ParameterStatus", bytes, start, end);
  const status = { name: reader.cstring(), value: reader.cstring() };
  reader.done();
  return status;
}

/** Transaction status: `I`, `T` or `E` as a byte. */
export function readReadyForQuery(bytes: Uint8Array, start: number, end: number): number {
  const reader = new Reader("ReadyForQuery", bytes, start, end);
  const status = reader.uint8();
  reader.done();
  if (status !== 0x49 && status !== 0x54 && status !== 0x45) {
    reader.fail(`unknown transaction status ${status}`);
  }
  return status;
}

export function readRowDescription(bytes: Uint8Array, start: number, end: number): readonly Field[] {
  const reader = new Reader("RowDescription", bytes, start, end);
  const count = reader.uint16();
  const fields: Field[] = [];
  for (let i = 0; i < count; i++) {
    const name = reader.cstring();
    const tableOid = reader.uint32();
    const columnNumber = reader.int16();
    const typeOid = reader.uint32();
    const typeSize = reader.int16();
    const typeModifier = reader.int32();
    const code = reader.uint16();
    const format = code === 0
      ? 0
      : code === 1
      ? 1
      : reader.fail(`column ${i + 1} has the format code ${code}`);
    fields.push({ name, tableOid, columnNumber, typeOid, typeSize, typeModifier, format });
  }
  reader.done();
  return fields;
}

/** Checks that a message without fields has none. */
export function readEmpty(message: string, start: number, end: number): void {
  if (start !== end) new Reader(message, new Uint8Array(0), 0, 0).fail(`${end - start} bytes are left over`);
}

function readOneString(message: string, bytes: Uint8Array, start: number, end: number): string {
  const reader = new Reader(message, bytes, start, end);
  const text = reader.cstring();
  reader.done();
  return text;
}
