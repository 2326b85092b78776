/**
 * Checks the types of the examples in README.md, by the project's compiler options. Tests run them.
 *
 * deno run -A scripts/check_readme.ts
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readmeExamples } from "../tests/docs/readme.ts";

const ROOT: string = fileURLToPath(new URL("..", import.meta.url));

const markdown = await Deno.readTextFile(join(ROOT, "README.md"));
const moduleUrl = new URL("../mod.ts", import.meta.url).href;
const directory = await Deno.makeTempDir({ prefix: "pipegres-readme-" });
try {
  const paths: string[] = [];
  for (const { title, program } of readmeExamples(markdown, moduleUrl, "")) {
    const path = join(directory, `${title.replaceAll(/\W+/g, "_")}.ts`);
    await Deno.writeTextFile(path, program);
    paths.push(path);
  }
  const { success } = await new Deno.Command(Deno.execPath(), {
    args: ["check", "--quiet", "--config", join(ROOT, "deno.json"), ...paths],
    env: { DENO_NO_UPDATE_CHECK: "1" },
    stdin: "null",
  }).output().then((output) => {
    if (!output.success) Deno.stderr.writeSync(output.stderr);
    return output;
  });
  if (!success) Deno.exitCode = 1;
} finally {
  await Deno.remove(directory, { recursive: true });
}
