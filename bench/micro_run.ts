/**
 * Runs the micro benches, which need no server, on all runtimes.
 *
 * deno task bench:micro [--runtimes deno,bun,node] [filter…]    a filter is a part of a file's name
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findRuntime, RUNTIME_NAMES } from "../scripts/runtimes.ts";
import { childEnvironment, installPackages } from "./harness/surroundings.ts";

const FOLDER = fileURLToPath(new URL("micro", import.meta.url));

const args = [...Deno.args];
const at = args.indexOf("--runtimes");
const wanted = at < 0 ? undefined : args.splice(at, 2)[1]?.split(",");
const names = RUNTIME_NAMES.filter((name) => wanted === undefined || wanted.includes(name));
const files = [...Deno.readDirSync(FOLDER)].map(({ name }) => name).filter((name) =>
  name.endsWith("_bench.ts") && (args.length === 0 || args.some((filter) => name.includes(filter)))
).sort();
const environment = childEnvironment(await installPackages());
let failed = 0;
for (const name of names) {
  const runtime = await findRuntime(name);
  for (const file of files) {
    console.log(`\n${file} on ${name} ${runtime.version}\n`);
    const { success } = await new Deno.Command(runtime.path, {
      args: [...(name === "deno" ? ["run", "-A", "--no-check"] : []), join(FOLDER, file)],
      clearEnv: true,
      env: environment,
      stdin: "null",
    }).output().then(async (output) => {
      await Deno.stdout.write(output.stdout);
      await Deno.stderr.write(output.stderr);
      return output;
    });
    if (!success) failed++;
  }
}
Deno.exitCode = failed > 0 ? 1 : 0;
