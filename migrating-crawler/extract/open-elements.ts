/**
 * The elements that are open where a page is being read, with what was noted of each: an element inherits its
 * parent's marks. Tags that may be left out are put in as browsers do (WHATWG HTML, section 13.2.6), as far as
 * it matters for what a reader of text wants to know: which blocks hold which text.
 */
import { flagsOf, type HtmlTag, tagCount } from "./html-tags.ts";

/** What may be noted of an element, as bits. */
export const mark = {
  /** Nobody sees the text, or it is no prose. */
  unseen: 1,
  /** Hidden by its own attributes. */
  hidden: 2,
  /** Navigation, footers, notices: says so by element or role. */
  furniture: 4,
  /** The same by what its class or id seem to say. */
  likelyFurniture: 8,
  /** SVG or MathML. */
  foreign: 16,
  /** Inside the article or the main part. */
  main: 32,
  /** A thing with properties of its own (microdata), which is a property of another. */
  partOfItem: 64,
  /** Its text is a property's value (microdata, time). */
  property: 128,
  /** A template's content: not part of the page. */
  inert: 256,
  /** Of `likelyFurniture`: what readers say of the page. */
  comments: 512,
  /** The article's text, as its microdata say. */
  articleBody: 1024,
  /** May be searched and not shown: `data-nosnippet`. */
  unquoted: 2048,
} as const;

/** Real pages have 38 at most. */
const maxDepth = 512;
/** A tag's element is looked for so far out: further is no mistake of real pages, and would cost as much for each tag. */
const maxSteps = 100;

/** Blocks of the page's tree in the order of their beginnings: each one's parent, which has a lower number. 0 is the page. */
export interface Containers {
  readonly parents: readonly number[];
  /** What holds a paragraph and nothing else, as a rule. */
  readonly isParagraph: readonly boolean[];
  /** What holds a part of a list or a table. */
  readonly isItem: readonly boolean[];
}

/** Further blocks count as what they stand in. */
const maxContainers = 100_000;

const paragraphs = flagsOf(new Set(["p", "pre", "h1", "h2", "h3", "h4", "h5", "h6"]));
const items = flagsOf(new Set(["li", "dt", "dd", "td", "th"]));

export class OpenElements implements Containers {
  depth = 0;
  /** The innermost block. */
  container = 0;
  readonly parents: number[] = [0];
  readonly isParagraph: boolean[] = [false];
  readonly isItem: boolean[] = [false];
  /** Of the innermost element, with what it inherits. */
  marks = 0;
  readonly #tags: HtmlTag[] = [];
  readonly #marks: number[] = [];
  readonly #containers: number[] = [];
  readonly #counts = new Int32Array(tagCount);

  get isFull(): boolean {
    return this.depth >= maxDepth;
  }

  /** Ends what the tag's start ends; to be called before its own marks are made out. */
  endImplied(tag: HtmlTag): void {
    for (const index of tag.ends) if (this.#counts[index]! > 0) this.#endNearest(index, tag.startBarriers);
    const isInHeading = tag.headingLevel > 0 && (this.#tags[this.depth - 1]?.headingLevel ?? 0) > 0;
    if (isInHeading) this.#endTo(this.depth - 1);
  }

  /** `own`: the marks of this element. One without marks that is not kept is forgotten at once. */
  open(tag: HtmlTag, own: number): void {
    const isKept = tag.isKept || (tag.index !== -1 && (own !== 0 || this.#counts[tag.index]! > 0));
    if (!isKept || tag.isVoid) return;
    this.#tags[this.depth] = tag;
    this.#marks[this.depth] = this.marks;
    this.#containers[this.depth] = this.container;
    this.depth++;
    if (tag.isBlock && this.parents.length < maxContainers) {
      this.isParagraph.push(paragraphs[tag.index] === 1);
      this.isItem.push(items[tag.index] === 1);
      this.container = this.parents.push(this.container) - 1;
    }
    this.#counts[tag.index]!++;
    if ((this.marks & mark.foreign) !== 0 && htmlInForeign.has(tag.name)) this.marks &= ~mark.foreign;
    this.marks |= own;
  }

  /** An end tag: ends its element and all that is open inside it; passed over where there is none. */
  close(tag: HtmlTag): void {
    if (tag.index === -1) return;
    if (tag.headingLevel > 0) this.#endHeading(tag);
    else if (this.#counts[tag.index]! > 0) this.#endNearest(tag.index, tag.isKept ? tag.endBarriers : null);
  }

  /** HTML that cannot stand in SVG or MathML ends them (section 13.2.6.5). */
  leaveForeign(): void {
    while ((this.marks & mark.foreign) !== 0) this.#endTo(this.depth - 1);
  }

  endAll(): void {
    this.#endTo(0);
  }

  /** Without barriers, any block is one. */
  #endNearest(index: number, barriers: Uint8Array | null): void {
    const outermost = Math.max(0, this.depth - maxSteps);
    for (let depth = this.depth; depth > outermost; depth--) {
      const open = this.#tags[depth - 1]!;
      if (open.index === index) {
        this.#endTo(depth - 1);
        return;
      }
      if (barriers === null ? open.isBlock : barriers[open.index] === 1) return;
    }
  }

  /** The end tag of any heading ends the heading that is open. */
  #endHeading(tag: HtmlTag): void {
    const outermost = Math.max(0, this.depth - maxSteps);
    for (let depth = this.depth; depth > outermost; depth--) {
      const open = this.#tags[depth - 1]!;
      if (open.headingLevel > 0) {
        this.#endTo(depth - 1);
        return;
      }
      if (tag.endBarriers[open.index] === 1) return;
    }
  }

  #endTo(depth: number): void {
    while (this.depth > depth) {
      this.depth--;
      this.#counts[this.#tags[this.depth]!.index]!--;
      this.marks = this.#marks[this.depth]!;
      this.container = this.#containers[this.depth]!;
    }
  }
}

/** Inside SVG and MathML, what stands in these is HTML again. */
const htmlInForeign = new Set("foreignobject desc title mi mo mn ms mtext annotation-xml".split(" "));
