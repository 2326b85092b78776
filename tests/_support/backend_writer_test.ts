import assert from "node:assert/strict";
import { test } from "node:test";
import * as backend from "./backend_writer.ts";

function hex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
}

/** Bytes by field, as the manual's message formats say. */
const MESSAGES: readonly [name: string, bytes: Uint8Array, expected: string][] = [
  ["AuthenticationOk", backend.authenticationOk, "52 00000008 00000000"],
  ["AuthenticationKerberosV5", backend.authenticationKerberosV5, "52 00000008 00000002"],
  ["AuthenticationCleartextPassword", backend.authenticationCleartextPassword, "52 00000008 00000003"],
  [
    "AuthenticationMD5Password",
    backend.authenticationMd5Password(new Uint8Array([1, 2, 3, 4])),
    "52 0000000c 00000005 01020304",
  ],
  ["AuthenticationGSS", backend.authenticationGss, "52 00000008 00000007"],
  ["AuthenticationSASL", backend.authenticationSasl("AB", "C"), "52 0000000e 0000000a 414200 4300 00"],
  ["AuthenticationSASLContinue", backend.authenticationSaslContinue("r=1"), "52 0000000b 0000000b 723d31"],
  ["AuthenticationSASLFinal", backend.authenticationSaslFinal("v=1"), "52 0000000b 0000000c 763d31"],
  ["BackendKeyData", backend.backendKeyData(258, new Uint8Array([9, 8])), "4b 0000000a 00000102 0908"],
  ["BindComplete", backend.bindComplete, "32 00000004"],
  ["CloseComplete", backend.closeComplete, "33 00000004"],
  ["CommandComplete", backend.commandComplete("DO"), "43 00000007 444f00"],
  ["CopyData", backend.copyData("a\n"), "64 00000006 610a"],
  ["CopyDone", backend.copyDone, "63 00000004"],
  ["CopyInResponse", backend.copyInResponse(1, [1, 1]), "47 0000000b 01 0002 0001 0001"],
  ["CopyOutResponse", backend.copyOutResponse(0, [0]), "48 00000009 00 0001 0000"],
  ["CopyBothResponse", backend.copyBothResponse(0, []), "57 00000007 00 0000"],
  [
    "DataRow",
    backend.dataRow(["é", null, new Uint8Array([0]), ""]),
    "44 00000019 0004 00000002c3a9 ffffffff 0000000100 00000000",
  ],
  ["EmptyQueryResponse", backend.emptyQueryResponse, "49 00000004"],
  [
    "ErrorResponse",
    backend.errorResponse({ S: "A", V: "B", C: "C", M: "D" }),
    "45 00000011 534100 564200 434300 4d4400 00",
  ],
  [
    "NegotiateProtocolVersion",
    backend.negotiateProtocolVersion(0x30000, ["_pq_"]),
    "76 00000011 00030000 00000001 5f70715f00",
  ],
  ["NoData", backend.noData, "6e 00000004"],
  [
    "NoticeResponse",
    backend.noticeResponse({ S: "A", V: "B", C: "C", M: "D" }),
    "4e 00000011 534100 564200 434300 4d4400 00",
  ],
  ["NotificationResponse", backend.notificationResponse(7, "c", "p"), "41 0000000c 00000007 6300 7000"],
  ["ParameterDescription", backend.parameterDescription([23, 25]), "74 0000000e 0002 00000017 00000019"],
  ["ParameterStatus", backend.parameterStatus("a", "b"), "53 00000008 6100 6200"],
  ["ParseComplete", backend.parseComplete, "31 00000004"],
  ["PortalSuspended", backend.portalSuspended, "73 00000004"],
  ["ReadyForQuery", backend.readyForQuery("T"), "5a 00000005 54"],
  [
    "RowDescription",
    backend.rowDescription([{
      name: "n",
      tableOid: 1,
      columnNumber: 2,
      typeOid: 23,
      typeSize: 4,
      format: 1,
    }]),
    "54 0000001a 0001 6e00 00000001 0002 00000017 0004 ffffffff 0001",
  ],
  ["a message with a false length", backend.message("Z", backend.int8(73), 3), "5a 00000003 49"],
];

for (const [name, bytes, expected] of MESSAGES) {
  test(`${name} is encoded as the manual says`, () => {
    assert.equal(hex(bytes).replaceAll(" ", ""), expected.replaceAll(" ", ""));
  });
}
