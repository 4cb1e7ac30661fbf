/**
 * Reads the entries of a sitemap or feed in one pass over its tokens, without a tree, a stack or the document's own entities,
 * so that time and memory grow only with its length. The complete entries of a broken or truncated document are read.
 *
 *   outside → <url>, <sitemap>, <item>, <entry> → entry → its fields … → end tag, or the next entry → outside
 */

import { setImmediate } from "node:timers/promises";
import { Tokenizer } from "htmlparser2";
import { type ListForm, xmlRoot } from "./document-kind.ts";

export interface StatedLink {
  readonly href: string;
  /** The `xml:base` values of the enclosing elements, outermost first, without that of the list itself. */
  readonly bases: readonly string[];
}

export interface ListEntry extends StatedLink {
  readonly title: string;
  /** The entry's date in any form, or an empty string. */
  readonly modified: string;
  readonly frequency: string;
}

/** Maximum number of URLs per file in the sitemap protocol. Any more entries are ignored. */
const maxEntries = 50_000;

/** Tokens are read in pieces of this length, so that other work can run in between. */
const pieceCharacters = 32 * 1024;

const maxFieldCharacters = 8192;

export async function readList(
  text: string,
  form: ListForm,
  turns: WorkTurns,
): Promise<readonly ListEntry[]> {
  if (form === "text") return readLines(text);
  const root = xmlRoot(text);
  if (root === null) return [];
  const reader = new ListReader(text, root.at, dialectOf(form, root.prefix.toLowerCase()));
  for (let at = root.at; at < text.length && reader.entries.length < maxEntries; at += pieceCharacters) {
    reader.write(text.slice(at, at + pieceCharacters));
    await turns.next();
  }
  reader.end();
  return reader.entries;
}

function readLines(text: string): ListEntry[] {
  const entries: ListEntry[] = [];
  for (const [line] of text.matchAll(/[^\r\n]+/g)) {
    const href = line.replace("\ufeff", "").trim();
    if (href !== "") entries.push({ href, bases: [], title: "", modified: "", frequency: "" });
    if (entries.length >= maxEntries) break;
  }
  return entries;
}

type Field = "href" | "guid" | "title" | "modified" | "published" | "frequency";

interface Dialect {
  readonly entries: readonly string[];
  readonly fields: Readonly<Record<string, Field>>;
  /** In Atom, the URL is an attribute of an empty element. */
  readonly linkAttribute: string | null;
}

/** If the list's own elements have the root's prefix, the names include it. */
function dialectOf(form: Exclude<ListForm, "text">, prefix: string): Dialect {
  const named = (fields: Record<string, Field>) =>
    Object.fromEntries(Object.entries(fields).map(([name, field]) => [prefix + name, field]));
  switch (form) {
    case "urlset":
    case "sitemapindex":
      return {
        entries: [`${prefix}url`, `${prefix}sitemap`],
        fields: named({ loc: "href", lastmod: "modified", changefreq: "frequency" }),
        linkAttribute: null,
      };
    case "atom":
      return {
        entries: [`${prefix}entry`],
        fields: named({
          title: "title",
          updated: "modified",
          modified: "modified",
          published: "published",
          issued: "published",
        }),
        linkAttribute: `${prefix}link`,
      };
    default:
      return {
        entries: ["item"],
        fields: {
          link: "href",
          guid: "guid",
          title: "title",
          "atom:updated": "modified",
          pubdate: "published",
          "dc:date": "published",
        },
        linkAttribute: null,
      };
  }
}

/** A reference to an entity that XML does not predefine. */
const foreignEntity = /&[\p{L}_][\p{L}\p{N}_.-]*;/u;

class ListReader {
  readonly entries: ListEntry[] = [];
  readonly #source: string;
  /** The offset from which the tokenizer counts positions. */
  readonly #from: number;
  readonly #dialect: Dialect;
  readonly #tokenizer: Tokenizer;
  #entry: Partial<Record<Field, string>> | null = null;
  #entryBases: readonly string[] = [];
  #linkBases: readonly string[] = [];
  /** The field that is being read, or the name of a foreign element that is skipped with its content. */
  #field: Field | null = null;
  #inside: string | null = null;
  #text = "";
  #spoilt = false;
  #tag = "";
  #attribute = "";
  #attributes: Record<string, string> = {};

  constructor(source: string, from: number, dialect: Dialect) {
    this.#source = source;
    this.#from = from;
    this.#dialect = dialect;
    const ignore = () => {};
    this.#tokenizer = new Tokenizer(
      { xmlMode: true, decodeEntities: true },
      {
        onopentagname: (start, end) => this.#openTag(this.#slice(start, end)),
        onattribname: (start, end) => {
          this.#attribute = this.#slice(start, end).toLowerCase();
          this.#attributes[this.#attribute] = "";
        },
        onattribdata: (start, end) => this.#attributeText(this.#slice(start, end)),
        onattribentity: (code) => this.#attributeText(String.fromCodePoint(code)),
        onattribend: ignore,
        onopentagend: () => this.#opened(false),
        onselfclosingtag: () => this.#opened(true),
        onclosetag: (start, end) => this.#close(this.#slice(start, end).trim().toLowerCase()),
        ontext: (start, end) => this.#take(this.#slice(start, end), true),
        ontextentity: (code) => this.#take(String.fromCodePoint(code), false),
        oncdata: (start, end, tail) => this.#take(this.#slice(start, end - tail), false),
        oncomment: ignore,
        ondeclaration: ignore,
        onprocessinginstruction: ignore,
        onend: ignore,
      },
    );
  }

  write(piece: string): void {
    this.#tokenizer.write(piece);
  }

  /** At the end of the source, an entry that has a URL counts, but an unfinished field does not. */
  end(): void {
    this.#field = null;
    this.#finish();
  }

  #slice(start: number, end: number): string {
    return this.#source.slice(this.#from + start, this.#from + end);
  }

  #openTag(name: string): void {
    this.#tag = name.toLowerCase();
    this.#attributes = {};
  }

  #attributeText(text: string): void {
    const so = this.#attributes[this.#attribute] ?? "";
    if (so.length < maxFieldCharacters) this.#attributes[this.#attribute] = so + text;
  }

  #opened(empty: boolean): void {
    const { entries, fields, linkAttribute } = this.#dialect;
    const name = this.#tag;
    if (entries.includes(name)) return void this.#begin(empty);
    if (this.#entry === null || (this.#inside !== null && this.#field === null)) return;
    // An open field was never closed, so its text ends here.
    this.#endField();
    if (name === linkAttribute) this.#noteLink();
    if (empty) return;
    this.#inside = name;
    this.#field = fields[name] ?? null;
    if (this.#field === "guid" && this.#attributes.ispermalink?.trim() === "false") this.#field = null;
  }

  #begin(empty: boolean): void {
    this.#finish();
    if (empty || this.entries.length >= maxEntries) return;
    this.#entry = {};
    this.#entryBases = this.#basesHere();
    this.#linkBases = [];
  }

  /** A link without rel is the alternate, which is the entry's page (RFC 4287 section 4.2.7.2). */
  #noteLink(): void {
    const rel = (this.#attributes.rel ?? "alternate").trim().toLowerCase();
    if (rel !== "alternate" || this.#entry === null || this.#entry.href !== undefined) return;
    this.#entry.href = this.#attributes.href ?? "";
    this.#linkBases = this.#basesHere();
  }

  #basesHere(): readonly string[] {
    const base = this.#attributes["xml:base"]?.trim() ?? "";
    return base === "" ? [] : [base];
  }

  #take(text: string, isRaw: boolean): void {
    if (this.#field === null || this.#text.length > maxFieldCharacters) return;
    if (isRaw && foreignEntity.test(text)) this.#spoilt = true;
    this.#text += text;
  }

  #close(name: string): void {
    if (this.#entry === null) return;
    if (name === this.#inside) this.#endField();
    else if (this.#dialect.entries.includes(name)) this.#finish();
  }

  #endField(): void {
    if (this.#field !== null && this.#entry !== null && !(this.#spoilt && this.#field !== "title")) {
      this.#entry[this.#field] ??= this.#text.trim();
    }
    this.#inside = null;
    this.#field = null;
    this.#text = "";
    this.#spoilt = false;
  }

  #finish(): void {
    if (this.#field !== null) this.#endField();
    const entry = this.#entry;
    this.#entry = null;
    this.#inside = null;
    const href = entry?.href || entry?.guid;
    if (!href) return;
    const modified = entry?.modified ?? entry?.published ?? "";
    const bases = [...this.#entryBases, ...this.#linkBases];
    this.entries.push({
      href,
      bases,
      title: entry?.title ?? "",
      modified,
      frequency: entry?.frequency ?? "",
    });
  }
}

// Divides a long computation into turns, so that sockets are served in between. A page of 5 MB takes most of a second, and a
// probe's answer that arrives meanwhile would be timed late.

const turnMs = 8;

export class WorkTurns {
  readonly #quiet: () => Promise<void>;
  #beganMs = performance.now();

  constructor(quiet: () => Promise<void>) {
    this.#quiet = quiet;
  }

  /** Returns null while the turn lasts, and then a promise to await. */
  next(): Promise<void> | null {
    return performance.now() - this.#beganMs < turnMs ? null : this.#yield();
  }

  async #yield(): Promise<void> {
    await setImmediate();
    await this.#quiet();
    this.#beganMs = performance.now();
  }
}
