/**
 * The gate: format, lint (with the house's rules), types of everything, documentation, and what publishing demands.
 *
 * deno task check
 */

import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

const STEPS: readonly [name: string, args: readonly string[]][] = [
  ["format", ["fmt", "--check"]],
  ["lint, layers and sizes", ["lint"]],
  ["types", ["check", "--quiet", "."]],
  ["types of README's examples", ["run", "-A", "scripts/check_readme.ts"]],
  ["README's table of types", ["run", "-A", "scripts/generate_type_table.ts", "--check"]],
  ["documentation", ["doc", "--lint", "mod.ts"]],
  ["what JSR would publish", ["publish", "--dry-run", "--allow-dirty"]],
];

let failed = 0;
for (const [name, args] of STEPS) {
  const began = performance.now();
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: ROOT,
    env: { DENO_NO_UPDATE_CHECK: "1" },
    stdin: "null",
  }).output();
  console.log(`${success ? "ok  " : "FAIL"}  ${name}  ${((performance.now() - began) / 1000).toFixed(1)} s`);
  if (success) continue;
  failed++;
  await Deno.stdout.write(stdout);
  await Deno.stderr.write(stderr);
}
console.log(`${STEPS.length - failed} checks passed, ${failed} failed`);
Deno.exitCode = failed > 0 ? 1 : 0;
