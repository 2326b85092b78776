/**
 * What a SASL exchange is to the code that establishes a connection, and which mechanism to use.
 *
 * The messages around it are the caller's (PostgreSQL manual, 53.3): AuthenticationSASL carries the mechanism names,
 * SASLInitialResponse the answer of `start`, AuthenticationSASLContinue and SASLResponse go through `next`, and
 * AuthenticationSASLFinal through `finish`. AuthenticationOk is acceptable only once `finished` is true.
 */

import { ConnectionError, ProtocolError } from "../errors.ts";

/** The client's side of one SASL exchange. Used once. */
export interface Authenticator {
  /** The mechanism's registered name, for SASLInitialResponse. */
  readonly mechanism: string;
  /** Whether the exchange is complete and the server, where the mechanism provides for it, has proved itself. */
  readonly finished: boolean;
  /** The initial response. */
  start(): Promise<Uint8Array>;
  /**
   * Answers a challenge, which is borrowed until this call returns its promise.
   *
   * @throws {ProtocolError} when it is malformed or out of turn
   * @throws {ConnectionError} when the server refuses
   */
  next(challenge: Uint8Array): Promise<Uint8Array>;
  /**
   * Checks the server's last message.
   *
   * @throws {ProtocolError} when it is malformed or out of turn
   * @throws {ConnectionError} when the server refuses or did not prove that it knows the password
   */
  finish(final: Uint8Array): void;
}

/** How the exchange is bound to the TLS channel under it (RFC 5802, section 7). */
export type ChannelBinding =
  /** The client cannot or shall not: `n,,`. */
  | { readonly type: "unsupported" }
  /** The client can, and the server did not offer it: `y,,`. A server that did sees that somebody removed the offer. */
  | { readonly type: "not-offered" }
  /** `p=tls-server-end-point,,` and the hash of the server's certificate (RFC 5929, section 4). */
  | { readonly type: "tls-server-end-point"; readonly data: Uint8Array };

/** What libpq's `channel_binding` may be. */
export type ChannelBindingMode = "disable" | "prefer" | "require";

/** A mechanism this package can speak, with what it needs to know. */
export interface ScramChoice {
  /** `SCRAM-SHA-256-PLUS` with channel binding, else `SCRAM-SHA-256`. */
  readonly mechanism: "SCRAM-SHA-256" | "SCRAM-SHA-256-PLUS";
  /** What to say about channel binding. */
  readonly channelBinding: ChannelBinding;
}

/** What the choice of a mechanism depends on. */
export interface MechanismOptions {
  /** Default `prefer`. */
  readonly channelBinding?: ChannelBindingMode | undefined;
  /** Whether the connection is encrypted; default `false`. */
  readonly tls?: boolean | undefined;
  /** The hash of the server's certificate, where the runtime shows it. */
  readonly certificateHash?: Uint8Array | undefined;
}

/**
 * Chooses from the mechanisms of an AuthenticationSASL message, as libpq does.
 *
 * @throws {ProtocolError} when the list is empty, or offers channel binding without a channel to bind to
 * @throws {ConnectionError} `UNSUPPORTED` when nothing of the list can be spoken, `AUTHENTICATION_FAILED` when
 * channel binding is required and impossible
 */
export function chooseMechanism(offered: readonly string[], options: MechanismOptions = {}): ScramChoice {
  if (offered.length === 0) {
    throw new ProtocolError("Cannot authenticate: the server offered an empty list of SASL mechanisms");
  }
  const mode = options.channelBinding ?? "prefer";
  const plus = offered.includes("SCRAM-SHA-256-PLUS");
  const hash = options.tls === true && mode !== "disable" ? options.certificateHash : undefined;
  if (plus && options.tls !== true) {
    // No server does so by itself: somebody ended the server's TLS and talks to us in clear.
    throw new ProtocolError(
      "Cannot authenticate: the server offered SCRAM-SHA-256-PLUS on a connection without TLS",
    );
  }
  if (plus && hash !== undefined) {
    return {
      mechanism: "SCRAM-SHA-256-PLUS",
      channelBinding: { type: "tls-server-end-point", data: hash },
    };
  }
  if (mode === "require") failRequired(plus, options);
  if (!offered.includes("SCRAM-SHA-256")) {
    throw new ConnectionError(
      `Cannot authenticate: the server offers the SASL mechanisms ${
        listNames(offered)
      }, none of which is supported`,
      { code: "UNSUPPORTED" },
    );
  }
  return {
    mechanism: "SCRAM-SHA-256",
    channelBinding: { type: hash === undefined ? "unsupported" : "not-offered" },
  };
}

function failRequired(plus: boolean, options: MechanismOptions): never {
  const reason = options.tls !== true
    ? "the connection has no TLS"
    : plus
    ? "the runtime does not show the server's certificate"
    : "the server does not offer SCRAM-SHA-256-PLUS";
  throw new ConnectionError(`Cannot authenticate: channel binding is required, but ${reason}`, {
    code: "AUTHENTICATION_FAILED",
  });
}

const MAX_NAMES = 10;

/** The server's names for a message: only what RFC 4422 lets a name consist of, and not too many of them. */
function listNames(names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMES).map((name) => `"${name.slice(0, 40).replace(/[^\w-]/g, "?")}"`);
  return shown.join(", ") + (names.length > MAX_NAMES ? ", ..." : "");
}
