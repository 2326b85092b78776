/**
 * Appends frontend messages (PostgreSQL manual, 53.7), in the manual's order.
 *
 * Strings must hold no NUL; who takes them from a user checks that.
 */

import * as types from "./message_types.ts";
import { Writer } from "./writer.ts";

/**
 * Opens a Bind for the unnamed portal; the caller appends parameter formats, parameter values and result formats
 * and closes the message at the returned mark.
 */
export function beginBind(writer: Writer, statement: string, portal: string = ""): number {
  const mark = writer.beginMessage(types.BIND);
  writer.cstring(portal);
  writer.cstring(statement);
  return mark;
}

/** What a Bind for the unnamed portal begins with, up to the statement's name; its length is not filled in. */
export function bindHead(statement: string): Uint8Array {
  const writer = new Writer(7 + 3 * statement.length); // as much as the name may take
  beginBind(writer, statement);
  return writer.take();
}

/** What follows the parameters of a Bind for the unnamed portal whose rows are all wanted. */
export interface BindEnd {
  /** Bytes that are still of the Bind: result format codes and their number. */
  readonly inBind: number;
  /** Those, and Execute. */
  readonly executed: Uint8Array;
  /** Those, Execute and Sync. */
  readonly synced: Uint8Array;
}

/** @param resultFormats the codes, behind their number */
export function bindEnd(resultFormats: Uint8Array): BindEnd {
  const writer = new Writer(resultFormats.length + 15); // kept as it is
  writer.bytes(resultFormats);
  writeExecute(writer, "", 0);
  const executed = writer.length;
  writeSync(writer);
  const synced = writer.take();
  return { inBind: resultFormats.length, executed: synced.subarray(0, executed), synced };
}

/** CancelRequest: aims at the backend whose BackendKeyData this is. */
export function writeCancelRequest(writer: Writer, processId: number, secretKey: Uint8Array): void {
  writer.int32(12 + secretKey.length);
  writer.int32(types.CANCEL_REQUEST);
  writer.int32(processId);
  writer.bytes(secretKey);
}

/** Close of a prepared statement (`STATEMENT`) or portal (`PORTAL`). */
export function writeClose(writer: Writer, target: number, name: string): void {
  writeTargeted(writer, types.CLOSE, target, name);
}

export function writeCopyData(writer: Writer, data: Uint8Array): void {
  const mark = writer.beginMessage(types.COPY_DATA);
  writer.bytes(data);
  writer.endMessage(mark);
}

export function writeCopyDone(writer: Writer): void {
  writer.endMessage(writer.beginMessage(types.COPY_DONE));
}

export function writeCopyFail(writer: Writer, reason: string): void {
  writeString(writer, types.COPY_FAIL, reason);
}

/** Describe of a prepared statement (`STATEMENT`) or portal (`PORTAL`). */
export function writeDescribe(writer: Writer, target: number, name: string): void {
  writeTargeted(writer, types.DESCRIBE, target, name);
}

/** @param maxRows rows to return before PortalSuspended; 0 for all */
export function writeExecute(writer: Writer, portal: string, maxRows: number): void {
  const mark = writer.beginMessage(types.EXECUTE);
  writer.cstring(portal);
  writer.int32(maxRows);
  writer.endMessage(mark);
}

export function writeFlush(writer: Writer): void {
  writer.endMessage(writer.beginMessage(types.FLUSH));
}

/** @param parameterTypes OIDs; 0 leaves a type to the server, as do missing ones at the end */
export function writeParse(
  writer: Writer,
  statement: string,
  text: string,
  parameterTypes: readonly number[],
): void {
  const mark = writer.beginMessage(types.PARSE);
  writer.cstring(statement);
  writer.cstring(text);
  writer.int16(parameterTypes.length);
  for (const oid of parameterTypes) writer.int32(oid);
  writer.endMessage(mark);
}

/** PasswordMessage: a password, or its md5 form. */
export function writePassword(writer: Writer, password: string): void {
  writeString(writer, types.PASSWORD, password);
}

export function writeQuery(writer: Writer, text: string): void {
  writeString(writer, types.QUERY, text);
}

export function writeSaslInitialResponse(writer: Writer, mechanism: string, response: Uint8Array): void {
  const mark = writer.beginMessage(types.PASSWORD);
  writer.cstring(mechanism);
  writer.int32(response.length);
  writer.bytes(response);
  writer.endMessage(mark);
}

export function writeSaslResponse(writer: Writer, response: Uint8Array): void {
  const mark = writer.beginMessage(types.PASSWORD);
  writer.bytes(response);
  writer.endMessage(mark);
}

export function writeSslRequest(writer: Writer): void {
  writer.int32(8);
  writer.int32(types.SSL_REQUEST);
}

/** @param parameters names and values: `user`, `database`, run-time settings */
export function writeStartupMessage(
  writer: Writer,
  version: number,
  parameters: Readonly<Record<string, string>>,
): void {
  const mark = writer.mark();
  writer.int32(0);
  writer.int32(version);
  for (const [name, value] of Object.entries(parameters)) {
    writer.cstring(name);
    writer.cstring(value);
  }
  writer.uint8(0);
  writer.patchInt32(mark, writer.mark() - mark);
}

export function writeSync(writer: Writer): void {
  writer.endMessage(writer.beginMessage(types.SYNC));
}

export function writeTerminate(writer: Writer): void {
  writer.endMessage(writer.beginMessage(types.TERMINATE));
}

function writeString(writer: Writer, type: number, text: string): void {
  const mark = writer.beginMessage(type);
  writer.cstring(text);
  writer.endMessage(mark);
}

function writeTargeted(writer: Writer, type: number, target: number, name: string): void {
  const mark = writer.beginMessage(type);
  writer.uint8(target);
  writer.cstring(name);
  writer.endMessage(mark);
}
