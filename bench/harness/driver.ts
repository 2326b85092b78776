/**
 * What a driver is to a scenario. Scenarios know no driver, drivers know no scenario: both know this file.
 *
 * A driver implements a capability by its own fastest documented way and says how in its notes; what it cannot do it
 * leaves out.
 */

/** A runtime's name as options spell it. */
export type RuntimeName = "deno" | "bun" | "node";

/** Which server, without any driver's spelling. */
export interface Target {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

/** One row, keyed by column name. */
export type Row = Readonly<Record<string, unknown>>;

/** What a driver that only counts gives instead of rows. */
export interface Counted {
  /** DataRow messages. */
  readonly counted: number;
}

/** A driver's own result object: to take the rows out in the measured time would be the benchmark's cost, not the driver's. */
export interface Held {
  /** Missing where there are none. */
  readonly rows?: readonly Row[] | undefined;
}

/** The rows of one query, as the driver gives them. */
export type Rows = readonly Row[] | Held | Counted;

/** Parameters of one execution. */
export type Values = readonly unknown[];

/** A column of a table. */
export interface Column {
  readonly name: string;
  readonly type: string;
}

/** A statement prepared under a name. */
export type Execute = (values: Values) => Promise<Rows>;

/** One connection, or one pool. Every capability but `close` may be missing. */
export interface Session {
  /** One statement in the simple protocol, or the driver's way without parameters. */
  simple?(text: string): Promise<Rows>;
  /** One statement with parameters, the driver's usual way. */
  extended?(text: string, values: Values): Promise<Rows>;
  /** Prepares a statement; `values` are an example. */
  prepare?(text: string, values: Values): Promise<Execute>;
  /** As `prepare`, with results in binary format. */
  prepareBinary?(text: string, values: Values): Promise<Execute>;
  /** Reads a query `size` rows at a time and tells each batch; resolves to the number of rows. */
  cursor?(text: string, size: number, onRows: (rows: readonly unknown[]) => void): Promise<number>;
  /** BEGIN, one prepared statement with each of the values, all at once, COMMIT. */
  transaction?(text: string, list: readonly Values[]): Promise<readonly Rows[]>;
  /** Opens a transaction that stays open. */
  openTransaction?(): Promise<OpenTransaction>;
  /** One prepared statement with each of the values, in one round trip. */
  batch?(text: string, list: readonly Values[]): Promise<readonly Rows[]>;
  /** Inserts rows, quickest way for some thousands; resolves to their number. */
  insert?(table: string, columns: readonly Column[], rows: readonly Values[]): Promise<number>;
  /** COPY FROM STDIN of prepared chunks; resolves to the number of rows where the driver knows it, else -1. */
  copyIn?(text: string, chunks: readonly Uint8Array[]): Promise<number>;
  /** COPY TO STDOUT; resolves to the number of bytes. */
  copyOut?(text: string): Promise<number>;
  /** The rows of a query as JSON text. */
  json?(text: string): Promise<string>;
  /** LISTEN: `onNotify` is called for each notification until the function that this resolves to is called. */
  subscribe?(channel: string, onNotify: () => void): Promise<() => Promise<void>>;
  /** For the floor alone: many executions as one write and one promise. Others are called once for each. */
  burst?: Burst;
  close(): Promise<void>;
}

/** A transaction between its BEGIN and its end. */
export interface OpenTransaction {
  /** One prepared statement with each of the values, all at once. */
  run(text: string, list: readonly Values[]): Promise<readonly Rows[]>;
  end(): Promise<unknown>;
}

/** Many at once, without a promise for each. */
export interface Burst {
  simple(texts: readonly string[]): Promise<Rows>;
  extended(text: string, list: readonly Values[]): Promise<Rows>;
}

/** A capability's name. */
export type Capability = Exclude<keyof Session, "close" | "burst">;

/** One competitor. */
export interface Driver {
  readonly name: string;
  /** Runtimes it runs on. */
  readonly runtimes: readonly RuntimeName[];
  /** npm packages it needs, the driver's own first; none for what a runtime or this repository holds. */
  readonly packages: readonly string[];
  /** Whether it takes part only when it is named. */
  readonly optIn?: boolean;
  /** Whether it answers with counts only, so that its answers cannot be compared. */
  readonly counts?: boolean;
  /** How it is used and set up, for the report. */
  readonly notes: readonly string[];
  /** Why capabilities are missing, for the report; default: no such function. */
  readonly lacks?: Partial<Record<Capability, string>>;
  /** Opens one connection. */
  open(target: Target): Promise<Session>;
  /** Opens a pool of at most `max` connections. */
  openPool?(target: Target, max: number): Promise<Session>;
}

/** The rows themselves, of a driver that does not only count. */
export function takeRows(rows: Exclude<Rows, Counted>): readonly Row[] {
  return Array.isArray(rows) ? rows : (rows as Held).rows ?? [];
}

/** Number of rows, whoever answered. */
export function rowCount(rows: Rows): number {
  return "counted" in rows ? rows.counted : takeRows(rows).length;
}

/** An INSERT that takes one array parameter for each column. */
export function insertFromArrays(table: string, columns: readonly Column[]): string {
  const arrays = columns.map(({ type }, i) => `$${i + 1}::${type}[]`);
  return `insert into ${table} (${columns.map(({ name }) => name).join(", ")}) select * from unnest(${
    arrays.join(", ")
  })`;
}

/** The parameters of {@linkcode insertFromArrays}. */
export function columnArrays(columns: readonly Column[], rows: readonly Values[]): unknown[][] {
  return columns.map((_, i) => rows.map((row) => row[i]));
}
