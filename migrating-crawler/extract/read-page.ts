/**
 * One pass over a page's HTML with htmlparser2: everything the index needs, in reading order, every list
 * and string bounded. Nesting deeper than any real page (38 on 254 of them) ends the reading: the parser's
 * time is quadratic in depth.
 */
import { Parser } from "htmlparser2";
import type { Weight } from "./lexemes.ts";
import type { WorkTurns } from "./work-turns.ts";

const maxDepth = 512;
const maxLinks = 2000;
const maxHeadings = 100;
const maxAnchorCharacters = 200;
/** Text that is kept for the index. */
const maxTextCharacters = 1_000_000;
/** The parser is fed in pieces, so that a page that turns out too deep stops early. */
const pieceCharacters = 16 * 1024;

/** Text is handed on in pieces of about this length, cut between blocks. */
const longPieceCharacters = 16 * 1024;

export interface ReadLink {
  readonly href: string;
  readonly anchor: string;
  readonly nofollow: boolean;
}

export interface ReadPage {
  readonly title: string;
  readonly description: string;
  /** As written in the page; null when absent. */
  readonly canonical: string | null;
  readonly base: string | null;
  readonly language: string | null;
  readonly headings: readonly { readonly level: number; readonly text: string }[];
  /** The contents of the robots metas that concern us, in lower case. */
  readonly robots: readonly string[];
  readonly links: readonly ReadLink[];
  /** The visible text in order, cut where the weight changes. */
  readonly text: readonly { readonly weight: Weight; readonly text: string }[];
  /** The page is nested too deeply and was not read to its end. */
  readonly cut: boolean;
}

export async function readPage(html: string, turns: WorkTurns): Promise<ReadPage> {
  const reader = new PageReader();
  const parser = new Parser(reader, {
    decodeEntities: true,
    lowerCaseTags: true,
    lowerCaseAttributeNames: true,
  });
  for (let at = 0; at < html.length && !reader.cut; at += pieceCharacters) {
    parser.write(html.slice(at, at + pieceCharacters));
    await turns.next();
  }
  if (!reader.cut) parser.end();
  return reader.finish();
}

/** Elements whose text nobody sees, or that is not prose (the title is kept apart). */
const hidden = new Set([
  "script",
  "style",
  "noscript",
  "template",
  "svg",
  "math",
  "title",
  "select",
  "textarea",
  "iframe",
  "object",
  "canvas",
]);
const blocks = new Set(
  (
    "address article aside blockquote br dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 " +
    "h3 h4 h5 h6 header hr li main nav ol p pre section table tbody td tfoot th thead title tr ul option"
  ).split(" "),
);
const heading = /^h[1-6]$/;

class PageReader {
  cut = false;
  readonly #links: { href: string; anchor: string; nofollow: boolean }[] = [];
  readonly #headings: { level: number; text: string }[] = [];
  readonly #robots: string[] = [];
  readonly #text: { weight: Weight; text: string }[] = [];
  #title: string | null = null;
  #description: string | null = null;
  #canonical: string | null = null;
  #base: string | null = null;
  #language: string | null = null;
  #depth = 0;
  #hidden = 0;
  #inTitle = false;
  #headingLevel = 0;
  #headingText = "";
  #anchor: { href: string; anchor: string; nofollow: boolean } | null = null;
  #piece = "";
  #textCharacters = 0;

  onopentag(name: string, attributes: Record<string, string>): void {
    if (this.cut) return;
    this.#depth++;
    if (this.#depth > maxDepth) this.cut = true;
    if (blocks.has(name)) this.#space();
    if (hidden.has(name)) this.#hidden++;
    if (heading.test(name)) this.#openHeading(Number(name[1]));
    this.#note(name, attributes);
  }

  ontext(data: string): void {
    if (this.#inTitle) this.#title = bounded(this.#title ?? "", data, 2000);
    if (this.cut || this.#hidden > 0 || this.#textCharacters > maxTextCharacters) return;
    this.#textCharacters += data.length;
    this.#piece += data;
    if (this.#headingLevel > 0) this.#headingText = bounded(this.#headingText, data, 1000);
    if (this.#anchor) this.#anchor.anchor = bounded(this.#anchor.anchor, data, 4 * maxAnchorCharacters);
  }

  onclosetag(name: string): void {
    if (this.cut) return;
    this.#depth--;
    if (hidden.has(name)) this.#hidden--;
    if (blocks.has(name)) this.#space();
    if (name === "title") this.#inTitle = false;
    if (name === "a") this.#anchor = null;
    if (heading.test(name)) this.#closeHeading();
  }

  finish(): ReadPage {
    this.#closePiece("D");
    return {
      title: tidy(this.#title ?? ""),
      description: tidy(this.#description ?? ""),
      canonical: this.#canonical,
      base: this.#base,
      language: this.#language,
      headings: this.#headings,
      robots: this.#robots,
      links: this.#links.map((link) => ({
        ...link,
        anchor: tidy(link.anchor).slice(0, maxAnchorCharacters),
      })),
      text: this.#text,
      cut: this.cut,
    };
  }

  #note(name: string, attributes: Record<string, string>): void {
    switch (name) {
      case "html":
        this.#language ??= attributes.lang ?? attributes["xml:lang"] ?? null;
        return;
      case "title":
        if (this.#title === null && this.#hidden === 1) this.#inTitle = true;
        return;
      case "base":
        this.#base ??= attributes.href ?? null;
        return;
      case "meta":
        this.#noteMeta(attributes);
        return;
      case "link":
        if (words(attributes.rel).includes("canonical")) this.#canonical ??= attributes.href ?? null;
        return;
      case "a":
      case "area":
        this.#noteLink(name, attributes);
        return;
      case "img":
        if (this.#anchor) this.#anchor.anchor = bounded(this.#anchor.anchor, ` ${attributes.alt ?? ""}`, 800);
    }
  }

  #noteMeta(attributes: Record<string, string>): void {
    const name = (attributes.name ?? "").trim().toLowerCase();
    const content = attributes.content ?? "";
    if (name === "description") this.#description ??= content.slice(0, 4000);
    if ((name === "robots" || name === "nearcrawl") && this.#robots.length < 10) {
      this.#robots.push(content.slice(0, 500).toLowerCase());
    }
    const equivalent = (attributes["http-equiv"] ?? "").trim().toLowerCase();
    if (equivalent === "content-language") this.#language ??= content;
  }

  #noteLink(name: string, attributes: Record<string, string>): void {
    this.#anchor = null;
    const href = attributes.href;
    if (href === undefined || this.#links.length >= maxLinks || href.length > 8192) return;
    const anchor = name === "area" ? (attributes.alt ?? "").slice(0, 800) : "";
    const link = { href, anchor, nofollow: words(attributes.rel).includes("nofollow") };
    this.#links.push(link);
    if (name === "a") this.#anchor = link;
  }

  #openHeading(level: number): void {
    this.#closePiece(this.#headingLevel > 0 ? "B" : "D");
    this.#headingLevel = level;
    this.#headingText = "";
  }

  #closeHeading(): void {
    if (this.#headingLevel === 0) return;
    this.#closePiece("B");
    const text = tidy(this.#headingText).slice(0, 300);
    if (text !== "" && this.#headings.length < maxHeadings) {
      this.#headings.push({ level: this.#headingLevel, text });
    }
    this.#headingLevel = 0;
  }

  #space(): void {
    if (this.#piece.length > longPieceCharacters) this.#closePiece(this.#headingLevel > 0 ? "B" : "D");
    if (this.#piece !== "") this.#piece += "\n";
    if (this.#anchor) this.#anchor.anchor += " ";
    if (this.#headingLevel > 0) this.#headingText += " ";
  }

  #closePiece(weight: Weight): void {
    const text = this.#piece.trim();
    if (text !== "") this.#text.push({ weight, text });
    this.#piece = "";
  }
}

function bounded(so: string, more: string, most: number): string {
  return so.length >= most ? so : so + more;
}

/** Runs of white space as one blank, none at the ends. */
export function tidy(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

function words(text: string | undefined): string[] {
  return (text ?? "").toLowerCase().split(/\s+/);
}
