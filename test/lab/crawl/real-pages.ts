/**
 * The 254 real pages of the shared data on many hosts, every copy with its own text, and again with a few words changed. In a copy
 * four of ten long words are exchanged for others of the suite in the same language, so that neither near-duplicates nor caches
 * of texts save any work; markup, links, sizes and word frequencies stay the same.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { seededRandom } from "#core/random";
import { sharedData } from "../../support/shared-data.ts";

export interface RealPage {
  readonly bytes: Buffer;
  readonly contentType: string;
}

/** Share of exchangeable words: in a copy, and in a later edition of it. */
const otherShare = 0.4;
const editedShare = 0.05;

/** The loopback addresses of the benchmark's sites, one host each. */
export const goodHosts: readonly string[] = ["127.0.1", "127.0.2"].flatMap((prefix) =>
  Array.from({ length: 250 }, (_, index) => `${prefix}.${index + 1}`),
);

/** Null, with a message, where the shared data is absent. */
export function realPages(): RealPages | null {
  const folder = sharedData("suites/pages");
  return folder === null ? null : new RealPages(folder);
}

interface Source {
  /** Bytes as ISO-8859-1: only ASCII is exchanged, so that every encoding stays valid. */
  readonly text: string;
  readonly contentType: string;
  readonly language: string;
}

class RealPages {
  readonly #sources: readonly Source[];
  readonly #words = new Map<string, string[]>();
  /** Paths on their own site that the pages link to. */
  readonly linked = new Set<string>();

  constructor(folder: string) {
    const entries = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8")) as {
      readonly file: string;
      readonly contentType: string | null;
    }[];
    this.#sources = entries.map(({ file, contentType }) => {
      const text = readFileSync(join(folder, file), "latin1");
      const language = /<html[^>]*\slang\s*=\s*["']?([a-z]{2})/i.exec(text)?.[1]?.toLowerCase() ?? "";
      return { text, contentType: contentType ?? "text/html", language };
    });
    for (const { text, language } of this.#sources) {
      const words = this.#words.get(language) ?? [];
      for (const [piece] of text.matchAll(textPiece)) words.push(...(piece.match(longWord) ?? []));
      this.#words.set(language, words);
      for (const [, path] of text.matchAll(/href\s*=\s*["'](\/[\w./-]+)/g)) this.linked.add(path!);
    }
  }

  get count(): number {
    return this.#sources.length;
  }

  get meanBytes(): number {
    return this.#sources.reduce((sum, { text }) => sum + text.length, 0) / this.count;
  }

  /** The page in a host's copy; edition 0 is the first. */
  page(index: number, copy: number, edition: number): RealPage {
    const { text, contentType, language } = this.#sources[index]!;
    const words = this.#words.get(language)!;
    const random = seededRandom(1 + index + 1000 * copy);
    const edit = seededRandom(1 + index + 1000 * copy + 1_000_000 * edition);
    const pick = (draw: () => number) => words[Math.floor(draw() * words.length)]!;
    const changed = text.replace(textPiece, (piece) =>
      piece.replace(longWord, (word) => {
        const own = random() < otherShare ? pick(random) : word;
        return edition > 0 && edit() < editedShare ? pick(edit) : own;
      }),
    );
    return { bytes: Buffer.from(changed, "latin1"), contentType };
  }
}

/** The text between two tags; scripts and styles are not changed. */
const textPiece = /(?<=>)[^<>]{4,}(?=<(?!\/(?:script|style)))/gi;
const longWord = /(?<![\w&#\x80-\xff])[A-Za-z]{5,}(?![\w;\x80-\xff])/g;
