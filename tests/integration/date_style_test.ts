/** Dates, times and intervals are the same whatever DateStyle, IntervalStyle and TimeZone the session has. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Connection, createPool, sql, ValueError } from "../../mod.ts";
import { withConnection } from "../_support/session.ts";
import { leavesNoSession, testUrl, withSchema } from "../_support/server.ts";

const STYLES = [
  "ISO, MDY",
  "ISO, DMY",
  "SQL, DMY",
  "SQL, MDY",
  "SQL, YMD",
  "Postgres, DMY",
  "Postgres, MDY",
  "German",
];
const INTERVAL_STYLES = ["postgres", "postgres_verbose", "sql_standard", "iso_8601"];
/** UTC and a zone that has no abbreviation say what they mean in any style; the others need the binary format. */
const PLAIN_ZONES = ["UTC", "Etc/GMT-5"];
const ZONES = [...PLAIN_ZONES, "Asia/Kathmandu", "Asia/Tokyo", "America/New_York", "Europe/Berlin"];

const SELECT =
  `select d, array[d, null] as ds, daterange(null, d) as r, s, t, array[s] as ss, i, array[i] as ii
  from (values
    (date '2026-08-05', timestamp '2026-08-05 01:02:03.5', timestamptz '2026-08-05 01:02:03.5+00', interval '0'),
    ('0044-03-05 BC', '0044-03-05 00:00:00 BC', '0044-03-05 00:00:00+00 BC', '-1 year -2 mons +3 days -04:05:06.789'),
    ('12345-11-30', '12345-11-30 23:59:59.999', '12345-11-30 23:59:59.999+00', '-0.5 s'),
    ('0050-01-12', '0050-01-12 12:00', '0050-01-12 12:00+00', '1 year 1 day'),
    ('infinity', '-infinity', 'infinity', '-1 mon -1 day -1 us'),
    ('1999-12-31', '1999-12-31 12:00', '1999-12-31 12:00+00', '-1 day +02:03'),
    ('2000-02-29', '2000-02-29 00:00', '2000-02-29 00:00+00', '1 mon -1 day 100000:00:00.000001')
  ) v(d, s, t, i)`;

async function settings(conn: Connection, style: string, intervals: string, zone: string): Promise<void> {
  await conn.exec(`set datestyle = '${style}'; set intervalstyle = '${intervals}'; set timezone = '${zone}'`);
}

let expected: unknown;

/** What a session of ISO style reads. */
async function reference(): Promise<unknown> {
  return expected ??= await withConnection(async (conn) => {
    await settings(conn, "ISO, MDY", "postgres", "UTC");
    return (await conn.query(SELECT)).rows;
  });
}

for (const style of STYLES) {
  test(`DateStyle ${style}: equal values by every way of asking`, async () => {
    const wanted = await reference();
    await withConnection(async (conn) => {
      for (const [i, zone] of ZONES.entries()) {
        const intervals = INTERVAL_STYLES[i % INTERVAL_STYLES.length]!;
        const at = `${style} ${intervals} ${zone}`;
        await settings(conn, style, intervals, zone);
        const text = `${SELECT} /* ${i} */`;
        for (let n = 0; n < 3; n++) assert.deepStrictEqual((await conn.query(text)).rows, wanted, at);
        if (style.startsWith("ISO") || PLAIN_ZONES.includes(zone)) {
          assert.deepStrictEqual((await conn.exec(text))[0]!.rows, wanted, `simple, ${at}`);
        } else {
          await assert.rejects(conn.exec(text), ValueError, `simple, ${at}`);
        }
        const [batched] = await conn.batch([sql.raw(`${text} -- b`), sql`select 1`]).catch(() => []);
        if (batched !== undefined) assert.deepStrictEqual(batched.rows, wanted);
        const streamed = [];
        for await (const row of conn.sql`${sql.raw(text)} limit 100`.stream({ batch: 2 })) streamed.push(row);
        assert.deepStrictEqual(streamed, wanted, `stream, ${at}`);
        await conn.transaction(async (tx) => {
          const both = await Promise.all([tx.query(`${text} -- t1`), tx.query(`${text} -- t2`)]);
          for (const { rows } of both) assert.deepStrictEqual(rows, wanted, `transaction, ${at}`);
        });
      }
    }, { within: 60_000 });
  });

  test(`DateStyle ${style}: what is sent is what was meant, and JSON is ISO`, async () => {
    await withConnection(async (conn) => {
      await settings(conn, style, "sql_standard", "Etc/GMT-5");
      const instant = new Date("2026-08-05T01:02:03.500Z");
      for (let n = 0; n < 3; n++) {
        const [row] = await conn.sql`select ${instant}::timestamptz as a, ${instant}::timestamp as b,
          ${"2026-08-05"}::date as c, ${[instant]}::timestamptz[] as d`;
        assert.deepStrictEqual(row, { a: instant, b: instant, c: "2026-08-05", d: [instant] });
      }
      const rows = sql.raw(`(${SELECT}) q`);
      const json = await conn.sql`select d, ds, s, t, ss from ${rows}`.json();
      const agg = await conn.sql<
        string
      >`select json_agg(j)::text from (select d, ds, s, t, ss from ${rows}) j`
        .scalar();
      assert.deepStrictEqual(JSON.parse(json), JSON.parse(agg));
    });
  });
}

/** TimeZone as people set it, each with a name of its own for its offset, or a wrong one. */
const OWN_ZONES = [
  "UTC+3",
  "GMT-5:30",
  "<UTC>-3",
  "<+05>-3",
  "<+03>-3",
  "FOO+5",
  "Z4",
  "GMT5UTC,M3.2.0,M11.1.0",
];

for (const style of STYLES) {
  test(`DateStyle ${style}: no zone's own name makes another instant`, async () => {
    await withConnection(async (conn) => {
      const text =
        `select timestamptz '2026-08-05 01:02:03.5+00' as z, timestamptz '2026-01-05 01:02:03.5+00' as w,
        date '2026-08-05' as d, array[timestamp '2026-08-05 01:02:03.5'] as s`;
      const instant = new Date("2026-08-05T01:02:03.500Z");
      const wanted = [{ z: instant, w: new Date("2026-01-05T01:02:03.500Z"), d: "2026-08-05", s: [instant] }];
      const dates = "select d, s from (" + text + ") q";
      for (const zone of OWN_ZONES) {
        await settings(conn, style, "postgres", zone);
        const own = `${text} /* ${zone} */`;
        for (let n = 0; n < 3; n++) assert.deepStrictEqual((await conn.query(own)).rows, wanted, zone);
        const json = async (text: string): Promise<unknown> =>
          JSON.parse(await conn.sql`${sql.raw(text)}`.json());
        const agg = async (text: string): Promise<unknown> =>
          JSON.parse(await conn.sql<string>`select json_agg(j)::text from (${sql.raw(text)}) j`.scalar());
        const copied = async (): Promise<unknown[]> => {
          const rows = [];
          for await (const row of conn.copyTo(`copy (${text}) to stdout (format text)`).rows()) {
            rows.push(row);
          }
          return rows;
        };
        // Where the text does not say which instant it is.
        const ends = async (value: Promise<unknown>, wanted: unknown): Promise<void> => {
          if (style.startsWith("ISO")) assert.deepStrictEqual(await value, wanted, zone);
          else await assert.rejects(value, { name: "ValueError", message: /set DateStyle to ISO$/ }, zone);
        };
        await ends(conn.exec(text).then(([result]) => result!.rows), wanted);
        await ends(copied(), wanted);
        const wantedJson = await agg(text);
        await ends(json(text), wantedJson);
        assert.deepStrictEqual((await conn.exec(dates))[0]!.rows, [{ d: "2026-08-05", s: [instant] }], zone);
        assert.deepStrictEqual(await json(dates), await agg(dates), zone);
      }
    }, { within: 60_000 });
  });
}

test("a zone that is set by the script itself makes no other instant", async () => {
  await withConnection(async (conn) => {
    await settings(conn, "German", "postgres", "UTC");
    const text = "select timestamptz '2026-08-05 01:02:03.5+00' as z, date '2026-08-05' as d";
    const wanted = [{ z: new Date("2026-08-05T01:02:03.500Z"), d: "2026-08-05" }];
    assert.deepStrictEqual((await conn.exec(text))[0]!.rows, wanted);
    for (const set of ["set timezone = 'UTC+3'", "set time zone 'UTC+3'", "set local time  zone 'UTC+3'"]) {
      await assert.rejects(conn.exec(`${set}; ${text}`), ValueError, set);
    }
    await assert.rejects(conn.exec(text), ValueError);
    assert.deepStrictEqual((await conn.query(text)).rows, wanted);
  });
});

test("composites and ranges of dates that are met for the first time are equal ever after", async () => {
  await withSchema((schema) =>
    withConnection(async (conn) => {
      for (const [i, style] of STYLES.entries()) {
        await settings(conn, style, "postgres", "UTC");
        await conn.exec(`
          create type ${schema}.dates${i} as (d date, s timestamp, z timestamptz, ds date[], r tsrange, i interval);
          create type ${schema}.range${i} as range (subtype = ${schema}.dates${i});
          create domain ${schema}.day${i} as date`);
        const row = (hour: number) =>
          `row('2026-08-05', '2026-08-05 0${hour}:02:03.5', '2026-08-05 01:02:03.5+00', array[date '0044-03-05 BC', null],
            tsrange('2026-08-05', '2026-08-06'), '1 day')::${schema}.dates${i}`;
        await conn.exec("set datestyle to iso; set intervalstyle = postgres");
        await conn.exec(`create table ${schema}.t${i} as select ${row(1)} as a, array[${row(2)}] as b,
          ${schema}.range${i}(${row(3)}, null) as c, array['2026-08-05'::${schema}.day${i}] as d`);
        await settings(conn, style, "postgres", "UTC");
        const ask = async (conn: Connection) => (await conn.query(`select * from ${schema}.t${i}`)).rows;
        const exec = async (conn: Connection) => (await conn.exec(`select * from ${schema}.t${i}`))[0]!.rows;
        const read: unknown[] = [];
        for (const first of [ask, exec]) {
          // Another connection has to learn the types anew.
          await withConnection(async (other) => {
            await settings(other, style, "postgres", "UTC");
            read.push(await first(other), await ask(other), await ask(other), await exec(other));
          });
        }
        for (const rows of read) assert.deepStrictEqual(rows, read[1], style);
        const [{ a }] = read[0] as [{ a: Record<string, unknown> }];
        assert.deepStrictEqual([a["d"], a["s"], a["ds"]], [
          "2026-08-05",
          new Date("2026-08-05T01:02:03.5Z"),
          ["0044-03-05 BC", null],
        ]);
      }
    }, { within: 60_000 })
  );
});

test("a style that is set meanwhile is noticed, and never leads to a wrong date", async () => {
  await withConnection(async (conn) => {
    const ask = (name: string) => conn.query<{ d: string }>(`select date '2026-08-05' as d /* ${name} */`);
    const [, sql1, , sql2] = await Promise.all([
      conn.query("set datestyle = 'SQL, DMY'"),
      ask("a"),
      conn.query("set datestyle = 'SQL, MDY'"),
      ask("b"),
    ]);
    assert.equal(sql1.rows[0]!.d, "2026-08-05");
    assert.equal(sql2.rows[0]!.d, "2026-08-05");
    // The order within one script is not told: the text is refused, not guessed.
    await assert.rejects(conn.exec("set datestyle = 'SQL, DMY'; select date '2026-08-05' as d"), ValueError);
    const [result] = await conn.exec<{ d: string }>("select date '2026-08-05' as d");
    assert.equal(result!.rows[0]!.d, "2026-08-05");
    await conn.exec("set datestyle = 'ISO'");
    const outcome = await conn.batch([sql`set datestyle = 'SQL, DMY'`, sql`select date '2026-08-05' as d`])
      .catch((error) => error);
    assert.ok(outcome instanceof ValueError, String(outcome));
    assert.equal((await ask("c")).rows[0]!.d, "2026-08-05");
  });
});

test("a session whose default style is another reads its dates from the start", async () => {
  const parameters = { DateStyle: "SQL, DMY" };
  await withConnection(async (conn) => {
    assert.equal(await conn.sql`select date '2026-08-05'`.scalar(), "2026-08-05");
    const copied = [];
    for await (
      const row of conn.copyTo("copy (select date '2026-08-05' as d) to stdout (format binary)").rows()
    ) {
      copied.push(row);
    }
    assert.deepStrictEqual(copied, [{ d: "2026-08-05" }]);
  }, { parameters });
  await using pool = createPool(testUrl(), { parameters, max: 2, statementCache: 0 });
  for (let i = 0; i < 3; i++) {
    assert.deepStrictEqual(
      await Promise.all([1, 2, 3].map(() => pool.sql`select date '2026-08-05'`.scalar())),
      Array(3).fill("2026-08-05"),
    );
  }
});

leavesNoSession();
