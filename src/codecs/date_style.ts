/**
 * Dates and timestamps in the styles of DateStyle other than ISO (PostgreSQL manual, 8.5.2), brought to ISO.
 *
 * German says which number is the day, and so does Postgres with its names of months in a timestamp. SQL, and Postgres
 * in a date, do not: there the session's DateStyle does, or a day past the 12th. Zones are told by abbreviations, of
 * which only UTC means the same everywhere, and not even that where TimeZone defines its own: in `UTC+3` it is three
 * hours west.
 */

import { ValueError } from "../errors.ts";

/** Which number comes first: the day, or the month. With a question mark where zones may be others than they say. */
export type DateOrder = "DMY" | "MDY" | "DMY?" | "MDY?";

/** The order that settings of DateStyle and TimeZone (`"SQL, DMY; Europe/Berlin"`) print dates in. */
export function dateOrderOf(settings: string): DateOrder {
  const [dateStyle = "", timeZone = ""] = settings.split("; ");
  const order = dateStyle.includes("DMY") ? "DMY" : "MDY";
  // Abbreviations of one's own come with an offset; of other names only those of Etc have digits that matter.
  const isNamed = timeZone.startsWith("Etc/") || /^[^\d<]+$/.test(timeZone);
  return isNamed ? order : `${order}?`;
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
    checkZone(name, zone, order);
    return `${isoDate(date!, order)} ${clock}${isoOffset(zone)}${era}`;
  }
  match = POSTGRES_TIMESTAMP.exec(text);
  const month = match === null ? -1 : MONTHS.indexOf((match[2] ?? match[3])!);
  if (match === null || month < 0 || month % 3 !== 0) return failDateStyle(name);
  const [, firstDay, , , secondDay, clock, year, zone, era = ""] = match;
  checkZone(name, zone, order);
  const number = String(month / 3 + 1).padStart(2, "0");
  return `${year}-${number}-${firstDay ?? secondDay} ${clock}${isoOffset(zone)}${era}`;
}

function isDayFirst(first: number, second: number, order: DateOrder | undefined): boolean | undefined {
  if (first > 12) return true;
  if (second > 12) return false;
  return first === second ? true : order?.startsWith("DMY");
}

/** Refuses a zone that need not be what its abbreviation says. */
function checkZone(name: string, zone: string | undefined, order: DateOrder | undefined): void {
  if (zone !== undefined && (order === undefined || order.endsWith("?"))) failDateStyle(name);
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
