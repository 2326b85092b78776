/** Lets queries fail and the server end the session; whatever nobody handled would be printed. */

import process from "node:process";
import { connect } from "../../mod.ts";

process.on("unhandledRejection", (reason) => {
  console.log(`unhandled: ${reason}`);
  process.exit(3);
});
process.on("uncaughtException", (error) => {
  console.log(`uncaught: ${error}`);
  process.exit(4);
});

const url = process.argv[2]!;
const connection = await connect(url);
// Failures that a user handles late, or by another of the promises.
const failing = connection.query("selec");
const query = connection.sql`selec`;
const results = await Promise.allSettled([failing, query, query.result(), connection.exec("select 1/0")]);
console.log(`pid ${connection.processId} ${results.map(({ status }) => status)}`);
// The server ends the session: nobody is there to be told, and nothing may be thrown at nobody.
await connection.query("select pg_terminate_backend(pg_backend_pid())").catch(() => {});
for (let i = 0; i < 200 && !connection.closed; i++) await new Promise((resolve) => setTimeout(resolve, 10));
console.log(`closed ${connection.closed}`);
