/**
 * A fleet on a plane of 250 × 150 ms, for the benches of balance: subnets lie around crawlers, most around a few; each was
 * measured by its crawler and one or two others.
 */
import type { BalanceInput, BalanceSubnet } from "#coordinator/balance/plan";
import { asCrawlerId, asSubnetId, type CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";

/** What the fleet may carry, as a multiple of its load. */
const headroom = 1.25;

export interface Shape {
  readonly crawlers: number;
  readonly subnets: number;
  readonly unitLoads: boolean;
}

export interface Plane extends BalanceInput {
  /** As it is, measured or not. */
  readonly rttMs: (subnetId: number, crawlerId: number) => number;
}

export function plane({ crawlers, subnets, unitLoads }: Shape): Plane {
  const random = seededRandom(crawlers);
  const xs = new Float64Array(crawlers);
  const ys = new Float64Array(crawlers);
  for (let crawler = 0; crawler < crawlers; crawler++) {
    xs[crawler] = 250 * random();
    ys[crawler] = 150 * random();
  }
  const placeXs = new Float64Array(subnets);
  const placeYs = new Float64Array(subnets);
  const msFrom = (crawler: number, x: number, y: number) =>
    1 + Math.hypot(xs[crawler]! - x, ys[crawler]! - y);
  const placed = Array.from({ length: subnets }, (_, index): BalanceSubnet => {
    const around = Math.floor(crawlers * random() ** 2);
    const x = xs[around]! + 60 * random() - 30;
    const y = ys[around]! + 60 * random() - 30;
    placeXs[index] = x;
    placeYs[index] = y;
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
      loadPagesPerDay: unitLoads ? 10 : Math.ceil(10 * Math.min(2_000, (1 - random()) ** (-1 / 1.2))),
      rttMs: new Map(probed.map((one): [CrawlerId, number] => [asCrawlerId(one + 1), msFrom(one, x, y)])),
      holderId: index >> 2,
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
    rttMs: (subnetId, crawlerId) => msFrom(crawlerId - 1, placeXs[subnetId - 1]!, placeYs[subnetId - 1]!),
  };
}

/** CPU time. */
export function seconds(work: () => unknown): number {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
}

export function keptBytes(): number {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
