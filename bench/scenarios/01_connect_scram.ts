import { SCRAM_PASSWORD, SCRAM_USER } from "../harness/database.ts";
import type { Context, Scenario } from "../harness/scenario.ts";
import connect from "./01_connect.ts";

const scenario: Scenario<Context> = {
  ...connect,
  name: "connect scram",
  title: "connect, authenticate by SCRAM-SHA-256, close",
  needsValues: true, // the floor knows no password
  setup: ({ target, ...context }) => ({
    ...context,
    target: { ...target, user: SCRAM_USER, password: SCRAM_PASSWORD },
  }),
};
export default scenario;
