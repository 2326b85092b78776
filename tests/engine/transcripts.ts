/** Replies of a server that agrees. */

import * as backend from "../_support/backend_writer.ts";

const { bindComplete, commandComplete, dataRow, noData, parameterDescription, parseComplete, readyForQuery } =
  backend;

/** A first use of a statement with text columns, up to ReadyForQuery. */
export function firstUse(columns: readonly string[], ...rows: readonly (readonly string[])[]): Uint8Array {
  return backend.concat(described(columns), executed(...rows), readyForQuery());
}

/** ParseComplete and the description. */
export function described(
  columns: readonly (string | backend.ColumnDescription)[],
  parameterTypes: readonly number[] = [],
): Uint8Array {
  const fields = columns.length === 0 ? noData : backend.rowDescription(columns);
  return backend.concat(parseComplete, parameterDescription(parameterTypes), fields);
}

/** BindComplete, rows and the command tag. */
export function executed(...rows: readonly (readonly backend.ColumnValue[])[]): Uint8Array {
  return backend.concat(
    bindComplete,
    ...rows.map((row) => dataRow(row)),
    commandComplete(`SELECT ${rows.length}`),
  );
}

/** A whole answer to a simple query of one column. */
export function simpleAnswer(...values: readonly string[]): Uint8Array {
  return backend.concat(
    backend.rowDescription(["a"]),
    ...values.map((value) => dataRow([value])),
    commandComplete(`SELECT ${values.length}`),
    readyForQuery(),
  );
}

/** An error and the ReadyForQuery behind it. */
export function failed(code: string, message: string, status: "I" | "E" = "I"): Uint8Array {
  return backend.concat(backend.errorResponse({ C: code, M: message }), readyForQuery(status));
}
