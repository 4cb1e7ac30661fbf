/**
 * Advice on where the next crawlers should stand, on generated worlds: some crawlers are the fleet, one in each of the other
 * countries is held out. What the fleet measured, with noise, is all that the advice knows; it is held against the choice
 * that trying every set of places by their true RTTs would make.
 */
import { simulateDelegation } from "#coordinator/delegation/simulation/simulation";
import type { CrawlPiece, ReportedCrawler } from "#coordinator/reports/crawl-pieces";
import { countryAndHolder } from "#coordinator/reports/expected-reach";
import { homeRtts } from "#coordinator/reports/home-rtt";
import { isMeasuredPiece } from "#coordinator/reports/piece-distances";
import { adviseSites } from "#coordinator/reports/reports";
import { asCrawlerId, asHolderId, asSubnetId, type CrawlerId, type SubnetId } from "#core/ids";
import { seededRandom } from "#core/random";
import { worldInstance } from "#ops/world/compare";
import { generateWorld } from "#ops/world/generate-world";

interface AdviceShape {
  readonly seed: number;
  readonly crawlers: number;
  readonly sites: number;
  /** Mean of the exponential delay on every measurement, in ms. */
  readonly noiseMs: number;
  /** Most places that are chosen one after the other. */
  readonly most: number;
}

interface AdviceFigures {
  readonly candidates: number;
  /** By number of places chosen: what they truly save, as a share of what the best set of as many does. */
  readonly advised: readonly number[];
  /** The same of what is told from the places' own subnets alone, and of a place taken at random (its mean). */
  readonly homeOnly: readonly number[];
  readonly random: number;
  /** What the first was expected to save, of what it truly saves. */
  readonly expected: number;
}

/** Null: fewer candidates than places to choose, or too little measured at home. */
export function adviceFigures(shape: AdviceShape): AdviceFigures | null {
  const { seed, most, noiseMs } = shape;
  const world = worldInstance(generateWorld({ seed, sites: shape.sites, crawlers: shape.crawlers }));
  const random = seededRandom(seed);
  // The first crawlers are the fleet; of the others, one in each country without any.
  const fleetSize = Math.floor(shape.crawlers / 3);
  const fleetCountries = new Set(world.crawlers.slice(0, fleetSize).map(({ cc }) => cc));
  const heldOut = new Map<string, number>();
  world.crawlers.forEach(({ cc }, index) => {
    if (index >= fleetSize && !fleetCountries.has(cc) && !heldOut.has(cc)) heldOut.set(cc, index);
  });
  const trueRtts = world.targets.map(({ rtt }) => Float64Array.from(rtt));
  const known = world.targets.map(() => new Map<CrawlerId, number>());
  const { chosen } = simulateDelegation(
    {
      crawlers: world.crawlers.slice(0, fleetSize),
      crawlerRtt: world.crawlerRtt.slice(0, fleetSize).map((row) => row.slice(0, fleetSize)),
      targets: world.targets.map(({ path, org, cc }, at) => ({
        ...{ path, org, cc },
        rtt: trueRtts[at]!.subarray(0, fleetSize),
      })),
    },
    {
      policy: "nearest",
      seed,
      observe: ({ target, crawler, rttMs }) => {
        const measured = rttMs - noiseMs * Math.log(1 - random());
        known[target]!.set(asCrawlerId(crawler + 1), measured);
        return { rttMs: measured };
      },
    },
  );
  const holders = new Map<string, number>();
  const pieces = world.targets.map(({ org, cc }, at): CrawlPiece => {
    const crawlerId = asCrawlerId(chosen[at]! + 1);
    if (!known[at]!.has(crawlerId)) known[at]!.set(crawlerId, trueRtts[at]![chosen[at]!]!);
    if (!holders.has(org)) holders.set(org, holders.size);
    return {
      ...{ subnetId: asSubnetId(at + 1), crawlerId, rttMs: known[at]!.get(crawlerId)! },
      ...{ isAnycast: false, isDisplaced: false, decidedAt: null, hosts: 1, pages: 1 },
      country: cc === "" ? null : cc,
      holderId: org === "" ? null : asHolderId(holders.get(org)!),
      pagesPerDay: Math.min(2_000, Math.ceil(10 * (1 - random()) ** (-1 / 1.2))),
    };
  });
  const crawlers = world.crawlers.slice(0, fleetSize).map(
    ({ cc }, index): ReportedCrawler => ({
      ...{ crawlerId: asCrawlerId(index + 1), name: `c${index}`, state: "online", isTrusted: true },
      country: cc === "" ? null : cc,
    }),
  );
  const facts = { pieces, crawlers, homeRtt: homeRtts(pieces, crawlers) };
  // Places where nobody was held out cannot be judged.
  const placesOf = (piece: CrawlPiece) =>
    countryAndHolder(piece).filter(({ kind, key }) => kind === "country" && heldOut.has(key));
  const advise = (measuredOf: (subnetId: SubnetId) => ReadonlyMap<CrawlerId, number>) =>
    adviseSites(
      { ...facts, distances: { measuredOf: ({ subnetId }) => measuredOf(subnetId) } },
      { most, placesOf },
    );
  const advice = advise((subnetId) => known[subnetId - 1]!);
  const sites = [...heldOut.values()];
  if (!advice.isEstimated || sites.length < most || advice.chosen.length < most) return null;
  const saved = (indexes: readonly number[]) =>
    pieces.filter(isMeasuredPiece).reduce((sum, { pagesPerDay, crawlerId }, at) => {
      const now = trueRtts[at]![crawlerId - 1]!;
      const then = indexes.reduce((least, index) => Math.min(least, trueRtts[at]![index]!), now);
      return sum + pagesPerDay * (now - then);
    }, 0);
  const best = Array.from({ length: most }, (_, size) => bestSaving(sites, size + 1, saved));
  const shares = (countries: readonly string[]) =>
    best.map(
      (most, size) =>
        saved(countries.slice(0, size + 1).map((site) => heldOut.get(site.slice("country:".length))!)) / most,
    );
  const homeOnly = advise(() => new Map());
  const first = advice.chosen[0]!;
  return {
    candidates: sites.length,
    advised: shares(advice.chosen.map(({ site }) => site)),
    homeOnly: shares(homeOnly.chosen.map(({ site }) => site)),
    random: sites.reduce((sum, site) => sum + saved([site]), 0) / sites.length / best[0]!,
    expected: first.savedMsPages / saved([heldOut.get(first.site.slice("country:".length))!]),
  };
}

/** Of every set of that size. */
function bestSaving(
  sites: readonly number[],
  size: number,
  saved: (indexes: readonly number[]) => number,
): number {
  let best = 0;
  const grow = (from: number, taken: readonly number[]) => {
    if (taken.length === size) {
      best = Math.max(best, saved(taken));
      return;
    }
    for (let at = from; at < sites.length; at++) grow(at + 1, [...taken, sites[at]!]);
  };
  grow(0, []);
  return best;
}
