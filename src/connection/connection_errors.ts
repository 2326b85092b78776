/** Why a connection does not do what it was asked for. */

import type { Request } from "../engine/request.ts";
import { ConnectionError } from "../errors.ts";

/** It is closed, or being closed. */
export function closedError(sent: boolean | "unknown" = false): Error {
  return new ConnectionError("Connection closed", { code: "CONNECTION_CLOSED", sent });
}

/** The server did not take a cancel in time; whom a late one would hit is not known. */
export function cancelUnanswered(sent: boolean | "unknown", timeout: number): Error {
  return lost(sent, `Connection given up: a cancel was not answered within ${timeout} ms`);
}

/** The server did not answer a probe. */
export function silent(sent: boolean | "unknown", timeout: number): Error {
  return lost(sent, `Connection lost: the server gave no sign of life within ${timeout} ms`);
}

function lost(sent: boolean | "unknown", message: string): Error {
  return new ConnectionError(message, { code: "CONNECTION_LOST", sent });
}

/** Fails a request, or the first of a batch, that comes too late, unless its owner has another connection for it. */
export function refuse(request: Request): void {
  if (request.owner !== null && request.owner.reroute(request)) return;
  for (let each: Request | null = request; each !== null; each = each.next) {
    each.fail(closedError);
    each.settle();
  }
}
