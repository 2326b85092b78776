/** Breaks sockets off. */

import type { Socket } from "node:net";

/**
 * Closes a TCP socket by a reset, where that is still possible; otherwise destroys it. (Node.js spins for ever when a
 * socket that has sent its end is reset.)
 */
export function resetSocket(socket: Socket): void {
  if (socket.destroyed) return;
  if (socket.writableEnded || socket.remotePort === undefined) socket.destroy();
  else socket.resetAndDestroy();
}
