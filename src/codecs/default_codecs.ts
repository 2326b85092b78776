/** The codecs of base types by their name in `pg_type`: a new type is a line here. */

import { boolCodec } from "./bool.ts";
import { byteaCodec } from "./bytea.ts";
import type { Codec } from "./codec.ts";
import { recordCodec } from "./composite.ts";
import { dateCodec } from "./date.ts";
import { float4Codec, float8Codec } from "./float.ts";
import {
  boxCodec,
  circleCodec,
  lineCodec,
  lsegCodec,
  pathCodec,
  pointCodec,
  polygonCodec,
} from "./geometric.ts";
import { hstoreCodec } from "./hstore.ts";
import { cidCodec, int2Codec, int4Codec, oidCodec, xidCodec } from "./int.ts";
import { int8Codec, xid8Codec } from "./int8.ts";
import { intervalCodec } from "./interval.ts";
import { jsonbCodec, jsonCodec } from "./json.ts";
import { numericCodec } from "./numeric.ts";
import { opaqueCodec, textCodec } from "./text.ts";
import { timeCodec, timetzCodec } from "./time.ts";
import { timestampCodec, timestamptzCodec } from "./timestamp.ts";
import { uuidCodec } from "./uuid.ts";
import { halfvecCodec, sparsevecCodec, vectorCodec } from "./vector.ts";

/** Names that no line mentions are strings in the type's text form. */
export const DEFAULT_CODECS: ReadonlyMap<string, Codec> = new Map<string, Codec>([
  ["bool", boolCodec],
  ["bytea", byteaCodec],
  ["int2", int2Codec],
  ["int4", int4Codec],
  ["int8", int8Codec],
  ["oid", oidCodec],
  ["xid", xidCodec],
  ["cid", cidCodec],
  ["xid8", xid8Codec],
  ["float4", float4Codec],
  ["float8", float8Codec],
  ["numeric", numericCodec],
  // The text depends on lc_monetary and the binary form on its decimals: only the text says it all.
  ["money", opaqueCodec("money")],
  ["text", textCodec("text")],
  ["varchar", textCodec("varchar")],
  ["bpchar", textCodec("bpchar")],
  ["name", textCodec("name")],
  ["citext", textCodec("citext")],
  ["unknown", textCodec("unknown")],
  ["cstring", textCodec("cstring")],
  // Its binary form is one byte, which need not be a character.
  ["char", opaqueCodec("char")],
  // Its binary form has an encoding declaration.
  ["xml", opaqueCodec("xml")],
  ["uuid", uuidCodec],
  ["json", jsonCodec],
  ["jsonb", jsonbCodec],
  ["date", dateCodec],
  ["time", timeCodec],
  ["timetz", timetzCodec],
  ["timestamp", timestampCodec],
  ["timestamptz", timestamptzCodec],
  ["interval", intervalCodec],
  ["point", pointCodec],
  ["line", lineCodec],
  ["lseg", lsegCodec],
  ["box", boxCodec],
  ["path", pathCodec],
  ["polygon", polygonCodec],
  ["circle", circleCodec],
  ["record", recordCodec],
  // Of extensions, found by name.
  ["hstore", hstoreCodec],
  ["vector", vectorCodec],
  ["halfvec", halfvecCodec],
  ["sparsevec", sparsevecCodec],
]);
