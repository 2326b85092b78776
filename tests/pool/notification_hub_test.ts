/** What a hub does to the connection it listens on, message by message, without a server. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServerConnection } from "../../src/connection/server_connection.ts";
import type { Request } from "../../src/engine/request.ts";
import { PostgresError } from "../../src/errors.ts";
import { type Listener, NotificationHub } from "../../src/pool/notification_hub.ts";
import { IDLE, IN_FAILED_TRANSACTION, IN_TRANSACTION } from "../../src/wire/message_types.ts";
import { limit, until } from "../_support/limit.ts";
import { rejectionOf, sleep } from "../_support/session.ts";

/** A connection that a hub is given: what is sent on it waits for the test's answer. */
class ConnectionModel {
  readonly session: { transactionStatus: number } = { transactionStatus: IDLE };
  readonly closed: boolean = false;
  onEnded: (() => void) | undefined = () => {};
  onNotification: unknown = undefined;
  onListenUndone: ((by?: Request) => void) | undefined = undefined;
  probes: number = 0;
  readonly #waiting: Request[] = [];

  submit(request: Request): void {
    this.#waiting.push(request);
  }

  probe(): Promise<void> {
    this.probes++;
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** Answers all that was sent, with a refusal if there is one; returns its texts. */
  answer(refusal?: Error): string[] {
    return this.#waiting.splice(0).map((request) => {
      if (refusal !== undefined) request.fail(() => refusal);
      if (/^unlisten/.test(request.text)) this.onListenUndone?.(request);
      request.settle();
      return request.text;
    });
  }

  /** The status of the next ReadyForQuery. */
  become(status: number): void {
    const before = this.session.transactionStatus;
    this.session.transactionStatus = status;
    if (before !== IDLE && status === IDLE) this.onListenUndone?.();
  }

  /** A hub as an acquired session has it. */
  hub(): NotificationHub {
    const open = () => Promise.resolve(this as unknown as ServerConnection);
    return new NotificationHub({ open, owned: false, probeInterval: 1 });
  }
}

const LISTENER: Listener = { onEvent() {}, onEnd() {} };

/** Long enough for what waits for microtasks only. */
const aTurn = () => sleep(0);

test("a hub that is closed leaves nothing on its connection, however far it got", async () => {
  const steps: ((connection: ConnectionModel) => unknown)[] = [
    () => {},
    aTurn,
    (connection) => aTurn().then(() => connection.answer()),
    (connection) => aTurn().then(() => connection.answer()).then(aTurn),
    (connection) => aTurn().then(() => connection.answer()).then(() => sleep(10)), // probes have begun
  ];
  for (const [i, step] of steps.entries()) {
    const connection = new ConnectionModel();
    const { onEnded } = connection;
    const hub = connection.hub();
    const listening = hub.listen("c", LISTENER).catch(() => {});
    await step(connection);
    hub.close();
    await aTurn();
    connection.answer();
    await limit(listening);
    const { probes } = connection;
    await sleep(10); // Several intervals of probes.
    assert.equal(connection.onEnded, onEnded, `step ${i}`);
    assert.equal(connection.onNotification, undefined, `step ${i}`);
    assert.equal(connection.onListenUndone, undefined, `step ${i}`);
    assert.equal(connection.probes, probes, `step ${i}`);
  }
});

test("a hub that is closed while a probe is under way asks no more", async () => {
  const connection = new ConnectionModel();
  let answerProbe = () => {};
  connection.probe = () => {
    connection.probes++;
    return new Promise((resolve) => answerProbe = resolve);
  };
  const hub = connection.hub();
  const listening = hub.listen("c", LISTENER);
  await aTurn();
  connection.answer();
  await limit(listening);
  await sleep(10);
  assert.equal(connection.probes, 1);
  hub.close();
  answerProbe();
  await sleep(10); // Several intervals of probes.
  assert.equal(connection.probes, 1);
  assert.equal((await rejectionOf(hub.listen("c", LISTENER))).code, "CONNECTION_CLOSED");
});

test("a server that takes no LISTEN any more, as a standby, is tried again, and who is new waits", async () => {
  const connections = [new ConnectionModel(), new ConnectionModel(), new ConnectionModel()];
  let opened = 0;
  const open = () => Promise.resolve(connections[opened++] as unknown as ServerConnection);
  const hub = new NotificationHub({ open, owned: true, probeInterval: 0 });
  const events: string[] = [];
  const listening = hub.listen("a", { onEvent: ({ type }) => events.push(type), onEnd() {} });
  await aTurn();
  assert.deepEqual(connections[0]!.answer(), ['listen "a"']);
  await limit(listening);
  connections[0]!.onEnded!();
  const late = hub.listen("b", LISTENER);
  await until(() => opened === 2);
  await aTurn();
  const standby = new PostgresError({ C: "25006", M: "cannot execute LISTEN during recovery" });
  assert.deepEqual(connections[1]!.answer(standby), ['listen "a"', 'listen "b"']);
  await until(() => opened === 3);
  await aTurn();
  assert.deepEqual(connections[2]!.answer(), ['listen "a"', 'listen "b"']);
  await limit(late);
  assert.deepEqual(events, ["gap"]);
  hub.close();
});

test("LISTEN inside a block is repeated when a block has ended, until it was sent outside of one", async () => {
  const connection = new ConnectionModel();
  connection.become(IN_TRANSACTION);
  const hub = connection.hub();
  const listening = hub.listen("a", LISTENER);
  await aTurn();
  assert.deepEqual(connection.answer(), ['listen "a"']);
  connection.become(IDLE); // In the same turn: the hub does not look yet.
  await limit(listening);
  await aTurn();
  connection.become(IN_FAILED_TRANSACTION);
  assert.deepEqual(connection.answer(new PostgresError({ C: "25P02", M: "aborted" })), ['listen "a"']);
  await aTurn();
  assert.deepEqual(connection.answer(), []);
  connection.become(IDLE);
  connection.become(IN_TRANSACTION); // At once another block.
  await aTurn();
  assert.deepEqual(connection.answer(), []);
  connection.become(IDLE);
  await aTurn();
  assert.deepEqual(connection.answer(), ['listen "a"']);
  connection.become(IN_TRANSACTION);
  connection.become(IDLE);
  await aTurn();
  assert.deepEqual(connection.answer(), []);
  hub.close();
});

test("who was listening learns when LISTEN cannot be repeated", async () => {
  const connection = new ConnectionModel();
  connection.become(IN_TRANSACTION);
  const hub = connection.hub();
  const ends: unknown[] = [];
  const listening = hub.listen("a", { onEvent() {}, onEnd: (error) => ends.push(error) });
  await aTurn();
  connection.answer();
  await limit(listening);
  connection.become(IDLE);
  await aTurn();
  // Who comes now waits for the server's word.
  const late = hub.listen("a", LISTENER);
  const refusal = new PostgresError({ C: "53200", M: "out of memory" });
  connection.answer(refusal);
  assert.deepEqual(ends, [refusal]);
  assert.equal(await rejectionOf(late), refusal);
  hub.close();
});

test("a hub that ends listening to one channel does not listen to the others again", async () => {
  const connection = new ConnectionModel();
  const hub = connection.hub();
  const listening = ["a", "b"].map((name) => hub.listen(name, LISTENER));
  await aTurn();
  connection.answer();
  await limit(Promise.all(listening));
  hub.unlisten("a", LISTENER);
  assert.deepEqual(connection.answer(), ['unlisten "a"']);
  await aTurn();
  assert.deepEqual(connection.answer(), []);
  hub.close();
});
