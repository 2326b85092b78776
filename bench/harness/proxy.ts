/** A TCP proxy between a driver and its server: counts bytes, and can make both ways slower. */

/** A running proxy. */
export interface Proxy extends AsyncDisposable {
  readonly port: number;
  /** Bytes so far: `sent` by the driver, `received` by it. */
  readonly counts: { readonly sent: number; readonly received: number };
}

/**
 * Starts a proxy on loopback.
 *
 * @param delay milliseconds that each way takes longer; the order of bytes is kept, and bytes travel at once
 */
export function startProxy(host: string, port: number, delay: number = 0): Proxy {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const counts = { sent: 0, received: 0 };
  const open: Set<Deno.Conn> = new Set();
  const ended = (async () => {
    for await (const client of listener) {
      client.setNoDelay(true);
      open.add(client);
      try {
        const server = await Deno.connect({ hostname: host, port });
        server.setNoDelay(true);
        open.add(server);
        pump(client, server, delay, (count) => counts.sent += count);
        pump(server, client, delay, (count) => counts.received += count);
      } catch {
        closeQuietly(client);
      }
    }
  })();
  return {
    port: listener.addr.port,
    counts,
    async [Symbol.asyncDispose]() {
      listener.close();
      for (const connection of open) closeQuietly(connection);
      await ended;
    },
  };
}

async function pump(
  from: Deno.Conn,
  to: Deno.Conn,
  delay: number,
  onCount: (count: number) => void,
): Promise<void> {
  let writing: Promise<void> = Promise.resolve();
  try {
    for (;;) {
      const buffer = new Uint8Array(65_536);
      const length = await from.read(buffer);
      if (length === null) break;
      onCount(length);
      const bytes = buffer.subarray(0, length);
      const due = performance.now() + delay;
      writing = writing.then(() => deliver(to, bytes, due));
      // Without a delay bytes are not gathered here; with one they are under way.
      if (delay === 0) await writing;
      else writing.catch(() => {});
    }
    await writing;
  } catch {
    // One side is gone: so is the other.
  }
  closeQuietly(from);
  closeQuietly(to);
}

async function deliver(to: Deno.Conn, bytes: Uint8Array, due: number): Promise<void> {
  const rest = due - performance.now();
  if (rest > 0) await new Promise((resolve) => setTimeout(resolve, rest));
  for (let at = 0; at < bytes.length;) at += await to.write(bytes.subarray(at));
}

function closeQuietly(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // It is closed.
  }
}
