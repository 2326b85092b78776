/** What can open transactions: a connection, or a pool. */

import { Queryable } from "./queryable.ts";
import type { TransactionOptions } from "./transaction.ts";
import { Transaction } from "./transaction_block.ts";

/** A {@linkcode Queryable} that opens transactions; `O` are their options. */
export abstract class Transactional<O extends TransactionOptions> extends Queryable {
  /** Opens a transaction, to be ended by its `commit` or `rollback`. */
  abstract begin(options?: O): Promise<Transaction>;

  /**
   * Runs a function in a transaction: commits when it resolves, rolls back when it rejects.
   *
   * @returns what the function resolves with
   * @throws what the function rejects with; should the rollback fail too, that error is its `rollbackError`
   * @throws {PipegresError} when the server rolled back instead of committing, since a query had failed
   */
  transaction<R>(fn: (transaction: Transaction) => R | PromiseLike<R>): Promise<R>;
  /**
   * The same with options.
   *
   * @param options those of `begin`; `retry` is how often the whole function is run again when the server reports
   * `40001` serialization_failure or `40P01` deadlock_detected. Default 0
   */
  transaction<R>(
    options: O & { readonly retry?: number | undefined },
    fn: (transaction: Transaction) => R | PromiseLike<R>,
  ): Promise<R>;
  transaction<R>(...args: readonly unknown[]): Promise<R> {
    const [options, fn] = args.length > 1 ? args : [{}, args[0]];
    const { retry = 0, ...begin } = options as O & { retry?: number };
    return Transaction.run(
      () => this.begin(begin as unknown as O),
      retry,
      fn as (transaction: Transaction) => R,
    );
  }
}
