/**
 * What type names stand for in one session: that depends on its search path, which nobody tells before PostgreSQL 18.
 *
 * Names are forgotten with whatever may change their meaning: when it is written, so that nothing is written behind it
 * by what held before, when it is answered, and when a block that it stood in ends.
 */

import type { Request } from "./request.ts";

/** Commands that may change what a name means, and functions that set the search path. */
const MOVES = /^\s*(?:alter|create|discard|drop|reset|set)\b|\bset_config\b|\bsearch_path\b/i;

const TAGS: ReadonlySet<string> = new Set(["SET", "RESET", "DISCARD"]);
const DEFINITIONS: ReadonlySet<string> = new Set(["ALTER", "CREATE", "DROP"]);

/** Whether a command tag says that texts and names may mean something else. */
export function isDefinition(tag: string): boolean {
  return DEFINITIONS.has(firstWord(tag));
}

function firstWord(tag: string): string {
  const space = tag.indexOf(" ");
  return space < 0 ? tag : tag.slice(0, space);
}

/** Type names and their OIDs, as the session last said. */
export class SessionNames {
  readonly #oids: Map<string, number> = new Map();
  /** Whether any name is known: most sessions never pay for more than this check. */
  #any: boolean = false;
  /** Whether the end of the block may change what names mean. */
  #moved: boolean = false;
  /** Texts come in runs. */
  #harmless: string = "";

  /** Tells the requests of a segment what their names stand for; gives the first that cannot know. */
  unresolved(segment: Request): Request | null {
    for (let each: Request | null = segment; each !== null; each = each.next) {
      if (each.names !== null && this.errorOf(each) !== null) return each;
    }
    return null;
  }

  /** Why a request cannot know what its names stand for; `null` when it does. */
  errorOf(request: Request): Error | null {
    return request.parameters.resolve?.(this.#oids) ?? null;
  }

  /** Those names of a segment that are not known. */
  missing(names: readonly string[]): string[] {
    return names.filter((name) => !this.#oids.has(name));
  }

  /** Remembers what a name stands for. */
  set(name: string, oid: number): void {
    this.#oids.set(name, oid);
    this.#any = true;
  }

  /** What was known is not sure any more. */
  forget(): void {
    this.#oids.clear();
    this.#any = false;
  }

  /** A text has been written. */
  onWritten(text: string): void {
    if (!this.#any || text === this.#harmless) return;
    if (MOVES.test(text)) this.#move();
    else this.#harmless = text;
  }

  /** A command has ended. */
  onEnded(tag: string): void {
    const word = firstWord(tag);
    if (TAGS.has(word) || DEFINITIONS.has(word)) this.#move();
    else if (this.#moved && (word === "COMMIT" || word === "ROLLBACK")) this.forget();
  }

  /** No block is open. */
  onIdle(): void {
    if (!this.#moved) return;
    this.#moved = false;
    this.forget();
  }

  #move(): void {
    this.#moved = true;
    this.forget();
  }
}
