/** Prints what the process's own environment resolves to: user, host, port, password, and a readable file or not. */

import { processEnvironment } from "../../src/connection/environment.ts";
import { resolveOptions } from "../../src/connection/options.ts";

const environment = processEnvironment();
const found = await environment.readFile(import.meta.filename!);
let line: unknown[];
try {
  const resolved = await resolveOptions(undefined);
  const host = resolved.hosts[0]!;
  line = [resolved.user, host.host, host.port, await resolved.password(host) ?? null];
} catch (error) {
  line = [(error as Error).name];
}
console.log(JSON.stringify([...line, found !== undefined]));
