/**
 * The order in which callers are told of what settles in the same turn: the one in which it settles.
 *
 * A query that goes well is resolved at once. Whatever needs more steps until its caller goes on says so here, and what
 * settles behind it takes as many.
 */

let late = 0;

/** Whether somebody takes the long way just now: nobody may be told at once. */
export function isAnyLate(): boolean {
  return late > 0;
}

/** Somebody takes the long way. They call {@linkcode endLate} behind two awaits. */
export function beginLate(): void {
  late++;
}

/** Who took the long way is about to be told. */
export function endLate(): void {
  queueMicrotask(endOne);
}

function endOne(): void {
  late--;
}

/** Resolves for an async function, which tells its caller in its place among queries that settle in the same turn. */
export async function resolveLate<T>(resolve: (value: T) => void, value: T): Promise<void> {
  beginLate();
  await undefined;
  await undefined;
  endLate();
  resolve(value);
}
