/** Connects to the URL of the first argument, queries and closes: the process must then end by itself. */

import process from "node:process";
import { connect } from "../../mod.ts";

const connection = await connect(process.argv[2]!);
const { sql } = connection;
const [first, list, failed] = await Promise.all([
  sql`select ${1}::int4 as n`.one(),
  sql`select ${[1, 2]}::int4[] as l`.scalar(),
  connection.query("selec").catch((error: unknown) => (error as { code: string }).code),
]);
await connection.close();
console.log(JSON.stringify({ first, list, failed }));
