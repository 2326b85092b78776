/** What a pool is told, and what it tells. */

import type { ServerConnection } from "../connection/server_connection.ts";
import type { PoolLimits } from "./pool_state.ts";

/** How a pool behaves; times in milliseconds. */
export interface PoolBehaviour extends PoolLimits {
  /** 0: no limit. */
  readonly acquireTimeout: number;
  readonly maxWaiters: number;
  readonly allowExitOnIdle: boolean;
  /** Whether queries may be sent to a connection behind others. */
  readonly pipelined: boolean;
  /** Prepares a session that is new, or has been reset; when it rejects, the connection is closed. */
  readonly onConnect: ((connection: ServerConnection) => Promise<void>) | undefined;
}

/** How a pool is doing. */
export interface PoolStats {
  /** Connections, those being opened included. */
  readonly total: number;
  /** Connections without work. */
  readonly idle: number;
  /** Connections with work. */
  readonly busy: number;
  /** Connections being opened. */
  readonly opening: number;
  /** Queries, transactions and sessions that wait for a connection. */
  readonly waiting: number;
  /** Milliseconds that the first of them has waited; 0 when nobody waits. */
  readonly waitTime: number;
}
