/** Hexadecimal digits, both ways. */

/** The two lower-case digits of each byte. */
export const HEX: readonly string[] = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, "0"));

/** The value of each digit by its ASCII code; 0xff where there is none. */
export const HEX_VALUES: Uint8Array = new Uint8Array(256).fill(0xff);
for (let i = 0; i < 16; i++) {
  HEX_VALUES["0123456789abcdef".charCodeAt(i)] = i;
  HEX_VALUES["0123456789ABCDEF".charCodeAt(i)] = i;
}
