/**
 * A fleet on a plane of 250 × 150 ms: subnets lie around crawlers, most around a few; each was
 * measured by its crawler and one or two others.
 */
import type { BalanceInput, BalanceSubnet } from "#coordinator/place/balance/plan";
import { asCrawlerId, asSubnetId, type CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";

/** What the fleet may carry, as a multiple of its load. */
const headroom = 1.25;

interface Shape {
  readonly crawlers: number;
  readonly subnets: number;
  readonly unitLoads: boolean;
  /** None so large that it cannot be placed whole. */
  readonly mostPages?: number;
}

export function plane({ crawlers, subnets, unitLoads, mostPages = 20_000 }: Shape): BalanceInput {
  const random = seededRandom(crawlers);
  const xs = new Float64Array(crawlers);
  const ys = new Float64Array(crawlers);
  for (let crawler = 0; crawler < crawlers; crawler++) {
    xs[crawler] = 250 * random();
    ys[crawler] = 150 * random();
  }
  const msFrom = (crawler: number, x: number, y: number) =>
    1 + Math.hypot(xs[crawler]! - x, ys[crawler]! - y);
  const placed = Array.from({ length: subnets }, (_, index): BalanceSubnet => {
    const around = Math.floor(crawlers * random() ** 2);
    const x = xs[around]! + 60 * random() - 30;
    const y = ys[around]! + 60 * random() - 30;
    let [nearest, second] = [0, 1];
    let least = Number.POSITIVE_INFINITY;
    for (let crawler = 0; crawler < crawlers; crawler++) {
      const squared = (xs[crawler]! - x) ** 2 + (ys[crawler]! - y) ** 2;
      if (squared < least) [nearest, second, least] = [crawler, crawler === 0 ? 1 : nearest, squared];
    }
    const probed = [nearest, second, Math.floor(crawlers * random())];
    return {
      subnetId: asSubnetId(index + 1),
      crawlerId: asCrawlerId(nearest + 1),
      loadPagesPerDay: unitLoads ? 10 : Math.min(mostPages, Math.ceil(10 * (1 - random()) ** (-1 / 1.2))),
      rttMs: new Map(probed.map((one): [CrawlerId, number] => [asCrawlerId(one + 1), msFrom(one, x, y)])),
    };
  });
  const total = placed.reduce((sum, { loadPagesPerDay }) => sum + loadPagesPerDay, 0);
  return {
    crawlers: Array.from(xs, (_, index) => ({
      crawlerId: asCrawlerId(index + 1),
      capacityPagesPerDay: (headroom * total) / crawlers,
    })),
    subnets: placed,
    crawlerRttMs: (a, b) => msFrom(a - 1, xs[b - 1]!, ys[b - 1]!),
  };
}
