/** What few requests have; the others do without the memory. */

import type { Notice, ResponseFields } from "../errors.ts";
import { keepShape } from "../wire/keep_shape.ts";
import type { CopySink, Learner, Request, StatementResult } from "./request.ts";

/** Each is described where {@linkcode Request} shows it. */
export class Rare {
  maxRows: number = 0;
  portal: string = "";
  onSuspended: ((request: Request) => void) | null = null;
  names: readonly string[] | null = null;
  learner: Learner | null = null;
  asksFor: Request | null = null;
  copy: CopySink | null = null;
  closing: string[] | null = null;
  results: StatementResult[] | null = null;
  notices: Notice[] | null = null;
  serverError: ResponseFields | null = null;
}

keepShape(new Rare());
