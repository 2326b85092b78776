/** The tables that scenarios read, and the role that one of them connects as. */

/** Who has to prove a password (SCRAM-SHA-256) at a server that asks the superuser for none. */
export const SCRAM_USER = "pipegres_bench_scram";
export const SCRAM_PASSWORD = "pencil and paper";

/** Makes them; they are in a schema of their own. */
export const CREATE_TABLES = `
drop role if exists ${SCRAM_USER};
create role ${SCRAM_USER} login password '${SCRAM_PASSWORD}';
drop schema if exists pipegres_bench cascade;
create schema pipegres_bench;
create table pipegres_bench.mixed as
  select (i % 30000)::int2 as i2, i::int4 as i4, (i / 4.0)::float4 as f4, (i * 1.25)::float8 as f8,
    ('text ' || i)::varchar as vc,
    json_build_object('id', i, 'tags', json_build_array('a', 'b'), 'ok', i % 2 = 0) as j,
    jsonb_build_object('id', i, 'name', 'name ' || i) as jb,
    timestamp '2024-02-29 12:34:56.789' + i * interval '1 minute' as ts,
    timestamptz '2024-02-29 12:34:56.789+00' + i * interval '1 hour' as tz,
    decode(md5(i::text), 'hex') as "by"
  from generate_series(0, 999) i;
create table pipegres_bench.bytes (id int4, data bytea);
alter table pipegres_bench.bytes alter column data set storage external;
insert into pipegres_bench.bytes
  select i, decode(repeat(md5(i::text), 65536), 'hex') from generate_series(1, 10) i;
create table pipegres_bench.arrays (id int4, numbers int4[]);
alter table pipegres_bench.arrays alter column numbers set storage external;
insert into pipegres_bench.arrays
  select i, (select array_agg(((n * 7919 + i) % 1000003)::int4) from generate_series(1, 50000) n)
  from generate_series(1, 10) i;
analyze pipegres_bench.mixed;
analyze pipegres_bench.bytes;
analyze pipegres_bench.arrays;
`;

/** Removes them. */
export const DROP_TABLES = `drop schema if exists pipegres_bench cascade; drop role if exists ${SCRAM_USER}`;

/** Settings of the embedded server, so that its disk and its housekeeping do not disturb. */
export const SERVER_SETTINGS: Readonly<Record<string, string>> = {
  max_connections: "400",
  shared_buffers: "256MB",
  work_mem: "64MB",
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  max_wal_size: "4GB",
  autovacuum: "off",
  jit: "off",
  max_parallel_workers_per_gather: "0",
};

/** Settings that the report shows, of any server. */
export const SHOWN_SETTINGS: readonly string[] = [
  ...Object.keys(SERVER_SETTINGS),
  "server_version",
  "ssl",
  "debug_assertions",
];
