/**
 * What a lease did to its session, and how that is undone before the next one gets it.
 *
 * Only a session that was changed pays for it. What cannot be undone in time costs the connection.
 */

import type { Lease } from "../connection/lease.ts";
import type { ServerConnection } from "../connection/server_connection.ts";
import { NO_PARAMETERS, Request, SIMPLE } from "../engine/request.ts";
import { PoolError } from "../errors.ts";
import { IDLE } from "../wire/message_types.ts";

/** Command tags of statements whose effect outlives a transaction. */
const LASTING_TAGS: ReadonlySet<string> = new Set([
  "SET",
  "LISTEN",
  "DECLARE CURSOR",
  "CREATE TABLE",
  "LOAD",
  "PREPARE",
]);

/** Functions that change the session, whatever tag they come with. */
const LASTING_FUNCTIONS =
  /\b(?:set_config|pg_(?:try_)?advisory_lock(?:_shared)?|dblink_connect)\b|\btemp(?:orary)?\b/i;

const RESET =
  "close all; deallocate all; reset session authorization; reset all; unlisten *; select pg_advisory_unlock_all(); discard temp; discard sequences";

/** Milliseconds for a session to become clean. */
const CLEAN_TIMEOUT = 5_000;

/** Watches the requests of one lease. */
export class SessionWatch {
  #changed: boolean = false;

  /** Looks at a request that is about to be submitted. */
  observe(request: Request): void {
    for (let each: Request | null = request; each !== null; each = each.next) {
      if (this.#changed) return;
      const text = each.text;
      if (LASTING_FUNCTIONS.test(text)) this.#changed = true;
      const before = each.observer;
      each.observer = (settled) => {
        before?.(settled);
        if (isLasting(settled)) this.#changed = true;
      };
    }
  }

  /** Rolls an open block back and undoes what was changed; resolves when the session is clean or its connection gone. */
  async clean(connection: ServerConnection, lease: Lease): Promise<void> {
    if (connection.closed) return;
    const blockOpen = connection.session.transactionStatus !== IDLE || connection.load > 0;
    const text = [...(blockOpen ? ["rollback"] : []), ...(this.#changed ? [RESET] : [])].join("; ");
    if (text === "") return;
    let timer: ReturnType<typeof setTimeout> | undefined = undefined;
    const clean = await new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), CLEAN_TIMEOUT);
      const onSettled = (request: Request) => resolve(request.failure === null);
      lease.submit(new Request(SIMPLE, text, NO_PARAMETERS, UNREAD, onSettled));
    });
    clearTimeout(timer);
    if (!clean || connection.session.transactionStatus !== IDLE) {
      connection.destroy(() => new PoolError("Connection given up: its session could not be cleaned"));
    }
  }
}

/** Rows that nobody looks at. */
const UNREAD = { plan: () => () => undefined, formats: () => [] } as const;

function isLasting(request: Request): boolean {
  if (LASTING_TAGS.has(request.tag)) {
    return !/^\s*set\s+(?:local|transaction|constraints)\b/i.test(request.text);
  }
  return request.results?.some(({ tag }) => LASTING_TAGS.has(tag)) ?? false;
}
