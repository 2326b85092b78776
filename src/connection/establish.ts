/**
 * From an open socket to the first ReadyForQuery: StartupMessage, authentication, the session's parameters.
 *
 * Straight-line and lock-step, once per connection (PostgreSQL manual, 53.2.1). What is read here goes on to the
 * engine with the framer and the writer, so that no byte is lost or read twice.
 */

import { type Authenticator, chooseMechanism } from "../auth/authenticator.ts";
import { tlsServerEndPoint } from "../auth/certificate.ts";
import { md5Password } from "../auth/md5.ts";
import { OAuthBearer } from "../auth/oauth_bearer.ts";
import { ScramSha256 } from "../auth/scram_sha256.ts";
import { Session } from "../engine/session.ts";
import { ConnectionError, createNotice, PostgresError, ProtocolError } from "../errors.ts";
import type { TlsTransport, Transport } from "../transport/transport.ts";
import * as backend from "../wire/backend.ts";
import * as frontend from "../wire/frontend.ts";
import * as types from "../wire/message_types.ts";
import { Reader } from "../wire/reader.ts";
import { Writer } from "../wire/writer.ts";
import type { AuthMethod } from "./option_values.ts";
import type { ResolvedHost, ResolvedOptions } from "./options.ts";
import type { StartupMessage, StartupReader } from "./startup_reader.ts";

/** Bytes for the messages of establishing and a query or two. */
const FIRST_SLAB = 2_048;

/** What establishing needs to know of the link itself. */
export interface EstablishContext {
  readonly transport: Transport;
  readonly reader: StartupReader;
  readonly options: ResolvedOptions;
  readonly host: ResolvedHost;
  /** The transport, where it is TLS. */
  readonly tls: TlsTransport | undefined;
}

/** What the engine goes on with. */
export interface Established {
  readonly session: Session;
  readonly writer: Writer;
}

/**
 * Brings a session to its first ReadyForQuery.
 *
 * @throws {PostgresError} when the server refuses
 * @throws {ConnectionError} when it asks for what cannot or must not be given, or closes
 * @throws {ProtocolError} when it breaks the protocol
 */
export async function establish(context: EstablishContext): Promise<Established> {
  const { options, reader } = context;
  const session = new Session();
  // Many sessions never need more; one that does gets it.
  const writer = new Writer(FIRST_SLAB);
  session.protocolVersion = options.maxProtocolVersion;
  frontend.writeStartupMessage(writer, session.protocolVersion, options.startupParameters);
  send(context, writer);
  await authenticate(context, writer, session);
  for (;;) {
    const message = reader.take() ?? await reader.next();
    const { type, body } = message;
    switch (type) {
      case types.BACKEND_KEY_DATA:
        session.keyData = backend.readBackendKeyData(body, 0, body.length);
        break;
      case types.READY_FOR_QUERY:
        session.transactionStatus = backend.readReadyForQuery(body, 0, body.length);
        return { session, writer };
      default:
        onAnyTime(context, session, message);
    }
  }
}

/** Messages that may come at any moment before ReadyForQuery; everything else breaks the protocol. */
function onAnyTime(context: EstablishContext, session: Session, { type, body }: StartupMessage): void {
  switch (type) {
    case types.PARAMETER_STATUS: {
      const { name, value } = backend.readParameterStatus(body, 0, body.length);
      session.parameters.set(name, value);
      return;
    }
    case types.NOTICE_RESPONSE: {
      const notice = createNotice(backend.readResponseFields("NoticeResponse", body, 0, body.length));
      try {
        context.options.onNotice(notice);
      } catch {
        // As later on: what a callback throws is ignored.
      }
      return;
    }
    case types.NEGOTIATE_PROTOCOL_VERSION: {
      const { version, unrecognizedOptions } = backend.readNegotiateProtocolVersion(body, 0, body.length);
      const minor = version & 0xffff;
      if (version >> 16 !== 3 || minor >= (session.protocolVersion & 0xffff)) {
        throw new ProtocolError(
          `Cannot establish the session: the server negotiates protocol ${version >> 16}.${minor}, ` +
            `wanted less than the 3.${session.protocolVersion & 0xffff} it was asked for`,
        );
      }
      if (unrecognizedOptions.length > 0) {
        throw new ProtocolError(
          "Cannot establish the session: the server does not know a protocol option that it was not asked for",
        );
      }
      session.protocolVersion = types.PROTOCOL_3_0 | minor;
      if (session.protocolVersion < context.options.minProtocolVersion) {
        throw new ConnectionError(
          `Cannot establish the session: the server speaks protocol 3.${minor} at most, which min_protocol_version forbids`,
          { code: "UNSUPPORTED" },
        );
      }
      return;
    }
    case types.ERROR_RESPONSE:
      throw new PostgresError(backend.readResponseFields("ErrorResponse", body, 0, body.length));
    default:
      throw new ProtocolError(
        `Cannot establish the session: unexpected message ${JSON.stringify(String.fromCharCode(type))}`,
      );
  }
}

/** Answers authentication requests up to AuthenticationOk. */
async function authenticate(context: EstablishContext, writer: Writer, session: Session): Promise<void> {
  let answered = false;
  for (;;) {
    const message = context.reader.take() ?? await context.reader.next();
    if (message.type !== types.AUTHENTICATION) {
      onAnyTime(context, session, message);
      continue;
    }
    const { request, data } = backend.readAuthentication(message.body, 0, message.body.length);
    // What is satisfied by an answer that was allowed has not gone without authentication.
    if (answered && request === types.AUTHENTICATION_OK) return;
    checkAllowed(context, request);
    switch (request) {
      case types.AUTHENTICATION_OK:
        return;
      case types.AUTHENTICATION_CLEARTEXT_PASSWORD:
        frontend.writePassword(writer, await passwordFor(context));
        break;
      case types.AUTHENTICATION_MD5_PASSWORD: {
        if (data.length !== 4) {
          throw new ProtocolError(`Cannot authenticate: the md5 salt has ${data.length} bytes, wanted 4`);
        }
        const password = await passwordFor(context);
        frontend.writePassword(writer, md5Password(context.options.user, password, data));
        break;
      }
      case types.AUTHENTICATION_SASL:
        return await authenticateSasl(context, writer, session, data);
      default:
        throw new ConnectionError(`Cannot authenticate: the server asks for ${methodName(request)}`, {
          code: "UNSUPPORTED",
        });
    }
    send(context, writer);
    answered = true;
  }
}

async function authenticateSasl(
  context: EstablishContext,
  writer: Writer,
  session: Session,
  data: Uint8Array,
): Promise<void> {
  const exchange = await chooseExchange(context, readMechanisms(data));
  frontend.writeSaslInitialResponse(writer, exchange.mechanism, await exchange.start());
  send(context, writer);
  for (;;) {
    const message = context.reader.take() ?? await context.reader.next();
    if (message.type !== types.AUTHENTICATION) {
      explainRefusal(exchange, message);
      onAnyTime(context, session, message);
      continue;
    }
    const { request, data } = backend.readAuthentication(message.body, 0, message.body.length);
    switch (request) {
      case types.AUTHENTICATION_SASL_CONTINUE:
        frontend.writeSaslResponse(writer, await exchange.next(data));
        send(context, writer);
        break;
      case types.AUTHENTICATION_SASL_FINAL:
        exchange.finish(data);
        break;
      case types.AUTHENTICATION_OK:
        if (exchange.finished) return;
        throw new ProtocolError(
          "Cannot authenticate: the server said it is satisfied before it proved that it knows the password",
        );
      default:
        throw new ProtocolError(
          `Cannot authenticate: ${methodName(request)} in the middle of a SASL exchange`,
        );
    }
  }
}

/** SCRAM before OAuth, as libpq ranks them, of what the options allow and can do. */
async function chooseExchange(context: EstablishContext, offered: readonly string[]): Promise<Authenticator> {
  const { options, tls } = context;
  const allowed = (method: AuthMethod) => options.requireAuth?.includes(method) ?? true;
  const scramOffered = offered.some((name) => name.startsWith("SCRAM-SHA-256"));
  if (offered.includes("OAUTHBEARER") && !(scramOffered && allowed("scram-sha-256"))) {
    return new OAuthBearer(await tokenFor(context, allowed("oauth")));
  }
  if (!allowed("scram-sha-256")) failForbidden("SASL");
  const bound = offered.includes("SCRAM-SHA-256-PLUS") && tls?.peerCertificate !== undefined &&
    options.channelBinding !== "disable";
  const choice = chooseMechanism(offered, {
    channelBinding: options.channelBinding,
    tls: tls !== undefined,
    // Only where it is offered: there are certificates for which it cannot be made.
    certificateHash: bound ? await tlsServerEndPoint(tls.peerCertificate) : tls?.peerCertificate,
  });
  return new ScramSha256({
    password: await passwordFor(context),
    channelBinding: choice.channelBinding,
    maxIterations: options.scramMaxIterations,
  });
}

async function tokenFor(context: EstablishContext, allowed: boolean): Promise<string> {
  const { options, host } = context;
  if (!allowed) failForbidden("an OAuth token");
  if (options.channelBinding === "require") failUnbound("an OAuth token");
  if (isInClear(context)) failInClear("an OAuth token");
  const token = await heedEnd(context, options.oauthToken(host));
  if (token !== undefined) return token;
  throw new ConnectionError(
    "Cannot authenticate: the server asks for an OAuth token and none is set (option oauthToken)",
    { code: "AUTHENTICATION_FAILED" },
  );
}

/** A server that refuses a token says why in the exchange, and only that it does in its error. */
function explainRefusal(exchange: Authenticator, { type, body }: StartupMessage): void {
  const refusal = exchange instanceof OAuthBearer ? exchange.refusal : undefined;
  if (type !== types.ERROR_RESPONSE || refusal === undefined) return;
  const error = new PostgresError(backend.readResponseFields("ErrorResponse", body, 0, body.length));
  const { status, scope, discoveryUrl } = refusal;
  const details = [
    ...(status === undefined ? [] : [`status ${status}`]),
    ...(scope === undefined ? [] : [`scope "${scope}"`]),
    ...(discoveryUrl === undefined ? [] : [`configuration ${discoveryUrl}`]),
  ];
  throw new ConnectionError(
    `Cannot authenticate: the server refused the OAuth token (${details.join(", ") || "no reason given"})`,
    { code: "AUTHENTICATION_FAILED", cause: error },
  );
}

function readMechanisms(data: Uint8Array): string[] {
  const reader = new Reader("AuthenticationSASL", data, 0, data.length);
  const names: string[] = [];
  for (;;) {
    const name = reader.cstring();
    if (name === "") break;
    names.push(name);
  }
  reader.done();
  return names;
}

/** What the options forbid is not answered, whatever the server says. */
function checkAllowed(context: EstablishContext, request: number): void {
  const { options } = context;
  const method = methodName(request);
  // Which of its mechanisms are allowed is seen once they are known.
  if (request === types.AUTHENTICATION_SASL) {
    if (options.requireAuth?.some((name) => name === "scram-sha-256" || name === "oauth") === false) {
      failForbidden(method);
    }
    return;
  }
  const name = requireAuthName(request);
  if (options.requireAuth !== undefined && (name === undefined || !options.requireAuth.includes(name))) {
    failForbidden(method);
  }
  if (options.channelBinding === "require") failUnbound(method);
  if (request === types.AUTHENTICATION_CLEARTEXT_PASSWORD && isInClear(context)) failInClear("the password");
}

function failForbidden(method: string): never {
  throw new ConnectionError(
    `Cannot authenticate: the server asks for ${method}, which require_auth does not allow`,
    { code: "AUTHENTICATION_FAILED" },
  );
}

function failUnbound(method: string): never {
  throw new ConnectionError(
    `Cannot authenticate: channel binding is required, but the server asks for ${method}`,
    { code: "AUTHENTICATION_FAILED" },
  );
}

function failInClear(what: string): never {
  throw new ConnectionError(
    `Cannot authenticate: the server asks for ${what} in clear on a connection without TLS; ` +
      "allowCleartextPassword permits it",
    { code: "AUTHENTICATION_FAILED" },
  );
}

/** Whether what is sent could be read on the way, and nobody has allowed that. */
function isInClear({ tls, host, options }: EstablishContext): boolean {
  return tls === undefined && !options.allowCleartextPassword && !isLocal(host);
}

/** Whether bytes to this host never leave the machine. */
function isLocal(host: ResolvedHost): boolean {
  return host.path !== undefined || host.host === "localhost" || host.host === "::1" ||
    /^127(?:\.\d{1,3}){3}$/.test(host.host);
}

async function passwordFor(context: EstablishContext): Promise<string> {
  const password = await heedEnd(context, context.options.password(context.host));
  if (password === undefined) {
    const problem = context.options.passwordFileProblem;
    throw new ConnectionError(
      `Cannot authenticate: the server asks for a password and none is set${
        problem === undefined ? "" : `; ${problem}`
      }`,
      { code: "AUTHENTICATION_FAILED" },
    );
  }
  if (password.includes("\0")) {
    throw new ConnectionError("Cannot authenticate: the password holds a NUL character", {
      code: "AUTHENTICATION_FAILED",
    });
  }
  return password;
}

/** Waits for what a user's function gives, but no longer than for the server, which may give up first and say why. */
async function heedEnd<T>(context: EstablishContext, given: Promise<T>): Promise<T> {
  const { reader } = context;
  const ENDED = Symbol();
  const first = await Promise.race([given, reader.whenEnded().then(() => ENDED)]);
  if (first !== ENDED) return first as T;
  const session = new Session();
  for (;;) onAnyTime(context, session, await reader.next());
}

const METHOD_NAMES: Readonly<Record<number, string>> = {
  [types.AUTHENTICATION_OK]: "no authentication",
  [types.AUTHENTICATION_KERBEROS_V5]: "Kerberos V5 (2)",
  [types.AUTHENTICATION_CLEARTEXT_PASSWORD]: "a cleartext password",
  [types.AUTHENTICATION_MD5_PASSWORD]: "an md5 password",
  6: "SCM credentials (6)",
  [types.AUTHENTICATION_GSS]: "GSSAPI (7)",
  [types.AUTHENTICATION_GSS_CONTINUE]: "GSSAPI data (8)",
  [types.AUTHENTICATION_SSPI]: "SSPI (9)",
  [types.AUTHENTICATION_SASL]: "SASL",
};

function methodName(request: number): string {
  return METHOD_NAMES[request] ?? `authentication method ${request}`;
}

/** libpq's words in `require_auth`. */
function requireAuthName(request: number): AuthMethod | undefined {
  switch (request) {
    case types.AUTHENTICATION_OK:
      return "none";
    case types.AUTHENTICATION_CLEARTEXT_PASSWORD:
      return "password";
    case types.AUTHENTICATION_MD5_PASSWORD:
      return "md5";
    case types.AUTHENTICATION_GSS:
      return "gss";
    case types.AUTHENTICATION_SSPI:
      return "sspi";
    default:
      return undefined;
  }
}

function send(context: EstablishContext, writer: Writer): void {
  // Congestion does not matter here: the next step waits for the server's answer.
  context.transport.write(writer.take());
}
