/**
 * What the SQL template costs until text and values are there: plain, with fragments, with helpers.
 *
 * node bench/micro/sql_template_bench.ts   (or deno run -A, bun run)
 */

import { compile, sql } from "../../src/client/sql.ts";
import { loadMitata } from "./mitata.ts";

const OPERATIONS = 1000;
const ROWS = Array.from({ length: 100 }, (_, i) => ({ id: i, name: `name ${i}` }));

const mitata = await loadMitata();

function add(name: string, make: (index: number) => Parameters<typeof compile>[0]): void {
  mitata.bench(name, () => {
    for (let i = 0; i < OPERATIONS; i++) mitata.do_not_optimize(compile(make(i)));
  });
}

mitata.group(`${OPERATIONS} templates`, () => {
  add("no value", () => sql`select 1`);
  add("two values", (i) => sql`select * from t where a = ${i} and b = ${"x"}`);
  add("a fragment in a template", (i) => sql`select * from t where ${sql`a = ${i}`} limit ${10}`);
  add("an identifier", (i) => sql`select * from ${sql.id("public", "t")} where a = ${i}`);
  add("a list of three", (i) => sql`select * from t where a in (${sql.list([i, 2, 3])})`);
});
mitata.group("1 template", () => {
  mitata.bench(
    "values of 100 rows",
    () => mitata.do_not_optimize(compile(sql`insert into t ${sql.values(ROWS)}`)),
  );
});
await mitata.run();
