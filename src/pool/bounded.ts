/** Waiting for somebody else's code, but not for ever. */

/** Limits of {@linkcode bounded}. */
export interface Bounds {
  /** Ends the wait; the promise rejects with its reason. */
  readonly signal: AbortSignal;
  /** Milliseconds; 0: no limit. */
  readonly timeout: number;
  /** Makes the error when the time is over. */
  readonly late: () => Error;
}

/** Settles as `work` does, or rejects when a bound is reached; the work itself goes on then. */
export async function bounded<T>(work: () => Promise<T>, { signal, timeout, late }: Bounds): Promise<T> {
  signal.throwIfAborted();
  let stop = () => {};
  const stopped = new Promise<never>((_, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const timer = timeout > 0 ? setTimeout(() => reject(late()), timeout) : undefined;
    stop = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    };
  });
  try {
    return await Promise.race([work(), stopped]);
  } finally {
    stop();
  }
}
