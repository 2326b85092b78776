/** Ours. What is not built yet is found by looking, so that it takes part from the day it is there. */

import { type BoundSql, connect, type Result, sql } from "../../mod.ts";
import * as pipegres from "../../mod.ts";
import {
  type Capability,
  type Column,
  columnArrays,
  type Driver,
  type Execute,
  insertFromArrays,
  type Row,
  type Rows,
  type Session,
  type Target,
  type Values,
} from "../harness/driver.ts";

/** What DESIGN.md promises beyond what every session has today; each part is looked for before it is used. */
interface Client {
  readonly sql: BoundSql;
  query<T>(text: string, values?: readonly unknown[]): Promise<Result<T>>;
  exec<T>(text: string): Promise<Result<T>[]>;
  prepare?(text: string): Promise<{ query<T>(values: Values): Promise<Result<T>> }>;
  batch?(list: readonly unknown[]): Promise<readonly unknown[]>;
  begin?(): Promise<Client & { rollback(): Promise<void> }>;
  transaction?<T>(run: (tx: Client) => Promise<T>): Promise<T>;
  copyFrom?(text: string): WritableStream<Uint8Array> & { readonly rowCount?: number | bigint };
  copyTo?(text: string): ReadableStream<Uint8Array>;
  copyRows?(table: string, columns: readonly string[], rows: Iterable<Values>): Promise<number | bigint>;
  listen?(channel: string, options?: { signal?: AbortSignal }): AsyncIterable<{ readonly type: string }>;
  close(): Promise<void>;
}

type CreatePool = (options: unknown) => Client;

/** Methods of a lazy query that are promised. */
interface PromisedQuery {
  json?(): Promise<string>;
  stream?(options: { batch: number }): { batches(): AsyncIterable<readonly unknown[]> };
}

const createPool = (pipegres as Record<string, unknown>)["createPool"] as CreatePool | undefined;

const driver: Driver = {
  name: "pipegres",
  runtimes: ["deno", "bun", "node"],
  packages: [],
  notes: [
    "simple: exec(), on a pool query(text), which is prepared and pipelined; extended: query(text, values), which prepares on first use and caches; prepared: prepare()",
    "batch: batch() of unbound templates; transaction: transaction() with query(); insert: copyRows(); cursor: .stream().batches()",
    "result formats are learned per column, binary where that is cheaper",
  ],
  lacks: Object.fromEntries(
    ([
      "cursor",
      "transaction",
      "openTransaction",
      "batch",
      "copyIn",
      "copyOut",
      "json",
      "subscribe",
    ] as Capability[])
      .map((name) => [name, "not yet"]),
  ),
  async open(target) {
    return sessionOf(await connect(optionsOf(target)) as unknown as Client);
  },
  ...(typeof createPool === "function" && {
    openPool(target: Target, max: number): Promise<Session> {
      const pool = createPool({ ...optionsOf(target), max });
      // A script owns a connection of the pool: plain queries are the way.
      const simple = (text: string) => pool.query<Row>(text);
      return Promise.resolve({ ...sessionOf(pool), simple });
    },
  }),
};
export default driver;

function optionsOf({ host, port, user, password, database }: Target) {
  return { host, port, user, password, database, sslmode: "disable" as const };
}

/** A tag's call for a text of its own. */
function templateOf(text: string): TemplateStringsArray {
  return Object.assign([text], { raw: [text] });
}

function sessionOf(client: Client): Session {
  return {
    async simple(text) {
      return (await client.exec<Row>(text))[0]?.rows ?? [];
    },
    extended: (text, values) => client.query<Row>(text, values),
    prepare: (text) => prepare(client, text),
    prepareBinary: (text) => prepare(client, text),
    insert: (table, columns, rows) => insert(client, table, columns, rows),
    ...streaming(client),
    ...grouping(client),
    ...copying(client),
    ...listening(client),
    close: () => client.close(),
  };
}

async function prepare(client: Client, text: string): Promise<Execute> {
  if (typeof client.prepare !== "function") {
    return (values) => client.query<Row>(text, values);
  }
  const statement = await client.prepare(text);
  return (values) => statement.query<Row>(values);
}

/** A binary COPY, or one INSERT with an array parameter for each column. */
async function insert(
  client: Client,
  table: string,
  columns: readonly Column[],
  rows: readonly Values[],
): Promise<number> {
  if (typeof client.copyRows === "function") {
    return Number(await client.copyRows(table, columns.map(({ name }) => name), rows));
  }
  const { rowCount } = await client.query(insertFromArrays(table, columns), columnArrays(columns, rows));
  return rowCount ?? -1;
}

function streaming(client: Client): Partial<Session> {
  const probe = client.sql(templateOf("")) as unknown as PromisedQuery;
  return {
    ...(typeof probe.stream === "function" && {
      async cursor(text: string, size: number, onRows: (rows: readonly unknown[]) => void) {
        const query = client.sql(templateOf(text)) as unknown as PromisedQuery;
        let count = 0;
        for await (const rows of query.stream!({ batch: size }).batches()) {
          count += rows.length;
          onRows(rows);
        }
        return count;
      },
    }),
    ...(typeof probe.json === "function" && {
      json: (text: string) => (client.sql(templateOf(text)) as unknown as PromisedQuery).json!(),
    }),
  };
}

/** Template parts of a text with `$1` alone, so that it can be used with `sql`. */
function splitParameter(text: string): TemplateStringsArray {
  const parts = text.split("$1");
  return Object.assign(parts, { raw: parts });
}

function grouping(client: Client): Partial<Session> {
  return {
    ...(typeof client.batch === "function" && {
      batch(text: string, list: readonly Values[]) {
        const parts = splitParameter(text);
        return client.batch!(list.map((values) => sql(parts, ...values))) as Promise<readonly Rows[]>;
      },
    }),
    ...(typeof client.transaction === "function" && {
      transaction: (text: string, list: readonly Values[]) =>
        client.transaction!((tx) => Promise.all(list.map((values) => tx.query<Row>(text, values)))),
    }),
    ...(typeof client.begin === "function" && {
      async openTransaction() {
        const tx = await client.begin!();
        return {
          run: (text: string, list: readonly Values[]) =>
            Promise.all(list.map((values) => tx.query<Row>(text, values))),
          end: () => tx.rollback(),
        };
      },
    }),
  };
}

function copying(client: Client): Partial<Session> {
  return {
    ...(typeof client.copyFrom === "function" && {
      async copyIn(text: string, chunks: readonly Uint8Array[]) {
        const copy = client.copyFrom!(text);
        const writer = copy.getWriter();
        for (const chunk of chunks) await writer.write(chunk);
        await writer.close();
        return Number(copy.rowCount ?? -1);
      },
    }),
    ...(typeof client.copyTo === "function" && {
      async copyOut(text: string) {
        let bytes = 0;
        for await (const chunk of client.copyTo!(text)) bytes += chunk.length;
        return bytes;
      },
    }),
  };
}

function listening(client: Client): Partial<Session> {
  if (typeof client.listen !== "function") return {};
  return {
    subscribe(channel, onNotify) {
      const end = new AbortController();
      const events = client.listen!(channel, { signal: end.signal });
      const listening = (async () => {
        for await (const event of events) if (event.type === "notify") onNotify();
      })().catch((error) => {
        if (!end.signal.aborted) throw error;
      });
      return Promise.resolve(async () => {
        end.abort();
        await listening;
      });
    },
  };
}
