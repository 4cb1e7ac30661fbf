/** How a site of a generated world treats probes: drawn from its seed and position alone. */
import type { BlockedCrawler, HeadBehaviour } from "./model.ts";
import type { WorldOddities } from "./oddities.ts";
import { hashUnit } from "./seeded-random.ts";

export function headBehaviourOf(seed: number, site: number, oddities: WorldOddities): HeadBehaviour {
  const { headFromEdge, headRefused, headSilent } = oddities;
  const draw = hashUnit(seed ^ 0x68656164, site, 0);
  if (draw < headFromEdge) return "edge";
  if (draw < headFromEdge + headRefused) return "refused";
  return draw < headFromEdge + headRefused + headSilent ? "silent" : "answered";
}

/** Of the crawlers, those that a blocking site does not take: about a third, half of them reset. */
const blockedShare = 0.33;

export function blockedCrawlers(
  { seed, site, crawlers }: { readonly seed: number; readonly site: number; readonly crawlers: number },
  oddities: WorldOddities,
): BlockedCrawler[] {
  if (hashUnit(seed ^ 0x626c6f63, site, 0) >= oddities.blocking) return [];
  const blocked: BlockedCrawler[] = [];
  for (let crawlerIndex = 0; crawlerIndex < crawlers; crawlerIndex++) {
    const draw = hashUnit(seed ^ 0x626c6f63, site, crawlerIndex + 1);
    if (draw < blockedShare)
      blocked.push({ crawlerIndex, how: draw < blockedShare / 2 ? "refused" : "timeout" });
  }
  return blocked;
}
