/** Collects a page's links: target as written, anchor text, and nofollow. */
import { flat } from "#core/words/stemming";
import { composed } from "#protocol/composed";
import { flagsOf, type HtmlTag, mark, numbersOf } from "./html-tags.ts";

/** Higher than what is sent (`maxPageLinks`), since several links may be the same URL. */
const maxLinks = 20_000;
const maxAnchorCharacters = 200;
const maxHrefCharacters = 8192;

const maxOpenCharacters = 1000;

export interface ReadLink {
  readonly href: string;
  readonly anchor: string;
  readonly nofollow: boolean;
}

/** Keeps each reference once regardless of its fragment, with the first meaningful anchor. */
export class LinkReader {
  readonly #links = new Map<string, { href: string; anchor: string; nofollow: boolean }>();
  #open: { href: string; anchor: string; nofollow: boolean } | null = null;
  leftOut = 0;
  #isInside = false;
  #characters = 0;

  get isInside(): boolean {
    return this.#isInside;
  }

  /** An `a` or `area` tag ends an open link (WHATWG HTML, section 13.2.6.4.7). */
  open(tag: TagAttributes, isArea: boolean): void {
    this.close();
    const href = tag.attribute("href");
    if (href === null) return;
    this.#isInside = !isArea;
    this.#characters = 0;
    if (href.length > maxHrefCharacters) return;
    const link = this.#linkTo(href, isNofollow(tag.attribute("rel")));
    if (link === null || isSaid(link.anchor)) return;
    link.anchor = isArea ? (tag.attribute("alt") ?? "").slice(0, maxOpenCharacters) : "";
    if (!isArea) this.#open = link;
  }

  #linkTo(href: string, nofollow: boolean): { href: string; anchor: string; nofollow: boolean } | null {
    const hash = href.indexOf("#");
    const name = hash < 0 ? href : href.slice(0, hash);
    const known = this.#links.get(name);
    if (known !== undefined) {
      known.nofollow &&= nofollow;
      return known;
    }
    if (this.#links.size >= maxLinks) {
      this.leftOut++;
      return null;
    }
    const link = { href: name, anchor: "", nofollow };
    this.#links.set(name, link);
    return link;
  }

  add(text: string): void {
    if (!this.#isInside) return;
    this.#characters += text.length;
    if (this.#characters > maxOpenCharacters) this.#isInside = false;
    if (this.#open !== null && this.#open.anchor.length < maxOpenCharacters) this.#open.anchor += text;
  }

  close(): void {
    this.#open = null;
    this.#isInside = false;
  }

  finish(): readonly ReadLink[] {
    const links = [...this.#links.values()];
    for (const link of links) link.anchor = tidy(link.anchor).slice(0, maxAnchorCharacters);
    return links;
  }
}

const isSaid = (anchor: string) => anchor !== "" && /\S/.test(anchor);

function isNofollow(rel: string | null): boolean {
  return rel !== null && /(?:^|\s)(?:nofollow|ugc|sponsored)(?:\s|$)/i.test(rel);
}

// Derives an element's marks from its name, role (WAI-ARIA 1.2), style, class and id: invisible, furniture (navigation,
// footer, notice) or main part.

export interface TagAttributes {
  attribute(name: string): string | null;
  hasAttributes(): boolean;
}

export function marksOf(tag: HtmlTag, attributes: TagAttributes): number {
  const { index } = tag;
  let marks = index === -1 ? 0 : marksByTag[index]!;
  if (tag.isUnseen) marks |= mark.unseen;
  if ((marks & mark.inert) !== 0 && isShadowRoot(attributes)) return 0;
  if (!attributes.hasAttributes() || (index !== -1 && neverHidden[index] === 1)) return marks;
  if (isHidden(attributes)) marks |= mark.hidden;
  if (attributes.attribute("data-nosnippet") !== null) marks |= mark.unquoted;
  const role = attributes.attribute("role");
  if (role !== null) marks |= byRole.get(role.trim().toLowerCase()) ?? 0;
  const property = attributes.attribute("itemprop");
  if (property !== null) {
    if (attributes.attribute("itemscope") !== null) marks |= mark.partOfItem;
    else if (/^\s*articleBody\b/i.test(property)) marks |= mark.articleBody;
  }
  return index !== -1 && containers[index] === 1 ? marks | furnitureMarks(attributes) : marks;
}

const marksByTag = numbersOf(
  new Map<string, number>([
    ["template", mark.inert],
    ["svg", mark.foreign],
    ["math", mark.foreign],
    ["nav", mark.furniture],
    ["footer", mark.furniture],
    ["aside", mark.furniture],
    ["menu", mark.furniture],
    ["dialog", mark.furniture],
    ["button", mark.furniture],
    ["search", mark.furniture],
    ["article", mark.main],
    ["main", mark.main],
  ]),
);

const furnitureRoles =
  "navigation contentinfo banner complementary search dialog alertdialog menu menubar toolbar tooltip button";

const byRole = new Map<string, number>([
  ...furnitureRoles.split(" ").map((role) => [role, mark.furniture] as const),
  ["main", mark.main],
  ["article", mark.main],
]);

const neverHidden = flagsOf(new Set(["html", "body"]));
const containers = flagsOf(new Set(["div", "section", "ul", "ol", "dl", "table", "form", "header", "td"]));

/** Browsers render a declarative shadow root (WHATWG HTML, section 4.12.3). */
function isShadowRoot(attributes: TagAttributes): boolean {
  return /^(?:open|closed)$/i.test(attributes.attribute("shadowrootmode") ?? "");
}

/** The ids of streamed parts of a page, which React's script moves into place: `S:0`, with an optional prefix. */
const streamedId = /(?:^|[^a-z\d])S:[\da-f]+$/;

function isHidden(attributes: TagAttributes): boolean {
  const hidden = attributes.attribute("hidden");
  // `until-found` content is collapsed and opens when someone searches for its words.
  if (hidden !== null && !/^until-found$/i.test(hidden) && !streamedId.test(attributes.attribute("id") ?? ""))
    return true;
  const style = attributes.attribute("style");
  return style !== null && /(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*hidden)/i.test(style);
}

/** Words at the start of a class or id, or after a `-` or `_`. */
const furnitureWords = `
nav navbar navigation menu submenu footer sidebar side-?bar breadcrumbs? cookies? consent gdpr social share
sharing sharedaddy related recommended recommendations comments? commentlist respond disqus newsletter
subscribe subscription signup login promo advert advertisement ads? sponsored banner popup modal overlay
widget pagination pager skip-?links? toolbar tagcloud copyright masthead outbrain taboola author-?box
author-?bio`;

const furnitureName = new RegExp(
  `(?:^|[\\s_-])(?:${furnitureWords.trim().split(/\s+/).join("|")})(?=$|[\\s_-])`,
  "i",
);

const commentsName =
  /(?:^|[\s_-])(?:comments?|commentlist|respond|disqus)(?=$|[\s_-](?!open|closed|enabled))/i;

/** Caches the marks of classes, which repeat on a site's pages. Ids are not cached, because they are mostly new. */
const knownClasses = new Map<string, number>();
const maxKnownClasses = 2048;
const maxKnownCharacters = 120;

function marksOfName(name: string): number {
  if (!furnitureName.test(name)) return 0;
  return commentsName.test(name) ? mark.likelyFurniture | mark.comments : mark.likelyFurniture;
}

function marksOfClass(className: string): number {
  if (className.length > maxKnownCharacters) return marksOfName(className);
  const known = knownClasses.get(className);
  if (known !== undefined) return known;
  const marks = marksOfName(className);
  if (knownClasses.size >= maxKnownClasses) knownClasses.clear();
  knownClasses.set(flat(className), marks);
  return marks;
}

function furnitureMarks(attributes: TagAttributes): number {
  const className = attributes.attribute("class");
  const id = attributes.attribute("id");
  return (className === null ? 0 : marksOfClass(className)) | (id === null ? 0 : marksOfName(id));
}

export function tidy(written: string): string {
  const text = composed(written);
  return untidy.test(text) ? text.replace(odd, " ").trim() : text;
}

const untidy = /\s\s|[^\S ]|^\s|\s$/;

/** White space other than a single blank. Most texts have none and are returned unchanged. */
const odd = /\s{2,}|[^\S ]/g;
