/**
 * A tour of the driver on real data: about 150,000 cities in a real PostgreSQL.
 *
 * deno task demo
 *
 * It starts a PostgreSQL 18 of its own, or uses the server of `DATABASE_URL`, where it makes only a temporary table.
 */

import { connect, type Connection, PostgresError, sql } from "../mod.ts";
import { type City, readCities } from "./cities.ts";
import { startPostgres, UNSAFE_FAST_SETTINGS } from "./embedded_postgres.ts";
import { bold, code, dim, duration, grouped, heading, red, table } from "./terminal.ts";

const CHUNK = 10_000;
const LOOKUPS = 1_000;

async function main(): Promise<void> {
  const began = performance.now();
  const url = Deno.env.get("DATABASE_URL") || undefined;
  await using server = url ? undefined : await startPostgres({ settings: UNSAFE_FAST_SETTINGS });
  await using db = await connect(url ?? server!.url);
  const version = await db.sql<string>`show server_version`.scalar();
  console.log(bold(`pipegres on PostgreSQL ${version}`));
  console.log(
    dim(
      server ? `started in a temporary directory in ${duration(performance.now() - began)}` : "DATABASE_URL",
    ),
  );
  await load(db);
  await showTypedQueries(db);
  await showComposition(db);
  await showPipelining(db);
  await showError(db);
  await showValues(db);
  console.log(dim(`\nDone in ${duration(performance.now() - began)}; nothing is left behind.`));
}

async function load(db: Connection): Promise<void> {
  const cities = await readCities();
  heading(`1. Load ${grouped(cities.length)} cities`);
  await db.exec(`create temp table city (
    id int generated always as identity primary key, name text, country text, lat float8, lng float8)`);
  code(`await Promise.all(chunks.map((part) => db.sql\`
    insert into city (name, country, lat, lng)
    select * from unnest(\${part.map((city) => city.name)}::text[], …)\`))`);
  const chunks: City[][] = [];
  for (let at = 0; at < cities.length; at += CHUNK) chunks.push(cities.slice(at, at + CHUNK));
  const began = performance.now();
  // Nobody waits for the one before: the chunks go out in one stream.
  const results = await Promise.all(
    chunks.map((part) =>
      db.sql`insert into city (name, country, lat, lng) select * from unnest(
      ${part.map((city) => city.name)}::text[], ${part.map((city) => city.country)}::text[],
      ${part.map((city) => city.lat)}::float8[], ${part.map((city) => city.lng)}::float8[])`.result()
    ),
  );
  const took = performance.now() - began;
  const count = results.reduce((sum, result) => sum + (result.rowCount ?? 0), 0);
  await db.exec("analyze city");
  console.log(`  ${grouped(count)} rows in ${chunks.length} pipelined inserts: ${bold(duration(took))}`);
}

async function showTypedQueries(db: Connection): Promise<void> {
  heading("2. Typed queries");
  code(`const rows = await db.sql<{ country: string; cities: bigint; north: number }>\`
    select country, count(*) as cities, max(lat) as north
    from city group by country order by cities desc limit \${5}\``);
  const rows = await db.sql<{ country: string; cities: bigint; north: number }>`
    select country, count(*) as cities, max(lat) as north
    from city group by country order by cities desc limit ${5}`;
  table(rows);
  code(`const name = await db.sql<string>\`select name from city order by lat desc limit 1\`.scalar()`);
  const name = await db.sql<string>`select name from city order by lat desc limit 1`.scalar();
  console.log(`  ${JSON.stringify(name)} ${dim("is the northernmost")}`);
}

async function showComposition(db: Connection): Promise<void> {
  heading("3. Composition");
  code(`const distance = (lat: number, lng: number) =>
    sql\`111.2 * sqrt((lat - \${lat}) ^ 2 + ((lng - \${lng}) * cos(radians(\${lat}))) ^ 2)\`;
  const abroad = sql\`country <> \${"CH"}\`;
  const km = distance(46.948, 7.447);
  await db.sql\`select name, country, round(\${km})::int as km from city
    where \${sql.and(abroad, sql\`\${km} < \${150}\`)} order by \${km} limit 4\``);
  const distance = (lat: number, lng: number) =>
    sql`111.2 * sqrt((lat - ${lat}) ^ 2 + ((lng - ${lng}) * cos(radians(${lat}))) ^ 2)`;
  const abroad = sql`country <> ${"CH"}`;
  const km = distance(46.948, 7.447);
  table(
    await db.sql<{ name: string; country: string; km: number }>`
      select name, country, round(${km})::int as km from city
      where ${sql.and(abroad, sql`${km} < ${150}`)} order by ${km} limit 4`,
  );
}

async function showPipelining(db: Connection): Promise<void> {
  heading(`4. ${grouped(LOOKUPS)} look-ups, one at a time and at once`);
  code(
    `const find = (id: number) => db.sql<City>\`select id, name, country from city where id = \${id}\`.one();
  for (const id of ids) await find(id);
  await Promise.all(ids.map(find));`,
  );
  const total = Number(await db.sql<bigint>`select count(*) from city`.scalar());
  const ids = Array.from({ length: LOOKUPS }, (_, i) => 1 + (i * 7_919) % total);
  const find = (id: number) =>
    db.sql<{ id: number; name: string }>`select id, name, country from city where id = ${id}`.one();
  for (const id of ids.slice(0, 200)) await find(id);
  const began = performance.now();
  for (const id of ids) await find(id);
  const sequential = performance.now() - began;
  const burst = performance.now();
  const found = await Promise.all(ids.map(find));
  const pipelined = performance.now() - burst;
  const wrong = found.filter((city, i) => city.id !== ids[i]).length;
  table([
    {
      way: "one at a time",
      took: duration(sequential),
      "µs per query": Math.round(sequential * 1000 / LOOKUPS),
    },
    { way: "at once", took: duration(pipelined), "µs per query": Math.round(pipelined * 1000 / LOOKUPS) },
  ]);
  console.log(
    `  ${
      bold(`${(sequential / pipelined).toFixed(1)} times faster`)
    } on this machine, where the server is next door; ` +
      `${wrong === 0 ? "every row reached its caller" : red(`${wrong} rows went astray`)}`,
  );
}

async function showError(db: Connection): Promise<void> {
  heading("5. An error of the server");
  code("await db.sql`select nam, country from city where id = ${7}`");
  try {
    await db.sql`select nam, country from city where id = ${7}`;
  } catch (error) {
    if (!(error instanceof PostgresError)) throw error;
    console.log(red(`${error.name}: ${error.message}`.replace(/^/gm, "  ")));
    const { code, condition, hint, severity } = error;
    table([{ code, condition, severity, hint }]);
  }
}

async function showValues(db: Connection): Promise<void> {
  heading("6. Values");
  const row = await db.sql<Record<string, unknown>>`select
    9007199254740993::int8 as int8, 1.10::numeric as numeric, 0.1::float4 as float4, true as bool,
    timestamptz '2024-02-29 12:30:00+01' as timestamptz, date '2024-02-29' as date, 'infinity'::timestamptz as infinity,
    '{"a": [1, null]}'::jsonb as jsonb, '\\xcafe'::bytea as bytea, array[[1, null], [3, 4]] as "int4[][]",
    ${"Zürich 🏔"}::text as text, null as "null"`.one();
  table(
    Object.entries(row).map(([type, value]) => ({ type, value: Deno.inspect(value, { colors: false }) })),
  );
}

if (import.meta.main) await main();
