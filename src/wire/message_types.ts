/** Message type bytes and request codes (PostgreSQL manual, 53.7 "Message Formats"), in the manual's order. */

// Backend messages.
export const AUTHENTICATION = 0x52; // 'R'
export const BACKEND_KEY_DATA = 0x4b; // 'K'
export const BIND_COMPLETE = 0x32; // '2'
export const CLOSE_COMPLETE = 0x33; // '3'
export const COMMAND_COMPLETE = 0x43; // 'C'
export const COPY_DATA = 0x64; // 'd', also a frontend message
export const COPY_DONE = 0x63; // 'c', also a frontend message
export const COPY_IN_RESPONSE = 0x47; // 'G'
export const COPY_OUT_RESPONSE = 0x48; // 'H'
export const COPY_BOTH_RESPONSE = 0x57; // 'W'
export const DATA_ROW = 0x44; // 'D'
export const EMPTY_QUERY_RESPONSE = 0x49; // 'I'
export const ERROR_RESPONSE = 0x45; // 'E'
export const NEGOTIATE_PROTOCOL_VERSION = 0x76; // 'v'
export const NO_DATA = 0x6e; // 'n'
export const NOTICE_RESPONSE = 0x4e; // 'N'
export const NOTIFICATION_RESPONSE = 0x41; // 'A'
export const PARAMETER_DESCRIPTION = 0x74; // 't'
export const PARAMETER_STATUS = 0x53; // 'S'
export const PARSE_COMPLETE = 0x31; // '1'
export const PORTAL_SUSPENDED = 0x73; // 's'
export const READY_FOR_QUERY = 0x5a; // 'Z'
export const ROW_DESCRIPTION = 0x54; // 'T'

// Frontend messages.
export const BIND = 0x42; // 'B'
export const CLOSE = 0x43; // 'C'
export const COPY_FAIL = 0x66; // 'f'
export const DESCRIBE = 0x44; // 'D'
export const EXECUTE = 0x45; // 'E'
export const FLUSH = 0x48; // 'H'
export const PARSE = 0x50; // 'P'
/** PasswordMessage, SASLInitialResponse and SASLResponse. */
export const PASSWORD = 0x70; // 'p'
export const QUERY = 0x51; // 'Q'
export const SYNC = 0x53; // 'S'
export const TERMINATE = 0x58; // 'X'

// What Describe and Close aim at.
export const STATEMENT = 0x53; // 'S'
export const PORTAL = 0x50; // 'P'

// Codes that stand where a StartupMessage has its protocol version.
export const CANCEL_REQUEST = 80_877_102;
export const SSL_REQUEST = 80_877_103;

/** Protocol versions: the major one in the upper, the minor one in the lower 16 bits. */
export const PROTOCOL_3_0 = 0x0003_0000;
/** PostgreSQL 18: cancel keys of up to 256 bytes. */
export const PROTOCOL_3_2 = 0x0003_0002;

// Authentication requests.
export const AUTHENTICATION_OK = 0;
export const AUTHENTICATION_KERBEROS_V5 = 2;
export const AUTHENTICATION_CLEARTEXT_PASSWORD = 3;
export const AUTHENTICATION_MD5_PASSWORD = 5;
export const AUTHENTICATION_GSS = 7;
export const AUTHENTICATION_GSS_CONTINUE = 8;
export const AUTHENTICATION_SSPI = 9;
export const AUTHENTICATION_SASL = 10;
export const AUTHENTICATION_SASL_CONTINUE = 11;
export const AUTHENTICATION_SASL_FINAL = 12;

// Transaction status in ReadyForQuery.
export const IDLE = 0x49; // 'I'
export const IN_TRANSACTION = 0x54; // 'T'
export const IN_FAILED_TRANSACTION = 0x45; // 'E'
