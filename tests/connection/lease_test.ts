/** The line before a connection that somebody owns: what those are told who wait in vain. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { LeaseLine } from "../../src/connection/lease.ts";
import { EXTENDED, NO_PARAMETERS, Request } from "../../src/engine/request.ts";
import { Statement } from "../../src/engine/statement_cache.ts";
import { limit } from "../_support/limit.ts";

const UNREAD = { plan: () => () => undefined, formats: () => [] } as const;

/** What a request is told that waits for an owner who never ends. */
async function refusalOf(statement: Statement | null): Promise<Error> {
  const line = new LeaseLine(() => assert.fail("Written beside the owner"), 20);
  await limit(line.acquire(), 1_000, "acquire");
  const settled = await limit(
    new Promise<Request>((resolve) => {
      const request = new Request(EXTENDED, "select 1", NO_PARAMETERS, UNREAD, resolve);
      request.statement = statement;
      line.submit(request);
    }),
    5_000,
    "a request that waits",
  );
  return settled.failure!();
}

test("a query is told to use the transaction's methods, a prepared statement to be prepared there", async () => {
  const wait = "Waited 20 ms for a transaction on the same connection to end: inside its callback, ";
  for (
    const [statement, advice] of [
      [null, "use the methods of the transaction itself"],
      [new Statement("", "p_1"), "prepare the statement by prepare() of the transaction itself"],
    ] as const
  ) {
    const error = await refusalOf(statement);
    assert.equal(error.name, "TimeoutError");
    assert.equal(error.message, wait + advice);
  }
});
