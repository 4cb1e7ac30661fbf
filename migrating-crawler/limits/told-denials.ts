/**
 * The partner's deny-list as the coordinator is told of it, so that it sends this crawler nothing of what is in
 * it. A hello is bounded: of a long list the first entries go, in the partner's order; the rest is refused when
 * the coordinator asks for it, which then knows as well.
 */
import { type CrawlerHello, maxDeniedCharacters, maxDeniedInHello } from "#protocol/messages";
import type { CrawlerConfig } from "../settings/config.ts";

export function toldDenials({
  denyRanges,
  denyDomains,
}: Pick<CrawlerConfig, "denyRanges" | "denyDomains">): NonNullable<CrawlerHello["denies"]> {
  return { networks: firstThatFit(denyRanges), domains: firstThatFit(denyDomains) };
}

/** Each list may take half of the characters. */
function firstThatFit(entries: readonly string[]): string[] {
  const told: string[] = [];
  let left = maxDeniedCharacters / 2;
  for (const entry of entries) {
    left -= entry.length;
    if (left < 0 || told.length === maxDeniedInHello) break;
    told.push(entry);
  }
  return told;
}
