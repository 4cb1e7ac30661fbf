/**
 * The page's text as it is met: blocks (paragraphs, list items, cells, headings) in order, each with how much of
 * it is link text and what its elements say of it. All bounded.
 */
import { composed } from "#protocol/composed";
import { mark } from "./open-elements.ts";

export interface TextBlock {
  readonly text: string;
  readonly words: number;
  /** 1 to 6 for a heading; else 0. */
  readonly headingLevel: number;
  /** So many of the words stand in links. */
  readonly linkWords: number;
  /** Of the elements it stands in (`mark`). */
  readonly marks: number;
  /** The innermost block element that it begins in (`Containers`). */
  readonly container: number;
}

/** Text that is kept for the index. */
const maxCharacters = 1_000_000;
const maxBlocks = 50_000;
/** A longer heading is none. */
const maxHeadingCharacters = 1000;

/** What some of a paragraph's text may be and the rest not. */
const apart = mark.hidden | mark.unquoted;

interface TextPart {
  readonly text: string;
  readonly words: number;
  readonly container: number;
}

export class TextBlocks {
  readonly #blocks: TextBlock[] = [];
  #text = "";
  #words = 0;
  #linkWords = 0;
  #marks = 0;
  #container = 0;
  #headingLevel = 0;
  /** What is seen of the heading, of blocks that it fell into. */
  #headingText = "";
  #characters = 0;

  get isFull(): boolean {
    return this.#characters > maxCharacters || this.#blocks.length >= maxBlocks;
  }

  /** `marks`: of the elements that the text stands in. */
  add(part: TextPart, isLink: boolean, marks: number): void {
    const { text, words } = part;
    if (marks !== this.#marks) {
      if (((marks ^ this.#marks) & apart) !== 0) this.#close();
      this.#marks = marks;
    }
    if (this.#text === "") this.#container = part.container;
    this.#text += text;
    this.#words += words;
    this.#characters += text.length;
    if (isLink) this.#linkWords += words;
    if (this.#headingLevel > 0 && this.#text.length > maxHeadingCharacters) this.#headingLevel = 0;
  }

  /** White space between elements. */
  space(): void {
    if (this.#text !== "") this.#text += " ";
  }

  /** A block begins or ends here. Inside a heading it is but a blank. */
  break(): void {
    if (this.#headingLevel > 0) this.space();
    else if (this.#text !== "") this.#close();
  }

  openHeading(level: number): void {
    this.#close();
    this.#headingLevel = level;
    this.#headingText = "";
  }

  /** The heading's text; empty when it has none, or too much to be one. */
  closeHeading(): string {
    const isHeading = this.#headingLevel > 0;
    this.#close();
    this.#headingLevel = 0;
    return isHeading ? this.#headingText : "";
  }

  finish(): readonly TextBlock[] {
    this.#close();
    return this.#blocks;
  }

  #close(): void {
    if (this.#headingLevel > 0 && (this.#marks & mark.hidden) === 0) this.#headingText += this.#text;
    const text = composed(this.#text.trim());
    if (text !== "") {
      this.#blocks.push({
        text,
        words: this.#words,
        headingLevel: this.#headingLevel,
        linkWords: this.#linkWords,
        marks: this.#marks,
        container: this.#container,
      });
    }
    this.#text = "";
    this.#words = 0;
    this.#linkWords = 0;
  }
}
