/**
 * Microdata and times as they are met (WHATWG HTML, sections 4.5.14 and 5.2): the properties of the page's own
 * item, not of the things that are properties of it (an author's name is not the article's).
 */
import type { TagAttributes } from "./element-marks.ts";
import type { HtmlTag } from "./html-tags.ts";
import { mark } from "./open-elements.ts";
import type { PageNotes } from "./page-notes.ts";

const maxCharacters = 2000;

export class PropertyReader {
  readonly #notes: PageNotes;
  /** The property whose text is being read, and the depth of its element. */
  #open: { name: string; says: string; text: string; isInMain: boolean; depth: number } | null = null;

  constructor(notes: PageNotes) {
    this.#notes = notes;
  }

  /** An element with attributes begins. True: its text is a property's value, so `begun` is to be called. */
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
    const noted = { name, says: says.slice(0, 200).toLowerCase(), isInMain };
    if (value !== null) this.#note({ ...noted, text: value.slice(0, maxCharacters) });
    if (value !== null || tag.isVoid || this.#open !== null) return false;
    this.#open = { ...noted, text: "", depth: Number.POSITIVE_INFINITY };
    return true;
  }

  /** The element is the innermost now, of so many that are open. */
  begun(depth: number): void {
    if (this.#open !== null) this.#open.depth = depth;
  }

  add(text: string): void {
    if (this.#open !== null && this.#open.text.length < maxCharacters) this.#open.text += text;
  }

  /** So many elements are open now. */
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

  #note(property: { name: string; says: string; text: string; isInMain: boolean }): void {
    const { name, says, text, isInMain } = property;
    if (name !== "") this.#notes.noteItem(name, text);
    if (name === "" || /date|time/.test(name)) this.#notes.noteTime({ value: text, says, isInMain });
  }
}
