/**
 * The parameters of a Bind message.
 *
 * What is sent for a value before its type is known means the same as what is sent afterwards: strings are always text
 * as they are, and numbers, bigints, booleans and Dates have one text form, which a binary form may only stand for.
 */

import { ValueError } from "../errors.ts";
import type { Writer } from "../wire/writer.ts";
import type { Codec, FormatCode, Oid } from "./codec.ts";
import { ArrayValue, isAmbiguous, Json, Typed } from "./parameter.ts";
import type { Registry } from "./registry.ts";
import { lowerFirst } from "./row_decoder.ts";
import { describeValue, failType, textForm } from "./text_form.ts";
import { UnknownTypeError } from "./unknown_type.ts";

/** Bind counts parameters in an unsigned Int16. */
const MOST_PARAMETERS = 65_535;

/**
 * Appends Bind's parameter section: format codes, and length and bytes of each value.
 *
 * @param values what to send; `null` is NULL
 * @param types the type OIDs the server inferred; `null` when it was not asked, then no value may be ambiguous
 * @throws {ValueError} when a value cannot be sent; the caller rewinds `writer`
 */
export function encodeParameters(
  values: readonly unknown[],
  types: readonly Oid[] | null,
  registry: Registry,
  writer: Writer,
): void {
  const count = values.length;
  if (count > MOST_PARAMETERS) {
    throw new ValueError(`Cannot encode ${count} parameters: the protocol's limit is ${MOST_PARAMETERS}`);
  }
  if (types !== null && types.length !== count) {
    throw new ValueError(`Cannot encode ${count} parameters: the statement wants ${types.length}`);
  }
  const codecs = types === null ? declaredCodecs(values, registry) : registry.codecsFor(types);
  const found = formatsOf(values, codecs);
  if ((found & UNKNOWN_TYPE) !== 0 && types !== null) {
    const known = knownTypes(values, types, codecs, registry);
    if (known !== types) return encodeParameters(values, known, registry, writer);
  }
  if ((found & SOME_BINARY) === 0) {
    writer.int32(count); // Int16 no format codes, Int16 number of values
    for (let i = 0; i < count; i++) encodeOne(values[i], codecs[i], 0, i, writer);
    return;
  }
  if ((found & SOME_TEXT) === 0 && encodeAllBinary(values, codecs, writer)) return;
  const formats = writer.formatCodes(count, found >>> FLAGS);
  for (let i = 0; i < count; i++) {
    const value = values[i];
    const binary = i < NOTED
      ? (found >>> FLAGS + i & 1) === 1
      : value !== null && mayBeBinary(value, codecs[i]);
    const format = binary ? 1 : 0;
    const written = encodeOne(value, codecs[i], format, i, writer);
    if (i >= NOTED || written !== format) writer.patchInt16(formats + i * 2, written);
  }
}

const SOME_TEXT = 1;
const SOME_BINARY = 2;
/** Some value is an object for a type without a codec. */
const UNKNOWN_TYPE = 4;
/** Bits that stand for all values. Behind them there is one for each of the first ones, set where it may be binary. */
const FLAGS = 3;
const NOTED = 28;

/**
 * The formats to try; NULL goes with either. A function of its own: JavaScriptCore does not keep the encoder's code
 * optimised with this loop in it.
 */
function formatsOf(values: readonly unknown[], codecs: readonly (Codec | undefined)[]): number {
  let found = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value === "string") found |= SOME_TEXT;
    else if (value !== null) {
      const codec = codecs[i];
      if (mayBeBinary(value, codec)) {
        found |= SOME_BINARY;
        if (i < NOTED) found |= 1 << FLAGS + i;
      } else {
        found |= SOME_TEXT;
        if (codec === undefined && typeof value === "object") found |= UNKNOWN_TYPE;
      }
    }
  }
  return found;
}

/** One format code for all; false, with nothing written, when a value turned out to have no binary form. */
function encodeAllBinary(
  values: readonly unknown[],
  codecs: readonly (Codec | undefined)[],
  writer: Writer,
): boolean {
  const start = writer.mark();
  writer.int32(0x0001_0001); // Int16 one format code, Int16 binary
  writer.int16(values.length);
  for (let i = 0; i < values.length; i++) {
    if (encodeOne(values[i], codecs[i], 1, i, writer) === 1) continue;
    writer.rewind(start);
    return false;
  }
  return true;
}

/** The types, with those that the values carry where the server has not said any. */
function knownTypes(
  values: readonly unknown[],
  types: readonly Oid[],
  codecs: readonly (Codec | undefined)[],
  registry: Registry,
): readonly Oid[] {
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value !== "object" || value === null || codecs[i] !== undefined) continue;
    if (types[i] === 0 && declaredType(value, registry, i) !== 0) return declareRest(values, types, registry);
    checkKnown(value, types, i);
  }
  return types;
}

const NONE_DECLARED: readonly Oid[] = [];

/**
 * The type OIDs to declare in Parse: those of values that carry one, else 0, left to the server. Empty when no value
 * carries one, which is the rule.
 */
export function parameterTypes(values: readonly unknown[], registry: Registry): readonly Oid[] {
  return carriesTypes(values) ? values.map((each, at) => declaredType(each, registry, at)) : NONE_DECLARED;
}

/** Whether a value carries its type. */
export function carriesTypes(values: readonly unknown[]): boolean {
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (value instanceof Typed || (value instanceof ArrayValue && value.type !== undefined)) return true;
  }
  return false;
}

/**
 * What a parameter's type is called where the session has to tell which type that is; `#` and an OID stands for the
 * array type over that type. `undefined` for a parameter without a type, or of a known one.
 */
export function unresolvedName(value: unknown, registry: Registry): string | undefined {
  if (value instanceof Typed) {
    return typeof value.type === "string" && registry.oidOf(value.type) === undefined
      ? value.type
      : undefined;
  }
  if (!(value instanceof ArrayValue) || value.type === undefined) return undefined;
  const { type } = value;
  if (typeof type === "number") return registry.arrayOf(type) === undefined ? `#${type}` : undefined;
  const name = type.trim().endsWith("]") ? type : `${type}[]`;
  return registry.oidOf(name) === undefined ? name : undefined;
}

/** A parameter whose type's name stands for this type. */
export function withType(value: unknown, oid: Oid): Typed {
  return value instanceof Typed
    ? new Typed(value.value, oid)
    : new Typed(new ArrayValue((value as ArrayValue).values), oid);
}

/** The error for parameter `i` of a type that nobody knows. */
export function unknownName(i: number, name: string): ValueError {
  const reason = name.startsWith("#")
    ? `type ${name.slice(1)} has no array type that is known`
    : `type "${name}" is not known: give its OID, or cast in the query`;
  return new ValueError(`Cannot encode parameter $${i + 1}: ${reason}`);
}

function declaredType(value: unknown, registry: Registry, i: number): Oid {
  const name = unresolvedName(value, registry);
  if (name !== undefined) throw unknownName(i, name);
  if (value instanceof Typed) return oidOf(value.type, registry);
  if (!(value instanceof ArrayValue) || value.type === undefined) return 0;
  const { type } = value;
  if (typeof type === "number") return registry.arrayOf(type)!;
  return oidOf(type.trim().endsWith("]") ? type : `${type}[]`, registry);
}

function oidOf(type: string | Oid, registry: Registry): Oid {
  return typeof type === "number" ? type : registry.oidOf(type)!;
}

/** The codecs of the types that values carry themselves. */
function declaredCodecs(values: readonly unknown[], registry: Registry): readonly (Codec | undefined)[] {
  return values.map((value, i) => {
    const declared = typeof value === "object" ? declaredType(value, registry, i) : 0;
    return declared === 0 ? undefined : registry.codecFor(declared);
  });
}

/** The types, with those of the values themselves where a server has not said any. */
function declareRest(values: readonly unknown[], types: readonly Oid[], registry: Registry): readonly Oid[] {
  return types.map((type, i) => type === 0 ? declaredType(values[i], registry, i) : type);
}

/** A value whose text depends on the type cannot be sent to one that is not known. */
function checkKnown(value: unknown, types: readonly Oid[], i: number): void {
  const type = types[i]!;
  const plain = value instanceof Typed ? value.value : value;
  if (type === 0 || !isAmbiguous(plain)) return;
  throw new UnknownTypeError(
    `Cannot encode parameter $${i + 1} of the type with OID ${type}, which is not known: received ` +
      `${describeValue(plain)}; say what it is by sql.typed, sql.array or sql.json, or send its text`,
    type,
  );
}

/** Whether to try the binary form. */
function mayBeBinary(value: unknown, codec: Codec | undefined): boolean {
  if (typeof value === "string" || codec === undefined || codec.encodeBinary === undefined) return false;
  if (typeof value !== "object") return true;
  const plain = value instanceof Typed ? value.value : value;
  return typeof plain !== "string" && !(plain instanceof Json);
}

/** Appends length and bytes; returns the format written. */
function encodeOne(
  value: unknown,
  codec: Codec | undefined,
  format: FormatCode,
  i: number,
  writer: Writer,
): FormatCode {
  if (typeof value === "string") {
    writer.sized(value);
    return 0;
  }
  if (value === null) {
    writer.int32(-1);
    return format;
  }
  const start = writer.beginSized();
  let written: FormatCode = 0;
  try {
    let plain: unknown = value;
    if (typeof value === "object") {
      if (value instanceof Typed) plain = value.value;
      if (plain === null) {
        writer.patchInt32(start, -1);
        return format;
      }
      if (plain instanceof ArrayValue) plain = arrayValues(plain, codec);
    }
    if (format === 1 && codec!.encodeBinary!(plain, writer)) written = 1;
    else writer.utf8(parameterText(plain, codec));
  } catch (cause) {
    const reason = cause instanceof ValueError ? ": " + lowerFirst(cause.message) : "";
    const type = codec === undefined ? "" : ` of type ${codec.name}`;
    throw new ValueError(`Cannot encode parameter $${i + 1}${type}${reason}`, { cause });
  }
  writer.endSized(start);
  return written;
}

function arrayValues(value: ArrayValue, codec: Codec | undefined): readonly unknown[] {
  if (codec?.takesArrays === true) {
    throw new ValueError(`Expected a value for ${codec.name}, received an array made for an array type`);
  }
  return value.values;
}

/** The text of a value that is not null. */
export function parameterText(value: unknown, codec: Codec | undefined): string {
  if (value instanceof Json) return value.text();
  if (codec !== undefined && typeof value === "object") return codec.encodeText(value);
  const text = textForm(value);
  if (text !== undefined) return text;
  if (typeof value !== "object") return failType(value, "a value or null");
  throw new ValueError(
    `Expected a string, a number, a bigint, a boolean, a Date or null, received ${describeValue(value)}: ` +
      "say what it is by sql.typed, sql.array or sql.json, or send its text",
  );
}
