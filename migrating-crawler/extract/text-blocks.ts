/**
 * Collects a page's text as blocks (paragraphs, list items, cells, headings) in order, within limits. Each block has its share
 * of link text and its elements' marks.
 */
import { composed } from "#protocol/composed";
import { mark } from "./html-tags.ts";

export interface TextBlock {
  readonly text: string;
  readonly words: number;
  readonly headingLevel: number;
  readonly linkWords: number;
  readonly marks: number;
  readonly container: number;
}

const maxCharacters = 1_000_000;
const maxBlocks = 50_000;
/** A longer heading does not count as a heading. */
const maxHeadingCharacters = 1000;

/** Marks that may differ within a paragraph. */
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
  /** The visible text of a heading that was split into blocks. */
  #headingText = "";
  #characters = 0;

  get isFull(): boolean {
    return this.#characters > maxCharacters || this.#blocks.length >= maxBlocks;
  }

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

  space(): void {
    if (this.#text !== "") this.#text += " ";
  }

  /** Ends the block. Inside a heading, it only adds a blank. */
  break(): void {
    if (this.#headingLevel > 0) this.space();
    else if (this.#text !== "") this.#close();
  }

  openHeading(level: number): void {
    this.#close();
    this.#headingLevel = level;
    this.#headingText = "";
  }

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
