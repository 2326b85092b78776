/**
 * A server that reads what an engine writes and answers by the protocol's rules: segments end at Sync, an error skips
 * up to it. Texts say what happens: `rows 3`, `error`, `notice`, `empty`.
 */

import * as backend from "../_support/backend_writer.ts";
import type { FrontendMessage } from "../_support/frontend_reader.ts";

const ERROR = backend.errorResponse({ C: "22012", M: "division by zero" });

export class ServerModel {
  #texts: Map<string, string> = new Map();
  #portal: string = "";
  #skipping: boolean = false;

  /** The replies to messages. */
  answer(messages: readonly FrontendMessage[]): Uint8Array {
    return backend.concat(...messages.map((message) => this.#answerOne(message)));
  }

  #answerOne(message: FrontendMessage): Uint8Array {
    if (message.type === "Sync") {
      this.#skipping = false;
      return backend.readyForQuery();
    }
    if (this.#skipping) return new Uint8Array(0);
    switch (message.type) {
      case "Query":
        return this.#query(message.text);
      case "Parse":
        if (message.text.includes("unparsable")) return this.#fail();
        this.#texts.set(message.statement, message.text);
        return backend.parseComplete;
      case "Describe": {
        const rows = /rows/.test(this.#texts.get(message.name) ?? "");
        return backend.concat(
          backend.parameterDescription([25]),
          rows ? backend.rowDescription(["a", { name: "b", typeOid: 23 }]) : backend.noData,
        );
      }
      case "Bind":
        if (!this.#texts.has(message.statement)) return this.#fail("26000");
        this.#portal = this.#texts.get(message.statement)!;
        return this.#portal.includes("unbindable") ? this.#fail() : backend.bindComplete;
      case "Execute":
        return this.#execute(this.#portal);
      case "Close":
        this.#texts.delete(message.name);
        return backend.closeComplete;
      default:
        return new Uint8Array(0);
    }
  }

  #fail(code?: string): Uint8Array {
    this.#skipping = true;
    return code === undefined ? ERROR : backend.errorResponse({ C: code });
  }

  #query(text: string): Uint8Array {
    const rows = /rows/.test(text) ? backend.rowDescription(["a", "b"]) : new Uint8Array(0);
    const answer = /error|unparsable|unbindable/.test(text) ? ERROR : this.#execute(text);
    this.#skipping = false;
    return backend.concat(rows, answer, backend.readyForQuery());
  }

  #execute(text: string): Uint8Array {
    const before = text.includes("notice") ? backend.noticeResponse() : new Uint8Array(0);
    if (text.includes("error")) return backend.concat(before, this.#fail());
    if (text.includes("empty")) return backend.concat(before, backend.emptyQueryResponse);
    const count = Number(/rows (\d+)/.exec(text)?.[1] ?? 0);
    const row = (i: number) =>
      backend.dataRow([`${text} ${i}`, i % 2 === 0 ? null : Uint8Array.of(0, 0, 0, i)]);
    return backend.concat(
      before,
      ...Array.from({ length: count }, (_, i) => row(i)),
      backend.commandComplete(`SELECT ${count}`),
    );
  }
}
