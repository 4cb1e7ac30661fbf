/** Seeded, page-like results in the shape of the wire, for tests and benchmarks that need realistic bytes. */

import { seededRandom } from "#core/random";
import type { CrawlerMessage } from "#protocol/messages";
import type { FetchResult } from "#protocol/result";

/** Result messages with ascending sequences from 1: `hosts` sites, whose pages share words, paths and link lists. */
export function generatedResults(options: {
  readonly count: number;
  readonly hosts: number;
  readonly seed: number;
}): Extract<CrawlerMessage, { type: "crawler:result" }>[] {
  const random = seededRandom(options.seed);
  const vocabulary = Array.from({ length: 4000 }, () => makeWord(random));
  return Array.from({ length: options.count }, (_, index) => {
    const host = `site-${Math.floor(random() * options.hosts)}.example`;
    return {
      type: "crawler:result",
      sequence: index + 1,
      leaseId: String(1 + Math.floor(index / 10)),
      result: makeResult(host, vocabulary, random),
    };
  });
}

function makeWord(random: () => number): string {
  const length = 3 + Math.floor(random() * 8);
  return Array.from({ length }, () => "etaoinshrdlucmfwypvbgk"[Math.floor(22 * random() ** 1.6)]).join("");
}

/** Words by a Zipf-like law: few are frequent. */
function pickWords(count: number, vocabulary: readonly string[], random: () => number): string[] {
  return Array.from(
    { length: count },
    () => vocabulary[Math.floor(vocabulary.length * random() ** 3)] ?? "a",
  );
}

function makeResult(host: string, vocabulary: readonly string[], random: () => number): FetchResult {
  const words = pickWords(150 + Math.floor(random() * 500), vocabulary, random);
  const path = () => `/${pickWords(2, vocabulary, random).join("/")}`;
  const url = `https://${host}${path()}`;
  const bodyBytes = 20_000 + Math.floor(random() * 60_000);
  return {
    url,
    fetchedAt: new Date(1_750_000_000_000 + Math.floor(random() * 1e9)).toISOString(),
    outcome: { type: "fetched", status: 200, truncated: false },
    address: "192.0.2.17",
    timing: {
      dnsMs: null,
      connectMs: null,
      tlsMs: null,
      firstByteMs: tenths(random),
      totalMs: tenths(random),
    },
    wireBytes: Math.floor(bodyBytes / 4),
    bodyBytes,
    etag: `"${hex(16, random)}"`,
    lastModified: null,
    hostDelayMs: 1000,
    page: {
      contentType: "text/html",
      charset: "utf-8",
      canonicalUrl: url,
      title: words.slice(0, 6).join(" "),
      description: words.slice(6, 26).join(" "),
      headings: [1, 2, 2].map((level, at) => ({ level, text: words.slice(at * 4, at * 4 + 4).join(" ") })),
      language: "en",
      textSearchConfig: "english",
      text: linesOf(words),
      words: words.length,
      links: Array.from({ length: 30 + Math.floor(random() * 60) }, () => ({
        url: `https://${host}${path()}`,
        anchor: pickWords(3, vocabulary, random).join(" "),
        nofollow: random() < 0.05,
      })),
      robots: { noindex: false, nofollow: false },
      digest: hex(64, random),
      simhash: hex(16, random),
    },
  };
}

function tenths(random: () => number): number {
  return Math.round(random() * 3000) / 10;
}

function hex(digits: number, random: () => number): string {
  return Array.from({ length: digits }, () => Math.floor(random() * 16).toString(16)).join("");
}

function linesOf(words: readonly string[]): string {
  return words.join(" ").replace(/(?:\S+ ){40}/g, "$&\n");
}
