/**
 * Finds the elements of given names in an XML stream of any size and hands out what they hold one by one, each
 * with the line it starts at; the file is never held whole (as a whole 191 MB took fast-xml-parser 2 GB). A record
 * is picked from the bytes where it is regular (xml-picker.ts), else its end is searched, and fast-xml-parser reads
 * it. Comments, CDATA sections and processing instructions are stepped over, inside records too; a record over the
 * bound is skipped. Document type definitions are refused: no registry has one, and entities defined there
 * (billion laughs) are never expanded.
 */
import { SourceFileError } from "#core/errors";
import type { Malformed, RecordReader } from "./record.ts";
import { countLineFeeds, wordsOf } from "./rpsl-scanner.ts";
import { decodeText, type ValueDecoder } from "./text-decoding.ts";
import { parseXmlRecord, XmlPicker } from "./xml-picker.ts";

/** The largest real record known is under 100 KB (a net with thousands of comment lines). */
const maxRecordBytes = 1_048_576;

export interface XmlHandler {
  /** A record that was picked from the bytes: true where that is all there is to do, else `record` follows. */
  picked?(name: string, picker: XmlPicker, line: number): boolean;
  /** A record's value: its content, or its text where it has no children. */
  record(name: string, value: unknown, line: number): void;
  /** An element that is passed over. */
  passed(name: string): void;
  malformed(problem: Malformed): void;
}

export interface XmlOptions {
  readonly file: string;
  readonly rootName: string;
  readonly records: readonly string[];
  /** Elements that are counted and passed over. */
  readonly passed: readonly string[];
  /** Names of elements in records whose values are needed. */
  readonly wanted: readonly string[];
  readonly decoder: ValueDecoder;
  readonly handler: XmlHandler;
}

/** An element whose end is searched, and up to where it was. */
interface OpenElement {
  readonly element: ElementName;
  searched: number;
}

interface ElementName {
  readonly name: string;
  readonly startTag: Buffer;
  readonly endTag: Buffer;
  readonly isRecord: boolean;
}

export class XmlRecordReader implements RecordReader {
  readonly #options: XmlOptions;
  readonly #picker: XmlPicker;
  readonly #elements: readonly ElementName[];
  readonly #rootEnd: Buffer;
  #bytes: Buffer = Buffer.alloc(0);
  #words = wordsOf(this.#bytes);
  /** Everything before is done with. */
  #at = 0;
  /** Line feeds before `#at`. */
  #linesBefore = 0;
  /** Inside a comment, CDATA section, instruction or an element that is too long: to be skipped up to this. */
  #skipTo: string | null = null;
  #open: OpenElement | null = null;
  #sawRootEnd = false;

  constructor(options: XmlOptions) {
    this.#options = options;
    this.#picker = new XmlPicker(options.wanted, options.decoder);
    this.#elements = [
      ...options.records.map((name) => elementName(name, true)),
      ...options.passed.map((name) => elementName(name, false)),
    ];
    this.#rootEnd = Buffer.from(`</${options.rootName}`);
  }

  push(chunk: Buffer): void {
    const rest = this.#bytes;
    this.#bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    this.#words = wordsOf(this.#bytes);
    while (this.#step()) {
      // each step consumes bytes, or asks for more
    }
    this.#bytes = Buffer.from(this.#bytes.subarray(this.#at));
    this.#words = wordsOf(this.#bytes);
    if (this.#open !== null) this.#open.searched -= this.#at;
    this.#at = 0;
  }

  end(): void {
    if (this.#open !== null || this.#skipTo !== null || !this.#sawRootEnd) {
      throw this.#error(`the XML ends early: no </${this.#options.rootName}>`);
    }
  }

  /** True when there may be more to do with the bytes at hand. */
  #step(): boolean {
    if (this.#skipTo !== null) return this.#stepSkip(this.#skipTo);
    if (this.#open !== null) return this.#stepOpen(this.#open);
    const tag = this.#bytes.indexOf(lessThan, this.#at);
    this.#moveTo(tag < 0 ? this.#bytes.length : tag);
    return tag >= 0 && this.#stepTag();
  }

  #stepTag(): boolean {
    const bytes = this.#bytes;
    const at = this.#at;
    if (isTag(bytes, at, this.#rootEnd)) this.#sawRootEnd = true;
    else if (bytes.length - at < longestMarker) return false;
    const second = bytes[at + 1];
    if (second === exclamation || second === question) return this.#stepSection();
    const element =
      second === slash ? undefined : this.#elements.find(({ startTag }) => isTag(bytes, at, startTag));
    if (element === undefined) this.#moveTo(at + 1);
    else if (!element.isRecord || !this.#pick(element)) this.#open = { element, searched: at + 1 };
    return true;
  }

  #stepSection(): boolean {
    const section = sectionAt(this.#bytes, this.#at);
    if (section === undefined) throw this.#error("a document type definition is refused");
    this.#skipTo = section.closing;
    this.#moveTo(this.#at + section.opening.length);
    return true;
  }

  /** False when the record has to be read the long way: it is irregular, or not here to its end. */
  #pick(element: ElementName): boolean {
    const limit = Math.min(this.#bytes.length, this.#at + maxRecordBytes);
    const line = this.#startLine();
    if (this.#picker.pick(this.#bytes, this.#at, limit) !== "picked") return false;
    this.#tell(element.name, line);
    this.#moveTo(this.#picker.end);
    return true;
  }

  #tell(name: string, line: number): void {
    const { handler } = this.#options;
    if (handler.picked?.(name, this.#picker, line) !== true) handler.record(name, this.#picker.value, line);
  }

  /** Looks for the element's end tag from where the last search stopped. */
  #stepOpen(open: OpenElement): boolean {
    const bytes = this.#bytes;
    const { endTag } = open.element;
    for (
      let at = bytes.indexOf(lessThan, open.searched);
      at >= 0;
      at = bytes.indexOf(lessThan, open.searched)
    ) {
      if (at + Math.max(longestMarker, endTag.length + 1) > bytes.length && !isTag(bytes, at, endTag))
        return this.#needsMore(open, at);
      if (isTag(bytes, at, endTag)) {
        const close = bytes.indexOf(greaterThan, at);
        return close < 0 ? this.#needsMore(open, at) : this.#finish(open.element, close + 1);
      }
      const second = bytes[at + 1];
      open.searched = at + 1;
      if (second !== exclamation && second !== question) continue;
      const section = sectionAt(bytes, at);
      if (section === undefined) throw this.#error("a document type definition is refused");
      const closing = bytes.indexOf(section.closing, at + section.opening.length, "latin1");
      if (closing < 0) return this.#needsMore(open, at);
      open.searched = closing + section.closing.length;
    }
    return this.#needsMore(open, bytes.length);
  }

  #needsMore(open: OpenElement, searched: number): boolean {
    open.searched = searched;
    if (this.#bytes.length - this.#at <= maxRecordBytes) return false;
    this.#tooLong(open.element);
    this.#open = null;
    this.#skipTo = `</${open.element.name}>`;
    return true;
  }

  #finish(element: ElementName, end: number): boolean {
    this.#open = null;
    if (end - this.#at > maxRecordBytes) this.#tooLong(element);
    else if (element.isRecord) this.#read(element, end);
    else this.#options.handler.passed(element.name);
    this.#moveTo(end);
    return true;
  }

  /** Once more by picking, now that all of it is here; then the long way. */
  #read({ name }: ElementName, end: number): void {
    const { handler, decoder } = this.#options;
    const line = this.#startLine();
    if (this.#picker.pick(this.#bytes, this.#at, end) === "picked" && this.#picker.end === end) {
      this.#tell(name, line);
      return;
    }
    const value = parseXmlRecord(name, decoder.raw(this.#bytes, this.#at, end));
    if (value !== null) handler.record(name, value, line);
    else {
      const shown = decodeText(this.#bytes, this.#at, Math.min(end, this.#at + shownBytes));
      handler.malformed({ line, reason: `a <${name}> that is not well formed`, value: shown });
    }
  }

  #tooLong({ name }: ElementName): void {
    const reason = `a <${name}> element larger than 1 MiB`;
    this.#options.handler.malformed({ line: this.#startLine(), reason, value: name });
  }

  #stepSkip(closing: string): boolean {
    const end = this.#bytes.indexOf(closing, this.#at, "latin1");
    if (end < 0) {
      this.#moveTo(Math.max(this.#at, this.#bytes.length - closing.length + 1));
      return false;
    }
    this.#moveTo(end + closing.length);
    this.#skipTo = null;
    return true;
  }

  #startLine(): number {
    const line = this.#linesBefore + 1;
    this.#options.decoder.line = line;
    return line;
  }

  #moveTo(at: number): void {
    this.#linesBefore += countLineFeeds(this.#bytes, this.#words, this.#at, at);
    this.#at = at;
  }

  #error(reason: string): SourceFileError {
    return new SourceFileError(this.#options.file, this.#linesBefore + 1, reason);
  }
}

const elementName = (name: string, isRecord: boolean): ElementName => ({
  name,
  startTag: Buffer.from(`<${name}`),
  endTag: Buffer.from(`</${name}`),
  isRecord,
});

/** True when the tag stands there, and its name ends with it. */
function isTag(bytes: Buffer, at: number, tag: Buffer): boolean {
  if (at + tag.length >= bytes.length) return false;
  for (let index = 1; index < tag.length; index++) if (bytes[at + index] !== tag[index]) return false;
  const next = bytes[at + tag.length] as number;
  return next === greaterThan || next === slash || next === 0x20 || (next >= 0x09 && next <= 0x0d);
}

const sections = [
  { opening: "<!--", closing: "-->" },
  { opening: "<![CDATA[", closing: "]]>" },
  { opening: "<?", closing: "?>" },
] as const;
const longestMarker = 16;
const shownBytes = 200;
const lessThan = 0x3c;
const greaterThan = 0x3e;
const slash = 0x2f;
const exclamation = 0x21;
const question = 0x3f;

function sectionAt(bytes: Buffer, at: number): (typeof sections)[number] | undefined {
  const head = bytes.toString("latin1", at, at + longestMarker);
  return sections.find(({ opening }) => head.startsWith(opening));
}
