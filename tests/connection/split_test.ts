/** Establishing by SCRAM, cut at every byte of what the server says. */

import { test } from "node:test";
import assert from "node:assert/strict";
import { concat } from "../_support/backend_writer.ts";
import type { Script } from "../_support/scripted_backend.ts";
import { succeed } from "./attempts.ts";
import { playScram } from "./scram_backend.ts";

/** The script, with a cut before the byte at `position` of all that it sends; tells how much that was. */
function cut(script: Script, position: number, tell: (sent: number) => void): Script {
  return async (session, index) => {
    const send = session.send.bind(session);
    let sent = 0;
    session.send = (...messages) => {
      const bytes = concat(...messages);
      const at = position - sent;
      sent += bytes.length;
      if (at > 0 && at < bytes.length) {
        send(bytes.subarray(0, at));
        send(bytes.subarray(at));
      } else send(bytes);
    };
    await script(session, index);
    tell(sent);
  };
}

test("a SCRAM exchange cut at every single byte succeeds", async () => {
  let total = 1;
  let tried = 0;
  for (let position = 0; position < total; position++) {
    // Few iterations: the arithmetic is not what is tested.
    await succeed(cut(playScram({ iterations: "1" }), position, (sent) => total = sent));
    tried++;
  }
  assert.ok(tried > 150, `${tried} bytes`);
});
