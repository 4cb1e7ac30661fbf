/**
 * Describes HTML elements (WHATWG HTML, sections 13.1.2 and 13.2.6): how their content is parsed, whether they interrupt the
 * text, and which end tags are optional.
 */

/**
 * How an element's content is parsed: as markup, as text with or without character references, as a script, or as plain text
 * to the end of the page.
 */
type ContentModel = "markup" | "rcdata" | "rawtext" | "script" | "plaintext";

export interface HtmlTag {
  readonly name: string;
  readonly content: ContentModel;
  readonly isVoid: boolean;
  /** The element starts and ends a block of text, and ends an open paragraph. */
  readonly isBlock: boolean;
  readonly headingLevel: number;
  /** The element's text is invisible or is not prose. */
  readonly isUnseen: boolean;
  /** Whether the element stays on the stack of open elements. Phrasing elements do so only if they are marked. */
  readonly isKept: boolean;
  /** A unique number below `tagCount`, or -1 for a name that is not in the table. */
  readonly index: number;
  /** The start tag ends an open element of these kinds (by index), unless one of `startBarriers` is between. */
  readonly ends: readonly number[];
  readonly startBarriers: Uint8Array;
  /** The end tag is ignored if one of these is between it and its element. */
  readonly endBarriers: Uint8Array;
}

/** Looks up the tag name `html.slice(from, to)` by the `nameHash` that the scanner computed. */
export function tagOf(html: string, name: { from: number; to: number; hash: number }): HtmlTag {
  const known = byHash.get(name.hash);
  if (
    known !== undefined &&
    known.name.length === name.to - name.from &&
    html.startsWith(known.name, name.from)
  )
    return known;
  const lower = html.slice(name.from, Math.min(name.to, name.from + maxNameCharacters)).toLowerCase();
  return byName.get(lower) ?? { ...unknown, name: lower };
}

/** Adds one character code to the hash of a tag name, ignoring case. */
export function nameHash(hash: number, code: number): number {
  return (Math.imul(hash, 31) + (code | 0x20)) | 0;
}

const maxNameCharacters = 100;
const list = (names: string): readonly string[] => names.split(" ");
const set = (names: string): ReadonlySet<string> => new Set(list(names));

const contents: Readonly<Record<string, ContentModel>> = {
  title: "rcdata",
  textarea: "rcdata",
  style: "rawtext",
  xmp: "rawtext",
  iframe: "rawtext",
  noembed: "rawtext",
  noframes: "rawtext",
  script: "script",
  plaintext: "plaintext",
};
const voids = set(
  "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr",
);
const blocks = set(
  "address article aside blockquote br caption center dd details dialog dir div dl dt fieldset figcaption figure " +
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li listing main menu nav ol optgroup option p " +
    "plaintext pre search section summary table tbody td tfoot th thead title tr ul xmp",
);
/** These blocks do not end an open paragraph. */
const withinParagraph = set("br caption legend option optgroup tbody td tfoot th thead title tr");
const unseen = set(
  "script style noscript template svg math title select datalist textarea iframe object canvas audio video noembed " +
    "noframes applet",
);
/** These elements are not blocks but stay on the stack. */
const alsoKept = list(
  "noscript template svg math select datalist object canvas audio video applet button " +
    "foreignobject desc mi mo mn ms mtext annotation-xml",
);
const phrasing = list(
  "a abbr acronym b big cite code data del dfn em font i ins kbd label mark q s samp small span strong sub sup " +
    "time tt u var html head body frameset",
);

const scopes = "table td th caption template object applet marquee svg math foreignobject";
const tables = set("table template");
const paragraphScope = set(`${scopes} button`);
const defaultScope = set(scopes);
const listScope = set(`${scopes} ul ol menu dir`);
const tableParts = set("table caption tbody thead tfoot tr td th");
/** What a start tag ends, and the barriers that prevent it. */
const implied: Readonly<Record<string, readonly [ends: string, barriers: ReadonlySet<string>]>> = {
  li: ["li", listScope],
  dd: ["dd dt", set(`${scopes} dl`)],
  dt: ["dd dt", set(`${scopes} dl`)],
  option: ["option", set("select datalist optgroup")],
  optgroup: ["option optgroup", set("select datalist")],
  td: ["td th", set("table template tr")],
  th: ["td th", set("table template tr")],
  tr: ["tr", tables],
  tbody: ["tbody thead tfoot caption", tables],
  thead: ["tbody thead tfoot caption", tables],
  tfoot: ["tbody thead tfoot caption", tables],
};

const names = [
  ...new Set([...phrasing, ...voids, ...blocks, ...unseen, ...alsoKept, ...Object.keys(contents)]),
];
const tagCount = names.length;
const unknown = tagNamed("", -1);
const byName = new Map(names.map((name, index) => [name, tagNamed(name, index)]));
const byHash = new Map([...byName.values()].map((tag) => [hashOf(tag.name), tag]));

function tagNamed(name: string, index: number): HtmlTag {
  const endsParagraph = blocks.has(name) && !withinParagraph.has(name) && implied[name] === undefined;
  const [ends, startBarriers] = implied[name] ?? [endsParagraph ? "p" : "", paragraphScope];
  return {
    name,
    index,
    content: contents[name] ?? "markup",
    isVoid: voids.has(name),
    isBlock: blocks.has(name),
    headingLevel: /^h[1-6]$/.test(name) ? Number(name[1]) : 0,
    isUnseen: unseen.has(name),
    isKept: (blocks.has(name) || alsoKept.includes(name)) && !voids.has(name),
    ends: ends === "" ? [] : list(ends).map((ended) => names.indexOf(ended)),
    startBarriers: flagsOf(startBarriers),
    endBarriers: flagsOf(tableParts.has(name) ? tables : name === "li" ? listScope : defaultScope),
  };
}

export function flagsOf(some: ReadonlySet<string>): Uint8Array {
  return Uint8Array.from(names, (name) => (some.has(name) ? 1 : 0));
}

export function numbersOf(some: ReadonlyMap<string, number>): Int32Array {
  return Int32Array.from(names, (name) => some.get(name) ?? 0);
}

function hashOf(name: string): number {
  let hash = 0;
  for (let at = 0; at < name.length; at++) hash = nameHash(hash, name.charCodeAt(at));
  return hash;
}

// Tracks the open elements and the marks of each. An element inherits its parent's marks. Optional tags are inserted as in
// browsers (WHATWG HTML, section 13.2.6), as far as that affects which block each text belongs to.

export const mark = {
  unseen: 1,
  hidden: 2,
  /** Navigation, footers and notices, recognised by element or role. */
  furniture: 4,
  /** Navigation, footers and notices, guessed from the class or id. */
  likelyFurniture: 8,
  foreign: 16,
  main: 32,
  /** A microdata item that is a property of another item. */
  partOfItem: 64,
  property: 128,
  /** The content of a template, which is not part of the page. */
  inert: 256,
  /** Readers' comments, a subset of `likelyFurniture`. */
  comments: 512,
  articleBody: 1024,
  /** Text that may be searched but not shown (`data-nosnippet`). */
  unquoted: 2048,
} as const;

const maxDepth = 512;
/** Limits the search for a tag's element, which could otherwise be as long as the page is deep. Real pages need less. */
const maxSteps = 100;

/** The tree of blocks in document order. Each block has its parent's number, which is lower than its own. Block 0 is the page. */
export interface Containers {
  readonly parents: readonly number[];
  /** Blocks that usually contain a single paragraph. */
  readonly isParagraph: readonly boolean[];
  /** Blocks that contain a part of a list or table. */
  readonly isItem: readonly boolean[];
}

/** If there are more blocks, the others count as part of their parents. */
const maxContainers = 100_000;

const paragraphs = flagsOf(new Set(["p", "pre", "h1", "h2", "h3", "h4", "h5", "h6"]));
const items = flagsOf(new Set(["li", "dt", "dd", "td", "th"]));

export class OpenElements implements Containers {
  depth = 0;
  container = 0;
  readonly parents: number[] = [0];
  readonly isParagraph: boolean[] = [false];
  readonly isItem: boolean[] = [false];
  marks = 0;
  readonly #tags: HtmlTag[] = [];
  readonly #marks: number[] = [];
  readonly #containers: number[] = [];
  readonly #counts = new Int32Array(tagCount);

  get isFull(): boolean {
    return this.depth >= maxDepth;
  }

  /** Ends the elements that this start tag implicitly ends. Must be called before the tag's own marks are computed. */
  endImplied(tag: HtmlTag): void {
    for (const index of tag.ends) if (this.#counts[index]! > 0) this.#endNearest(index, tag.startBarriers);
    const isInHeading = tag.headingLevel > 0 && (this.#tags[this.depth - 1]?.headingLevel ?? 0) > 0;
    if (isInHeading) this.#endTo(this.depth - 1);
  }

  /** `own` are the element's own marks. An unmarked element that is not kept is forgotten at once. */
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

  close(tag: HtmlTag): void {
    if (tag.index === -1) return;
    if (tag.headingLevel > 0) this.#endHeading(tag);
    else if (this.#counts[tag.index]! > 0) this.#endNearest(tag.index, tag.isKept ? tag.endBarriers : null);
  }

  /** HTML elements that cannot appear in SVG or MathML end it (section 13.2.6.5). */
  leaveForeign(): void {
    while ((this.marks & mark.foreign) !== 0) this.#endTo(this.depth - 1);
  }

  endAll(): void {
    this.#endTo(0);
  }

  /** `barriers` is null if every block is a barrier. */
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

/** Inside these elements of SVG and MathML, the content is HTML again. */
const htmlInForeign = new Set("foreignobject desc title mi mo mn ms mtext annotation-xml".split(" "));
