import assert from "node:assert/strict";
import { test } from "node:test";
import { CpuReader } from "../../bench/harness/cpu_reader.ts";

/** A machine on which an operation takes so many milliseconds, and 60 % of them are CPU time. */
function machine(milliseconds: number) {
  const state = { now: 0, cpu: 0, reads: 0 };
  const spend = (time: number) => {
    state.now += time;
    state.cpu += time * 600;
  };
  const clocks = {
    now: () => state.now,
    cpu: () => {
      state.reads++;
      return state.cpu;
    },
  };
  const operation = () => {
    spend(milliseconds);
    return Promise.resolve();
  };
  return { state, spend, reader: new CpuReader(operation, clocks) };
}

async function measure(run: () => Promise<unknown>, reader: CpuReader, count: number): Promise<void> {
  await run();
  reader.inLoop = true;
  for (let i = 0; i < count; i++) await run();
}

test("CpuReader leaves out what is spent before and after the loop", async () => {
  for (const milliseconds of [0.03, 0.9]) {
    const { spend, reader } = machine(milliseconds);
    spend(500);
    await measure(reader.runQuick, reader, 1000);
    spend(500);
    assert.ok(Math.abs(reader.perOperation / (milliseconds * 600) - 1) < 1e-6, `${reader.perOperation}`);
    assert.equal(reader.calls, 1000);
  }
});

test("CpuReader reads seldom when operations are short", async () => {
  const { state, reader } = machine(0.03);
  await measure(reader.runQuick, reader, 1000);
  assert.ok(state.reads >= 5 && state.reads <= 8, `${state.reads} reads in 30 ms`);
});

test("CpuReader counts every one of a few long operations", async () => {
  const { spend, reader } = machine(100);
  spend(500);
  await measure(reader.runSlow, reader, 2);
  spend(500);
  assert.equal(reader.calls, 2);
  assert.ok(Math.abs(reader.perOperation - 60_000) < 1e-6);
});
