/** Timers for limits that users give. */

/** What `setTimeout` can wait at most; it would fire at once for more. */
const LONGEST = 0x7fff_ffff;

/** Calls back after that many milliseconds; never, when they are more than 24 days: that is no limit. */
export function startTimer(
  callback: () => void,
  milliseconds: number,
): ReturnType<typeof setTimeout> | undefined {
  return milliseconds > LONGEST ? undefined : setTimeout(callback, milliseconds);
}
