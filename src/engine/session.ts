/** What the server has told of the session itself. */

import type { BackendKeyData } from "../wire/backend.ts";
import { IDLE } from "../wire/message_types.ts";

/** Made by establishing, kept up to date by the engine. */
export class Session {
  /** Run-time parameters that the server reports, by name (ParameterStatus). */
  readonly parameters: Map<string, string> = new Map();
  /** `undefined` when the server gave none: the session then cannot be cancelled. */
  keyData: BackendKeyData | undefined = undefined;
  /** Protocol version in use, as in a StartupMessage. */
  protocolVersion: number = 0;
  /** `I`, `T` or `E` as a byte, as of the last ReadyForQuery. */
  transactionStatus: number = IDLE;

  /** What the text of dates depends on: `"SQL, DMY; Europe/Berlin"`. */
  get dateSettings(): string {
    return `${this.parameters.get("DateStyle")}; ${this.parameters.get("TimeZone") ?? ""}`;
  }
}
