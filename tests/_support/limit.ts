/** Time limits for awaited promises: a test that waits for ever tells nothing. */

/**
 * Settles as `promise` does, or rejects after `milliseconds` with an error that names `label`. The promise itself
 * goes on.
 */
export async function limit<T>(
  promise: PromiseLike<T>,
  milliseconds: number = 10_000,
  label: string = "promise",
): Promise<T> {
  // Made here, so that its stack shows the test and not the timer.
  const late = new Error(`Not settled after ${milliseconds} ms: ${label}`);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late), milliseconds);
  });
  try {
    return await Promise.race([promise, expired]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until `condition` holds, looking every few milliseconds; rejects after `milliseconds`. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  milliseconds: number = 10_000,
  label: string = "condition",
): Promise<void> {
  const late = new Error(`Not reached after ${milliseconds} ms: ${label}`);
  for (const deadline = Date.now() + milliseconds;;) {
    if (await condition()) return;
    if (Date.now() > deadline) throw late;
    await turns(5);
  }
}

function turns(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
