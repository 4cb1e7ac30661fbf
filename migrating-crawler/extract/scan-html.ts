/**
 * Tokenizes HTML by the rules of WHATWG HTML (section 13.2.5) in one pass. It creates no token objects, reads attributes only
 * on request, and skips comments and doctypes. The time is linear in the page's length, whatever is left unclosed.
 *
 * Two steps of the standard are not done here but by the consumer of the text: line ends are not normalised, and NUL is kept.
 */
import { decodeHTML, decodeHTMLAttribute } from "entities";
import { type HtmlTag, nameHash, tagOf } from "./html-tags.ts";
import { type SourceText, sourceOf } from "./source-text.ts";

export interface HtmlSink {
  /** Inside SVG or MathML, content models do not apply and CDATA sections are text. */
  readonly isForeign: boolean;
  /** The scanner's `tag` provides the attributes only during this call. `isSelfClosing` means `<x/>`. */
  openTag(tag: HtmlTag, isSelfClosing: boolean): void;
  closeTag(tag: HtmlTag): void;
  /** Passes `source.slice(from, to)`. If `mayRefer` is set, the text must be decoded (`decodeText`). */
  takeText(from: number, to: number, mayRefer: boolean): void;
}

export class HtmlScanner {
  readonly #html: string;
  readonly #sink: HtmlSink;
  readonly #isXml: boolean;
  #at = 0;
  readonly tag: TagReader;

  /** `isXml` means XHTML, where any element may be self-closing and CDATA is text everywhere. */
  constructor(html: string | SourceText, sink: HtmlSink, isXml = false) {
    const source = typeof html === "string" ? sourceOf(html) : html;
    this.#html = source.units;
    this.#sink = sink;
    this.tag = new TagReader(source);
    this.#isXml = isXml;
  }

  get isDone(): boolean {
    return this.#at >= this.#html.length;
  }

  scanTo(end: number): void {
    const html = this.#html;
    let textFrom = this.#at;
    for (let from = textFrom; textFrom < end; ) {
      const open = html.charCodeAt(from) === 0x3c ? from : html.indexOf("<", from);
      if (open === -1) {
        this.#text(textFrom, html.length);
        textFrom = html.length;
        break;
      }
      const after = this.#isMarkup(open);
      if (!after) {
        from = open + 1;
        continue;
      }
      this.#text(textFrom, open);
      this.#at = textFrom = from = this.#markup(open);
    }
    this.#at = textFrom;
  }

  #text(from: number, to: number): void {
    if (to > from) this.#sink.takeText(from, to, true);
  }

  #isMarkup(open: number): boolean {
    const code = this.#html.charCodeAt(open + 1);
    if (code === 0x2f) return open + 2 < this.#html.length;
    return isLetter(code) || code === 0x21 || code === 0x3f;
  }

  #markup(open: number): number {
    const code = this.#html.charCodeAt(open + 1);
    if (code === 0x2f) return this.#endTag(open);
    if (code === 0x21) return this.#declaration(open);
    if (code === 0x3f) return this.#after(">", open + 2);
    return this.#startTag(open);
  }

  #startTag(open: number): number {
    const after = this.tag.read(open + 1);
    if (after === -1) return this.#html.length;
    const tag = tagOf(this.#html, this.tag.name);
    const { isSelfClosing } = this.tag;
    const isForeign = this.#sink.isForeign;
    this.#sink.openTag(tag, isSelfClosing);
    if (tag.content === "markup" || isForeign || (isSelfClosing && this.#isXml)) return after;
    return this.#content(tag, after);
  }

  #endTag(open: number): number {
    const code = this.#html.charCodeAt(open + 2);
    if (code === 0x3e) return open + 3;
    if (!isLetter(code)) return this.#after(">", open + 2);
    const after = this.tag.read(open + 2);
    if (after === -1) return this.#html.length;
    this.#sink.closeTag(tagOf(this.#html, this.tag.name));
    return after;
  }

  /** If there is no end tag, the text extends to the end of the page. */
  #content(tag: HtmlTag, from: number): number {
    const end = this.#contentEnd(tag, from);
    if (end > from) this.#sink.takeText(from, end, tag.content === "rcdata");
    return end === this.#html.length ? end : this.#endTag(end);
  }

  #contentEnd(tag: HtmlTag, from: number): number {
    if (tag.content === "plaintext") return this.#html.length;
    const end = this.#namedEnd(tag.name, from);
    if (tag.content !== "script" || !this.#html.slice(from, end).includes("<!--")) return end;
    return this.#escapedScriptEnd(from);
  }

  #namedEnd(name: string, from: number): number {
    const html = this.#html;
    for (let at = html.indexOf("</", from); at !== -1; at = html.indexOf("</", at + 2)) {
      if (isNamed(this.#html, at + 2, name) && isNameEnd(html.charCodeAt(at + 2 + name.length))) return at;
    }
    return html.length;
  }

  /** In a script with `<!--`, `<script` hides one `</script` until `-->` (13.2.5.15 to 31). */
  #escapedScriptEnd(from: number): number {
    let [isEscaped, isHidden] = [false, false];
    const mark = /<!--|-->|<\/?script[\t\n\f\r />]/gi;
    mark.lastIndex = from;
    for (let found = mark.exec(this.#html); found !== null; found = mark.exec(this.#html)) {
      if (found[0] === "<!--") {
        isEscaped = true;
        mark.lastIndex -= 2;
      } else if (found[0] === "-->") [isEscaped, isHidden] = [false, false];
      else if (found[0][1] !== "/") isHidden ||= isEscaped;
      else if (isHidden) isHidden = false;
      else return found.index;
    }
    return this.#html.length;
  }

  /** Reads `<!…`: a comment, a doctype, a CDATA section, or something that is skipped like a comment. */
  #declaration(open: number): number {
    const html = this.#html;
    if (html.startsWith("--", open + 2)) return this.#commentEnd(open + 4);
    if (!html.startsWith("[CDATA[", open + 2)) return this.#after(">", open + 2);
    if (!this.#sink.isForeign && !this.#isXml) return this.#after(">", open + 2);
    const end = html.indexOf("]]>", open + 9);
    const to = end === -1 ? html.length : end;
    if (to > open + 9) this.#sink.takeText(open + 9, to, false);
    return end === -1 ? to : end + 3;
  }

  #commentEnd(from: number): number {
    const html = this.#html;
    if (html.charCodeAt(from) === 0x3e) return from + 1;
    if (html.startsWith("->", from)) return from + 2;
    for (let at = html.indexOf("--", from); at !== -1; at = html.indexOf("--", at + 1)) {
      const code = html.charCodeAt(at + 2);
      if (code === 0x3e) return at + 3;
      if (code === 0x21 && html.charCodeAt(at + 3) === 0x3e) return at + 4;
    }
    return html.length;
  }

  #after(mark: string, from: number): number {
    const at = this.#html.indexOf(mark, from);
    return at === -1 ? this.#html.length : at + mark.length;
  }
}

/** Decodes character references (WHATWG HTML, section 13.2.5.72). */
export function decodeText(text: string): string {
  return text.includes("&") ? decodeHTML(text) : text;
}

const isLetter = (code: number) => (code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a;

// Reads one tag (WHATWG HTML, sections 13.2.5.8 and 13.2.5.32 to 40). It records the positions of name and attributes in one
// pass and creates a value only on request.

/** Maximum number of attributes, after which the others are ignored. Real tags have at most 30. */
const maxAttributes = 256;

class TagReader {
  readonly #source: SourceText;
  readonly #html: string;
  readonly name = { from: 0, to: 0, hash: 0 };
  isSelfClosing = false;
  /** The name and value of each attribute, as from, to, from, to. */
  readonly #places = new Int32Array(4 * maxAttributes);
  #attributes = 0;
  /** Bit n is set if an attribute name has n characters (modulo 32). */
  #lengths = 0;

  constructor(source: SourceText) {
    this.#source = source;
    this.#html = source.units;
  }

  /** Returns the decoded value or null. Pass the name in lower case. */
  attribute(name: string): string | null {
    if ((this.#lengths & (1 << (name.length & 31))) === 0) return null;
    for (let at = 0; at < this.#attributes; at += 4) {
      const [from, to] = [this.#places[at]!, this.#places[at + 1]!];
      if (to - from === name.length && isNamed(this.#html, from, name)) {
        return this.#value(this.#places[at + 2]!, this.#places[at + 3]!);
      }
    }
    return null;
  }

  hasAttributes(): boolean {
    return this.#attributes > 0;
  }

  /** Returns the names as written. Only the first of several duplicates counts (WHATWG 13.2.5.33). */
  attributeNames(): string[] {
    const names = new Set<string>();
    for (let at = 0; at < this.#attributes; at += 4) {
      names.add(
        this.#source
          .slice(this.#places[at]!, this.#places[at + 1]!)
          .replace(/[A-Z]/g, (letter) => letter.toLowerCase()),
      );
    }
    return [...names];
  }

  #value(from: number, to: number): string {
    const value = this.#source.slice(from, to);
    const decoded = value.includes("&") ? decodeHTMLAttribute(value) : value;
    return decoded.includes("\0") ? decoded.replaceAll("\0", "\ufffd") : decoded;
  }

  /** Returns the end of the tag, or -1 if the page ends first. */
  read(from: number): number {
    const html = this.#html;
    let [at, hash] = [from, 0];
    let code = html.charCodeAt(at);
    for (; !isNameEnd(code) && at < html.length; code = html.charCodeAt(++at)) hash = nameHash(hash, code);
    this.name.from = from;
    this.name.to = at;
    this.name.hash = hash;
    this.#attributes = 0;
    this.#lengths = 0;
    this.isSelfClosing = false;
    if (code === 0x3e) return at + 1;
    return this.#readAttributes(at);
  }

  #readAttributes(from: number): number {
    const html = this.#html;
    for (let at = from; at < html.length; ) {
      const code = html.charCodeAt(at);
      if (code === 0x3e) return at + 1;
      if (code === 0x2f) {
        this.isSelfClosing = html.charCodeAt(at + 1) === 0x3e;
        at++;
      } else if (isSpace(code)) at++;
      else {
        at = this.#readAttribute(at);
        if (at === -1) return -1;
      }
    }
    return -1;
  }

  #readAttribute(from: number): number {
    const html = this.#html;
    let at = from + 1;
    let code = html.charCodeAt(at);
    while (!isNameEnd(code) && code !== 0x3d && at < html.length) code = html.charCodeAt(++at);
    const to = at;
    while (isSpace(code)) code = html.charCodeAt(++at);
    if (code !== 0x3d) return this.#keep(from, to, to, to, at);
    do code = html.charCodeAt(++at);
    while (isSpace(code));
    if (code === 0x22 || code === 0x27) {
      const end = html.indexOf(code === 0x22 ? '"' : "'", at + 1);
      return end === -1 ? -1 : this.#keep(from, to, at + 1, end, end + 1);
    }
    const valueFrom = at;
    while (!isSpace(code) && code !== 0x3e && at < html.length) code = html.charCodeAt(++at);
    return this.#keep(from, to, valueFrom, at, at);
  }

  #keep(nameFrom: number, nameTo: number, from: number, to: number, after: number): number {
    const at = this.#attributes;
    if (at === this.#places.length) return after;
    this.#places[at] = nameFrom;
    this.#places[at + 1] = nameTo;
    this.#places[at + 2] = from;
    this.#places[at + 3] = to;
    this.#attributes = at + 4;
    this.#lengths |= 1 << ((nameTo - nameFrom) & 31);
    return after;
  }
}

function isNamed(html: string, from: number, name: string): boolean {
  for (let at = 0; at < name.length; at++) {
    const code = html.charCodeAt(from + at);
    const lower = code >= 0x41 && code <= 0x5a ? code | 0x20 : code;
    if (lower !== name.charCodeAt(at)) return false;
  }
  return true;
}

const isNameEnd = (code: number) => code === 0x3e || code === 0x2f || isSpace(code);
const isSpace = (code: number) => code === 0x20 || (code >= 0x09 && code <= 0x0d && code !== 0x0b);
