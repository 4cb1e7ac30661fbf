/** What an unpacked message takes in memory beyond the bytes that came: links of earlier pages, and lexemes. */
import type { CrawlerMessage } from "#protocol/messages";

/** An object, its two texts and their heads. */
const linkBytes = 150;

export function referredBytes(message: CrawlerMessage): number {
  if (message.type !== "crawler:result" || message.result.page === null) return 0;
  const { links, lexemes } = message.result.page;
  return links.reduce((sum, { url, anchor }) => sum + url.length + anchor.length + linkBytes, lexemes.length);
}
