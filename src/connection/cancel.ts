/** CancelRequest on a connection of its own (PostgreSQL manual, 53.2.8). */

import type { Transport } from "../transport/transport.ts";
import type { BackendKeyData } from "../wire/backend.ts";
import { writeCancelRequest } from "../wire/frontend.ts";
import { Writer } from "../wire/writer.ts";
import { openLink, type Route } from "./open_link.ts";

/**
 * Sends a CancelRequest, encrypted as the session is, and waits until the server has closed that connection: then the signal has been given, and
 * can hit nothing that is sent afterwards.
 *
 * @param signal ends the attempt
 * @throws whatever the transport or the signal says
 */
export async function sendCancelRequest(
  route: Route,
  keyData: BackendKeyData,
  signal: AbortSignal,
): Promise<void> {
  const { transport } = await openLink(route, signal);
  try {
    await ended(transport, keyData, signal);
  } finally {
    transport.close();
  }
}

function ended(transport: Transport, keyData: BackendKeyData, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    transport.start({
      onBytes() {}, // the server says nothing
      onEnd() {
        signal.removeEventListener("abort", onAbort);
        resolve();
      },
    });
    const writer = new Writer(512);
    writeCancelRequest(writer, keyData.processId, keyData.secretKey);
    transport.write(writer.take());
  });
}
