/** A page's links as they are met: where they lead as written, their words, and whether they ask not to be followed. */
import type { TagAttributes } from "./element-marks.ts";
import { tidy } from "./tidy.ts";

const maxLinks = 2000;
const maxAnchorCharacters = 200;
const maxHrefCharacters = 8192;
/** An anchor that was not closed is taken for one as far as this. */
const maxOpenCharacters = 1000;

export interface ReadLink {
  readonly href: string;
  readonly anchor: string;
  readonly nofollow: boolean;
}

export class LinkReader {
  readonly #links: { href: string; anchor: string; nofollow: boolean }[] = [];
  #open: { href: string; anchor: string; nofollow: boolean } | null = null;
  #isInside = false;
  #characters = 0;

  /** Whether text here is the text of a link. */
  get isInside(): boolean {
    return this.#isInside;
  }

  /** An `a` or `area` begins; it ends the link that is open (WHATWG HTML, section 13.2.6.4.7). */
  open(tag: TagAttributes, isArea: boolean): void {
    this.close();
    const href = tag.attribute("href");
    if (href === null) return;
    this.#isInside = !isArea;
    this.#characters = 0;
    if (this.#links.length >= maxLinks || href.length > maxHrefCharacters) return;
    const anchor = isArea ? (tag.attribute("alt") ?? "").slice(0, maxOpenCharacters) : "";
    const link = { href, anchor, nofollow: isNofollow(tag.attribute("rel")) };
    this.#links.push(link);
    if (!isArea) this.#open = link;
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
    for (const link of this.#links) link.anchor = tidy(link.anchor).slice(0, maxAnchorCharacters);
    return this.#links;
  }
}

/** `ugc` and `sponsored` are kinds of nofollow. */
function isNofollow(rel: string | null): boolean {
  return rel !== null && /(?:^|\s)(?:nofollow|ugc|sponsored)(?:\s|$)/i.test(rel);
}
