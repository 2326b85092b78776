/**
 * What an owner did to a session, and how that is undone before the next one gets it.
 *
 * Only a session that was changed pays for it. What cannot be undone in time costs the connection.
 */

import type { ServerConnection } from "../connection/server_connection.ts";
import { NO_PARAMETERS, Request, SIMPLE } from "../engine/request.ts";
import { PoolError } from "../errors.ts";
import { IDLE } from "../wire/message_types.ts";

/** Command tags of statements whose effect outlives a transaction, or that may undo what `onConnect` has set. */
const LASTING_TAGS: ReadonlySet<string> = new Set([
  "SET",
  "RESET",
  "LISTEN",
  "UNLISTEN",
  "DECLARE CURSOR",
  "LOAD",
  "PREPARE",
  "DEALLOCATE",
  "DEALLOCATE ALL",
  "DISCARD ALL",
  "DISCARD PLANS",
  "DISCARD SEQUENCES",
  "DISCARD TEMP",
  // Whatever is inside.
  "DO",
]);

/** Functions that change the session, whatever tag they come with. */
const LASTING_FUNCTIONS =
  /\b(?:set_config|pg_(?:try_)?advisory_lock(?:_shared)?|dblink_connect\w*)\b|\b(?:pg_)?temp(?:orary)?\b/i;

/**
 * A setting for the transaction only, as row-level security often has it: its other arguments are names, parameters and
 * whole literals, so that no literal can look like the end.
 */
const LOCAL_SETTING = /\bset_config\s*\((?:[\w\s.,:]|\$\d|'[^'\\]*')*,\s*true\s*\)/gi;

/** SET for the transaction only. What follows is a name: `set local.x` is a setting of the session. */
const LOCAL_SET = /^\s*set\s+(?:local|transaction|constraints)\s+[a-z"]/i;

/** Milliseconds for a session to become clean. */
const CLEAN_TIMEOUT = 5_000;

/** Watches the requests of one owner. */
export class SessionWatch {
  #changed: boolean = false;
  #refusedWrite: boolean = false;

  /** Whether the session's settings, locks, cursors or tables may have been changed. */
  get changed(): boolean {
    return this.#changed;
  }

  /** Whether the server refused to write: `25006` read_only_sql_transaction. */
  get refusedWrite(): boolean {
    return this.#refusedWrite;
  }

  /** Looks at a request that is about to be submitted. */
  observe(request: Request): void {
    for (let each: Request | null = request; each !== null; each = each.next) {
      // A statement prepared by name lives on until it is closed.
      if (each.named || changesSession(each.text)) this.#changed = true;
      const before = each.observer;
      each.observer = before === null ? this.#onSettled : (settled) => {
        before(settled);
        this.#onSettled(settled);
      };
    }
  }

  readonly #onSettled = (settled: Request): void => {
    if (isLasting(settled)) this.#changed = true;
    if (settled.serverError?.["C"] === "25006") this.#refusedWrite = true;
  };

  /** Whether {@linkcode clean} has anything to do. */
  isDirty(connection: ServerConnection): boolean {
    return !connection.closed &&
      (this.#changed || connection.load > 0 || connection.session.transactionStatus !== IDLE);
  }

  /**
   * Rolls an open block back and undoes what was changed; resolves when the session is clean or its connection gone.
   *
   * @param submit writes on the connection
   */
  async clean(connection: ServerConnection, submit: (request: Request) => void): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined = undefined;
    const late = new Promise<false>((resolve) => timer = setTimeout(() => resolve(false), CLEAN_TIMEOUT));
    const clean = await Promise.race([this.#undo(connection, submit), late]);
    clearTimeout(timer);
    if (connection.closed || (clean && connection.session.transactionStatus === IDLE)) return;
    connection.destroy(() => new PoolError("Connection given up: its session could not be cleaned"));
  }

  async #undo(connection: ServerConnection, submit: (request: Request) => void): Promise<boolean> {
    const blockOpen = connection.session.transactionStatus !== IDLE || connection.load > 0;
    if (blockOpen && !await succeeds("rollback", submit)) return false;
    // By now everything that was still under way has been answered.
    return !this.#changed || await succeeds("discard all", submit);
  }
}

function succeeds(text: string, submit: (request: Request) => void): Promise<boolean> {
  return new Promise((resolve) => {
    const onSettled = (request: Request) => resolve(request.failure === null);
    submit(new Request(SIMPLE, text, NO_PARAMETERS, UNREAD, onSettled));
  });
}

/** Rows that nobody looks at. */
const UNREAD = { plan: () => () => undefined, formats: () => [] } as const;

function changesSession(text: string): boolean {
  if (/\bpg_settings\b/i.test(text) && /\bupdate\b/i.test(text)) return true;
  return LASTING_FUNCTIONS.test(text) && LASTING_FUNCTIONS.test(text.replace(LOCAL_SETTING, ""));
}

function isLasting({ tag, text, results }: Request): boolean {
  // Of a script nobody knows which SET was a SET LOCAL.
  if (results !== null && results.length > 1) return results.some((each) => LASTING_TAGS.has(each.tag));
  return LASTING_TAGS.has(tag) && !LOCAL_SET.test(text);
}
