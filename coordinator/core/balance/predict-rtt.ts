/**
 * The round-trip time between a crawler and a subnet that it never probed, from what others measured and from
 * the crawlers' distances to each other (design section 6). By the triangle inequality, what crawler `a`
 * measured as `y` is for crawler `c` between |D[a][c] − y| and D[a][c] + y; the bounds of all who measured are
 * put together and the middle is taken.
 */
import type { CrawlerId } from "../ids.ts";
import type { BalanceInput, BalanceSubnet } from "./plan.ts";

/** Taken where nothing at all is known of a pair: about half way round the world by cable. */
export const unknownRttMs = 200;

export interface KnownRtt {
  readonly rttMs: number;
  readonly predicted: boolean;
}

/** Measured where a probe did, else predicted. */
export function rttTo(subnet: BalanceSubnet, crawlerId: CrawlerId, { crawlerRttMs }: BalanceInput): KnownRtt {
  const measured = subnet.rttMs.get(crawlerId);
  if (measured !== undefined) return { rttMs: measured, predicted: false };
  const others = subnet.rttMs.size > 0 ? subnet.rttMs : new Map([[subnet.crawlerId, 0]]);
  let lower = 0;
  let upper = Number.POSITIVE_INFINITY;
  for (const [other, rtt] of others) {
    const apart =
      other === crawlerId ? 0 : (crawlerRttMs(other, crawlerId) ?? crawlerRttMs(crawlerId, other));
    if (apart === undefined) continue;
    lower = Math.max(lower, Math.abs(apart - rtt));
    upper = Math.min(upper, apart + rtt);
  }
  return { rttMs: upper === Number.POSITIVE_INFINITY ? unknownRttMs : (lower + upper) / 2, predicted: true };
}

/**
 * What moving the subnet to this crawler adds to its RTT. A prediction is no reason to leave a crawler: where
 * it promises less than the present RTT, it counts as equal.
 */
export function addedRtt(
  subnet: BalanceSubnet,
  to: CrawlerId,
  input: BalanceInput,
): { addedRttMs: number; predicted: boolean } {
  const now = rttTo(subnet, subnet.crawlerId, input);
  const then = rttTo(subnet, to, input);
  const predicted = now.predicted || then.predicted;
  const addedRttMs = then.rttMs - now.rttMs;
  return { addedRttMs: predicted ? Math.max(0, addedRttMs) : addedRttMs, predicted };
}
