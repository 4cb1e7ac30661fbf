/** Unpacks packed messages (packed-message.ts). The output is not validated yet. */
import { ProtocolError } from "#core/errors";
import { maxListedUrls } from "../result.ts";
import { checkOrigin, linkOf } from "./links.ts";
import { httpDateText, instantText, NumberReader } from "./numbers.ts";
import type { PackedMessage } from "./packed-message.ts";

/** Maximum number of lines of a message: six one-line fields per sitemap link, and the rest for all other lists. */
export const maxLines: number = 6 * maxListedUrls + 10_000;

/** Maximum number of values in all JSON lines together (as for a message that is JSON as a whole), and of their nesting. */
const maxValues = 150_000;

const maxDepth = 16;

/** Throws ProtocolError for anything that `packMessage` does not produce. */
export function unpackMessage({ text, numbers, links }: PackedMessage): unknown {
  const lines = text.split("\n", maxLines + 1);
  if (lines.length > maxLines) throw new ProtocolError("a packed message has too many lines");
  const unpacker = new Unpacker(lines, numbers, links);
  return unpacker.message();
}

class Unpacker {
  readonly #lines: readonly string[];
  readonly #numbers: NumberReader;
  readonly #links: readonly string[] | null;
  #origin = "";
  #at = 0;
  #values = maxValues;

  constructor(lines: readonly string[], numbers: Buffer, links: readonly string[] | null) {
    this.#lines = lines;
    this.#numbers = new NumberReader(numbers);
    this.#links = links;
  }

  message(): unknown {
    this.#origin = checkOrigin(this.#line());
    const message = this.#value(readShape(this.#line()));
    if (this.#at === this.#lines.length && this.#numbers.isAtEnd) return message;
    throw new ProtocolError("a packed message has more in it than its shape says");
  }

  #line(): string {
    const line = this.#lines[this.#at++];
    if (line === undefined) throw new ProtocolError("a packed message has too few lines");
    return line;
  }

  #value(shape: Shape): unknown {
    switch (shape.type) {
      case "text":
        return shape.text;
      case "form":
        return this.#form(shape.form);
      case "list":
        return this.#list(shape.of);
      case "object":
        return Object.fromEntries(shape.fields.map(([key, field]) => [key, this.#value(field)]));
    }
  }

  #list(of: Shape | null): unknown[] {
    const count = this.#numbers.number();
    if (count > (of === null ? 0 : this.#lines.length - this.#at)) {
      throw new ProtocolError("a packed list has fewer lines than values");
    }
    return Array.from({ length: count }, () => (of === null ? null : this.#value(of)));
  }

  #form(form: string): unknown {
    switch (form) {
      case "n":
        return null;
      case "T":
        return true;
      case "F":
        return false;
      case "s":
        return this.#line();
      case "u":
        return this.#origin + this.#line();
      case "j":
        return this.#parsed(this.#line());
      case "i":
        return this.#numbers.number();
      case "t":
        return this.#numbers.number() / 10;
      case "D":
        return String(this.#numbers.number());
      case "h":
        return this.#numbers.bytes(this.#numbers.number()).toString("hex");
      case "d":
        return timeOr(instantText(this.#numbers.number()));
      case "m":
        return timeOr(httpDateText(this.#numbers.number()));
      case "v":
        return this.#skippedLexemes();
      case "L":
        return this.#pageLinks();
      default:
        throw new ProtocolError("a packed message's shape makes no sense");
    }
  }

  /** The number of occurrences, their coded positions, and the words on a line. */
  #skippedLexemes(): string {
    this.#numbers.number();
    this.#numbers.bytes(this.#numbers.number());
    this.#line();
    return "";
  }

  #parsed(line: string): unknown {
    this.#values -= boundStructure(line, { values: maxValues, depth: maxDepth });
    if (this.#values < 0) throw new ProtocolError(`a packed message has more than ${maxValues} values`);
    try {
      return parseStorable(line);
    } catch {
      // The error has no cause, because JSON.parse quotes the text.
      throw new ProtocolError("a line of a packed message is not JSON");
    }
  }

  #pageLinks(): object[] {
    if (this.#links === null) throw new ProtocolError("a packed message's links are missing");
    return this.#links.map((line) => linkOf(line, this.#origin));
  }
}

function timeOr(text: string | null): string {
  if (text === null) throw new ProtocolError("a packed time is out of range");
  return text;
}

// Parses the shape of a packed message (forms: packed-message.ts). It comes from a peer, so its length and depth are bounded,
// and a list may only hold values that each take a line. The work of reading a message is then bounded by its lines.

type Shape =
  | { readonly type: "form"; readonly form: string }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "list"; readonly of: Shape | null }
  | { readonly type: "object"; readonly fields: readonly (readonly [key: string, shape: Shape])[] };

const maxShapeCharacters = 8192;
const maxShapeDepth = 8;
const forms = new Set("nTFsjuithdmDvL");
const listForms = new Set("sj");
const key = /[A-Za-z][A-Za-z0-9]{0,39}:/y;
const text = /"([^"\\]{0,24})"/y;

function readShape(source: string): Shape {
  if (source.length > maxShapeCharacters) throw new ProtocolError("a packed message's shape is too long");
  const reader = new ShapeReader(source);
  const shape = reader.shape({ depth: 0, inList: false });
  reader.end();
  return shape;
}

interface Within {
  readonly depth: number;
  readonly inList: boolean;
}

class ShapeReader {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  shape(within: Within): Shape {
    if (within.depth > maxShapeDepth) throw new ProtocolError("a packed message is nested too deeply");
    if (this.#skip("{")) return this.#object({ ...within, depth: within.depth + 1 });
    if (this.#skip("[")) return this.#list({ depth: within.depth + 1, inList: true });
    if (this.#source[this.#at] === '"' && !within.inList) return { type: "text", text: this.#match(text) };
    const form = this.#source[this.#at++] ?? "";
    if (!(within.inList ? listForms : forms).has(form)) throw this.#fault();
    return { type: "form", form };
  }

  end(): void {
    if (this.#at !== this.#source.length) throw this.#fault();
  }

  #object(within: Within): Shape {
    const fields: [string, Shape][] = [];
    do {
      const name = this.#match(key).slice(0, -1);
      fields.push([name, this.shape(within)]);
    } while (this.#skip(","));
    if (!this.#skip("}")) throw this.#fault();
    return { type: "object", fields };
  }

  #list(within: Within): Shape {
    if (this.#skip("]")) return { type: "list", of: null };
    const of = this.shape(within);
    if (!this.#skip("]")) throw this.#fault();
    return { type: "list", of };
  }

  #skip(sign: string): boolean {
    if (this.#source[this.#at] !== sign) return false;
    this.#at++;
    return true;
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#source);
    if (!found) throw this.#fault();
    this.#at = pattern.lastIndex;
    return found[1] ?? found[0];
  }

  #fault(): ProtocolError {
    return new ProtocolError(`a packed message's shape makes no sense at character ${this.#at}`);
  }
}

interface StructureBounds {
  readonly values: number;
  readonly depth: number;
}

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c] as const;
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d] as const;

/** Returns the number of values. Throws ProtocolError beyond the bounds. JSON.parse refuses invalid JSON, so it may pass here. */
export function boundStructure(text: string, bounds: StructureBounds): number {
  let values = 1;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote:
        at = endOfString(text, at);
        break;
      case openList:
      case openObject:
        depth += 1;
        values += 1;
        if (depth > bounds.depth) throw new ProtocolError(`a message is nested deeper than ${bounds.depth}`);
        break;
      case comma:
        values += 1;
        break;
      case closeList:
      case closeObject:
        depth -= 1;
        break;
    }
    if (values > bounds.values) throw new ProtocolError(`a message has more than ${bounds.values} values`);
  }
  return values;
}

/** Returns the position of the closing quote, or the text's end. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === backslash) before -= 1;
    if ((end - before) % 2 === 1) return end;
  }
  return text.length;
}

// JSON may hold text that Postgres and UTF-8 cannot: NUL and unpaired surrogates. A crawler may quote them from a page in
// good faith, so they are replaced and the message is accepted.

/** Only escapes can produce such characters: decoded UTF-8 holds no unpaired surrogate, and a plain NUL is invalid JSON. */
const escaped = /\\u(?:0000|d[89a-f])/i;

/** Throws a SyntaxError for invalid JSON. */
export function parseStorable(text: string): unknown {
  if (!escaped.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value: unknown) => (typeof value === "string" ? storable(value) : value));
}

/** Returns text that Postgres and UTF-8 can hold, of the same length. */
export function storable(text: string): string {
  return (text as string & { toWellFormed(): string }).toWellFormed().replaceAll("\0", "\ufffd");
}
