/**
 * Where a request stands in its conversation, and which message may come next.
 *
 * | phase         | message                          | next phase                                             |
 * | ------------- | -------------------------------- | ------------------------------------------------------ |
 * | QUEUED        | none: it is not written          | the first one that what was written leads to           |
 * | CLOSE         | CloseComplete                    | CLOSE while more are due, then PARSE or BIND           |
 * | PARSE         | ParseComplete                    | PARAMETERS                                             |
 * | PARAMETERS    | ParameterDescription             | FIELDS                                                 |
 * | FIELDS        | RowDescription, NoData           | BIND; DONE for a description                           |
 * | BIND          | BindComplete                     | ROWS                                                   |
 * | ROWS          | DataRow                          | ROWS                                                   |
 * |               | CommandComplete                  | DONE                                                   |
 * |               | EmptyQueryResponse               | DONE                                                   |
 * |               | PortalSuspended                  | DONE; SUSPENDED for a stream                           |
 * |               | CopyInResponse, CopyOutResponse  | COPY_IN, COPY_OUT                                      |
 * | SUSPENDED     | none: the consumer is to speak   | ROWS by Execute, CLOSE_TARGET by Close                 |
 * | CLOSE_TARGET  | CloseComplete                    | DONE                                                   |
 * | SIMPLE        | RowDescription                   | SIMPLE_ROWS                                            |
 * |               | CommandComplete                  | SIMPLE                                                 |
 * |               | EmptyQueryResponse               | SIMPLE                                                 |
 * |               | CopyInResponse, CopyOutResponse  | COPY_IN, COPY_OUT                                      |
 * | SIMPLE_ROWS   | DataRow                          | SIMPLE_ROWS                                            |
 * |               | CommandComplete                  | SIMPLE                                                 |
 * | COPY_IN       | ErrorResponse                    |                                                        |
 * | COPY_OUT      | CopyData                         | COPY_OUT                                               |
 * |               | CopyDone                         | ROWS or SIMPLE                                         |
 * | DONE          | ReadyForQuery, at a segment's end|                                                        |
 *
 * ErrorResponse may come in every phase but QUEUED and SUSPENDED; what follows it up to ReadyForQuery is only that. NoticeResponse,
 * ParameterStatus and NotificationResponse may come at any moment. Everything else is a ProtocolError.
 */

export const QUEUED = 0;
export const CLOSE = 1;
export const PARSE = 2;
export const PARAMETERS = 3;
export const FIELDS = 4;
export const BIND = 5;
export const ROWS = 6;
export const SIMPLE = 7;
export const SIMPLE_ROWS = 8;
export const COPY_IN = 9;
export const COPY_OUT = 10;
export const SUSPENDED = 11;
export const CLOSE_TARGET = 12;
export const DONE = 13;

const NAMES: readonly string[] = [
  "nothing",
  "CloseComplete",
  "ParseComplete",
  "ParameterDescription",
  "RowDescription or NoData",
  "BindComplete",
  "DataRow or CommandComplete",
  "RowDescription, CommandComplete or ReadyForQuery",
  "DataRow or CommandComplete",
  "ErrorResponse",
  "CopyData or CopyDone",
  "nothing before the next Execute",
  "CloseComplete",
  "ReadyForQuery",
];

/** What the server was expected to send, for errors. */
export function expected(phase: number): string {
  return NAMES[phase] ?? "nothing";
}
