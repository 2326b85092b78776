/** node-postgres. */

import {
  columnArrays,
  type Driver,
  type Execute,
  insertFromArrays,
  type Row,
  type Session,
  type Target,
} from "../harness/driver.ts";
import { loadPackage } from "../harness/packages.ts";

interface PgResult {
  readonly rows: readonly Row[];
}

interface PgQuery {
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly name?: string;
  readonly binary?: boolean;
}

interface PgClient {
  connect(): Promise<unknown>;
  query(text: string | PgQuery, values?: readonly unknown[]): Promise<PgResult>;
  query<T>(submittable: T & { submit: unknown }): T;
  on(event: string, listener: () => void): void;
  end(): Promise<void>;
}

interface PgCursor {
  submit: unknown;
  read(count: number): Promise<readonly unknown[]>;
  close(): Promise<void>;
}

interface PgModule {
  readonly Client: new (options: unknown) => PgClient;
  readonly Pool: new (options: unknown) => PgClient;
}

interface CopyModule {
  from(text: string): CopyStream;
  to(text: string): CopyStream;
}

interface CopyStream extends AsyncIterable<Uint8Array> {
  submit: unknown;
  readonly rowCount: number;
  write(chunk: Uint8Array): boolean;
  end(): void;
  once(event: string, listener: (error?: Error) => void): void;
}

const driver: Driver = {
  name: "pg",
  runtimes: ["deno", "bun", "node"],
  packages: ["pg", "pg-cursor", "pg-copy-streams"],
  notes: [
    "pipeline: true on single connections, off where a cursor, COPY or LISTEN forbids it; pools have no pipelining",
    "prepared: named queries; binary: true for binary results; cursor: pg-cursor; COPY: pg-copy-streams",
    "insert: one INSERT from unnest() of array parameters",
  ],
  lacks: { batch: "no several statements under one Sync" },
  async open(target) {
    const { Client } = await load();
    const client = new Client({ ...optionsOf(target), pipeline: true });
    await client.connect();
    return sessionOf(client, target);
  },
  async openPool(target, max) {
    const { Pool } = await load();
    return sessionOf(new Pool({ ...optionsOf(target), max, idleTimeoutMillis: 0 }), target);
  },
};
export default driver;

async function load(): Promise<PgModule> {
  const module = await loadPackage<PgModule & { default?: PgModule }>("pg");
  return module.default ?? module;
}

function optionsOf({ host, port, user, password, database }: Target) {
  return { host, port, user, password, database, ssl: false };
}

let statements = 0;

// size: one object with a method for each thing a scenario may ask for.
function sessionOf(client: PgClient, target: Target): Session {
  const named = (text: string, binary: boolean): Promise<Execute> => {
    const name = `bench_${++statements}`;
    return Promise.resolve((values) => client.query({ name, text, values, binary }));
  };
  const session: Session = {
    simple: (text) => client.query(text),
    extended: (text, values) => client.query(text, values),
    prepare: (text) => named(text, false),
    prepareBinary: (text) => named(text, true),
    async cursor(text, size, onRows) {
      const { default: Cursor } = await loadPackage<{ default: new (text: string) => PgCursor }>("pg-cursor");
      return await withClient(target, async (single) => {
        const cursor = single.query(new Cursor(text));
        let count = 0;
        for (;;) {
          const rows = await cursor.read(size);
          if (rows.length === 0) break;
          count += rows.length;
          onRows(rows);
        }
        await cursor.close();
        return count;
      });
    },
    async transaction(text, list) {
      const begun = client.query("begin");
      const results = list.map((values) => client.query({ name: "bench_tx", text, values }));
      const committed = client.query("commit");
      await begun;
      const answers = await Promise.all(results);
      await committed;
      return answers;
    },
    async openTransaction() {
      await client.query("begin");
      return {
        run: (text, list) =>
          Promise.all(list.map((values) => client.query({ name: "bench_tx", text, values }))),
        end: () => client.query("rollback"),
      };
    },
    async insert(table, columns, rows) {
      const result = await client.query(insertFromArrays(table, columns), columnArrays(columns, rows));
      return (result as PgResult & { rowCount: number }).rowCount;
    },
    async json(text) {
      return JSON.stringify((await client.query(text)).rows);
    },
    ...copying(target),
    subscribe: (channel, onNotify) =>
      withClient(target, async (listener) => {
        listener.on("notification", onNotify);
        await listener.query(`listen ${channel}`);
        return async () => {
          await listener.query(`unlisten ${channel}`);
        };
      }),
    async close() {
      const key = keyOf(target);
      await kept.get(key)?.end();
      kept.delete(key);
      await client.end();
    },
  };
  return session;
}

const kept: Map<string, PgClient> = new Map();

function keyOf({ host, port }: Target): string {
  return `${host}:${port}`;
}

/** A client without pipelining, opened once for each server. */
async function withClient<T>(target: Target, use: (client: PgClient) => Promise<T>): Promise<T> {
  const { Client } = await load();
  const key = keyOf(target);
  let client = kept.get(key);
  if (client === undefined) {
    client = new Client(optionsOf(target));
    await client.connect();
    kept.set(key, client);
  }
  return await use(client);
}

function copying(target: Target): Partial<Session> {
  return {
    copyIn: (text, chunks) =>
      withClient(target, async (client) => {
        const { from } = await loadPackage<CopyModule>("pg-copy-streams");
        const stream = client.query(from(text));
        const finished = new Promise<void>((resolve, reject) => {
          stream.once("finish", () => resolve());
          stream.once("error", reject);
        });
        for (const chunk of chunks) {
          if (!stream.write(chunk)) {
            await new Promise<void>((resolve) => stream.once("drain", () => resolve()));
          }
        }
        stream.end();
        await finished;
        return stream.rowCount;
      }),
    copyOut: (text) =>
      withClient(target, async (client) => {
        const { to } = await loadPackage<CopyModule>("pg-copy-streams");
        let bytes = 0;
        for await (const chunk of client.query(to(text))) bytes += chunk.length;
        return bytes;
      }),
  };
}
