/**
 * What writing frontend messages costs: texts of several lengths, integers, and the messages of an execution.
 *
 * node bench/micro/writer_bench.ts   (or deno run -A, bun run)
 */

import { encodeParameters } from "../../src/codecs/parameter_encoder.ts";
import { createRegistry } from "../../src/codecs/registry.ts";
import * as frontend from "../../src/wire/frontend.ts";
import { Writer } from "../../src/wire/writer.ts";
import { loadMitata } from "./mitata.ts";

const OPERATIONS = 1000;
const INT4 = 23;
const TEXT = 25;

const mitata = await loadMitata();

/** Runs `write` a thousand times; what is written is taken now and then, as a connection does. */
function add(name: string, write: (writer: Writer, index: number) => void): void {
  const writer = new Writer();
  mitata.bench(name, () => {
    for (let i = 0; i < OPERATIONS; i++) {
      write(writer, i);
      if (i % 50 === 49) mitata.do_not_optimize(writer.take());
    }
  });
}

mitata.group(`${OPERATIONS} fields`, () => {
  add("int32", (writer, i) => writer.int32(i));
  for (const length of [8, 32, 48, 64, 256, 4096]) {
    const ascii = "a".repeat(length);
    const mixed = "ä".repeat(length);
    add(`utf8, ${length} ASCII characters`, (writer) => writer.utf8(ascii));
    if (length <= 256) add(`utf8, ${length} characters past ASCII`, (writer) => writer.utf8(mixed));
  }
});
mitata.group(`${OPERATIONS} messages`, () => {
  const registry = createRegistry();
  add("Query", (writer) => frontend.writeQuery(writer, "select 42 as n, 'forty-two' as t"));
  const values: unknown[] = [42, "forty-two"];
  const types = [INT4, TEXT];
  add("Bind of int4 and text, Execute, Sync", (writer) => {
    const mark = frontend.beginBind(writer, "pipegres_abcdefghijkl_1");
    encodeParameters(values, types, registry, writer);
    writer.int16(0);
    writer.endMessage(mark);
    frontend.writeExecute(writer, "", 0);
    frontend.writeSync(writer);
  });
});
await mitata.run();
