/**
 * Dates and timestamps in the styles of DateStyle other than ISO (PostgreSQL manual, 8.5.2), brought to ISO.
 *
 * German says which number is the day, and so does Postgres with its names of months in a timestamp. SQL, and Postgres
 * in a date, do not: there the session's DateStyle does, or a day past the 12th. Zones are told by abbreviations, of
 * which only UTC means the same everywhere.
 */

import { ValueError } from "../errors.ts";

/** Which number comes first: the day, or the month. */
export type DateOrder = "DMY" | "MDY";

/** The order that a setting of DateStyle (`"SQL, DMY"`) prints dates in. */
export function dateOrderOf(dateStyle: string): DateOrder {
  return dateStyle.includes("DMY") ? "DMY" : "MDY";
}

const DATE = /^(\d\d)([./-])(\d\d)\2(\d{4,})( BC)?$/;
const CLOCK = "(\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?)";
const ZONE = "(?: ?(UTC|GMT|Z|[+-]\\d[\\d:]*))?";
const TIMESTAMP = new RegExp(`^(\\d\\d[./]\\d\\d[./]\\d{4,}) ${CLOCK}${ZONE}( BC)?$`);
const POSTGRES_TIMESTAMP = new RegExp(
  `^\\w{3} (?:(\\d\\d) (\\w{3})|(\\w{3}) (\\d\\d)) ${CLOCK} (\\d{4,})${ZONE}( BC)?$`,
);
const MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec";

/**
 * A date of any style in ISO style.
 *
 * @param order that of the session, where it is known
 * @throws {ValueError} when the text does not say what it means
 */
export function isoDate(text: string, order: DateOrder | undefined): string {
  const match = DATE.exec(text);
  if (match === null) return failDateStyle("date");
  const [, first, separator, second, year, era = ""] = match;
  const dayFirst = separator === "." || isDayFirst(Number(first), Number(second), order);
  if (dayFirst === undefined) return failDateStyle("date");
  return dayFirst ? `${year}-${second}-${first}${era}` : `${year}-${first}-${second}${era}`;
}

/** A timestamp of any style in ISO style; see {@linkcode isoDate}. `name` is its type's. */
export function isoTimestamp(name: string, text: string, order: DateOrder | undefined): string {
  let match = TIMESTAMP.exec(text);
  if (match !== null) {
    const [, date, clock, zone, era = ""] = match;
    return `${isoDate(date!, order)} ${clock}${isoOffset(zone)}${era}`;
  }
  match = POSTGRES_TIMESTAMP.exec(text);
  const month = match === null ? -1 : MONTHS.indexOf((match[2] ?? match[3])!);
  if (match === null || month < 0 || month % 3 !== 0) return failDateStyle(name);
  const [, firstDay, , , secondDay, clock, year, zone, era = ""] = match;
  const number = String(month / 3 + 1).padStart(2, "0");
  return `${year}-${number}-${firstDay ?? secondDay} ${clock}${isoOffset(zone)}${era}`;
}

function isDayFirst(first: number, second: number, order: DateOrder | undefined): boolean | undefined {
  if (first > 12) return true;
  if (second > 12) return false;
  return first === second ? true : order === undefined ? undefined : order === "DMY";
}

/** `+HH:MM`, or `+HH:MM:SS`, of an offset with or without colons; nothing where there is no zone. */
function isoOffset(zone: string | undefined): string {
  if (zone === undefined) return "";
  if (!/^[+-]/.test(zone)) return "+00";
  const digits = zone.slice(1).replaceAll(":", "").padEnd(6, "0");
  const seconds = digits.slice(4, 6);
  return `${zone[0]}${digits.slice(0, 2)}:${digits.slice(2, 4)}${seconds === "00" ? "" : ":" + seconds}`;
}

/** Throws for a text that is not in DateStyle ISO and does not say what it means. */
export function failDateStyle(type: string): never {
  throw new ValueError(
    `Expected ${type} in ISO format, received one that does not say which date it is: set DateStyle to ISO`,
  );
}
