/** Generated pages as rows of COPY: texts of 200 to 1,400 words (mean 350), with titles and headings of the text's words. */
import { createHash } from "node:crypto";
import type { Vocabulary } from "./vocabulary.ts";

export interface Language {
  readonly code: string;
  readonly config: string;
  /** Of the pages. */
  readonly share: number;
  readonly vocabulary: Vocabulary;
}

export interface MadeHost {
  readonly host: string;
  readonly hostHash: string;
  readonly language: Language;
  readonly pages: number;
}

export const pageColumns =
  "host_hash, url_hash, url, host, crawler_id, fetched_at, status, content_type, language, text_search_config, " +
  "title, noindex, digest, simhash, words, body_bytes, wire_bytes, shipped_bytes, published_at, text_group, " +
  "duplicate_host_hash, duplicate_url_hash";

export const documentColumns = "host_hash, url_hash, description, headings, text";

const day = 86_400_000;
/** One page in this number has nearly the text of the host's first. */
const duplicateEvery = 40;

/** Lines of COPY's text format for both tables. `number`: of the page on its host; 0 is the front page. */
export function madePage(host: MadeHost, number: number, random: () => number) {
  const { vocabulary, config, code } = host.language;
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
  ];
  const outline = JSON.stringify(headings.map((some) => ({ level: 2, text: text(some) })));
  const document = [host.hostHash, keyOf(url), text(ranks.slice(0, 20)), outline, text(ranks)];
  return { page: `${row.join("\t")}\n`, document: `${document.join("\t")}\n` };
}

const fetchedBefore = Date.parse("2026-03-01T00:00:00Z");

export function keyOf(text: string): string {
  return createHash("sha256").update(text).digest().readBigInt64BE(0).toString();
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
