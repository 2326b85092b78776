/** A backend that authenticates by SCRAM-SHA-256, honestly or not. */

import assert from "node:assert/strict";
import { createHmac, pbkdf2Sync } from "node:crypto";
import * as backend from "../_support/backend_writer.ts";
import { readSaslInitialResponse, readSaslResponse } from "../_support/frontend_reader.ts";
import type { Script } from "../_support/scripted_backend.ts";
import { SECRET } from "./attempts.ts";

const READY = [
  backend.authenticationOk,
  backend.backendKeyData(1, new Uint8Array(4)),
  backend.readyForQuery(),
];

/** Where to depart from the truth. */
export interface ScramLies {
  readonly mechanisms?: readonly string[];
  readonly nonce?: (client: string) => string;
  readonly iterations?: string;
  readonly salt?: string;
  readonly final?: (signature: string) => string;
  readonly okInsteadOf?: "first" | "continue" | "final";
  readonly password?: string;
}

/** A server that knows SCRAM-SHA-256, and lies where it is told to. */
export function playScram(lies: ScramLies = {}): Script {
  return async (session) => {
    await session.expect("StartupMessage");
    session.send(backend.authenticationSasl(...lies.mechanisms ?? ["SCRAM-SHA-256"]));
    if (lies.okInsteadOf === "first") session.send(...READY);
    const message = await session.receive();
    if (message === undefined || message.type !== "Password") return;
    const { mechanism, response } = readSaslInitialResponse(message.data);
    assert.equal(mechanism, "SCRAM-SHA-256");
    const [, bare, client] = /^n,,(n=[^,]*,r=(.+))$/.exec(response!)!;
    if (lies.okInsteadOf === "continue") return session.send(...READY);
    const salt = Uint8Array.of(9, 8, 7, 6);
    const nonce = (lies.nonce ?? ((own) => `${own}server`))(client!);
    const serverFirst = `r=${nonce},s=${lies.salt ?? "CQgHBg=="},i=${lies.iterations ?? "4096"}`;
    session.send(backend.authenticationSaslContinue(serverFirst));
    const answer = await session.receive();
    if (answer === undefined || answer.type !== "Password") return;
    const clientFinal = readSaslResponse(answer.data);
    const salted = pbkdf2Sync(lies.password ?? SECRET, salt, Number(lies.iterations ?? 4096), 32, "sha256");
    const hmac = (key: Uint8Array, text: string) => createHmac("sha256", key).update(text).digest();
    const authMessage = `${bare},${serverFirst},${clientFinal.replace(/,p=.*/, "")}`;
    const signature = hmac(hmac(salted, "Server Key"), authMessage).toString("base64");
    if (lies.okInsteadOf === "final") return session.send(...READY);
    const final = (lies.final ?? ((own) => `v=${own}`))(signature);
    session.send(backend.authenticationSaslFinal(final), ...READY);
    await session.drain();
  };
}
