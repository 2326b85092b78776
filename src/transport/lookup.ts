/** The addresses of a host name. */

import { isPermitted } from "./permissions.ts";
import { connectError } from "./socket_error.ts";

/**
 * Asks the system's resolver, `/etc/hosts` included. An address is its own only one, and known at once.
 *
 * @returns in the system's order; the name itself where the runtime permits to connect to it but not to look it up
 * @throws {ConnectionError} when the name has no address (`ENOTFOUND`)
 */
export function lookup(host: string, port: number): readonly string[] | Promise<readonly string[]> {
  if (host.includes(":") || /^[0-9]+(?:\.[0-9]+){3}$/.test(host)) return [host];
  // Permitted for one port only, Deno would ask.
  return isPermitted({ name: "net", host }) ? resolve(host, port) : [host];
}

async function resolve(host: string, port: number): Promise<readonly string[]> {
  try {
    const { lookup } = await import("node:dns/promises");
    const found = await lookup(host, { all: true, verbatim: true });
    const addresses = new Set(found.map(({ address }) => address));
    return addresses.size === 0 ? [host] : [...addresses];
  } catch (error) {
    // Deno's permissions are by name.
    if (isForbidden(error as { readonly code?: unknown; readonly name?: unknown })) return [host];
    throw connectError({ host, port }, error);
  }
}

function isForbidden({ code, name }: { readonly code?: unknown; readonly name?: unknown }): boolean {
  return code === "EPERM" || code === "EACCES" || name === "NotCapable" || name === "PermissionDenied";
}
