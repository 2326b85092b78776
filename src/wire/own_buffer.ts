/** Buffers that are filled to the last byte before anybody sees them. */

let allocate: (size: number) => Uint8Array = (size) => new Uint8Array(size);

/**
 * Installs the runtime's quickest way to memory, for the whole process.
 *
 * @param unfilled makes a plain Uint8Array with memory of its own, whatever is in it
 */
export function useUnfilled(unfilled: (size: number) => Uint8Array): void {
  allocate = unfilled;
}

/** Memory for `size` bytes, all of which the caller writes. */
export function unfilledBytes(size: number): Uint8Array {
  return allocate(size);
}
