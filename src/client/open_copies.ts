/** COPY operations of an owner that may end before they do: a transaction, an acquired session. */

import type { Request } from "../engine/request.ts";
import { type Attachment, chainObserver } from "./executor.ts";

/** Those that are under way. */
export class OpenCopies {
  readonly #giveUps: Map<Request, Attachment> = new Map();

  /** The attachment, with its requests watched. */
  watch(attachment: Attachment): Attachment {
    return {
      ...attachment,
      submit: (request) => {
        this.#giveUps.set(request, attachment);
        chainObserver(request, () => this.#giveUps.delete(request));
        attachment.submit(request);
      },
    };
  }

  /** The owner ends: the server is told of the end of each COPY, which fails; nothing of it is stored. */
  giveUp(failure: () => Error): void {
    for (const [request, attachment] of this.#giveUps) {
      if (request.settled) continue;
      request.fail(failure);
      // Its consumer may have stopped reading what is waited for now.
      attachment.connection.setReading(true);
      attachment.giveUp(request);
    }
  }
}
