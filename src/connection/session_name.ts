/** Names for what a session makes on its server, which a pooler may give to another session. */

/** Of 48 bits: where this process begins to count its sessions. */
let sessionNumber: number | undefined = undefined;

/** Nine characters that no other session of a server is likely to have. */
export function sessionName(): string {
  const [high, low] = sessionNumber === undefined ? crypto.getRandomValues(new Uint32Array(2)) : [0, 0];
  sessionNumber = (sessionNumber ?? (high! & 0xffff) * 2 ** 32 + low!) + 1;
  return sessionNumber.toString(36).padStart(9, "0").slice(-9);
}
