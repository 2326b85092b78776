/** Temporal objects as the server reads them. No name of Temporal is touched: a runtime may not have it. */

const PREFIX = "Temporal.";
const KINDS: ReadonlySet<string> = new Set(
  ["PlainDate", "PlainDateTime", "Instant", "ZonedDateTime", "PlainTime", "Duration"].map((name) =>
    PREFIX + name
  ),
);

function kindOf(value: object): string {
  const tag: unknown = (value as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag];
  return typeof tag === "string" ? tag : "";
}

/** Whether it is a Temporal object that a PostgreSQL type is like. */
export function isTemporal(value: object): boolean {
  return KINDS.has(kindOf(value));
}

interface TemporalObject {
  toString(options?: { calendarName: "never" }): string;
  toInstant(): { toString(): string };
}

interface TemporalDuration {
  readonly years: number;
  readonly months: number;
  readonly weeks: number;
  readonly days: number;
  readonly hours: number;
  readonly minutes: number;
  readonly seconds: number;
  readonly milliseconds: number;
  readonly microseconds: number;
  readonly nanoseconds: number;
}

/** The text of a Temporal object; `undefined` for those that no PostgreSQL type is like. */
export function temporalText(value: object): string | undefined {
  switch (kindOf(value)) {
    case "Temporal.PlainDate":
    case "Temporal.PlainDateTime":
      return eraText((value as TemporalObject).toString({ calendarName: "never" }));
    case "Temporal.Instant":
      return eraText(String(value));
    case "Temporal.ZonedDateTime":
      return eraText(String((value as TemporalObject).toInstant()));
    case "Temporal.PlainTime":
      return String(value);
    case "Temporal.Duration":
      return durationText(value as TemporalDuration);
    default:
      return undefined;
  }
}

/** ISO 8601 with a sign per unit: the server does not read one sign for all of them. */
function durationText(duration: TemporalDuration): string {
  const months = duration.years * 12 + duration.months;
  const days = duration.weeks * 7 + duration.days;
  const seconds = BigInt(duration.hours) * 3600n + BigInt(duration.minutes) * 60n + BigInt(duration.seconds);
  const nanoseconds = seconds * 1_000_000_000n + BigInt(duration.milliseconds) * 1_000_000n +
    BigInt(duration.microseconds) * 1000n + BigInt(duration.nanoseconds);
  const magnitude = nanoseconds < 0n ? -nanoseconds : nanoseconds;
  const fraction = String(magnitude % 1_000_000_000n).padStart(9, "0");
  return `P${months}M${days}DT${nanoseconds < 0n ? "-" : ""}${magnitude / 1_000_000_000n}.${fraction}S`;
}

/**
 * JavaScript's ISO 8601 as every date and time type reads it under any DateStyle: the year in four digits or more
 * without a sign, and years before 1 marked with BC. JavaScript's year 0 is the server's 1 BC.
 */
export function eraText(iso: string): string {
  const match = /^([+-]\d{6}|0000)(-.*)$/.exec(iso);
  if (match === null) return iso;
  const year = Number(match[1]);
  return year > 0 ? year + match[2]! : `${String(1 - year).padStart(4, "0")}${match[2]} BC`;
}
