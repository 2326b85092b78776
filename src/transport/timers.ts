/** Timers, where the runtimes have words of their own. */

/** Lets the process end although the timer has not fired. */
export function unrefTimer(timer: ReturnType<typeof setTimeout>): void {
  const deno = (globalThis as { readonly Deno?: { unrefTimer?: (id: number) => void } }).Deno;
  if (typeof timer === "number") deno?.unrefTimer?.(timer);
  else (timer as { unref?: () => void }).unref?.();
}

/** Resolves in a later turn of the event loop: sockets and timers have had theirs then. */
export function nextTurn(): Promise<void> {
  const { setImmediate } = globalThis as { readonly setImmediate?: (callback: () => void) => unknown };
  return new Promise((resolve) => {
    if (setImmediate === undefined) setTimeout(resolve, 0);
    else setImmediate(resolve);
  });
}
