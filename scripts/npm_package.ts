/**
 * Where Deno's global cache keeps the files of an npm package, downloaded on first use.
 *
 * This needs no node_modules folder, no npm and no lock file: versions are pinned where they are named.
 */

/** The absolute path of a package's folder. Rejects with the registry's own words when it cannot be had. */
export async function npmPackageDirectory(name: string, version: string): Promise<string> {
  const specifier = `npm:${name}@${version}`;
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--no-config", "--json", specifier],
    env: { NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1" },
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  if (!success) throw new Error(`Cannot load ${specifier}: ${decoder.decode(stderr).trim()}`);
  const info: PackageInfo = JSON.parse(decoder.decode(stdout));
  const path = info.npmPackages[`${name}@${version}`]?.localPath;
  if (path) return path;
  throw new Error(`Cannot load ${specifier}: ${info.modules[0]?.error ?? decoder.decode(stderr).trim()}`);
}

interface PackageInfo {
  modules: { error?: string }[];
  npmPackages: Record<string, { localPath?: string }>;
}
