/** Memory that is not cleared, where the runtime gives some. */

/** What is used of Node.js' Buffer, which Bun has too. */
interface BufferClass {
  allocUnsafeSlow(size: number): Uint8Array;
}

/** @returns a function that makes plain Uint8Arrays of their own memory, with any bytes in it */
export function unfilledOf(buffer: BufferClass): (size: number) => Uint8Array {
  return (size) => {
    const { buffer: memory, byteOffset } = buffer.allocUnsafeSlow(size);
    return new Uint8Array(memory, byteOffset, size);
  };
}
