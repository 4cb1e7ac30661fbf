/** Generated pages as rows of COPY: texts of 200 to 1,400 words (mean 350), with titles and headings of the text's words. */
import { createHash } from "node:crypto";
import type { Vocabulary } from "./vocabulary.ts";

export interface Language {
  readonly code: string;
  readonly config: string;
  /** Of the pages. */
  readonly share: number;
  readonly vocabulary: Vocabulary;
  /** Parallel to the vocabulary's words: Postgres' lexemes of them. */
  readonly lexemes: readonly string[];
}

export interface MadeHost {
  readonly host: string;
  readonly hostHash: string;
  readonly language: Language;
  readonly pages: number;
}

export const pageColumns =
  "host_hash, url_hash, url, host, crawler_id, fetched_at, status, content_type, language, text_search_config, " +
  "title, description, excerpt, headings, noindex, digest, simhash, words, body_bytes, wire_bytes, shipped_bytes, " +
  "published_at, text_group, duplicate_host_hash, duplicate_url_hash, popularity, tier, lexemes";

const day = 86_400_000;
/** One page in this number has nearly the text of the host's first. */
const duplicateEvery = 40;

/** A line of COPY's text format. `number`: of the page on its host; 0 is the front page, which has most links. */
export function madePage(host: MadeHost, number: number, random: () => number): string {
  const { vocabulary, lexemes, config, code } = host.language;
  const draw = (count: number) => Array.from({ length: count }, () => vocabulary.draw());
  const words = Math.round(200 * Math.exp(2 * random() * random()));
  const ranks = draw(words);
  const title = ranks.slice(0, 6);
  const headings = [ranks.slice(10, 14), ranks.slice(30, 34)];
  const text = (some: readonly number[]) => some.map((rank) => vocabulary.words[rank]).join(" ");
  const url =
    number === 0
      ? `https://${host.host}/`
      : `https://${host.host}/${text(title.slice(0, 2)).replace(" ", "/")}/${number}`;
  const isDuplicate = number > 0 && number % duplicateEvery === 0;
  const popularity = popularityOf(number, random);
  const ago = Math.floor(1000 * random() ** 2 * day);
  const first = keyOf(`https://${host.host}/`);
  const row = [
    host.hostHash,
    keyOf(url),
    url,
    host.host,
    1 + Math.floor(4 * random()),
    iso(fetchedBefore - ago / 10),
    200,
    "text/html",
    code,
    config,
    text(title),
    text(ranks.slice(0, 20)),
    text(ranks.slice(0, 80)),
    JSON.stringify(headings.map((some) => ({ level: 2, text: text(some) }))),
    "f",
    "0".repeat(64),
    "0".repeat(16),
    words,
    60 * words,
    20 * words,
    5 * words,
    iso(fetchedBefore - ago),
    isDuplicate || number === 0 ? first : "\\N",
    isDuplicate ? host.hostHash : "\\N",
    isDuplicate ? first : "\\N",
    popularity,
    standsFirst(number, popularity) ? 0 : 1,
    vectorOf(lexemes, { title, headings: headings.flat(), text: ranks }),
  ];
  return `${row.join("\t")}\n`;
}

const fetchedBefore = Date.parse("2026-03-01T00:00:00Z");

/** Nine pages in ten have no link from another host; half of the front pages have none. */
function popularityOf(number: number, random: () => number): number {
  const chance = number === 0 ? 0.5 : 0.1;
  return random() < chance ? Math.min(1000, Math.floor(1 / (random() + 0.001))) : 0;
}

/** About one in thirty, as by the upkeep's rule (search/ranking). */
function standsFirst(number: number, popularity: number): boolean {
  return popularity >= 4 || (number === 0 && popularity > 0);
}

interface Parts {
  readonly title: readonly number[];
  readonly headings: readonly number[];
  readonly text: readonly number[];
}

/** tsvector's input form; quotes are not needed, since the lexemes are letters. */
function vectorOf(lexemes: readonly string[], { title, headings, text }: Parts): string {
  const positions = new Map<string, string>();
  let at = 0;
  const add = (ranks: readonly number[], weight: string) => {
    for (const rank of ranks) {
      const lexeme = lexemes[rank]!;
      const before = positions.get(lexeme);
      at += 1;
      positions.set(lexeme, before === undefined ? `${at}${weight}` : `${before},${at}${weight}`);
    }
  };
  add(title, "A");
  add(headings, "B");
  add(text, "");
  let vector = "";
  for (const [lexeme, where] of positions) if (lexeme !== "") vector += `${lexeme}:${where} `;
  return vector;
}

export function keyOf(text: string): string {
  return createHash("sha256").update(text).digest().readBigInt64BE(0).toString();
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
