/**
 * MD5 (RFC 1321), which WebCrypto does not have, and the password hash PostgreSQL's `md5` method asks for.
 */

import { ProtocolError } from "../errors.ts";

const SHIFTS = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
/** RFC 1321, section 3.4: the integer part of 2^32 times abs(sin(i + 1)). */
const SINES: Int32Array = Int32Array.from({ length: 64 }, (_, i) => Math.abs(Math.sin(i + 1)) * 2 ** 32 | 0);

const encoder: TextEncoder = new TextEncoder();

/**
 * The answer to AuthenticationMD5Password (PostgreSQL manual, 53.2.1).
 *
 * @param salt the four bytes of the request
 * @returns `md5` and 32 hexadecimal digits
 * @throws {ProtocolError} when the salt has another length
 */
export function md5Password(user: string, password: string, salt: Uint8Array): string {
  if (salt.length !== 4) {
    throw new ProtocolError(`Cannot authenticate with md5: the salt has ${salt.length} bytes instead of 4`);
  }
  const inner = encoder.encode(md5(encoder.encode(password + user)));
  const salted = new Uint8Array(inner.length + salt.length);
  salted.set(inner);
  salted.set(salt, inner.length);
  return `md5${md5(salted)}`;
}

/** The MD5 digest of `message` as 32 lower-case hexadecimal digits. */
export function md5(message: Uint8Array): string {
  const blocks = (message.length + 8 >>> 6) + 1;
  const padded = new Uint8Array(blocks * 64);
  padded.set(message);
  padded[message.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, message.length * 8, true);
  view.setUint32(padded.length - 4, Math.floor(message.length / 2 ** 29), true);

  const state = Int32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476);
  for (let block = 0; block < padded.length; block += 64) addBlock(state, view, block);

  let digest = "";
  for (const byte of new Uint8Array(littleEndian(state))) digest += byte.toString(16).padStart(2, "0");
  return digest;
}

function littleEndian(words: Int32Array): ArrayBuffer {
  const view = new DataView(new ArrayBuffer(words.length * 4));
  words.forEach((word, i) => view.setInt32(i * 4, word, true));
  return view.buffer;
}

function addBlock(state: Int32Array, view: DataView, block: number): void {
  let a = state[0]!, b = state[1]!, c = state[2]!, d = state[3]!;
  for (let i = 0; i < 64; i++) {
    const round = i >> 4;
    let mixed: number;
    let word: number;
    if (round === 0) {
      mixed = b & c | ~b & d;
      word = i;
    } else if (round === 1) {
      mixed = b & d | c & ~d;
      word = 5 * i + 1 & 15;
    } else if (round === 2) {
      mixed = b ^ c ^ d;
      word = 3 * i + 5 & 15;
    } else {
      mixed = c ^ (b | ~d);
      word = 7 * i & 15;
    }
    const sum = a + mixed + SINES[i]! + view.getInt32(block + word * 4, true) | 0;
    const shift = SHIFTS[round * 4 + (i & 3)]!;
    a = d;
    d = c;
    c = b;
    b = b + (sum << shift | sum >>> 32 - shift) | 0;
  }
  state[0] = state[0]! + a | 0;
  state[1] = state[1]! + b | 0;
  state[2] = state[2]! + c | 0;
  state[3] = state[3]! + d | 0;
}
