/**
 * Tracks the open elements and the marks noted for each; an element inherits its parent's marks. Optional tags are
 * inserted as browsers do (WHATWG HTML, section 13.2.6), as far as it affects which blocks hold which text.
 */
import { flagsOf, type HtmlTag, tagCount } from "./html-tags.ts";

/** Bits that may be noted for an element. */
export const mark = {
  /** The text is invisible or no prose. */
  unseen: 1,
  /** Hidden by its own attributes. */
  hidden: 2,
  /** Navigation, footers and notices, according to element or role. */
  furniture: 4,
  /** Navigation, footers and notices, judging by class or id. */
  likelyFurniture: 8,
  /** SVG or MathML. */
  foreign: 16,
  /** Inside the article or the main part. */
  main: 32,
  /** A microdata item that is a property of another item. */
  partOfItem: 64,
  /** The text is a property's value (microdata, time). */
  property: 128,
  /** The content of a template, which is not part of the page. */
  inert: 256,
  /** The part of `likelyFurniture` that holds readers' comments. */
  comments: 512,
  /** The article's text according to microdata. */
  articleBody: 1024,
  /** Text that may be searched but not shown (`data-nosnippet`). */
  unquoted: 2048,
} as const;

/** Real pages reach 38 at most. */
const maxDepth = 512;
/** Limits the search for a tag's element; real pages need less, and each tag could otherwise cost as much. */
const maxSteps = 100;

/** The tree of blocks in document order: each block's parent, which has a lower number. Block 0 is the page. */
export interface Containers {
  readonly parents: readonly number[];
  /** Blocks that usually hold only a paragraph. */
  readonly isParagraph: readonly boolean[];
  /** Blocks that hold a part of a list or table. */
  readonly isItem: readonly boolean[];
}

/** Further blocks count as their parents. */
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
  /** The marks of the innermost element, including inherited ones. */
  marks = 0;
  readonly #tags: HtmlTag[] = [];
  readonly #marks: number[] = [];
  readonly #containers: number[] = [];
  readonly #counts = new Int32Array(tagCount);

  get isFull(): boolean {
    return this.depth >= maxDepth;
  }

  /** Ends the elements that this start tag implicitly ends; call it before computing the tag's own marks. */
  endImplied(tag: HtmlTag): void {
    for (const index of tag.ends) if (this.#counts[index]! > 0) this.#endNearest(index, tag.startBarriers);
    const isInHeading = tag.headingLevel > 0 && (this.#tags[this.depth - 1]?.headingLevel ?? 0) > 0;
    if (isInHeading) this.#endTo(this.depth - 1);
  }

  /** `own` holds the element's own marks. An unmarked element that is not kept is forgotten at once. */
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

  /** Ends the element with everything open inside it, or nothing when it is not open. */
  close(tag: HtmlTag): void {
    if (tag.index === -1) return;
    if (tag.headingLevel > 0) this.#endHeading(tag);
    else if (this.#counts[tag.index]! > 0) this.#endNearest(tag.index, tag.isKept ? tag.endBarriers : null);
  }

  /** HTML that cannot appear in SVG or MathML ends them (section 13.2.6.5). */
  leaveForeign(): void {
    while ((this.marks & mark.foreign) !== 0) this.#endTo(this.depth - 1);
  }

  endAll(): void {
    this.#endTo(0);
  }

  /** Without barriers, every block is one. */
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

  /** The end tag of any heading ends the open heading. */
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

/** Inside these elements of SVG and MathML the content is HTML again. */
const htmlInForeign = new Set("foreignobject desc title mi mo mn ms mtext annotation-xml".split(" "));
