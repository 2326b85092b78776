/** One attempt to connect, and the signal that may end it: written once for all runtimes. */

import { connectError } from "./socket_error.ts";
import type { ConnectTarget, Transport } from "./transport.ts";

/** What a runtime has begun. */
export interface ConnectAttempt {
  /** Settles with the attempt; what it rejects with becomes the cause of the error told. */
  readonly opened: Promise<Transport>;
  /** Ends the attempt as far as the runtime can; a transport that opens all the same is closed. */
  giveUp(): void;
}

/**
 * Runs `begin` unless the target's signal is aborted.
 *
 * @throws the signal's reason, or a ConnectionError (see `connectError`)
 */
export function settleAttempt(target: ConnectTarget, begin: () => ConnectAttempt): Promise<Transport> {
  const { signal } = target;
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    let attempt: ConnectAttempt;
    try {
      attempt = begin();
    } catch (error) {
      reject(connectError(target, error));
      return;
    }
    const onAbort = (): void => {
      reject(signal!.reason);
      attempt.giveUp();
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    attempt.opened.then((transport) => {
      signal?.removeEventListener("abort", onAbort);
      if (signal?.aborted) transport.close();
      else resolve(transport);
    }, (error) => {
      signal?.removeEventListener("abort", onAbort);
      reject(connectError(target, error));
    });
  });
}

/** libpq writes a name of Linux' abstract socket namespace with `@`, the system with a zero byte. */
export function systemPath(path: string): string {
  return path.startsWith("@") ? "\0" + path.slice(1) : path;
}
