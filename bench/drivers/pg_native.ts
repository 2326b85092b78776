/** pg-native on libpq. Takes part when it is named: it is built from source and needs libpq's headers. */

import {
  type Driver,
  type Execute,
  insertFromArrays,
  type Row,
  type Rows,
  type Session,
  type Target,
} from "../harness/driver.ts";
import { columnArrays, type Values } from "../harness/driver.ts";
import { loadPackage } from "../harness/packages.ts";

type Callback<T> = (error: Error | null, result: T) => void;

interface PipelineQuery {
  readonly text?: string;
  readonly name?: string;
  readonly values?: Values;
}

interface NativeClient {
  connect(conninfo: string, callback: Callback<void>): void;
  query(text: string, callback: Callback<readonly Row[]>): void;
  query(text: string, values: Values, callback: Callback<readonly Row[]>): void;
  prepare(name: string, text: string, count: number, callback: Callback<void>): void;
  execute(name: string, values: Values, callback: Callback<readonly Row[]>): void;
  pipeline(queries: readonly PipelineQuery[], callback: Callback<readonly unknown[]>): void;
  end(callback: () => void): void;
}

const driver: Driver = {
  name: "pg-native",
  runtimes: ["node"],
  packages: ["pg-native"],
  optIn: true,
  notes: [
    "one query after the other on a connection: issued at once, they wait in the benchmark for their turn",
    "batch and 50 or 10 at once: pipeline()",
  ],
  lacks: {
    cursor: "no cursors",
    copyIn: "COPY needs libpq's own functions",
    copyOut: "COPY needs libpq's own functions",
    subscribe: "not exercised",
    prepareBinary: "no binary results",
    transaction: "a pipeline cannot be joined to an open transaction",
  },
  async open(target) {
    const module = await loadPackage<{ default: new () => NativeClient }>("pg-native");
    const client = new module.default();
    await promised<void>((done) => client.connect(conninfoOf(target), done));
    return sessionOf(client);
  },
};
export default driver;

function promised<T>(call: (done: Callback<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => call((error, result) => error ? reject(error) : resolve(result)));
}

function conninfoOf({ host, port, user, password, database }: Target): string {
  const quote = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  return `host=${quote(host)} port=${port} user=${quote(user)} password=${quote(password)} ` +
    `dbname=${quote(database)} sslmode=disable`;
}

let statements = 0;

function sessionOf(client: NativeClient): Session {
  const pipeline = async (queries: readonly PipelineQuery[]): Promise<Rows[]> =>
    (await promised<readonly unknown[]>((done) => client.pipeline(queries, done))).map((result) =>
      (Array.isArray(result) ? result : (result as { rows: Rows }).rows) as Rows
    );
  const queue = pipelined(pipeline);
  return {
    simple: (text) => queue({ text }),
    extended: (text, values) => queue({ text, values }),
    async prepare(text, values): Promise<Execute> {
      const name = `bench_${++statements}`;
      await promised<void>((done) => client.prepare(name, text, values.length, done));
      return (each) => queue({ name, values: each });
    },
    batch: (text, list) => pipeline(list.map((values) => ({ text, values }))),
    async insert(table, columns, rows) {
      const text = insertFromArrays(table, columns);
      const arrays = columnArrays(columns, rows).map((values) =>
        `{${values.map((v) => JSON.stringify(v)).join()}}`
      );
      await promised((done) => client.query(text, arrays, done));
      return rows.length;
    },
    async json(text) {
      return JSON.stringify(await promised<readonly Row[]>((done) => client.query(text, done)));
    },
    close: () => new Promise((resolve) => client.end(resolve)),
  };

  /** Collects what is issued in one turn: alone it is a plain call, together they are a pipeline. */
  function pipelined(run: (queries: readonly PipelineQuery[]) => Promise<Rows[]>) {
    let waiting: { query: PipelineQuery; resolve: (rows: Rows) => void; reject: (error: unknown) => void }[] =
      [];
    let busy: Promise<void> = Promise.resolve();
    const single = ({ text, name, values }: PipelineQuery) =>
      promised<readonly Row[]>((done) =>
        name !== undefined
          ? client.execute(name, values!, done)
          : values === undefined
          ? client.query(text!, done)
          : client.query(text!, values, done)
      );
    const flush = async () => {
      const calls = waiting;
      waiting = [];
      try {
        const queries = calls.map((call) => call.query);
        const results = queries.length === 1 ? [await single(queries[0]!)] : await run(queries);
        calls.forEach((call, i) => call.resolve(results[i]!));
      } catch (error) {
        for (const call of calls) call.reject(error);
      }
    };
    return (query: PipelineQuery): Promise<Rows> =>
      new Promise((resolve, reject) => {
        if (waiting.push({ query, resolve, reject }) === 1) busy = busy.then(flush);
      });
  }
}
