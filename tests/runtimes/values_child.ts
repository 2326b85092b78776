/** Reads values on every path in the process's time zone and prints what they are; the URL is the first argument. */

import process from "node:process";
import { connect } from "../../mod.ts";

const TEXT =
  `select date '2026-08-24' as d, timestamp '2024-06-15 12:00:00.5' as s, timestamptz '2024-06-15 12:00:00.5+00' as t,
  array[timestamp '2024-03-31 02:30', null] as ss, array[timestamptz '0044-03-15 00:00:00+00 BC'] as ts, date '0001-01-01' as d1,
  timestamp '0050-01-01' as y50, timestamptz '1883-11-18 12:03:58+00' as t2, timestamp '2024-03-10 02:30' as gap, timestamptz 'infinity' as f,
  tstzrange('2024-01-01Z', null) as r, daterange('2024-01-01', '2024-02-01') as dr, interval '1 day -02:00' as i, time '02:30' as ti,
  timetz '02:30+05:30' as tz, make_date(1900, 1, 1) as md, to_json(date '2024-01-01') as j`;

function shown(value: unknown): string {
  return JSON.stringify(value, function (this: Record<string, unknown>, key, each) {
    const own = this[key];
    if (own instanceof Date) return `Date ${own.getTime()}`;
    return typeof each === "number" && !Number.isFinite(each) ? String(each) : each;
  });
}

const results: string[] = [];
for (const zone of ["UTC", "Asia/Tokyo", "America/New_York"]) {
  await using connection = await connect(process.argv[2]!, { parameters: { TimeZone: zone } });
  results.push(shown((await connection.exec(TEXT))[0]!.rows[0]));
  for (let i = 0; i < 3; i++) {
    const { rows: [row] } = await connection.query<Record<string, unknown>>(TEXT);
    results.push(shown(row));
    const { d, s, t, ss, ts, d1, y50, t2, gap, f, r, dr, i: span } = row!;
    const { rows: [sent] } = await connection.query(
      `select $1::date as d, $2::timestamp as s, $3::timestamptz as t, $4::timestamp[] as ss, $5::timestamptz[] as ts,
        $6::date as d1, $7::timestamp as y50, $8::timestamptz as t2, $9::timestamp as gap, $10::timestamptz as f,
        $11::tstzrange as r, $12::daterange as dr, $13::interval as i`,
      [d, s, t, ss, ts, d1, y50, t2, gap, f, r, dr, span],
    );
    results.push(shown({ ...sent as object, ti: row!["ti"], tz: row!["tz"], md: row!["md"], j: row!["j"] }));
  }
}
console.log(
  JSON.stringify({ offset: new Date(2024, 0, 1).getTimezoneOffset(), results: [...new Set(results)] }),
);
