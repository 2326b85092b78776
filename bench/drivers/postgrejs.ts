/** PostgreJS. */

import {
  columnArrays,
  type Driver,
  insertFromArrays,
  type Row,
  type Session,
  type Target,
  type Values,
} from "../harness/driver.ts";
import { loadPackage } from "../harness/packages.ts";

interface QueryOptions {
  readonly objectRows: boolean;
  readonly fetchCount: number;
  readonly params?: Values;
  readonly cursor?: boolean;
}

interface QueryResult {
  readonly rows?: readonly Row[];
  readonly rowsAffected?: number;
  readonly cursor?: { fetch(count: number): Promise<readonly unknown[]>; close(): Promise<void> };
}

interface Queryable {
  execute(text: string, options: { objectRows: boolean }): Promise<{ results: readonly QueryResult[] }>;
  query(text: string, options: QueryOptions): Promise<QueryResult>;
  prepare(text: string): Promise<{ execute(options: QueryOptions): Promise<QueryResult> }>;
  listen(channel: string, onNotify: () => void): Promise<void>;
  unListen(channel: string): Promise<void>;
  close(terminateWait?: number): Promise<void>;
}

interface PostgrejsModule {
  readonly Connection: new (options: unknown) => Queryable & { connect(): Promise<void> };
  readonly Pool: new (options: unknown) => Queryable;
}

// Its default of 100 would cut answers short.
const ALL = { objectRows: true, fetchCount: 4_294_967_295 };

const driver: Driver = {
  name: "postgrejs",
  runtimes: ["deno", "bun", "node"],
  packages: ["postgrejs"],
  notes: [
    "objectRows: true; fetchCount: 4,294,967,295, its maximum; autoCommit: true; results in binary, its default",
    "insert: one INSERT from unnest() of array parameters",
  ],
  lacks: {
    batch: "no several statements under one Sync",
    transaction: "queries of a transaction are not sent at once",
    openTransaction: "queries of a transaction are not sent at once",
    copyIn: "COPY is not supported",
    copyOut: "COPY is not supported",
  },
  async open(target) {
    const { Connection } = await loadPackage<PostgrejsModule>("postgrejs");
    const connection = new Connection(optionsOf(target));
    await connection.connect();
    return sessionOf(connection);
  },
  async openPool(target, max) {
    const { Pool } = await loadPackage<PostgrejsModule>("postgrejs");
    return sessionOf(new Pool({ ...optionsOf(target), max, maxQueue: 100_000 }));
  },
};
export default driver;

function optionsOf({ host, port, user, password, database }: Target) {
  return { host, port, user, password, database, autoCommit: true };
}

function sessionOf(connection: Queryable): Session {
  const prepare = async (text: string) => {
    const statement = await connection.prepare(text);
    return (values: Values) => statement.execute({ ...ALL, params: values });
  };
  return {
    async simple(text) {
      return (await connection.execute(text, ALL)).results[0]?.rows ?? [];
    },
    extended: (text, values) => connection.query(text, { ...ALL, params: values }),
    prepare,
    prepareBinary: prepare,
    async cursor(text, size, onRows) {
      const { cursor } = await connection.query(text, { ...ALL, fetchCount: size, cursor: true });
      let count = 0;
      for (;;) {
        const rows = await cursor!.fetch(size);
        if (rows.length === 0) break;
        count += rows.length;
        onRows(rows);
      }
      await cursor!.close();
      return count;
    },
    async insert(table, columns, rows) {
      const params = columnArrays(columns, rows);
      const result = await connection.query(insertFromArrays(table, columns), { ...ALL, params });
      return result.rowsAffected ?? -1;
    },
    async json(text) {
      return JSON.stringify((await connection.query(text, ALL)).rows);
    },
    async subscribe(channel, onNotify) {
      await connection.listen(channel, onNotify);
      return () => connection.unListen(channel);
    },
    close: () => connection.close(0),
  };
}
