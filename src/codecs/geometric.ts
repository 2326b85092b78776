/** Geometric types (PostgreSQL manual, 8.8): plain objects of numbers. */

import { ValueError } from "../errors.ts";
import { utf8Slice } from "../wire/utf8.ts";
import type { Codec } from "./codec.ts";
import { checkLength } from "./length.ts";
import { readFloat64, readInt32 } from "./numbers.ts";
import { encodeSimple, textForm } from "./text_form.ts";

/** A point. */
export interface Point {
  /** Horizontal. */
  readonly x: number;
  /** Vertical. */
  readonly y: number;
}

/** The infinite line ax + by + c = 0. */
export interface Line {
  /** Factor of x. */
  readonly a: number;
  /** Factor of y. */
  readonly b: number;
  /** The constant. */
  readonly c: number;
}

/** A line segment (lseg) between two points, or a box of two opposite corners, which the server puts upper right first. */
export interface Segment {
  /** Of the first point. */
  readonly x1: number;
  /** Of the first point. */
  readonly y1: number;
  /** Of the second point. */
  readonly x2: number;
  /** Of the second point. */
  readonly y2: number;
}

/** A path: open, or closed as a polygon is. */
export interface Path {
  /** Whether the last point is joined to the first. */
  readonly closed: boolean;
  /** In order. */
  readonly points: readonly Point[];
}

/** A polygon. */
export interface Polygon {
  /** In order. */
  readonly points: readonly Point[];
}

/** A circle. */
export interface Circle {
  /** Of the centre. */
  readonly x: number;
  /** Of the centre. */
  readonly y: number;
  /** Not negative. */
  readonly radius: number;
}

/** point as `{ x, y }`. */
export const pointCodec: Codec<Point> = fixedCodec("point", ["x", "y"], "(#,#)");

/** line as `{ a, b, c }`. */
export const lineCodec: Codec<Line> = fixedCodec("line", ["a", "b", "c"], "{#,#,#}");

/** lseg as `{ x1, y1, x2, y2 }`. */
export const lsegCodec: Codec<Segment> = fixedCodec("lseg", ["x1", "y1", "x2", "y2"], "[(#,#),(#,#)]");

/** box as `{ x1, y1, x2, y2 }`, the upper right corner first. */
export const boxCodec: Codec<Segment> = fixedCodec("box", ["x1", "y1", "x2", "y2"], "(#,#),(#,#)");

/** circle as `{ x, y, radius }`. */
export const circleCodec: Codec<Circle> = fixedCodec("circle", ["x", "y", "radius"], "<(#,#),#>");

/** A type of some numbers in order; `frame` is its text with a mark for each. */
function fixedCodec<T>(name: string, keys: readonly (keyof T & string)[], frame: string): Codec<T> {
  const gaps = frame.split("#");
  return {
    name,
    preferredFormat: 1,
    decodeText(bytes, start, end): T {
      return objectOf(keys, numbersBetween(name, gaps, utf8Slice(bytes, start, end)));
    },
    decodeBinary(bytes, start, end): T {
      checkLength(keys.length * 8, start, end);
      return objectOf(keys, keys.map((_, i) => readFloat64(bytes, start + i * 8)));
    },
    encodeText(value): string {
      const numbers = numbersOf(value, keys);
      if (numbers === undefined) return encodeSimple(value, `an object with the numbers ${keys.join(", ")}`);
      return gaps.map((gap, i) => i < numbers.length ? gap + textForm(numbers[i]) : gap).join("");
    },
    encodeBinary(value, writer): boolean {
      // The server puts the corners of a box in order only when it reads text.
      const numbers = name === "box" ? undefined : numbersOf(value, keys);
      numbers?.forEach((number) => writer.float64(number));
      return numbers !== undefined;
    },
  };
}

/** path as `{ closed, points }`. */
export const pathCodec: Codec<Path> = {
  name: "path",
  preferredFormat: 1,
  decodeText(bytes, start, end): Path {
    return { closed: bytes[start] === 0x28, points: pointsOf("path", utf8Slice(bytes, start, end)) };
  },
  decodeBinary(bytes, start, end): Path {
    if (end <= start) failShape("path");
    return { closed: bytes[start] === 1, points: readPoints("path", bytes, start + 1, end) };
  },
  encodeText(value): string {
    const points = pointTexts(value);
    if (points === undefined || typeof (value as Path).closed !== "boolean") {
      return encodeSimple(value, "an object with closed and points");
    }
    return (value as Path).closed ? `(${points})` : `[${points}]`;
  },
};

/** polygon as `{ points }`. */
export const polygonCodec: Codec<Polygon> = {
  name: "polygon",
  preferredFormat: 1,
  decodeText(bytes, start, end): Polygon {
    return { points: pointsOf("polygon", utf8Slice(bytes, start, end)) };
  },
  decodeBinary(bytes, start, end): Polygon {
    return { points: readPoints("polygon", bytes, start, end) };
  },
  encodeText(value): string {
    const points = pointTexts(value);
    return points === undefined ? encodeSimple(value, "an object with points") : `(${points})`;
  },
};

/** The numbers of a text between `gaps`, the first and the last of which are its ends. */
function numbersBetween(name: string, gaps: readonly string[], text: string): number[] {
  const numbers: number[] = [];
  let at = 0;
  gaps.forEach((gap, i) => {
    const next = i === 0 ? 0 : i === gaps.length - 1 ? text.length - gap.length : text.indexOf(gap, at);
    if (next < at || !text.startsWith(gap, next)) failShape(name);
    if (i > 0) numbers.push(numberOf(name, text.slice(at, next)));
    at = next + gap.length;
  });
  return numbers;
}

function numberOf(name: string, text: string): number {
  const number = Number(text);
  if (Number.isFinite(number) ? /^[-+.e\d]+$/.test(text) : /^(?:NaN|-?Infinity)$/.test(text)) return number;
  return failShape(name);
}

function objectOf<T>(keys: readonly (keyof T & string)[], numbers: readonly number[]): T {
  const object: Partial<Record<keyof T, number>> = {};
  for (let i = 0; i < keys.length; i++) object[keys[i]!] = numbers[i]!;
  return object as T;
}

function numbersOf<T>(value: unknown, keys: readonly (keyof T & string)[]): number[] | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const numbers = keys.map((key) => (value as Record<string, unknown>)[key]);
  return numbers.every((number) => typeof number === "number") ? numbers as number[] : undefined;
}

const POINT_GAPS: readonly string[] = ["", ",", ""];

function pointsOf(name: string, text: string): Point[] {
  const isOpen = name === "path" && text.startsWith("[");
  if (!(isOpen ? /^\[\(.*\)\]$/ : /^\(\(.*\)\)$/).test(text)) failShape(name);
  return text.slice(2, -2).split("),(").map((point) => {
    const [x, y] = numbersBetween(name, POINT_GAPS, point);
    return { x: x!, y: y! };
  });
}

function readPoints(name: string, bytes: Uint8Array, start: number, end: number): Point[] {
  if (end - start < 4 || end - start !== 4 + readInt32(bytes, start) * 16) failShape(name);
  const points: Point[] = [];
  for (let at = start + 4; at < end; at += 16) {
    points.push({ x: readFloat64(bytes, at), y: readFloat64(bytes, at + 8) });
  }
  return points;
}

function pointTexts(value: unknown): string | undefined {
  const points: unknown = (value as Partial<Polygon> | null)?.points;
  if (!Array.isArray(points)) return undefined;
  const texts = points.map((point) => numbersOf<Point>(point, ["x", "y"]));
  if (texts.includes(undefined)) return undefined;
  return texts.map((numbers) => `(${numbers!.map(textForm).join(",")})`).join(",");
}

function failShape(name: string): never {
  throw new ValueError(`Expected a ${name}, received something else`);
}
