/**
 * Dates and times as Temporal objects (option `temporal`): date as PlainDate, time as PlainTime, timestamp as
 * PlainDateTime, timestamptz as Instant, interval as Duration. No microsecond is lost.
 *
 * What Temporal has no object for stays what it is without the option: infinite dates a string, infinite timestamps a
 * number, infinite intervals an Interval. What is outside Temporal's range is a ValueError.
 */

import { ConfigurationError, ValueError } from "../errors.ts";
import { utf8Slice } from "../wire/utf8.ts";
import { daysFromDate, EPOCH_DAYS, EPOCH_MILLISECONDS } from "./calendar.ts";
import type { Codec } from "./codec.ts";
import { createDateCodec } from "./date.ts";
import { type DateOrder, failDateStyle, isoTimestamp } from "./date_style.ts";
import { type Interval, intervalCodec } from "./interval.ts";
import { checkLength } from "./length.ts";
import { readInt64 } from "./numbers.ts";
import { timeCodec } from "./time.ts";
import { timestampCodec } from "./timestamp.ts";

/** As much of the global Temporal as is used here: not every TypeScript library has its types. */
interface TemporalGlobal {
  readonly PlainDate: new (year: number, month: number, day: number) => unknown;
  readonly PlainTime: { from(text: string): unknown };
  readonly PlainDateTime: { from(text: string): unknown };
  readonly Instant: { fromEpochNanoseconds(nanoseconds: bigint): { toString(): string } };
  readonly Duration: new (
    years: number,
    months: number,
    weeks: number,
    days: number,
    hours: number,
    minutes: number,
    seconds: number,
    milliseconds: number,
    microseconds: number,
  ) => unknown;
}

/**
 * The codecs by type name.
 *
 * @throws {ConfigurationError} when the runtime has no Temporal
 */
export function createTemporalCodecs(order?: DateOrder): ReadonlyMap<string, Codec> {
  const temporal = (globalThis as { Temporal?: TemporalGlobal }).Temporal;
  if (temporal === undefined) {
    throw new ConfigurationError("Cannot use the option temporal: this runtime has no Temporal");
  }
  const codecs = [
    dateOf(temporal, order),
    timeOf(temporal),
    timestampOf(temporal, order),
    timestamptzOf(temporal, order),
    intervalOf(temporal),
  ];
  return new Map(codecs.map((codec) => [codec.name, codec]));
}

/** Makes a Temporal object; its RangeError becomes a ValueError. */
function create<T>(make: () => T): T {
  try {
    return make();
  } catch (cause) {
    throw new ValueError("The value is outside the range of Temporal: read the column as text", { cause });
  }
}

function dateOf(temporal: TemporalGlobal, order: DateOrder | undefined): Codec {
  const dateCodec = createDateCodec(order);
  const convert = (text: string): unknown => {
    const match = /^(\d+)-(\d\d)-(\d\d)( BC)?$/.exec(text);
    if (match === null) return text;
    const year = match[4] === undefined ? Number(match[1]) : 1 - Number(match[1]);
    return create(() => new temporal.PlainDate(year, Number(match[2]), Number(match[3])));
  };
  return {
    ...dateCodec,
    decodeText: (bytes, start, end) => convert(dateCodec.decodeText(bytes, start, end)),
    decodeBinary: (bytes, start, end) => convert(dateCodec.decodeBinary!(bytes, start, end)),
  };
}

function timeOf(temporal: TemporalGlobal): Codec {
  const convert = (text: string): unknown => create(() => temporal.PlainTime.from(text));
  return {
    ...timeCodec,
    decodeText: (bytes, start, end) => convert(timeCodec.decodeText(bytes, start, end)),
    decodeBinary: (bytes, start, end) => convert(timeCodec.decodeBinary!(bytes, start, end)),
  };
}

const INFINITY = 0x7fff_ffff_ffff_ffffn;
const NEGATIVE_INFINITY = -0x8000_0000_0000_0000n;

function instantOf(temporal: TemporalGlobal, microseconds: bigint): { toString(): string } | number {
  if (microseconds === INFINITY) return Infinity;
  if (microseconds === NEGATIVE_INFINITY) return -Infinity;
  const nanoseconds = (microseconds + BigInt(EPOCH_MILLISECONDS) * 1000n) * 1000n;
  return create(() => temporal.Instant.fromEpochNanoseconds(nanoseconds));
}

function plainOf(temporal: TemporalGlobal, microseconds: bigint): unknown {
  const instant = instantOf(temporal, microseconds);
  if (typeof instant === "number") return instant;
  return temporal.PlainDateTime.from(instant.toString().replace("Z", ""));
}

function timestampOf(temporal: TemporalGlobal, order: DateOrder | undefined): Codec {
  return {
    ...timestampCodec,
    decodeText: (bytes, start, end) =>
      plainOf(temporal, microsecondsOf("timestamp", utf8Slice(bytes, start, end), order)),
    decodeBinary(bytes, start, end): unknown {
      checkLength(8, start, end);
      return plainOf(temporal, readInt64(bytes, start));
    },
  };
}

function timestamptzOf(temporal: TemporalGlobal, order: DateOrder | undefined): Codec {
  return {
    ...timestampCodec,
    name: "timestamptz",
    decodeText: (bytes, start, end) =>
      instantOf(temporal, microsecondsOf("timestamptz", utf8Slice(bytes, start, end), order)),
    decodeBinary(bytes, start, end): unknown {
      checkLength(8, start, end);
      return instantOf(temporal, readInt64(bytes, start));
    },
  };
}

const ISO =
  /^(\d{4,})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?)?( BC)?$/;

/** Microseconds from 2000-01-01 of a text in any DateStyle. */
function microsecondsOf(name: string, text: string, order: DateOrder | undefined): bigint {
  if (text === "infinity") return INFINITY;
  if (text === "-infinity") return NEGATIVE_INFINITY;
  const match = ISO.exec(text) ?? ISO.exec(isoTimestamp(name, text, order));
  if (match === null) return failDateStyle(name);
  const part = (i: number): number => Number(match[i] ?? 0);
  const days = daysFromDate(match[12] === undefined ? part(1) : 1 - part(1), part(2), part(3)) - EPOCH_DAYS;
  const offset = part(9) * 3600 + part(10) * 60 + part(11);
  const seconds = part(4) * 3600 + part(5) * 60 + part(6) - (match[8] === "-" ? -offset : offset);
  return BigInt(days * 86_400 + seconds) * 1_000_000n + BigInt((match[7] ?? "").padEnd(6, "0"));
}

function intervalOf(temporal: TemporalGlobal): Codec {
  const convert = (interval: Interval): unknown => {
    const { months, days, microseconds } = interval;
    if (!Number.isFinite(months)) return interval;
    const unit = (size: number, limit: number): number => Math.trunc(microseconds / size) % limit + 0;
    return create(() =>
      new temporal.Duration(
        Math.trunc(months / 12) + 0,
        months % 12 + 0,
        0,
        days,
        Math.trunc(microseconds / 3_600_000_000) + 0,
        unit(60_000_000, 60),
        unit(1_000_000, 60),
        unit(1000, 1000),
        microseconds % 1000 + 0,
      )
    );
  };
  return {
    ...intervalCodec,
    decodeText: (bytes, start, end) => convert(intervalCodec.decodeText(bytes, start, end)),
    decodeBinary: (bytes, start, end) => convert(intervalCodec.decodeBinary!(bytes, start, end)),
  };
}
