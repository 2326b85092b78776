/** What Deno permits without asking, so that nobody is ever prompted. */

interface Runtime {
  readonly Deno?: {
    readonly permissions: { querySync(descriptor: object): { readonly state: string } };
  };
}

/** Whether Deno permits it without asking. True on other runtimes. */
export function isPermitted(descriptor: object): boolean {
  const deno = (globalThis as Runtime).Deno;
  if (deno === undefined) return true;
  try {
    return deno.permissions.querySync(descriptor).state === "granted";
  } catch {
    return false; // a permission that this version does not know
  }
}
