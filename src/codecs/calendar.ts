/**
 * Days of the proleptic Gregorian calendar, and the digits of dates and times.
 *
 * Years are counted as ISO 8601 does: 0 is 1 BC.
 */

/** Days from 1970-01-01 to 2000-01-01, PostgreSQL's day 0. */
export const EPOCH_DAYS = 10_957;

/** Milliseconds from 1970-01-01 to 2000-01-01. */
export const EPOCH_MILLISECONDS = 946_684_800_000;

/** Days from 1970-01-01 to a date; the month from 1. */
export function daysFromDate(year: number, month: number, day: number): number {
  // The year begins in March here, so that the leap day is its last.
  const shifted = month > 2 ? year : year - 1;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = ((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 | 0) + day - 1;
  const dayOfEra = yearOfEra * 365 + (yearOfEra / 4 | 0) - (yearOfEra / 100 | 0) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

/** The date of a day counted from 1970-01-01, as the server prints it: `2024-02-29`, `0044-03-15 BC`. */
export function formatDays(days: number): string {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra =
    ((dayOfEra - (dayOfEra / 1460 | 0) + (dayOfEra / 36_524 | 0) - (dayOfEra / 146_096 | 0)) / 365) |
    0;
  const dayOfYear = dayOfEra - (365 * yearOfEra + (yearOfEra / 4 | 0) - (yearOfEra / 100 | 0));
  const shiftedMonth = (5 * dayOfYear + 2) / 153 | 0;
  const day = dayOfYear - ((153 * shiftedMonth + 2) / 5 | 0) + 1;
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  const rest = `-${twoDigits(month)}-${twoDigits(day)}`;
  if (year > 999) return year + rest;
  if (year > 0) return String(year).padStart(4, "0") + rest;
  return `${String(1 - year).padStart(4, "0")}${rest} BC`;
}

/** `HH:MM:SS`, with up to six decimals where there are any. */
export function formatMicroseconds(microseconds: number): string {
  const seconds = Math.floor(microseconds / 1_000_000);
  const fraction = microseconds - seconds * 1_000_000;
  const hours = seconds / 3600 | 0;
  const text = `${twoDigits(hours)}:${twoDigits((seconds / 60 | 0) % 60)}:${twoDigits(seconds % 60)}`;
  if (fraction === 0) return text;
  return `${text}.${String(fraction).padStart(6, "0").replace(/0+$/, "")}`;
}

/** `00` to `99`, and more digits as they come. */
export function twoDigits(value: number): string {
  return value < 10 ? "0" + value : String(value);
}
