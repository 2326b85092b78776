/** What a request fails with, and the faults of a peer that breaks the protocol. */

import { PipegresError, PipelineAbortedError, ProtocolError, ValueError } from "../errors.ts";
import * as backend from "../wire/backend.ts";
import { IDLE } from "../wire/message_types.ts";
import * as phase from "./phase.ts";
import type { Request } from "./request.ts";

/**
 * A request of a segment failed: what that means for the others.
 *
 * @param statusAfter transaction status in the segment's ReadyForQuery
 */
export function failSegment(segment: readonly Request[], culprit: Request, statusAfter: number): void {
  const at = segment.indexOf(culprit);
  const cause = () => culprit.failure!();
  for (const request of segment.slice(at + 1)) request.fail(() => neverRan(cause()));
  // A block that is open has failed but still holds what came before, as it would with a Sync for each.
  if (statusAfter !== IDLE) return;
  // What an explicit COMMIT or ROLLBACK of the segment ended stands as it ended.
  const ended = segment.slice(0, at).findLastIndex(({ tag }) => tag === "COMMIT" || tag === "ROLLBACK");
  for (const request of segment.slice(ended + 1, at)) {
    request.fail(() =>
      new PipelineAbortedError("Rolled back: a later query of the same batch failed", {
        executed: true,
        cause: cause(),
      })
    );
  }
}

export function neverRan(cause: unknown): Error {
  return new PipelineAbortedError("Never ran: an earlier query of the same batch failed", {
    executed: false,
    cause,
  });
}

export function copyRefused(command: string, method: string): Error {
  return new PipegresError(`Cannot run ${command} as a plain query: use ${method}()`);
}

export function asError(error: unknown): Error {
  // Made anew where it is told: the stack of the one that was thrown ends inside this package.
  if (error instanceof ValueError && error.constructor === ValueError) {
    return new ValueError(error.message, error.cause === undefined ? undefined : { cause: error.cause });
  }
  return error instanceof Error ? error : new Error(String(error));
}

export function expectPhase(type: string, request: Request, wanted: number): void {
  if (request.phase !== wanted) failUnexpected(type, request, false);
}

export function readEmpty(
  message: string,
  request: Request,
  wanted: number,
  start: number,
  end: number,
): void {
  if (request.phase !== wanted) failUnexpected(message, request, false);
  backend.readEmpty(message, start, end);
}

export function failUnexpected(type: string, request: Request | undefined, skipping: boolean): never {
  const wanted = request === undefined
    ? "nothing"
    : skipping
    ? "ReadyForQuery"
    : phase.expected(request.phase);
  throw new ProtocolError(`Cannot read message ${JSON.stringify(type)}: expected ${wanted}`);
}
