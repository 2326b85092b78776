/**
 * Random programs on one connection, whose every query selects a number of its own: a model says what each may answer,
 * and what is in the table at the end.
 *
 * The same seed gives the same operations; how they meet on the wire also depends on time.
 */

import assert from "node:assert/strict";
import type { Connection, PreparedStatement, Queryable, Transaction } from "../../mod.ts";
import { seededRandom } from "./proxy.ts";
import type { Failure } from "./session.ts";
import {
  describe,
  fails,
  firstUse,
  isInFailedBlock,
  isLost,
  midRows,
  notice,
  settleAll,
  simple,
  unknownType,
} from "./fuzz_queries.ts";
import { limit } from "./server.ts";

/** What to run. */
export interface FuzzOptions {
  readonly seed: number;
  /** Queries at least. */
  readonly queries: number;
  /** A schema of one's own. */
  readonly schema: string;
  /** Programs that run at once. */
  readonly workers: number;
  /** Names of operations to leave out. */
  readonly without?: readonly string[];
}

/** What was seen. */
export interface FuzzReport {
  readonly queries: number;
  readonly operations: Readonly<Record<string, number>>;
  /** Lost statements that transactions and batches reported. */
  readonly lost: number;
}

/** Creates what {@linkcode runFuzz} needs in its schema. */
export async function prepareFuzz(conn: Queryable, schema: string): Promise<void> {
  await conn.exec(`create unlogged table ${schema}.kept (n int8 primary key);
    create unlogged table ${schema}.altered (v int); insert into ${schema}.altered values (7)`);
}

/** Runs programs until enough queries have been issued; rejects at the first wrong answer. */
export async function runFuzz(conn: Connection, options: FuzzOptions): Promise<FuzzReport> {
  const fuzz = new Fuzz(conn, options);
  await Promise.all(Array.from({ length: options.workers }, (_, i) => fuzz.work(i)));
  await fuzz.checkEnd();
  return fuzz.report();
}

/** Thrown by operations on purpose. */
const UNDO = new Error("undo");

type Operation = (on: Queryable, n: number) => Promise<unknown>;
type Operations = readonly (readonly [name: string, weight: number, run: Operation])[];

class Fuzz {
  readonly #conn: Connection;
  readonly #options: FuzzOptions;
  readonly #random: () => number;
  readonly #operations: Operations;
  readonly #counts: Record<string, number> = {};
  /** What must be in the table at the end; `undefined`: nobody can know. */
  readonly #kept: Map<number, boolean | undefined> = new Map();
  /** What the queries of a transaction find in a setting that is local to it. */
  readonly #transactions: WeakMap<Queryable, string> = new WeakMap();
  #nonce: number = 0;
  #queries: number = 0;
  #lost: number = 0;
  #failure: unknown = undefined;
  #prepared: PreparedStatement | undefined = undefined;

  constructor(conn: Connection, options: FuzzOptions) {
    this.#conn = conn;
    this.#options = options;
    this.#random = seededRandom(options.seed);
    const all: [string, number, Operation][] = [
      ["cached", 30, (on, n) => this.#cached(on, n)],
      ["first use", 8, (on, n) => firstUse(on, n)],
      ["unknown type", 0.5, (on, n) => unknownType(on, n)],
      ["described first", 4, (on, n) => this.#ambiguous(on, n)],
      ["simple", 8, (on, n) => simple(on, n)],
      ["many rows", 4, (on, n) => this.#rows(on, n)],
      [
        "unfit value",
        2,
        (on, n) => fails(on.query(`select $1::int8 /* ${n} */`, [undefined]), "ValueError", ""),
      ],
      ["fails at parse", 3, (on, n) => fails(on.query(`select nope_${n % 9}`), "42703", `nope_${n % 9}`)],
      ["fails at bind", 3, (on, n) => fails(on.query("select $1::int", [`b${n}`]), "22P02", `b${n}`)],
      [
        "fails at execute",
        3,
        (on, n) => fails(on.query("select ('e' || $1)::int", [`${n}`]), "22P02", `e${n}`),
      ],
      ["fails between rows", 3, (on, n) => midRows(on, n)],
      [
        "twice the same mistake",
        1,
        (on, n) => Promise.all([1, 2].map(() => fails(on.query(`selekt ${n}`), "42601", "selekt"))),
      ],
      ["kept", 6, (on, n) => this.#keep(on, n)],
      ["batch", 6, (on, n) => this.#batch(on, n)],
      ["batch that fails", 3, (on, n) => this.#failingBatch(on, n)],
      ["settled batch", 3, (on, n) => this.#settledBatch(on, n)],
      ["stream", 4, (on, n) => this.#stream(on, n)],
      ["describe", 1, (on, n) => describe(on, n)],
      ["notice", 1, (on, n) => notice(on, n)],
      ["copy", 1, (on, n) => fails(on.query(`copy (select ${n}) to stdout`), "PipegresError", "copyTo")],
      ["transaction", 6, (_, n) => this.#transaction(n)],
      ["transaction that a signal ends", 1, (_, n) => this.#endedTransaction(n)],
      ["handle", 1, (_, n) => this.#handle(n)],
      ["prepared", 4, (_, n) => this.#executePrepared(n)],
      ["alone", 3, (_, n) => this.#alone(n)],
      ["abort", 1.2, (on, n) => this.#abort(on, n)],
      ["time limit", 0.6, (on, n) => this.#timeLimit(on, n)],
      ["discard", 0.5, (_, n) => this.#discard(n)],
      ["alter", 1, () => this.#alter()],
      ["altered", 4, (on, n) => this.#altered(on, n)],
    ];
    this.#operations = all.filter(([name]) => !options.without?.includes(name));
  }

  report(): FuzzReport {
    return { queries: this.#queries, operations: this.#counts, lost: this.#lost };
  }

  async work(index: number): Promise<void> {
    while (this.#queries < this.#options.queries && this.#failure === undefined) {
      // Sometimes several at once, so that one turn holds a mixed bag.
      const burst = this.#random() < 0.2 ? this.#below(8) : 1;
      await Promise.all(Array.from({ length: burst }, () => this.#run(this.#conn, index)));
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #run(on: Queryable, index: number): Promise<void> {
    const [name, run] = this.#pick(on === this.#conn ? this.#operations : this.#inside());
    const n = this.#next();
    this.#counts[name] = (this.#counts[name] ?? 0) + 1;
    try {
      await limit(run(on, n), 30_000, `${name} ${n}`);
    } catch (error) {
      // Inside a transaction a statement that DISCARD or ALTER took away is reported, and fails the block.
      if (on !== this.#conn && (isLost(error) || isInFailedBlock(error))) throw error;
      // A transaction around it must not take it for one of its own failures.
      this.#failure ??= new Error(`Program ${index}, "${name}" with ${n}: ${error}`, { cause: error });
      throw this.#failure;
    }
  }

  #pick(operations: Operations): [string, Operation] {
    let at = this.#random() * operations.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight, run] of operations) if ((at -= weight) < 0) return [name, run];
    return [operations[0]![0], operations[0]![2]];
  }

  /** What may stand in a transaction without failing it. */
  #inside(): Operations {
    const fit = [
      "cached",
      "first use",
      "unknown type",
      "described first",
      "simple",
      "many rows",
      "kept",
      "batch",
      "stream",
      "notice",
    ];
    return this.#operations.filter(([name]) => fit.includes(name));
  }

  #next(count: number = 1): number {
    this.#queries += count;
    return ++this.#nonce;
  }

  #below(bound: number): number {
    return Math.floor(this.#random() * bound);
  }

  async #cached(on: Queryable, n: number): Promise<void> {
    const kind = this.#below(20);
    const text = `select $1::int8 as n, ${kind} as kind, current_setting('fuzz.inside', true) as inside`;
    const result = on.query(text, [n]);
    const { rows } = await result;
    // The setting has no value outside, or an empty one once it has had another.
    const inside = this.#transactions.get(on) ?? (rows[0]!["inside"] === null ? null : "");
    assert.deepEqual(rows, [{ n: BigInt(n), kind, inside }]);
  }

  async #ambiguous(on: Queryable, n: number): Promise<void> {
    const fresh = this.#random() < 0.5 ? ` /* ${n} */` : "";
    const result = on.query(`select $1::int[] as a, $2::jsonb as j${fresh}`, [[n, n + 1], { n }]);
    const { rows } = await result;
    assert.deepEqual(rows, [{ a: [n, n + 1], j: { n } }]);
  }

  async #rows(on: Queryable, n: number): Promise<void> {
    const count = this.#below(300);
    const result = on.query("select $1::int4 + i as n from generate_series(1, $2::int4) i", [n, count]);
    const { rows } = await result;
    assert.deepEqual(rows, Array.from({ length: count }, (_, i) => ({ n: n + i + 1 })));
  }

  async #keep(on: Queryable, n: number): Promise<void> {
    const { rows } = await this.#insert(on, n);
    assert.deepEqual(rows, [{ n: BigInt(n) }]);
    if (on === this.#conn) this.#kept.set(n, true);
  }

  async #batch(on: Queryable, n: number): Promise<void> {
    const count = 1 + this.#below(5);
    const { sql } = this.#conn;
    const batch = on.batch(Array.from({ length: count }, (_, i) => {
      if (this.#random() < 0.2) return sql`select ${[n, i]}::int4[] as n`;
      return sql`select ${n}::int4 as n, ${i}::int4 as i`;
    }));
    this.#queries += count - 1;
    const results = await batch;
    results.forEach(({ rows }, i) => {
      const [row] = rows;
      assert.deepEqual(row!["i"] === undefined ? row!["n"] : [row!["n"], row!["i"]], [n, i]);
    });
  }

  async #failingBatch(on: Queryable, n: number): Promise<void> {
    const { sql } = this.#conn;
    const kept = sql.raw(`${this.#options.schema}.kept`);
    this.#queries += 3;
    const culprits = [
      () => sql`select ${`c${n}`}::text::int`,
      () => sql`select ('c' || ${n}::int8)::int`,
      () => sql`select ${sql.raw(`c${n}`)}`,
    ];
    const failing = on.batch([
      sql`insert into ${kept} values (${n})`,
      this.#random() < 0.5 ? sql`select 1` : sql`select ${[n]}::int4[]`,
      culprits[this.#below(3)]!(),
      this.#random() < 0.5 ? sql`insert into ${kept} values (${-n})` : sql`select ${{ n }}::jsonb`,
    ]);
    const error = await failing.then(() => undefined, (reason: Failure) => reason);
    if (isLost(error)) throw error;
    assert.ok(error?.message.includes(`c${n}`), `batch: ${error}`);
    this.#kept.set(n, false);
    this.#kept.set(-n, false);
  }

  async #settledBatch(on: Queryable, n: number): Promise<void> {
    const { sql } = this.#conn;
    this.#queries += 2;
    const [first, second, third] = await on.batch([
      sql`select ${n}::int8 as n`,
      sql`select ('s' || ${n}::int8)::int`,
      sql`select ${n + 1}::int8 as n`,
    ], { sync: "each" });
    for (const [settled, wanted] of [[first, n], [third, n + 1]] as const) {
      if (settled!.status === "rejected") throw settled!.reason;
      assert.deepEqual(settled!.value.rows, [{ n: BigInt(wanted) }]);
    }
    assert.ok(second?.status === "rejected");
    if (isLost(second.reason)) throw second.reason;
    assert.ok(second.reason.message.includes(`s${n}`), String(second.reason));
  }

  async #stream(on: Queryable, n: number): Promise<void> {
    const [count, batch, stop] = [this.#below(60), 1 + this.#below(20), this.#below(80)];
    let seen = 0;
    const rows = on.sql`select ${n}::int4 + i as n from generate_series(1, ${count}::int4) i`.stream({
      batch,
    });
    for await (const row of rows) {
      assert.deepEqual(row, { n: n + ++seen });
      if (seen === stop) break;
    }
    assert.equal(seen, stop === 0 ? count : Math.min(count, stop));
  }

  async #transaction(n: number): Promise<void> {
    const inserted: number[] = [];
    const level = async (tx: Transaction, depth: number): Promise<void> => {
      this.#transactions.set(tx, `in ${n}`);
      for (let left = this.#below(4); left >= 0; left--) {
        const burst = this.#random() < 0.3 ? 3 : 1;
        await settleAll(Array.from({ length: burst }, () => this.#run(tx, n)));
        if (this.#random() < 0.3) {
          const m = this.#next();
          inserted.push(m);
          this.#kept.set(m, true);
          await tx.query(`insert into ${this.#options.schema}.kept values ($1)`, [m]);
        }
        if (depth < 3 && this.#random() < 0.25) {
          const before = inserted.length;
          await tx.transaction((nested) => level(nested, depth + 1)).catch((error) => {
            for (const m of inserted.splice(before)) this.#kept.set(m, false);
            if (error !== UNDO && !isLost(error)) throw error;
          });
        }
      }
      const end = this.#random();
      if (end < 0.15) throw UNDO;
      if (end < 0.25) await tx.query("select ('t' || $1)::int", [`${n}`]).catch(() => {});
      else if (end < 0.3) await fails(tx.query("select ('t' || $1)::int", [`${n}`]), "22P02", `t${n}`);
    };
    const error = await this.#conn.transaction(async (tx) => {
      const first = tx.query("select set_config('fuzz.inside', $1, true)", [`in ${n}`]);
      // When it is lost, what follows fails because of that.
      const reason = first.then(() => undefined, (error) => error);
      await level(tx, 0).catch(async (error) => {
        throw await reason ?? error;
      });
      await first;
    }).then(
      () => undefined,
      (reason) => reason,
    );
    if (error === undefined) return;
    for (const m of inserted) this.#kept.set(m, false);
    const expected = error === UNDO || isLost(error) || error.code === "25P02" ||
      /was rolled back/.test(error.message);
    if (!expected) throw error;
    if (isLost(error)) this.#lost++;
  }

  /** At any moment, or too late. */
  async #endedTransaction(n: number): Promise<void> {
    const controller = new AbortController();
    const reason = new Error(`abort ${n}`);
    const timer = setTimeout(() => controller.abort(reason), this.#random() * 6);
    const outcome = await this.#conn.transaction({ signal: controller.signal }, async (tx) => {
      await Promise.all([this.#insert(tx, n), tx.query("select pg_sleep($1)", [this.#random() * 0.003])]);
      await tx.transaction((nested) => nested.query("select pg_sleep($1)", [this.#random() * 0.002]));
    }).then(() => true, (error) => error);
    clearTimeout(timer);
    this.#kept.set(n, outcome === true);
    if (isLost(outcome)) this.#lost++;
    else assert.ok(outcome === true || outcome === reason, `transaction: ${outcome}`);
  }

  /** A transaction without a callback, and queries of others that are issued while it is open. */
  async #handle(n: number): Promise<void> {
    const tx = await this.#conn.begin();
    const read = async () => {
      const { rows } = await this.#conn.query("select $1::int8 as n", [n]);
      assert.deepEqual(rows, [{ n: BigInt(n) }]);
    };
    const before = read();
    const commits = this.#random() < 0.5;
    const inserted = await this.#insert(tx, n).then(() => true, (error) => {
      if (!isLost(error)) throw error;
      this.#lost++;
      return false;
    });
    const later = read();
    if (commits && inserted) await tx.commit();
    else await tx.rollback();
    this.#kept.set(n, commits && inserted);
    await Promise.all([before, later]);
  }

  #insert(on: Queryable, n: number): ReturnType<Queryable["query"]> {
    return on.query(`insert into ${this.#options.schema}.kept values ($1) returning n`, [n]);
  }

  async #executePrepared(n: number): Promise<void> {
    this.#prepared ??= await this.#conn.prepare("select $1::int8 as n, 'prepared' as by");
    const result = await this.#prepared.query([n]);
    assert.deepEqual(result.rows, [{ n: BigInt(n), by: "prepared" }]);
  }

  async #alone(n: number): Promise<void> {
    const result = await this.#conn.query("select $1::int8 as n", [n], { pipeline: false });
    assert.deepEqual(result.rows, [{ n: BigInt(n) }]);
  }

  async #abort(on: Queryable, n: number): Promise<void> {
    const controller = new AbortController();
    const reason = new Error(`abort ${n}`);
    const query = on.query("select pg_sleep($1), $2::int8 as n", [this.#random() * 0.004, n], {
      signal: controller.signal,
    });
    const timer = setTimeout(() => controller.abort(reason), this.#random() * 5);
    const outcome = await query.then(({ rows }) => rows[0]!["n"], (error) => error);
    clearTimeout(timer);
    if (isLost(outcome)) throw outcome;
    assert.ok(outcome === reason || outcome === BigInt(n), `abort: ${outcome}`);
  }

  async #timeLimit(on: Queryable, n: number): Promise<void> {
    const timeout = 1 + this.#below(4);
    const outcome = await on.sql`select pg_sleep(${this.#random() * 0.006}), ${n}::int8 as n`.with({
      timeout,
    })
      .one().then((row) => row["n"], (error) => error);
    if (isLost(outcome)) throw outcome;
    assert.ok(outcome === BigInt(n) || outcome.name === "TimeoutError", `limit: ${outcome}`);
  }

  async #discard(n: number): Promise<void> {
    // What is done inside a block of PL/pgSQL is not told.
    const texts = ["discard all", "deallocate all", "do $$ begin execute 'deallocate all'; end $$"];
    const text = texts[this.#below(3)]!;
    if (n % 2 === 0) await this.#conn.exec(text);
    else await this.#conn.query(text);
  }

  #alter(): Promise<unknown> {
    const type = ["int", "bigint", "text"][this.#below(3)]!;
    return this.#conn.exec(
      `alter table ${this.#options.schema}.altered alter v type ${type} using v::${type}`,
    );
  }

  async #altered(on: Queryable, n: number): Promise<void> {
    const query = on.query(
      `select $1::int8 as n, v, pg_typeof(v)::text as type from ${this.#options.schema}.altered`,
      [n],
    );
    const row = (await query).rows[0]!;
    const value = { integer: 7, bigint: 7n, text: "7" }[row["type"] as string];
    assert.deepEqual([row["n"], row["v"]], [BigInt(n), value]);
  }

  /** The table holds what was committed, and the session is as clean as it was. */
  async checkEnd(): Promise<void> {
    const { rows } = await this.#conn.query(`select n from ${this.#options.schema}.kept`);
    const found = new Set(rows.map((row) => Number(row["n"])));
    const wrong = [...this.#kept].filter(([n, kept]) => kept !== undefined && found.has(n) !== kept);
    assert.deepEqual(wrong, [], "rows that should or should not be there");
    for (const n of found) assert.ok(this.#kept.get(n) !== false);
    assert.equal(this.#conn.transactionStatus, "idle");
    await this.#prepared?.close();
    const [session] = await this.#conn.exec(`select pg_backend_pid() as pid,
      (select count(*)::int from pg_prepared_statements) as statements,
      (select count(*)::int from pg_cursors where name <> '') as portals`);
    const { pid, statements, portals } = session!.rows[0]!;
    assert.deepEqual([pid, portals], [this.#conn.processId, 0]);
    // The cache's, those that the next Parse would close, and what lost its place while it was described.
    assert.ok(Number(statements) <= 300, `${statements} statements are left`);
  }
}
