/**
 * OAUTHBEARER, the client's side (RFC 7628; PostgreSQL manual, 53.3.2). How the token is got is the caller's matter.
 *
 * A server that takes the token says AuthenticationOk at once; one that does not explains itself in a challenge, which
 * has to be answered before it ends the exchange with an ErrorResponse.
 */

import { ProtocolError } from "../errors.ts";
import type { Authenticator } from "./authenticator.ts";

/** What a server says of a token it does not take (RFC 7628, section 3.2.2). */
export interface OAuthRefusal {
  /** `invalid_token` and the like. */
  readonly status: string | undefined;
  /** The scope a token must have. */
  readonly scope: string | undefined;
  /** Where the authorization server describes itself. */
  readonly discoveryUrl: string | undefined;
}

const encoder: TextEncoder = new TextEncoder();
const SEPARATOR = "\x01";

/** One OAUTHBEARER exchange. */
export class OAuthBearer implements Authenticator {
  readonly mechanism: "OAUTHBEARER" = "OAUTHBEARER";
  readonly #token: string;
  #turn: "start" | "sent" | "refused" = "start";
  #refusal: OAuthRefusal | undefined = undefined;

  /** @param token printable ASCII (RFC 6750); empty: the server is asked what token it wants, and refuses */
  constructor(token: string) {
    this.#token = token;
  }

  /** True once the token was sent: the mechanism lets no server prove itself. */
  get finished(): boolean {
    return this.#turn === "sent" && this.#token !== "";
  }

  /** What the server said against the token. */
  get refusal(): OAuthRefusal | undefined {
    return this.#refusal;
  }

  // deno-lint-ignore require-await -- an out-of-turn call rejects like every other failure
  async start(): Promise<Uint8Array> {
    if (this.#turn !== "start") failTurn();
    this.#turn = "sent";
    const value = this.#token === "" ? "" : `Bearer ${this.#token}`;
    return encoder.encode(`n,,${SEPARATOR}auth=${value}${SEPARATOR}${SEPARATOR}`);
  }

  // deno-lint-ignore require-await -- as above
  async next(challenge: Uint8Array): Promise<Uint8Array> {
    if (this.#turn !== "sent") failTurn();
    this.#turn = "refused";
    this.#refusal = parseRefusal(challenge);
    return encoder.encode(SEPARATOR);
  }

  finish(_final: Uint8Array): void {
    throw new ProtocolError("Cannot authenticate: AuthenticationSASLFinal has no place in OAUTHBEARER");
  }
}

function failTurn(): never {
  throw new ProtocolError("Cannot authenticate: the server's OAUTHBEARER message is out of turn");
}

function parseRefusal(challenge: Uint8Array): OAuthRefusal {
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(challenge));
  } catch {
    parsed = undefined;
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new ProtocolError("Cannot authenticate: the server's OAUTHBEARER challenge is no JSON object");
  }
  const fields = parsed as Readonly<Record<string, unknown>>;
  const text = (name: string) => {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    // For a message: no control characters, not endless.
    return typeof value === "string" ? value.slice(0, 500).replace(/[^\x20-\x7e]/g, "?") : undefined;
  };
  return { status: text("status"), scope: text("scope"), discoveryUrl: text("openid-configuration") };
}
