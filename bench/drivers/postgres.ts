/** postgres.js. */

import type { Driver, Execute, Row, Session, Target } from "../harness/driver.ts";
import { loadPackage } from "../harness/packages.ts";

interface Pending extends Promise<readonly Row[]> {
  simple(): Pending;
  cursor(size: number): AsyncIterable<readonly Row[]>;
  writable(): Promise<Sink>;
  readable(): Promise<AsyncIterable<Uint8Array>>;
}

interface Sink {
  write(chunk: Uint8Array): boolean;
  end(): void;
  once(event: string, listener: (error?: Error) => void): void;
}

interface Sql {
  (strings: TemplateStringsArray, ...values: unknown[]): Pending;
  (value: unknown, ...rest: unknown[]): unknown;
  unsafe(text: string, values?: readonly unknown[], options?: { prepare: boolean }): Pending;
  begin<T>(run: (sql: Sql) => T | Promise<T>): Promise<T>;
  listen(channel: string, onNotify: () => void): Promise<{ unlisten(): Promise<void> }>;
  end(options?: { timeout: number }): Promise<void>;
}

type Postgres = (options: unknown) => Sql;

const driver: Driver = {
  name: "postgres",
  runtimes: ["deno", "bun", "node"],
  packages: ["postgres"],
  notes: [
    "sql.unsafe(text, values, { prepare: true }), which prepares and pipelines as the template does; " +
    "simple: sql.unsafe(text).simple()",
    "fetch_types as it is by default, without which it reads no arrays; max: 1 for a single connection; transaction: sql.begin() with an array",
    "insert: sql(rows), in parts of 5,000 rows because of the limit of 65,535 parameters",
  ],
  lacks: {
    prepareBinary: "no binary results",
    batch: "no several statements under one Sync",
  },
  async open(target) {
    const sql = await create(target, 1);
    await sql.unsafe("select 1");
    return sessionOf(sql);
  },
  openPool: async (target, max) => sessionOf(await create(target, max)),
};
export default driver;

async function create({ host, port, user, password, database }: Target, max: number): Promise<Sql> {
  const module = await loadPackage<{ default: Postgres | { default: Postgres } }>("postgres");
  const postgres = typeof module.default === "function" ? module.default : module.default.default;
  return postgres({ host, port, user, password, database, max, ssl: false });
}

const PREPARED = { prepare: true };

function sessionOf(sql: Sql): Session {
  const prepare = (text: string): Promise<Execute> =>
    Promise.resolve((values) => sql.unsafe(text, values, PREPARED));
  return {
    simple: (text) => sql.unsafe(text).simple(),
    extended: (text, values) => sql.unsafe(text, values, PREPARED),
    prepare,
    async cursor(text, size, onRows) {
      let count = 0;
      for await (const rows of sql.unsafe(text, [], PREPARED).cursor(size)) {
        count += rows.length;
        onRows(rows);
      }
      return count;
    },
    transaction: (text, list) =>
      sql.begin((tx) => Promise.all(list.map((values) => tx.unsafe(text, values, PREPARED)))),
    async insert(table, columns, rows) {
      let count = 0;
      for (let at = 0; at < rows.length; at += 5_000) {
        const part = rows.slice(at, at + 5_000);
        const names = columns.map(({ name }) => `"${name}"`).join(", ");
        count += ((await sql(
          templateOf(`insert into ${table} (${names}) values `, ""),
          sql(part),
        )) as unknown as { count: number }).count;
      }
      return count;
    },
    async json(text) {
      return JSON.stringify(await sql.unsafe(text));
    },
    async copyIn(text, chunks) {
      const sink = await sql.unsafe(text).writable();
      const finished = new Promise<void>((resolve, reject) => {
        sink.once("finish", () => resolve());
        sink.once("error", (error) => reject(error));
      });
      for (const chunk of chunks) {
        if (!sink.write(chunk)) await new Promise<void>((resolve) => sink.once("drain", () => resolve()));
      }
      sink.end();
      await finished;
      return -1;
    },
    async copyOut(text) {
      let bytes = 0;
      for await (const chunk of await sql.unsafe(text).readable()) bytes += chunk.length;
      return bytes;
    },
    async subscribe(channel, onNotify) {
      const { unlisten } = await sql.listen(channel, onNotify);
      return unlisten;
    },
    close: () => sql.end({ timeout: 5 }),
  };
}

function templateOf(...parts: string[]): TemplateStringsArray {
  return Object.assign(parts, { raw: parts });
}
