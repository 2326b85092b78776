/**
 * The way to a server below the StartupMessage: a socket and, where it is asked for, TLS on it (PostgreSQL manual,
 * 53.2.10). Nothing that is secret is said before this is done.
 */

import { certificateNames, isForHost, parseAddress } from "../auth/certificate.ts";
import { ConnectionError, ProtocolError } from "../errors.ts";
import type { TlsTransport, Transport, TransportFactory } from "../transport/transport.ts";
import { writeSslRequest } from "../wire/frontend.ts";
import { Writer } from "../wire/writer.ts";
import type { ResolvedHost, ResolvedOptions } from "./options.ts";

/** What to connect to, and how. */
export interface Route {
  readonly factory: TransportFactory;
  readonly options: ResolvedOptions;
  /** With the address to connect to. */
  readonly host: ResolvedHost;
  /** `offer`: TLS if the server has it; `demand`: TLS or nothing. */
  readonly tls: "none" | "offer" | "demand";
}

/** An open way. */
export interface Link {
  /** Not started. */
  readonly transport: Transport;
  /** The same, where it is TLS. */
  readonly tls: TlsTransport | undefined;
  /** The way to the same server, encrypted as this one. */
  readonly again: Route;
}

/** TLS could not be had although the server offered it; `sslmode` decides what follows. */
export class TlsFailure extends ConnectionError {}

/** The protocol that the handshake names (RFC 7301). */
const ALPN_PROTOCOL = "postgresql";

/**
 * Opens a way to a server.
 *
 * @param signal ends the attempt: the promise rejects with its reason, and nothing stays open
 * @throws {TlsFailure} when TLS fails
 * @throws {ConfigurationError} when certificates or keys cannot be used
 * @throws {ConnectionError} when the server cannot be reached, or has no TLS and the route demands it
 * @throws {ProtocolError} when it answers something else
 */
export async function openLink(route: Route, signal: AbortSignal): Promise<Link> {
  const { factory, host, options } = route;
  const { enabled, idle } = options.keepalive;
  const transport = await factory.connect({
    host: host.host,
    port: host.port,
    path: host.path,
    signal,
    ...(enabled && host.path === undefined && { keepalive: { idle } }),
  });
  if (route.tls === "none") return { transport, tls: undefined, again: route };
  try {
    signal.throwIfAborted();
    const direct = options.tls.negotiation === "direct";
    if (!direct && !await isTlsOffered(transport, signal)) {
      if (route.tls === "offer") return { transport, tls: undefined, again: { ...route, tls: "none" } };
      throw new ConnectionError(
        `The server does not support TLS, but sslmode=${options.sslmode} demands it`,
        {
          code: "UNSUPPORTED",
        },
      );
    }
    const tls = await secure(transport, route, direct, signal);
    return { transport: tls, tls, again: { ...route, tls: "demand" } };
  } catch (error) {
    transport.close();
    throw signal.aborted ? signal.reason : error;
  }
}

/** Asks, by an SSLRequest. */
async function isTlsOffered(transport: Transport, signal: AbortSignal): Promise<boolean> {
  const answer = await new Promise<Uint8Array>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    transport.start({
      onBytes(chunk) {
        signal.removeEventListener("abort", onAbort);
        transport.detach();
        resolve(chunk.slice());
      },
      onEnd(cause) {
        signal.removeEventListener("abort", onAbort);
        reject(
          cause ?? new ConnectionError("Connection lost: the server closed it in answer to SSLRequest", {
            code: "CONNECTION_LOST",
          }),
        );
      },
    });
    const writer = new Writer(16);
    writeSslRequest(writer);
    transport.write(writer.take());
  });
  const [type] = answer;
  // Whatever the error says, nobody has vouched for who says it.
  if (type === 0x45 /* 'E' */) {
    throw new ConnectionError("The server answered SSLRequest with an error", { code: "CONNECTION_LOST" });
  }
  if (type !== 0x53 /* 'S' */ && type !== 0x4e /* 'N' */) {
    throw new ProtocolError(`Cannot establish TLS: the server answered SSLRequest with byte ${type}`);
  }
  // They would pass for bytes that came through TLS (CVE-2021-23222).
  if (answer.length > 1) {
    throw new ProtocolError(
      `Cannot establish TLS: ${answer.length - 1} unencrypted bytes came behind the answer to SSLRequest`,
    );
  }
  return type === 0x53;
}

async function secure(
  transport: Transport,
  { options, host }: Route,
  direct: boolean,
  signal: AbortSignal,
): Promise<TlsTransport> {
  let tls: TlsTransport | undefined;
  try {
    const [{ startTls }, credentials] = await Promise.all([
      import("../transport/tls.ts"),
      options.tlsCredentials(),
    ]);
    const isName = parseAddress(host.name) === undefined && !host.name.includes(":");
    tls = await startTls(transport, {
      serverName: options.tls.serverName && isName ? host.name : undefined,
      alpnProtocol: ALPN_PROTOCOL,
      credentials,
    }, signal);
    checkProtocol(tls, direct);
    checkVersion(tls, options.tls);
    if (options.sslmode === "verify-full") checkName(tls, host.name);
    return tls;
  } catch (error) {
    tls?.close();
    if (signal.aborted) throw signal.reason;
    if (!(error instanceof ConnectionError)) throw error;
    throw new TlsFailure(error.message, { code: error.code, cause: error.cause });
  }
}

function checkProtocol({ alpnProtocol }: TlsTransport, direct: boolean): void {
  if (alpnProtocol === ALPN_PROTOCOL || alpnProtocol === undefined && !direct) return;
  throw new ConnectionError(
    `Cannot establish TLS: the server chose ${
      alpnProtocol === undefined ? "no protocol" : "another protocol"
    } by ALPN, wanted "${ALPN_PROTOCOL}"${direct ? " (sslnegotiation=direct needs PostgreSQL 17)" : ""}`,
    { code: "TLS_FAILED" },
  );
}

/** Runtimes leave out what their TLS does not know, old versions above all. */
function checkVersion({ version }: TlsTransport, { minVersion, maxVersion }: ResolvedOptions["tls"]): void {
  const order = ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];
  const at = order.indexOf(version);
  if (at >= order.indexOf(minVersion) && (maxVersion === undefined || at <= order.indexOf(maxVersion))) {
    return;
  }
  throw new ConnectionError(
    `Cannot establish TLS: ${version} is in use, wanted ${minVersion} to ${maxVersion ?? "the newest"}`,
    { code: "TLS_FAILED" },
  );
}

function checkName({ peerCertificate }: TlsTransport, host: string): void {
  if (peerCertificate === undefined) {
    throw new ConnectionError("Cannot establish TLS: the runtime does not show the server's certificate", {
      code: "UNSUPPORTED",
    });
  }
  const names = certificateNames(peerCertificate);
  if (isForHost(names, host)) return;
  const listed = [...names.dnsNames, ...(names.addresses.length > 0 ? ["addresses"] : [])];
  const [shown = names.commonName ?? "nobody"] = listed;
  throw new ConnectionError(
    `Cannot establish TLS: the server's certificate is for ${printable(shown)}${
      listed.length > 1 ? ` and ${listed.length - 1} more` : ""
    }, not for "${host}"`,
    { code: "TLS_FAILED" },
  );
}

/** A name in a certificate, for a message. */
function printable(name: string): string {
  return JSON.stringify(name.slice(0, 100).replace(/[^\x20-\x7e]/g, "?"));
}
