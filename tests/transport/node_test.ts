import { createNodeTransport } from "../../src/transport/node.ts";
import { conformSockets } from "./socket_conformance.ts";

conformSockets(createNodeTransport());
