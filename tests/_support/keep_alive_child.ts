/**
 * Connects to 127.0.0.1 and leaves the connection open: whether this process then ends by itself is what the
 * transport tests ask. Arguments: transport name, port, `keep` or `release`.
 */

import process from "node:process";
import { selectTransport, type TransportName } from "../../src/transport/select.ts";

const [name, port, mode] = process.argv.slice(2);
const factory = await selectTransport(name as TransportName);
const transport = await factory.connect({ host: "127.0.0.1", port: Number(port) });
transport.start({
  onBytes() {},
  onEnd() {
    console.log("ended");
  },
});
transport.write(new Uint8Array(10));
if (mode === "release") transport.setKeepAlive(false);
console.log("connected");
