/**
 * What the engine costs for each query, without sockets and promises: submit, write, read the answer, settle.
 *
 * node bench/micro/pipeline_bench.ts   (or deno run -A, bun run)
 */

import { createRegistry } from "../../src/codecs/registry.ts";
import { createRowDecoder, resultFormats } from "../../src/codecs/row_decoder.ts";
import { bindParameters } from "../../src/client/parameters.ts";
import { Engine } from "../../src/engine/engine.ts";
import { EXTENDED, Request, type RowPlanner, SIMPLE } from "../../src/engine/request.ts";
import { Session } from "../../src/engine/session.ts";
import { Framer } from "../../src/wire/framer.ts";
import { Writer } from "../../src/wire/writer.ts";
import { loadMitata } from "./mitata.ts";

const TEXT = "select $1::int4 as n, $2::text as t";
const encoder = new TextEncoder();

/** A backend message. */
function message(type: string, ...body: (Uint8Array | number[])[]): Uint8Array {
  const bytes = body.flatMap((part) => [...part]);
  const length = bytes.length + 4;
  return Uint8Array.of(type.charCodeAt(0), length >> 24, length >> 16, length >> 8, length, ...bytes);
}

function cstring(text: string): Uint8Array {
  return encoder.encode(`${text}\0`);
}

function field(name: string, oid: number): number[] {
  return [...cstring(name), 0, 0, 0, 0, 0, 0, 0, 0, 0, oid, 0, 4, 255, 255, 255, 255, 0, 0];
}

function join(parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

const PARSE_COMPLETE = message("1");
const PARAMETERS = message("t", [0, 2, 0, 0, 0, 23, 0, 0, 0, 25]);
const FIELDS = message("T", [0, 2], field("n", 23), field("t", 25));
const BIND_COMPLETE = message("2");
const ROW = message("D", [0, 2, 0, 0, 0, 4, 0, 0, 0, 42, 0, 0, 0, 4], encoder.encode("text"));
const TEXT_ROW = message("D", [0, 2, 0, 0, 0, 2], encoder.encode("42"), [0, 0, 0, 4], encoder.encode("text"));
const COMPLETE = message("C", cstring("SELECT 1"));
const READY = message("Z", [0x49]);

const FIRST_ANSWER = join([PARSE_COMPLETE, PARAMETERS, FIELDS, BIND_COMPLETE, TEXT_ROW, COMPLETE, READY]);
const ANSWER = join([BIND_COMPLETE, ROW, COMPLETE, READY]);
const SIMPLE_ANSWER = join([FIELDS, TEXT_ROW, COMPLETE, READY]);

const registry = createRegistry();
const planner: RowPlanner = {
  plan: (fields) => createRowDecoder(fields, registry, "object"),
  formats: (fields) => resultFormats(fields, registry),
};

function createEngine(): Engine {
  const events = { onNotice() {}, onNotification() {}, onListenUndone() {}, onParameterStatus() {} };
  const options = { maxQueries: 1000, maxBytes: 1 << 24, statementCache: 256, statementPrefix: "bench_" };
  return new Engine(new Session(), new Framer(1 << 30), new Writer(), events, options);
}

let settled = 0;

function onSettled(request: Request): void {
  if (request.failure !== null) throw request.failure();
  settled += request.rows.length + (request.results?.length ?? 0);
}

function submit(engine: Engine, kind: number, values: readonly unknown[]): void {
  engine.submit(new Request(kind, TEXT, bindParameters(values, registry), planner, onSettled));
}

const mitata = await loadMitata();

/** `count` queries in one write, answered in one read. */
function add(name: string, count: number, kind: number, answer: Uint8Array): void {
  const engine = createEngine();
  if (kind === EXTENDED) {
    submit(engine, kind, [42, "text"]);
    engine.takeOutput();
    engine.receive(FIRST_ANSWER);
  }
  const answers = join(Array.from({ length: count }, () => answer));
  const values: unknown[] = kind === EXTENDED ? [42, "text"] : [];
  settled = 0;
  const run = () => {
    for (let i = 0; i < count; i++) submit(engine, kind, values);
    mitata.do_not_optimize(engine.takeOutput());
    engine.receive(answers);
  };
  run();
  if (settled < count || !engine.idle) {
    throw new Error(`${name}: ${settled} of ${count} queries were answered`);
  }
  mitata.bench(name, run);
}

mitata.group("queries in one write", () => {
  for (const count of [1, 50, 1000]) {
    add(`${count} prepared`, count, EXTENDED, ANSWER);
    add(`${count} simple`, count, SIMPLE, SIMPLE_ANSWER);
  }
});
await mitata.run();
