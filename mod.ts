/**
 * PostgreSQL for Deno, Bun and Node.js: pipelined, exact, without dependencies.
 *
 * @example
 * ```ts ignore
 * import { connect } from "@pipegres/pipegres";
 *
 * await using conn = await connect("postgres://app@localhost/app");
 * const id = 1;
 * const user = await conn.sql<{ id: number; name: string }>`select id, name from users where id = ${id}`.one();
 * ```
 *
 * @module
 */

export { connect, Connection, type TransactionStatus } from "./src/client/connection.ts";
export type { BatchOptions } from "./src/client/batch.ts";
export type { CopyFromStream, CopyToStream } from "./src/client/copy.ts";
export type { CopyRow, CopyRowsOptions } from "./src/client/copy_rows.ts";
export type { QueryOptions } from "./src/client/executor.ts";
export type { LargeObject, LargeObjectMode, SeekOrigin } from "./src/client/large_object.ts";
export type { NotificationEvent, NotificationStream, Subscription } from "./src/client/notifications.ts";
export { createPool, Pool, type PoolOptions, type PoolTransactionOptions } from "./src/client/pool.ts";
export { PreparedStatement } from "./src/client/prepared_statement.ts";
export { type Description, Query } from "./src/client/query.ts";
export { type BoundSql, Queryable } from "./src/client/queryable.ts";
export type { Field, Result, Row } from "./src/client/result.ts";
export { Fragment, type RowValues, type Sql, sql, type SqlHelpers } from "./src/client/sql.ts";
export type { RowStream } from "./src/client/row_stream.ts";
export type { TransactionOptions } from "./src/client/transaction.ts";
export { Transaction } from "./src/client/transaction_block.ts";
export { Transactional } from "./src/client/transactional.ts";
export type { Circle, Line, Path, Point, Polygon, Segment } from "./src/codecs/geometric.ts";
export { Interval } from "./src/codecs/interval.ts";
export { Range, type RangeBounds } from "./src/codecs/range.ts";
export type { SparseVector } from "./src/codecs/vector.ts";
export { ArrayValue, Json, Typed } from "./src/codecs/parameter.ts";
export type { ChannelBindingMode } from "./src/auth/authenticator.ts";
export type { Columns, ColumnValues } from "./src/codecs/columns.ts";
export type { Codec, FormatCode, Oid } from "./src/codecs/codec.ts";
export type { TypeOverride, TypeOverrides } from "./src/codecs/registry.ts";
export type {
  ConnectOptions,
  OAuthRequest,
  PipelineOptions,
  SslMode,
  TargetSessionAttrs,
  TlsVersion,
} from "./src/connection/options.ts";
export type {
  ConnectTarget,
  TcpKeepalive,
  Transport,
  TransportFactory,
  TransportHandler,
  Utf8Slice,
} from "./src/transport/transport.ts";
export type { PoolStats } from "./src/pool/pool.ts";
export {
  ConfigurationError,
  ConnectionError,
  type ConnectionErrorOptions,
  type Notice,
  PipegresError,
  PipelineAbortedError,
  PoolError,
  PostgresError,
  ProtocolError,
  type ResponseFields,
  type Sent,
  type ServerMessage,
  TimeoutError,
  ValueError,
} from "./src/errors.ts";
export type { Writer } from "./src/wire/writer.ts";
