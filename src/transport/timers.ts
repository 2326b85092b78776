/** Timers that do not keep the process alive; each runtime has its own word for that. */

/** Lets the process end although the timer has not fired. */
export function unrefTimer(timer: ReturnType<typeof setTimeout>): void {
  const deno = (globalThis as { readonly Deno?: { unrefTimer?: (id: number) => void } }).Deno;
  if (typeof timer === "number") deno?.unrefTimer?.(timer);
  else (timer as { unref?: () => void }).unref?.();
}
