/** The connection service file (PostgreSQL manual, 32.17). */

import { ConfigurationError } from "../errors.ts";
import { checkPair, isSecret, type Settings } from "./conninfo.ts";
import type { Environment } from "./environment.ts";

/**
 * The settings of a service: from PGSERVICEFILE, else `~/.pg_service.conf`, then `pg_service.conf` in PGSYSCONFDIR.
 *
 * @throws {ConfigurationError} when the service is defined nowhere or its definition is malformed
 */
export async function readService(service: string, environment: Environment): Promise<Settings> {
  const named = environment.variable("PGSERVICEFILE");
  const paths: string[] = [];
  if (named !== undefined) {
    paths.push(named);
  } else {
    const home = environment.homeDirectory();
    if (home !== undefined) paths.push(`${home}/.pg_service.conf`);
  }
  // libpq's own default for the directory is compiled in; there is none here.
  const directory = environment.variable("PGSYSCONFDIR");
  if (directory) paths.push(`${directory}/pg_service.conf`);
  for (const path of paths) {
    const file = await environment.readFile(path);
    if (file === undefined) {
      if (path === named) {
        throw new ConfigurationError(`Cannot read the service file "${path}" of PGSERVICEFILE`);
      }
      continue;
    }
    const settings = parseService(file.text, service, path);
    if (settings !== undefined) return settings;
  }
  throw new ConfigurationError(`Cannot find the definition of service "${service}"`);
}

/**
 * The settings of the first section `[service]`, or `undefined` when there is none; the first occurrence of a keyword
 * wins.
 *
 * @param path for messages
 * @throws {ConfigurationError} when a line of the section is malformed, or its keyword unknown or refused
 */
export function parseService(text: string, service: string, path: string): Settings | undefined {
  let settings: Settings | undefined;
  let [number, secrets] = [0, 0];
  for (const rawLine of text.split("\n")) {
    number++;
    const line = rawLine.trim();
    if (line === "" || line.startsWith("#")) continue;
    if (line.startsWith("[")) {
      if (settings !== undefined) break;
      if (line.startsWith(`[${service}]`)) settings = new Map();
      continue;
    }
    if (settings === undefined) continue;
    const place = `line ${number} of the service file "${path}"`;
    const equals = line.indexOf("=");
    if (equals < 0) throw new ConfigurationError(`Cannot use ${place}: it has no "="`);
    const keyword = line.slice(0, equals);
    if (keyword === "service") {
      throw new ConfigurationError(`Cannot use ${place}: a service cannot name another service`);
    }
    const [known, value] = checkPair([keyword, line.slice(equals + 1)], place, secrets > 0);
    if (isSecret(known)) secrets++;
    if (!settings.has(known)) settings.set(known, { value, from: `${known} in ${place}` });
  }
  return settings;
}
