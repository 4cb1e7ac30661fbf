/**
 * Finds the elements of given names in an XML stream of any size and hands them out one by one, each with
 * the line it starts at. fast-xml-parser then reads one record; the file is never held whole (as a whole
 * 191 MB took it 2 GB). Comments, CDATA sections and processing instructions are stepped over, inside
 * records too; a record over the bound is skipped. Document type definitions are refused: no registry has
 * one, and entities defined there (billion laughs) are never expanded.
 */
import { XMLParser } from "fast-xml-parser";
import { SourceFileError } from "#core/errors";
import { maxTextLength, type RecordReader } from "./record.ts";

/** The largest real record known is under 100 KB (a net with thousands of comment lines). */
export const maxRecordBytes = 1_048_576;

export interface XmlHandler {
  /** The element, tags included, as text. */
  element(name: string, xml: string, line: number): void;
  tooLong(name: string, line: number): void;
}

interface Skip {
  readonly until: string;
}

export class XmlRecordReader implements RecordReader {
  readonly #file: string;
  readonly #names: ReadonlySet<string>;
  readonly #rootName: string;
  readonly #handler: XmlHandler;
  #pending: Buffer = Buffer.alloc(0);
  /** Lines before the first pending byte. */
  #linesBefore = 0;
  /** Inside a comment, CDATA section, instruction or an element that is too long: text until this is skipped. */
  #skip: Skip | null = null;
  /** The record that is open: its name and how far it was searched. */
  #open: { readonly name: string; searched: number } | null = null;
  #sawRootEnd = false;

  constructor(options: {
    readonly file: string;
    readonly rootName: string;
    readonly names: readonly string[];
    readonly handler: XmlHandler;
  }) {
    this.#file = options.file;
    this.#rootName = options.rootName;
    this.#names = new Set(options.names);
    this.#handler = options.handler;
  }

  push(chunk: Buffer): void {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    while (this.#step()) {
      // each step consumes bytes, or asks for more
    }
  }

  end(): void {
    if (this.#open !== null || this.#skip !== null || !this.#sawRootEnd) {
      const line = this.#linesBefore + 1;
      throw new SourceFileError(this.#file, line, `the XML ends early: no </${this.#rootName}>`);
    }
  }

  /** True when there may be more to do with the bytes at hand. */
  #step(): boolean {
    if (this.#skip !== null) return this.#stepSkip(this.#skip);
    if (this.#open !== null) return this.#stepRecord(this.#open);
    const tag = this.#pending.indexOf(lessThan);
    if (tag < 0) {
      this.#drop(this.#pending.length);
      return false;
    }
    this.#drop(tag);
    return this.#stepTag();
  }

  #stepTag(): boolean {
    if (this.#pending.length < longestMarker) return this.#needMoreUnlessClosing();
    const head = this.#pending.toString("latin1", 0, longestMarker);
    const section = sections.find(({ opening }) => head.startsWith(opening));
    if (section) {
      this.#skip = { until: section.closing };
      this.#drop(section.opening.length);
      return true;
    }
    if (/^<!doctype/i.test(head)) {
      throw new SourceFileError(this.#file, this.#linesBefore + 1, "a document type definition is refused");
    }
    const name = /^<([A-Za-z][\w.-]*)[\s/>]/.exec(head)?.[1];
    if (name !== undefined && this.#names.has(name)) {
      this.#open = { name, searched: 1 };
      return true;
    }
    if (this.#isRootEnd(head)) this.#sawRootEnd = true;
    this.#drop(1);
    return true;
  }

  #needMoreUnlessClosing(): boolean {
    if (this.#isRootEnd(this.#pending.toString("latin1"))) {
      this.#sawRootEnd = true;
      this.#drop(1);
      return true;
    }
    return false;
  }

  #isRootEnd(head: string): boolean {
    if (!head.startsWith(`</${this.#rootName}`)) return false;
    return /^[\s>]/.test(head.slice(2 + this.#rootName.length));
  }

  /** Looks for the record's end tag from where the last search stopped. */
  #stepRecord(open: { readonly name: string; searched: number }): boolean {
    const endTag = `</${open.name}`;
    const bytes = this.#pending;
    for (;;) {
      const tag = bytes.indexOf(lessThan, open.searched);
      if (tag < 0) return this.#recordNeedsMore(open, bytes.length);
      const head = bytes.toString("latin1", tag, tag + longestMarker);
      if (tag + Math.max(longestMarker, endTag.length + 1) > bytes.length && !isEndTag(head, endTag)) {
        return this.#recordNeedsMore(open, tag);
      }
      if (isEndTag(head, endTag)) {
        const close = bytes.indexOf(greaterThan, tag);
        if (close < 0) return this.#recordNeedsMore(open, tag);
        return this.#emit(open.name, close + 1);
      }
      const section = sections.find(({ opening }) => head.startsWith(opening));
      if (section === undefined) {
        open.searched = tag + 1;
        continue;
      }
      const closing = bytes.indexOf(section.closing, tag + section.opening.length, "latin1");
      if (closing < 0) return this.#recordNeedsMore(open, tag);
      open.searched = closing + section.closing.length;
    }
  }

  #recordNeedsMore(open: { readonly name: string; searched: number }, searched: number): boolean {
    open.searched = searched;
    if (this.#pending.length <= maxRecordBytes) return false;
    this.#handler.tooLong(open.name, this.#linesBefore + 1);
    this.#open = null;
    this.#skip = { until: `</${open.name}>` };
    return true;
  }

  #emit(name: string, end: number): boolean {
    this.#open = null;
    const line = this.#linesBefore + 1;
    if (end > maxRecordBytes) this.#handler.tooLong(name, line);
    else this.#handler.element(name, this.#pending.toString("utf8", 0, end), line);
    this.#drop(end);
    return true;
  }

  #stepSkip(skip: Skip): boolean {
    const end = this.#pending.indexOf(skip.until, 0, "latin1");
    if (end < 0) {
      this.#drop(Math.max(0, this.#pending.length - skip.until.length + 1));
      return false;
    }
    this.#drop(end + skip.until.length);
    this.#skip = null;
    return true;
  }

  #drop(count: number): void {
    for (let at = this.#pending.indexOf(lineFeed); at >= 0 && at < count; ) {
      this.#linesBefore++;
      at = this.#pending.indexOf(lineFeed, at + 1);
    }
    this.#pending = this.#pending.subarray(count);
  }
}

/** One parser for all records: no attributes, no type guessing, no entities beyond the five of XML. */
const parser = new XMLParser({
  ignoreAttributes: true,
  parseTagValue: false,
  processEntities: false,
  htmlEntities: false,
  removeNSPrefix: true,
  trimValues: true,
});

/** The record's content as nested values; null when it is not well formed. */
export function parseXmlRecord(name: string, xml: string): Readonly<Record<string, unknown>> | null {
  try {
    const content: unknown = (parser.parse(xml, true) as Record<string, unknown>)[name];
    return typeof content === "object" && content !== null ? (content as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** A child element's text, entities decoded; null when it is absent, empty, or not plain text. */
export function textOf(content: Readonly<Record<string, unknown>>, name: string): string | null {
  const value = content[name];
  const first: unknown = Array.isArray(value) ? value[0] : value;
  if (typeof first !== "string") return null;
  const text = decodeEntities(first)
    .replace(/\p{Cc}+/gu, " ")
    .trim()
    .slice(0, maxTextLength);
  return text === "" ? null : text;
}

/** A child element's content when it has children; null otherwise. */
export function childOf(
  content: Readonly<Record<string, unknown>>,
  name: string,
): Readonly<Record<string, unknown>> | null {
  const value = content[name];
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return typeof first === "object" && first !== null ? (first as Record<string, unknown>) : null;
}

const namedEntities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** The five entities of XML and character references; anything else stays as it is written. */
function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(
    /&(?:#x([0-9a-fA-F]{1,6})|#(\d{1,7})|(amp|lt|gt|quot|apos));/g,
    (whole, hex, decimal, name) => {
      if (name) return namedEntities[name as string] ?? whole;
      const code = hex ? Number.parseInt(hex as string, 16) : Number(decimal);
      return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
        ? String.fromCodePoint(code)
        : "";
    },
  );
}

const isEndTag = (head: string, endTag: string) =>
  head.startsWith(endTag) && (head.length === endTag.length || /[\s>]/.test(head[endTag.length]!));

const sections = [
  { opening: "<!--", closing: "-->" },
  { opening: "<![CDATA[", closing: "]]>" },
  { opening: "<?", closing: "?>" },
] as const;
const longestMarker = 16;
const lessThan = 0x3c;
const greaterThan = 0x3e;
const lineFeed = 0x0a;
