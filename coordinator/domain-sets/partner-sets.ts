/** The domain sets that a crawler's partner states: what cannot be read is refused, since it would hold nothing back. */

import type { CrawlerHello } from "#protocol/messages";
import type { Refusal } from "../crawlers/admit-crawler.ts";
import { readLayer } from "./partition.ts";

export function domainSetFault({ domainSets }: Pick<CrawlerHello, "domainSets">): Refusal | null {
  const layer = readLayer(domainSets ?? []);
  if (typeof layer !== "string") return null;
  const reason = `domainSets in the crawler's settings: ${layer}`.slice(0, 500);
  return { code: "bad-message", reason, retry: false };
}
