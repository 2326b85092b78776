/** Large objects: reading, writing, seeking, as streams, and what becomes of them with their transaction. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { LargeObject, Transaction } from "../../mod.ts";
import { ask, leavesNoSession, limit } from "../_support/server.ts";
import { rejectionOf, type SessionOptions, withConnection } from "../_support/session.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (data: Uint8Array) => new TextDecoder().decode(data);

/** Runs `body` in a transaction that is rolled back. */
async function withLargeObject(
  body: (object: LargeObject, tx: Transaction) => Promise<void>,
  options: SessionOptions = {},
): Promise<void> {
  await withConnection(async (conn) => {
    await using tx = await conn.begin();
    const object = await tx.createLargeObject();
    assert.ok(object.oid > 0);
    await body(object, tx);
  }, options);
}

test("reads what was written, from any position", async () => {
  await withLargeObject(async (object) => {
    assert.equal(await object.size(), 0);
    assert.equal((await object.read(10)).length, 0);
    await object.write(bytes("0123456789"));
    assert.equal(await object.tell(), 10);
    assert.equal(await object.size(), 10);
    assert.equal(await object.tell(), 10);
    assert.equal(await object.seek(2), 2);
    assert.equal(text(await object.read(3)), "234");
    assert.equal(await object.seek(-1, "current"), 4);
    assert.equal(await object.seek(-3, "end"), 7);
    assert.equal(text(await object.read(100)), "789");
    await object.seek(8);
    await object.write(bytes("xyz"));
    await object.seek(12);
    await object.write(bytes("!"));
    await object.seek(0);
    assert.equal(text(await object.read(100)), "01234567xyz\0!");
    await object.truncate(3);
    assert.equal(await object.size(), 3);
    await object.truncate(5);
    await object.seek(0);
    assert.equal(text(await object.read(100)), "012\0\0");
    await object.write(new Uint8Array(0));
    assert.equal((await object.read(0)).length, 0);
  });
});

test("positions beyond 2^31 bytes", async () => {
  await withLargeObject(async (object) => {
    assert.equal(await object.seek(3_000_000_000), 3_000_000_000);
    await object.write(bytes("far"));
    assert.equal(await object.size(), 3_000_000_003);
    await object.seek(-3, "end");
    assert.equal(text(await object.read(10)), "far");
    await object.truncate(2_999_999_999);
    assert.equal(await object.size(), 2_999_999_999);
  }, { within: 60_000 });
});

test("as streams, in chunks of any size, whatever types the session has", async () => {
  const size = 3_000_001;
  const data = Uint8Array.from({ length: size }, (_, i) => (i * 7919) >> 3);
  const asText = { decodeText: () => "not bytes" };
  for (
    const options of [{}, { int8: "string" as const, types: { bytea: asText, int4: asText, oid: asText } }]
  ) {
    await withLargeObject(async (object, tx) => {
      const source = new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(data.subarray(0, 1));
          controller.enqueue(data.subarray(1, 1));
          controller.enqueue(data.subarray(1, 2_000_000));
          controller.enqueue(data.subarray(2_000_000));
          controller.close();
        },
      });
      await limit(source.pipeTo(object.writable()));
      assert.equal(await object.size(), size);
      await object.seek(0);
      const parts: Uint8Array[] = [];
      for await (const part of object.readable()) parts.push(part);
      assert.ok(parts.every(({ length }) => length <= 262_144));
      assert.deepEqual(new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer()), data);
      await object.seek(1);
      assert.deepEqual(await object.read(2_500_000), data.subarray(1, 2_500_001));
      // A reader that leaves early leaves the object as it is.
      await object.seek(0);
      for await (const _ of object.readable()) break;
      assert.equal(await object.tell(), 262_144);
      assert.equal((await tx.sql`select 1 as a`).length, 1);
    }, { ...options, within: 60_000 });
  }
});

test("calls that are not waited for are answered in order", async () => {
  await withLargeObject(async (object) => {
    const results = await Promise.all([
      object.write(bytes("abc")),
      object.size(),
      object.seek(1),
      object.read(1),
      object.size(),
      object.read(1),
      object.tell(),
    ]);
    assert.deepEqual(results, [undefined, 3, 1, bytes("b"), 3, bytes("c"), 3]);
  });
});

test("calls of several requests are answered whole, in order with all others", async () => {
  await withLargeObject(async (object) => {
    const long = new Uint8Array(600_000).fill(1);
    const late = bytes("late");
    const writes = [object.write(long), object.write(Uint8Array.of(2)), object.tell(), object.write(late)];
    // The caller's buffers are the caller's again.
    long.fill(9);
    late.fill(9);
    assert.deepEqual(await Promise.all(writes), [undefined, undefined, 600_001, undefined]);
    const data = new Uint8Array(600_005).fill(1);
    data.set([2, ...bytes("late")], 600_000);
    await object.seek(0);
    assert.deepEqual(await object.read(1_000_000), data);
    const reads = [object.seek(0), object.read(600_000), object.read(1), object.size(), object.read(300_000)];
    assert.deepEqual(
      await Promise.all(reads),
      [0, data.subarray(0, 600_000), Uint8Array.of(2), 600_005, bytes("late")],
    );
    // A call from the answer of another one stands behind those that were made before.
    await object.seek(0);
    let inner: Promise<unknown> | undefined;
    const outer = object.read(600_000).then(() => inner = object.tell());
    await Promise.all([outer, object.read(2)]);
    assert.equal(await inner, 600_002);
    const closing = [object.seek(7), object.write(long), object.tell(), object.close()];
    assert.deepEqual(await Promise.all(closing), [7, undefined, 600_007, undefined]);
  });
});

test("a call that fails lets those behind it fail, and none wait", async () => {
  await withConnection(async (conn) => {
    const failing = conn.transaction(async (tx) => {
      const { oid } = await tx.createLargeObject();
      const object = await tx.largeObject(oid, { mode: "read" });
      const calls = [object.write(new Uint8Array(600_000)), object.read(600_000), object.tell()];
      const codes = await limit(Promise.all(calls.map((call) => rejectionOf(call))));
      assert.deepEqual(codes.map(({ code }) => code), ["55000", "25P02", "25P02"]);
    });
    assert.match((await rejectionOf(failing)).message, /rolled back/);
  });
});

test("modes, errors, and use after the end", async () => {
  await withConnection(async (conn) => {
    const oid = await conn.transaction(async (tx) => {
      const object = await tx.createLargeObject();
      await object.write(bytes("kept"));
      return object.oid;
    });
    try {
      await conn.transaction(async (tx) => {
        const object = await tx.largeObject(oid, { mode: "read" });
        assert.equal(text(await object.read(10)), "kept");
        const written = tx.transaction(async (sp) => {
          await (await sp.largeObject(oid, { mode: "read" })).write(bytes("x"));
        });
        assert.equal((await rejectionOf(written)).code, "55000");
        await using other = await tx.largeObject(oid);
        await other.seek(-1, "end");
        await other.write(bytes("T!"));
        await object.close();
        await object.close();
        assert.match((await rejectionOf(object.read(1))).message, /closed/);
      });
      const missing = conn.transaction((tx) => tx.largeObject(oid + 1));
      assert.equal((await rejectionOf(missing)).code, "42704");
      const existing = conn.transaction((tx) => tx.createLargeObject({ oid }));
      assert.equal((await rejectionOf(existing)).code, "23505");
      const old = await conn.transaction((tx) => tx.largeObject(oid, { mode: "read" }));
      assert.match((await rejectionOf(old.read(1))).message, /ended/);
      await old[Symbol.asyncDispose]();
      await conn.transaction(async (tx) => {
        assert.equal(text(await (await tx.largeObject(oid, { mode: "read" })).read(10)), "kepT!");
        for (
          const refused of [
            () => tx.largeObject(oid, { mode: "append" as "read" }),
            () => tx.largeObject(oid, { mode: "toString" as "read" }),
            () => tx.largeObject(oid, { mode: null as unknown as "read" }),
            async () => await (await tx.largeObject(oid)).seek(0.5),
            async () => await (await tx.largeObject(oid)).seek(0, "middle" as "end"),
            async () => await (await tx.largeObject(oid)).seek(0, "toString" as "end"),
            async () => await (await tx.largeObject(oid)).truncate(-1),
            async () => await (await tx.largeObject(oid)).read(-1),
            async () => await (await tx.largeObject(oid)).write("text" as unknown as Uint8Array),
          ]
        ) assert.equal((await rejectionOf(refused())).name, "ValueError");
      });
      // Rolled back, deleted, and gone.
      await rejectionOf(conn.transaction(async (tx) => {
        await (await tx.largeObject(oid)).truncate(0);
        throw new Error("mine");
      }));
      await conn.transaction(async (tx) => {
        assert.equal(await (await tx.largeObject(oid)).size(), 5);
        await tx.unlinkLargeObject(oid);
      });
      const gone = conn.transaction((tx) => tx.unlinkLargeObject(oid));
      assert.equal((await rejectionOf(gone)).code, "42704");
    } finally {
      await ask(`select lo_unlink(oid) from pg_largeobject_metadata where oid = ${oid}`);
    }
  });
});

leavesNoSession();
