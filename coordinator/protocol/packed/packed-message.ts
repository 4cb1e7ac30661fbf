/**
 * A message in parts that are each compressed best separately: its shape, which repeats; its texts, one per line; its numbers
 * as bytes; and its page's links. Any JSON is restored exactly, including fields that this file does not know. A packed
 * message depends on no other, so that it can wait on disk.
 *
 *   {url:"/a",status:200,title:"Hi"}  →  text "https://x.example\n{url:u,status:i,title:s}\n/a\nHi", numbers c8 01
 *
 * A shape is JSON with the values' forms in place of the values:
 *   n T F "short"   null, true, false, a short text in small letters, told with the shape
 *   s j             a text on a line of its own; anything at all as a line of JSON
 *   u               a URL of the message's origin, without that origin
 *   i t             a whole number; a number of tenths
 *   h d m D         texts that are numbers: hex, instant, HTTP date, decimal (numbers.ts)
 *   L               a page's links (links.ts)
 *   v               the lexemes of a crawler before version 7, which are skipped
 *   [x]             so many values, all of the form s, j or an object of those
 */
import { linkLines } from "./links.ts";
import { httpDateOf, instantOf, isDecimal, isHex, NumberWriter } from "./numbers.ts";

export interface PackedMessage {
  /** The lines: the common origin of the URLs or nothing, the shape, then the texts in the shape's order. */
  readonly text: string;
  readonly numbers: Buffer;
  /** The page's links, one per line; null when the message has none. */
  readonly links: readonly string[] | null;
}

/** `origin` is that of most URLs in the message, such as `https://site.example`; empty for none. */
export function packMessage(message: object, origin: string): PackedMessage {
  const packed = new Packer(origin).pack(message);
  const isText = isWellFormed(packed.text) && (packed.links === null || isWellFormed(packed.links.join("")));
  return isText ? packed : asJson(message);
}

/** Unpaired surrogates, which UTF-8 cannot hold, are escaped in JSON. */
function asJson(message: object): PackedMessage {
  return { text: `\nj\n${JSON.stringify(message)}`, numbers: Buffer.alloc(0), links: null };
}

/** The type declarations lack it; every supported runtime has it. */
function isWellFormed(text: string): boolean {
  return (text as string & { isWellFormed(): boolean }).isWellFormed();
}

const shortText = /^[a-z0-9][a-z0-9:/+._-]{0,23}$/;
const plainKey = /^[A-Za-z][A-Za-z0-9]{0,39}$/;
/** A cache of checked keys, of which the protocol has about a hundred. */
const plainKeys = new Set<string>();

function isPlainKey(key: string): boolean {
  if (plainKeys.has(key)) return true;
  if (!plainKey.test(key)) return false;
  if (plainKeys.size < 1000) plainKeys.add(key);
  return true;
}

class Packer {
  readonly #origin: string;
  readonly #lines: string[] = [];
  readonly #numbers = new NumberWriter();
  #links: readonly string[] | null = null;

  constructor(origin: string) {
    this.#origin = origin;
  }

  pack(message: object): PackedMessage {
    const shape = this.#value(message);
    const text = [this.#origin, shape, ...this.#lines].join("\n");
    return { text, numbers: this.#numbers.finish(), links: this.#links };
  }

  /** Writes the value's texts and numbers and returns its shape. */
  #value(value: unknown): string {
    if (value === null) return "n";
    if (value === true) return "T";
    if (value === false) return "F";
    if (typeof value === "number") return this.#number(value);
    if (typeof value === "string") return this.#string(value);
    if (Array.isArray(value)) return this.#array(value);
    return this.#object(value as object, (field) => this.#value(field));
  }

  #number(value: number): string {
    if (Number.isSafeInteger(value) && value >= 0 && !Object.is(value, -0)) {
      this.#numbers.number(value);
      return "i";
    }
    const tenths = Math.round(value * 10);
    if (!(tenths > 0 && tenths / 10 === value && Number.isSafeInteger(tenths))) return this.#json(value);
    this.#numbers.number(tenths);
    return "t";
  }

  #string(value: string): string {
    if (value.length <= 24 && (value === "" || shortText.test(value))) return this.#shortText(value);
    if (this.#origin !== "" && value.startsWith(`${this.#origin}/`) && !value.includes("\n")) {
      return this.#line(value.slice(this.#origin.length), "u");
    }
    if (isHex(value)) {
      this.#numbers.number(value.length / 2);
      this.#numbers.bytes(Buffer.from(value, "hex"));
      return "h";
    }
    const instant = instantOf(value);
    if (instant !== null) return this.#counted(instant, "d");
    const date = httpDateOf(value);
    if (date !== null) return this.#counted(date, "m");
    return this.#plain(value);
  }

  #shortText(value: string): string {
    return isDecimal(value) ? this.#counted(Number(value), "D") : `"${value}"`;
  }

  #counted(number: number, form: string): string {
    this.#numbers.number(number);
    return form;
  }

  #line(line: string, form: string): string {
    this.#lines.push(line);
    return form;
  }

  #json(value: unknown): string {
    return this.#line(JSON.stringify(value), "j");
  }

  #plain(value: string): string {
    return value.includes("\n") ? this.#json(value) : this.#line(value, "s");
  }

  #object(value: object, shapeOf: (field: unknown) => string): string {
    const fields = value as Readonly<Record<string, unknown>>;
    const keys = Object.keys(value);
    if (!keys.every(isPlainKey)) return this.#json(value);
    let shape = "";
    for (const key of keys) {
      const field = fields[key];
      if (field !== undefined) shape += `${shape === "" ? "{" : ","}${key}:${shapeOf(field)}`;
    }
    return shape === "" ? this.#json(value) : `${shape}}`;
  }

  #array(values: readonly unknown[]): string {
    const lines = this.#links === null && values.length > 0 ? linkLines(values, this.#origin) : null;
    if (lines !== null) {
      this.#links = lines;
      return "L";
    }
    return this.#evenArray(values) ?? this.#json(values);
  }

  /** Returns null and writes nothing when the values differ in shape. */
  #evenArray(values: readonly unknown[]): string | null {
    const [lines, numbers] = [this.#lines.length, this.#numbers.length];
    this.#numbers.number(values.length);
    let shape = "";
    for (const value of values) {
      const own = this.#element(value);
      if (shape === "") shape = own;
      if (own === shape) continue;
      this.#lines.length = lines;
      this.#numbers.cutTo(numbers);
      return null;
    }
    return `[${shape}]`;
  }

  /** In a list, uniform shapes save more than the shortest form of each value. */
  #element(value: unknown): string {
    if (typeof value === "string") return this.#plain(value);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? this.#object(value, (field) => this.#element(field)) : this.#json(value);
  }
}
