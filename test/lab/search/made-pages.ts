/** Generated pages as documents of an export: texts of 200 to 1,400 words (mean 350), with titles and headings of the text's words. */
import { createHash } from "node:crypto";
import type { ExportedDocument, Operation } from "#coordinator/tell/search/export/export-operation";
import { seededRandom } from "#core/random";
import { byShare, Vocabulary } from "./vocabulary.ts";

export interface Language {
  readonly code: string;
  readonly config: string;
  /** Of the pages. */
  readonly share: number;
  readonly vocabulary: Vocabulary;
}

const vocabularySize = 200_000;
const pagesPerHost = 50;

/** The vocabularies of an index of this seed. */
export const madeLanguages = (): Language[] =>
  [
    { code: "en", config: "english", share: 0.6 },
    { code: "de", config: "german", share: 0.15 },
    { code: "fr", config: "french", share: 0.1 },
    { code: "es", config: "spanish", share: 0.1 },
    { code: "fi", config: "finnish", share: 0.05 },
  ].map((language, at) => ({
    ...language,
    vocabulary: new Vocabulary(vocabularySize, seededRandom(100 + at)),
  }));

interface MadeHost {
  readonly host: string;
  readonly language: Language;
  readonly country: string;
  readonly pages: number;
}

const countries = ["DE", "FR", "ES", "FI", "GB", "US", "JP", "BR"];

/** Few hosts are large: the pages are distributed as 1 / rank. */
function madeHosts(pages: number, languages: readonly Language[]): MadeHost[] {
  const random = seededRandom(7);
  const count = Math.max(1, Math.round(pages / pagesPerHost));
  const weights = Array.from({ length: count }, (_, rank) => 1 / (rank + 20));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight, rank) => {
    const language = byShare(languages, random());
    return {
      host: `www.h${rank}.${language.code}.example`,
      language,
      country: countries[rank % countries.length]!,
      pages: Math.max(1, Math.round((weight * pages) / total)),
    };
  });
}

export type MadePage = Extract<Operation, { readonly op: "index" }>;

/** About that many. */
export function* madePages(pages: number, languages: readonly Language[]): Generator<MadePage> {
  const random = seededRandom(1000);
  for (const host of madeHosts(pages, languages))
    for (let number = 0; number < host.pages; number++) {
      const document = madePage(host, number, random);
      const id = `${hashOf(host.host)}${hashOf(document.url)}`;
      yield { op: "index", id, version: 1, document };
    }
}

const day = 86_400_000;
/** One page in this number has nearly the text of the host's first. */
const duplicateEvery = 40;

/** `number`: of the page on its host; 0 is the front page, which has most links. */
function madePage(host: MadeHost, number: number, random: () => number): ExportedDocument {
  const { vocabulary, config, code } = host.language;
  const words = Math.round(200 * Math.exp(2 * random() * random()));
  const drawn = Array.from({ length: words }, () => vocabulary.words[vocabulary.draw()]!);
  const text = (from: number, to: number) => drawn.slice(from, to).join(" ");
  const isDuplicate = number > 0 && number % duplicateEvery === 0;
  const ago = Math.floor(1000 * random() ** 2 * day);
  const linkingHosts = linkingHostsOf(number, random);
  return {
    url: `https://${host.host}/${number === 0 ? "" : `${drawn[0]}/${drawn[1]}/${number}`}`,
    host: host.host,
    title: text(0, 6),
    description: text(0, 20),
    headings: [text(10, 14), text(30, 34)],
    ...{ heading_levels: [1, 2], structured: null },
    text: drawn.join(" "),
    ...{ unquoted: null, snippet_characters: null },
    text_search_config: config,
    language: code,
    country: host.country,
    content_type: "text/html",
    ...{ canonical_url: null, modified_at: null },
    published_at: new Date(fetchedBefore - ago).toISOString(),
    fetched_at: new Date(fetchedBefore - ago / 10).toISOString(),
    crawler: `crawler-${1 + Math.floor(4 * random())}`,
    words,
    linking_hosts: linkingHosts,
    page_rank: 1e-6 * (1 + linkingHosts),
    anchors: linkingHosts > 0 ? [text(0, 3)] : [],
    text_group: isDuplicate || number === 0 ? host.host : null,
    is_copy: isDuplicate,
    uses: [],
    change: 0,
  };
}

const fetchedBefore = Date.parse("2026-03-01T00:00:00Z");

/** Nine pages in ten have no link from another host; half of the front pages have none. */
function linkingHostsOf(number: number, random: () => number): number {
  const chance = number === 0 ? 0.5 : 0.1;
  return random() < chance ? Math.min(1000, Math.floor(1 / (random() + 0.001))) : 0;
}

const hashOf = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 16);
