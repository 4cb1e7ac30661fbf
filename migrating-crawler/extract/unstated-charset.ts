/**
 * What tells a page's encoding when its first 1,024 bytes do not: a charset stated further down, where browsers
 * that meet it change the encoding (WHATWG HTML, section 13.2.3.5), and the bytes of its text, whose frequencies
 * can be looked at without the markup, which is ASCII and looks like English in any encoding.
 */
import type { HtmlTag } from "./html-tags.ts";
import { HtmlScanner, type HtmlSink } from "./scan-html.ts";

export interface PageBytes {
  /** The label of the charset as the page states it; null when it does not. */
  readonly label: string | null;
  /** The text outside tags, scripts and styles. */
  readonly text: Buffer;
}

/** A page that has not stated its charset by then has shown its text. */
const maxBytes = 64 * 1024;

export function readPageBytes(bytes: Buffer): PageBytes {
  const reader = new BytesReader(bytes.toString("latin1", 0, maxBytes));
  return reader.read();
}

class BytesReader implements HtmlSink {
  readonly isForeign = false;
  readonly #bytes: string;
  readonly #scanner: HtmlScanner;
  #label: string | null = null;
  #text = "";
  #isMarkup = true;

  constructor(bytes: string) {
    this.#bytes = bytes;
    this.#scanner = new HtmlScanner(bytes, this);
  }

  read(): PageBytes {
    this.#scanner.scanTo(this.#bytes.length);
    return { label: this.#label, text: Buffer.from(this.#text, "latin1") };
  }

  openTag(tag: HtmlTag): void {
    this.#isMarkup = tag.content === "markup" || tag.content === "rcdata";
    if (tag.name === "meta") this.#label ??= this.#metaCharset();
  }

  closeTag(): void {
    this.#isMarkup = true;
  }

  takeText(from: number, to: number): void {
    if (this.#isMarkup) this.#text += `${this.#bytes.slice(from, to)} `;
  }

  #metaCharset(): string | null {
    const charset = this.#scanner.tag.attribute("charset");
    if (charset !== null) return charset.trim().slice(0, 40);
    if (this.#scanner.tag.attribute("http-equiv")?.trim().toLowerCase() !== "content-type") return null;
    const content = (this.#scanner.tag.attribute("content") ?? "").slice(0, 1000);
    return /charset\s*=\s*["']?([^\s"';]{1,40})/i.exec(content)?.[1] ?? null;
  }
}
