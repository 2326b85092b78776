/** Which test files there are. */

import { join, relative } from "node:path";

/** A test file. */
export interface TestFile {
  /** Relative to the project, with slashes. */
  readonly path: string;
  readonly needsServer: boolean;
  /** Whether it needs the second server, with TLS. */
  readonly needsTls: boolean;
  /** Tests of the scripts, which are written for Deno. */
  readonly denoOnly: boolean;
}

/** All files named `*_test.ts` under tests/ (every runtime) and scripts/ (Deno), in the order of their paths. */
export async function walkTests(root: string): Promise<TestFile[]> {
  const files: TestFile[] = [];
  for (const folder of ["scripts", "tests"]) {
    for await (const path of walk(join(root, folder))) {
      if (!path.endsWith("_test.ts")) continue;
      const source = await Deno.readTextFile(path);
      files.push({
        path: relative(root, path),
        needsTls: /from "[./_a-z]*\/tls_target\.ts"/.test(source),
        needsServer: /from "[./_a-z]*\/server\.ts"/.test(source),
        denoOnly: folder === "scripts",
      });
    }
  }
  return files.sort((a, b) => a.path < b.path ? -1 : 1);
}

/** All files below a folder; a folder that does not exist has none. */
export async function* walk(folder: string): AsyncGenerator<string> {
  let entries: Deno.DirEntry[];
  try {
    entries = await Array.fromAsync(Deno.readDir(folder));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    throw error;
  }
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory) yield* walk(path);
    else yield path;
  }
}
