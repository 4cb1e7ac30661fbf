/** A result as the real pages of the public suites are on average: 5.3 KB of lexemes; with 106 links, 32 to other hosts. */
import type { FetchResult } from "#protocol/result";

export const hexOf = (digits: number, random: () => number): string =>
  Array.from({ length: digits }, () => Math.floor(random() * 16).toString(16)).join("");

export const madeUpWord = (random: () => number): string => `w${Math.floor(random() ** 2 * 20_000)}`;

export function madeUpResult(url: string, links: readonly string[], random: () => number): FetchResult {
  const lexemes = new Set(Array.from({ length: 550 }, () => madeUpWord(random)));
  return {
    url,
    fetchedAt: new Date(1_795_000_000_000).toISOString(),
    outcome: { type: "fetched", status: 200, truncated: false },
    address: "198.51.100.7",
    timing: { dnsMs: 1, connectMs: 10, tlsMs: null, firstByteMs: 20, totalMs: 30 },
    wireBytes: 9000,
    bodyBytes: 40_000,
    etag: null,
    lastModified: null,
    hostDelayMs: 1000,
    page: {
      contentType: "text/html",
      charset: "utf-8",
      canonicalUrl: null,
      title: "A title of some words",
      description: "And a description that is a little longer than that",
      headings: [{ level: 1, text: "A heading" }],
      language: "en",
      textSearchConfig: "english",
      lexemes: [...lexemes].map((lexeme, place) => `'${lexeme}':${place + 1}`).join(" "),
      excerpt: "First words of the text ".repeat(10),
      words: 950,
      links: links.map((link) => ({ url: link, anchor: "nineteen characters", nofollow: false })),
      robots: { noindex: false, nofollow: false },
      digest: hexOf(64, random),
      simhash: hexOf(16, random),
    },
  };
}
