/**
 * Reads a page's HTML in one pass and collects all that the index needs in reading order, within limits. The scanner reports
 * tags and text, the open elements determine what a text belongs to, and blocks, links, properties and notes store it. Reading
 * ends at a depth that no real page reaches (254 of them have at most 38).
 */
import { composed } from "#protocol/composed";
import { licenseType } from "../preferences/rsl.ts";
import { type Containers, type HtmlTag, mark, OpenElements } from "./html-tags.ts";
import { PageNotes } from "./page-metadata.ts";
import { LinkReader, marksOf, type ReadLink, type TagAttributes, tidy } from "./read-links.ts";
import type { WorkTurns } from "./read-list.ts";
import { decodeText, HtmlScanner, type HtmlSink } from "./scan-html.ts";
import { type SourceText, sourceOf } from "./source-text.ts";
import { type TextBlock, TextBlocks } from "./text-blocks.ts";

const maxHeadings = 100;
const maxHeadingCharacters = 300;
const maxTitleCharacters = 2000;
const maxAltCharacters = 20_000;
/** Maximum number of source units per character. */
const mostUnits = 4;

/** Pages are read in pieces of this length, so that other work can run in between. */
const pieceCharacters = 32 * 1024;

export interface ReadPage {
  readonly title: string;
  readonly notes: PageNotes;
  readonly headings: readonly { readonly level: number; readonly text: string }[];
  readonly links: readonly ReadLink[];
  readonly leftOutLinks: number;
  readonly blocks: readonly TextBlock[];
  readonly containers: Containers;
  /** Picture descriptions, except those in links and furniture. */
  readonly alts: readonly PictureText[];
  readonly cut: boolean;
}

export interface PictureText {
  readonly text: string;
  readonly container: number;
}

export async function readPage(
  html: string | SourceText,
  turns: WorkTurns,
  isXml = false,
): Promise<ReadPage> {
  const reader = new PageReader(typeof html === "string" ? sourceOf(html) : html, isXml);
  for (let end = pieceCharacters; reader.readTo(end); end += pieceCharacters) await turns.next();
  return reader.finish();
}

class PageReader implements HtmlSink {
  readonly #source: SourceText;
  readonly #isXml: boolean;
  readonly #scanner: HtmlScanner;
  readonly #tag: TagAttributes;
  readonly #elements = new OpenElements();
  readonly #blocks = new TextBlocks();
  readonly #notes = new PageNotes();
  readonly #properties = new PropertyReader(this.#notes);
  readonly #links = new LinkReader();
  readonly #headings: { level: number; text: string }[] = [];
  /** The stack depth of the open heading and its level, both 0 outside headings. */
  #headingDepth = 0;
  #headingLevel = 0;
  #title: string | null = null;
  readonly #alts: PictureText[] = [];
  #altCharacters = 0;
  /** The purpose of the current element's content, if that is not markup. */
  #raw: "title" | "json" | "license" | "moves" | "text" | "nothing" | null = null;
  /** The blocks of a streamed page's parts and placeholders, by id. */
  readonly #streamed = new Map<string, { readonly block: number; readonly marks: number }>();
  readonly #moved = new Map<number, number>();
  #isCut = false;

  constructor(source: SourceText, isXml: boolean) {
    this.#source = source;
    this.#isXml = isXml;
    this.#scanner = new HtmlScanner(source, this, isXml);
    this.#tag = this.#scanner.tag;
  }

  get isForeign(): boolean {
    return (this.#elements.marks & mark.foreign) !== 0;
  }

  readTo(end: number): boolean {
    if (!this.#isCut) this.#scanner.scanTo(end);
    return !this.#isCut && !this.#scanner.isDone;
  }

  finish(): ReadPage {
    this.#elements.endAll();
    this.#endWhatEnded();
    return {
      title: tidy(withoutSoftHyphens(this.#title ?? "")),
      notes: this.#notes,
      headings: this.#headings,
      links: this.#links.finish(),
      leftOutLinks: this.#links.leftOut,
      blocks: this.#placed(this.#blocks.finish()),
      containers: this.#elements,
      alts: this.#alts,
      cut: this.#isCut,
    };
  }

  openTag(tag: HtmlTag, isSelfClosing: boolean): void {
    if (this.#isCut) return;
    if (this.isForeign && breaksOut.has(tag.name)) this.#elements.leaveForeign();
    this.#elements.endImplied(tag);
    this.#endWhatEnded();
    if (tag.isBlock) this.#blocks.break();
    if ((this.#elements.marks & mark.inert) === 0) this.#note(tag);
    const isEmpty = isSelfClosing && (this.#isXml || this.isForeign || foreignRoots.has(tag.name));
    if (tag.content !== "markup" && !this.isForeign) {
      if (!isEmpty) this.#raw = this.#useOf(tag);
    } else if (!tag.isVoid) this.#open(tag, isEmpty);
  }

  closeTag(tag: HtmlTag): void {
    if (this.#isCut) return;
    this.#raw = null;
    if (tag.name === "a") this.#links.close();
    if (tag.isBlock) this.#blocks.break();
    this.#elements.close(tag);
    this.#endWhatEnded();
  }

  takeText(from: number, to: number, mayRefer: boolean): void {
    if (this.#isCut) return;
    if (this.#raw !== null) this.#takeRaw(from, to);
    else if (!this.#isUnseen()) this.#takeText(from, to, mayRefer);
  }

  #takeText(from: number, to: number, mayRefer: boolean): void {
    if (isBlank(this.#source.units, from, to)) {
      this.#blocks.space();
      this.#links.add(" ");
    } else if (!this.#blocks.isFull) {
      const written = this.#source.slice(from, to);
      this.#add(mayRefer ? decodeText(written) : written, this.#wordsOf(written, from, to));
    }
  }

  /** Counts words in the source if each unit is one character, which is faster than counting in `written`. */
  #wordsOf(written: string, from: number, to: number): number {
    return written.length === to - from
      ? countWords(this.#source.units, from, to)
      : countWords(written, 0, written.length);
  }

  #isUnseen(): boolean {
    return (this.#elements.marks & mark.unseen) !== 0;
  }

  #add(written: string, words: number): void {
    const text = withoutSoftHyphens(written);
    this.#blocks.add(
      { text, words, container: this.#elements.container },
      this.#links.isInside,
      this.#elements.marks,
    );
    this.#links.add(text);
    this.#properties.add(text);
  }

  #open(tag: HtmlTag, isEmpty: boolean): void {
    const marks = marksOf(tag, this.#tag);
    const isNoted = tag.name === "time" || this.#tag.hasAttributes();
    const isProperty =
      isNoted && this.#properties.open(tag, this.#tag, marks | this.#elements.marks) && !isEmpty;
    if (isEmpty) return;
    this.#elements.open(tag, isProperty ? marks | mark.property : marks);
    if (isProperty) this.#properties.begun(this.#elements.depth);
    if (tag.headingLevel > 0) this.#openHeading(tag.headingLevel);
    if (this.#streamed.size > 0 && tag.isBlock) this.#noteStreamed();
    this.#isCut = this.#elements.isFull;
  }

  #useOf(tag: HtmlTag): "title" | "json" | "license" | "moves" | "text" | "nothing" {
    if (tag.content === "script") {
      const type = this.#tag.attribute("type") ?? "";
      if (jsonType.test(type)) return "json";
      if (type === "" && this.#streamed.size > 0) return "moves";
      return licenseType.test(type) ? "license" : "nothing";
    }
    if (this.#isUnseen()) return "nothing";
    if (tag.name === "title") return this.#title === null ? "title" : "nothing";
    return tag.isUnseen ? "nothing" : "text";
  }

  #takeRaw(from: number, to: number): void {
    if (this.#raw === "json") this.#notes.noteJsonLd(this.#source.slice(from, to));
    if (this.#raw === "license") this.#notes.noteLicense(this.#source.slice(from, to));
    if (this.#raw === "moves") this.#move(this.#source.slice(from, Math.min(to, from + maxMovesUnits)));
    if (this.#raw === "title") {
      const title = this.#source.slice(from, Math.min(to, from + mostUnits * maxTitleCharacters));
      this.#title = decodeText(title.slice(0, maxTitleCharacters));
    }
    if (this.#raw === "text" && !this.#blocks.isFull) {
      const written = this.#source.slice(from, to);
      this.#add(written, this.#wordsOf(written, from, to));
    }
  }

  #note(tag: HtmlTag): void {
    if (!this.#tag.hasAttributes()) {
      if (tag.name === "a") this.#links.close();
      return;
    }
    switch (tag.name) {
      case "html":
        this.#notes.noteHtml(this.#tag);
        return;
      case "base":
        if (!this.#isUnseen()) this.#notes.base ??= this.#tag.attribute("href");
        return;
      case "template":
        this.#noteStreamed();
        return;
      case "meta":
        this.#properties.open(tag, this.#tag, this.#elements.marks);
        this.#notes.noteMeta(this.#tag);
        return;
      case "link":
        this.#notes.noteLinkElement(this.#tag);
        return;
      case "a":
      case "area":
        this.#links.open(this.#tag, tag.name === "area");
        return;
      case "img":
        this.#noteAlt(withoutSoftHyphens(this.#tag.attribute("alt") ?? ""));
    }
  }

  #noteStreamed(): void {
    const id = this.#tag.attribute("id");
    if (id === null || !streamedId.test(id) || this.#streamed.has(id)) return;
    if (this.#streamed.size < maxStreamed)
      this.#streamed.set(id, { block: this.#elements.container, marks: this.#elements.marks });
  }

  #move(script: string): void {
    for (const [, complete, one, other] of script.matchAll(moves)) {
      const [place, part] = complete === "S" ? [other!, one!] : [one!, other!];
      const [into, moved] = [this.#streamed.get(place), this.#streamed.get(part)];
      if (into === undefined || moved === undefined || into.block >= moved.block) continue;
      this.#elements.parents[moved.block] = into.block;
      this.#moved.set(moved.block, into.marks);
    }
  }

  /** A moved part takes over the furniture and main marks of its new place. */
  #placed(blocks: readonly TextBlock[]): readonly TextBlock[] {
    if (this.#moved.size === 0) return blocks;
    const marks: number[] = [];
    for (const [at, parent] of this.#elements.parents.entries())
      marks[at] = (marks[parent] ?? 0) | (this.#moved.get(at) ?? 0);
    return blocks.map((block) => ({ ...block, marks: block.marks | marks[block.container]! }));
  }

  #noteAlt(alt: string): void {
    if (this.#links.isInside) this.#links.add(` ${alt} `);
    if (this.#links.isInside || alt === "") return;
    const isFurniture = (this.#elements.marks & (mark.furniture | mark.likelyFurniture | mark.hidden)) !== 0;
    if (isFurniture || this.#altCharacters >= maxAltCharacters) return;
    this.#altCharacters += alt.length + 1;
    this.#alts.push({ text: composed(alt), container: this.#elements.container });
  }

  #openHeading(level: number): void {
    this.#blocks.openHeading(level);
    this.#headingLevel = level;
    this.#headingDepth = this.#elements.depth;
  }

  #endWhatEnded(): void {
    this.#properties.endedTo(this.#elements.depth);
    if (this.#elements.depth >= this.#headingDepth) return;
    const text = tidy(this.#blocks.closeHeading()).slice(0, maxHeadingCharacters);
    if (text !== "" && this.#headings.length < maxHeadings)
      this.#headings.push({ level: this.#headingLevel, text });
    this.#headingDepth = 0;
  }
}

const jsonType = /^\s*application\/ld\+json\b/i;

// React streams parts of a page hidden, with ids like `S:1`. Scripts then move them to placeholder templates `B:1` (a
// boundary: `$RC("B:1","S:1")`) or `P:1` (a segment: `$RS("S:1","P:1")`).
const streamedId = /(?:^|[^a-z\d])[BPS]:[\da-f]+$/;
const moves = /\$R([CRS])\("([^"]{1,100})","([^"]{1,100})"/g;
const maxStreamed = 2000;
const maxMovesUnits = 100_000;

const foreignRoots = new Set(["svg", "math"]);

/** HTML elements that end SVG and MathML (section 13.2.6.5). */
const breaksOut = new Set(
  (
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta " +
    "nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
  ).split(" "),
);

// Reads microdata and times (WHATWG HTML, sections 4.5.14 and 5.2). Only properties of the page's own item count, not those of
// nested items (an author's name is not the article's).

const maxCharacters = 2000;

interface NotedProperty {
  readonly name: string;
  readonly says: string;
  text: string;
  readonly isInMain: boolean;
  readonly isInArticle: boolean;
}

class PropertyReader {
  readonly #notes: PageNotes;
  /** The property whose text is being read, with its element's depth. */
  #open: (NotedProperty & { depth: number }) | null = null;

  constructor(notes: PageNotes) {
    this.#notes = notes;
  }

  /** Returns true if the element's text is the value of a property. `begun` must then be called. */
  open(tag: HtmlTag, attributes: TagAttributes, marks: number): boolean {
    this.#noteType(attributes, marks);
    const property = attributes.attribute("itemprop");
    if (property === null && tag.name !== "time") return false;
    if ((marks & mark.partOfItem) !== 0 || attributes.attribute("itemscope") !== null) return false;
    const name = (property ?? "").slice(0, 100).trim().toLowerCase();
    const value =
      attributes.attribute("datetime") ?? attributes.attribute("content") ?? attributes.attribute("href");
    const says = `${name} ${attributes.attribute("class") ?? ""} ${attributes.attribute("pubdate") === null ? "" : "pubdate"}`;
    const isInMain = (marks & (mark.furniture | mark.likelyFurniture | mark.hidden)) === 0;
    const isInArticle = isInMain && (marks & mark.main) !== 0;
    const noted = { name, says: says.slice(0, 200).toLowerCase(), isInMain, isInArticle };
    if (value !== null) this.#note({ ...noted, text: value.slice(0, maxCharacters) });
    if (value !== null || tag.isVoid || this.#open !== null) return false;
    this.#open = { ...noted, text: "", depth: Number.POSITIVE_INFINITY };
    return true;
  }

  begun(depth: number): void {
    if (this.#open !== null) this.#open.depth = depth;
  }

  add(text: string): void {
    if (this.#open !== null && this.#open.text.length < maxCharacters) this.#open.text += text;
  }

  endedTo(depth: number): void {
    if (this.#open === null || this.#open.depth <= depth) return;
    if (this.#open.depth !== Number.POSITIVE_INFINITY) this.#note(this.#open);
    this.#open = null;
  }

  #noteType(attributes: TagAttributes, marks: number): void {
    if (attributes.attribute("itemscope") === null || (marks & mark.partOfItem) !== 0) return;
    const type = attributes.attribute("itemtype");
    if (type !== null) this.#notes.noteItemType(type.slice(0, 200).trim());
  }

  #note({ name, says, text, isInMain, isInArticle }: NotedProperty): void {
    if (name !== "") this.#notes.noteItem(name, text, isInMain);
    if (name === "" || /date|time/.test(name))
      this.#notes.noteTime({ value: text, says, isInMain, isInArticle });
  }
}

/** A soft hyphen (U+00AD) only marks a possible line break and is not part of the word. */
export function withoutSoftHyphens(text: string): string {
  return text.includes("\u00ad") ? text.replaceAll("\u00ad", "") : text;
}

function isBlank(units: string, from: number, to: number): boolean {
  let at = from;
  while (at < to && units.charCodeAt(at) <= 0x20) at++;
  return at >= to;
}

/**
 * Counts words as runs without blanks. In scripts without blanks, two characters count as one word. The count of a long part
 * is extrapolated from its beginning.
 */
export function countWords(text: string, from: number, to: number): number {
  let begin = from;
  while (begin < to && text.charCodeAt(begin) <= 0x20) begin++;
  const end = Math.min(to, begin + sampleCharacters);
  const words = wordsBetween(text, begin, end);
  return end === to ? words : Math.round((words * (to - begin)) / sampleCharacters);
}

const sampleCharacters = 64;

function wordsBetween(text: string, from: number, to: number): number {
  let [words, wide, wasBlank] = [0, 0, 1];
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at);
    // 1 for characters up to the blank, else 0. A branch would be mispredicted at every word.
    const isBlank = (code - 0x21) >>> 31;
    words += wasBlank & (isBlank ^ 1);
    wasBlank = isBlank;
    if (code >= 0x0e00 && isWithoutBlanks(code)) wide++;
  }
  return words + (wide >> 1);
}

/** Thai, Lao, Burmese, Khmer, Chinese characters and kana. */
const isWithoutBlanks = (code: number) =>
  code < 0x0f00 ||
  (code >= 0x1000 && code < 0x10a0) ||
  (code >= 0x1780 && code < 0x1800) ||
  (code >= 0x2e80 && code < 0xac00);
