/** Bun's own SQL client. */

import {
  columnArrays,
  type Driver,
  insertFromArrays,
  type Row,
  type Session,
  type Target,
  type Values,
} from "../harness/driver.ts";

interface Pending extends Promise<readonly Row[]> {
  simple(): Pending;
}

interface Sql {
  unsafe(text: string, values?: Values): Pending;
  begin<T>(run: (sql: Sql) => Promise<T>): Promise<T>;
  array(values: readonly unknown[], type: string): unknown;
  close(): Promise<void>;
}

interface BunGlobal {
  readonly Bun: { readonly SQL: new (options: unknown) => Sql };
}

const driver: Driver = {
  name: "bun.sql",
  runtimes: ["bun"],
  packages: [],
  notes: [
    "sql.unsafe(text, values), prepared on first use as the template is; simple: sql.unsafe(text).simple()",
    "max: 1 for a single connection; insert: one INSERT from unnest() of sql.array() parameters",
  ],
  lacks: {
    cursor: "cursors are not supported",
    copyIn: "COPY is not supported",
    copyOut: "COPY is not supported",
    subscribe: "LISTEN is not supported",
    batch: "no several statements under one Sync",
  },
  async open(target) {
    const sql = create(target, 1);
    await sql.unsafe("select 1");
    return sessionOf(sql);
  },
  openPool: (target, max) => Promise.resolve(sessionOf(create(target, max))),
};
export default driver;

function create({ host, port, user, password, database }: Target, max: number): Sql {
  const { SQL } = (globalThis as unknown as BunGlobal).Bun;
  return new SQL({
    adapter: "postgres",
    hostname: host,
    port,
    username: user,
    password,
    database,
    max,
    tls: false,
    idleTimeout: 0,
  });
}

function sessionOf(sql: Sql): Session {
  const prepare = (text: string) => Promise.resolve((values: Values) => sql.unsafe(text, values));
  return {
    simple: (text) => sql.unsafe(text).simple(),
    extended: (text, values) => sql.unsafe(text, values),
    prepare,
    prepareBinary: prepare,
    transaction: (text, list) =>
      sql.begin((tx) => Promise.all(list.map((values) => tx.unsafe(text, values)))),
    async insert(table, columns, rows) {
      const arrays = columnArrays(columns, rows).map((values, i) => sql.array(values, columns[i]!.type));
      const result = await sql.unsafe(insertFromArrays(table, columns), arrays);
      return (result as unknown as { count: number }).count;
    },
    async json(text) {
      return JSON.stringify(await sql.unsafe(text));
    },
    close: () => sql.close(),
  };
}
