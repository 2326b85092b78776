/** The parser of the real libpq 18, out of the embedded PostgreSQL's package: what connection strings are compared with. */

import { dirname, join } from "node:path";
import { shareFile } from "./embedded_postgres.ts";

const SYMBOLS = {
  PQconninfoParse: { parameters: ["buffer", "buffer"], result: "pointer" },
  PQconninfoFree: { parameters: ["pointer"], result: "void" },
  PQconndefaults: { parameters: [], result: "pointer" },
  PQfreemem: { parameters: ["pointer"], result: "void" },
} as const;

/** `sizeof (PQconninfoOption)`: six pointers and a padded integer. */
const OPTION_SIZE = 56;
/** Offset of its member `val`. */
const VALUE = 24;

/** libpq, as far as it parses. */
export interface Libpq {
  /** The keywords that a string sets, with their values; or libpq's message. */
  parse(conninfo: string): Readonly<Record<string, string>> | string;
  /** All keywords, with the environment variables that stand in for them. */
  keywords(): ReadonlyMap<string, string | undefined>;
  close(): void;
}

/** Loads libpq, or tells why it cannot be. */
export async function openLibpq(): Promise<Libpq | string> {
  if (Deno.build.os !== "linux") return `no libpq is known on ${Deno.build.os}`;
  const directory = join(dirname(dirname(dirname(await shareFile("errcodes.txt")))), "lib");
  const loaded: { close(): void }[] = [];
  try {
    // What libpq needs is found by its name once it is loaded.
    for (const name of ["libcrypto.so.1.1", "libssl.so.1.1"]) {
      loaded.push(Deno.dlopen(join(directory, name), {}));
    }
    const library = Deno.dlopen(join(directory, "libpq.so.5.18"), SYMBOLS);
    return new LoadedLibpq(library, () => [library, ...loaded].forEach((each) => each.close()));
  } catch (error) {
    for (const each of loaded) each.close();
    return `libpq cannot be loaded: ${error instanceof Error ? error.message : error}`;
  }
}

class LoadedLibpq implements Libpq {
  readonly #library: Deno.DynamicLibrary<typeof SYMBOLS>;
  readonly close: () => void;

  constructor(library: Deno.DynamicLibrary<typeof SYMBOLS>, close: () => void) {
    this.#library = library;
    this.close = close;
  }

  parse(conninfo: string): Readonly<Record<string, string>> | string {
    const { symbols } = this.#library;
    const message = new BigUint64Array(1);
    const options = symbols.PQconninfoParse(
      new TextEncoder().encode(`${conninfo}\0`),
      new Uint8Array(message.buffer),
    );
    if (options === null) {
      const pointer = Deno.UnsafePointer.create(message[0]!);
      const text = pointer === null ? "no message" : textAt(pointer);
      symbols.PQfreemem(pointer);
      return text.trim();
    }
    const found: Record<string, string> = {};
    for (const [keyword, , value] of walk(options)) if (value !== undefined) found[keyword] = value;
    symbols.PQconninfoFree(options);
    return found;
  }

  keywords(): ReadonlyMap<string, string | undefined> {
    const options = this.#library.symbols.PQconndefaults()!;
    const found = new Map([...walk(options)].map(([keyword, variable]) => [keyword, variable] as const));
    this.#library.symbols.PQconninfoFree(options);
    return found;
  }
}

function* walk(options: Deno.PointerObject): Generator<[string, string | undefined, string | undefined]> {
  const view = new Deno.UnsafePointerView(options);
  for (let at = 0;; at += OPTION_SIZE) {
    const [keyword, variable, value] = [at, at + 8, at + VALUE].map((offset) => {
      const pointer = view.getPointer(offset);
      return pointer === null ? undefined : textAt(pointer);
    });
    if (keyword === undefined) return;
    yield [keyword, variable, value];
  }
}

function textAt(pointer: Deno.PointerObject): string {
  const view = new Deno.UnsafePointerView(pointer);
  const bytes: number[] = [];
  for (let byte = view.getUint8(0); byte !== 0; byte = view.getUint8(bytes.length)) bytes.push(byte);
  return new TextDecoder().decode(Uint8Array.from(bytes));
}
