/**
 * Where should the next crawlers stand? Greedy k-median: of all sites the one that saves most round-trip time, then the
 * next one beside it, and so on. A site may serve a piece at an expected round-trip time; what it saves is that much less
 * on each page of a day. Savings only shrink as sites are added, so that most of them need not be looked at again (lazy
 * evaluation: M. Minoux 1978, "Accelerated greedy algorithms for maximizing submodular set functions").
 */

interface PlacedLoad {
  readonly pagesPerDay: number;
  readonly rttMs: number;
  /** Sites that could serve it, and their distance. */
  readonly reach: readonly Reach[];
}

interface Reach {
  readonly site: string;
  readonly rttMs: number;
  /** The standard deviation of the distance; absent when unknown. */
  readonly spreadMs?: number;
}

export interface ChosenSite<Load extends PlacedLoad = PlacedLoad> {
  readonly site: string;
  /** Round-trip time saved per day: ms × pages. */
  readonly savedMsPages: number;
  /** Daily pages that get nearer. */
  readonly pagesPerDay: number;
  /** The mean RTT of these pages, now and from there. */
  readonly meanNowMs: number;
  readonly meanThenMs: number;
  /** The uncertainty of the latter. */
  readonly spreadMs: number;
  /** What it would serve, greatest saving first. */
  readonly served: readonly { readonly load: Load; readonly savedMsPages: number }[];
}

/** At most `most` sites, each in addition to the earlier ones; none that saves less than `leastMsPages` a day. */
export function chooseSites<Load extends PlacedLoad>(
  loads: readonly Load[],
  { most, leastMsPages = 1 }: { readonly most: number; readonly leastMsPages?: number },
): ChosenSite<Load>[] {
  const nowMs = Float64Array.from(loads, ({ rttMs }) => rttMs);
  const reachOf = new Map<string, Reached[]>();
  for (const [at, { reach }] of loads.entries())
    for (const { site, rttMs, spreadMs = 0 } of reach) {
      const known = reachOf.get(site);
      if (known === undefined) reachOf.set(site, [{ at, rttMs, spreadMs }]);
      else known.push({ at, rttMs, spreadMs });
    }
  const savedAt = (at: number, rttMs: number) => loads[at]!.pagesPerDay * Math.max(0, nowMs[at]! - rttMs);
  const savedBy = (site: string) =>
    reachOf.get(site)!.reduce((sum, { at, rttMs }) => sum + savedAt(at, rttMs), 0);
  let candidates = [...reachOf.keys()].map((site) => ({ site, saved: savedBy(site) })).sort(mostSaved);
  const chosen: ChosenSite<Load>[] = [];
  while (chosen.length < most && candidates.length > 0) {
    // Returns the first site whose saving is still current.
    for (;;) {
      const saved = savedBy(candidates[0]!.site);
      if (saved === candidates[0]!.saved) break;
      candidates[0] = { site: candidates[0]!.site, saved };
      candidates.sort(mostSaved);
    }
    const [best] = candidates;
    if (best!.saved < leastMsPages) break;
    chosen.push(chosenSite(best!.site, reachOf.get(best!.site)!, { loads, nowMs, savedAt }));
    for (const { at, rttMs } of reachOf.get(best!.site)!) nowMs[at] = Math.min(nowMs[at]!, rttMs);
    candidates = candidates.slice(1);
  }
  return chosen;
}

/** The load at this index, from a site. */
interface Reached {
  readonly at: number;
  readonly rttMs: number;
  readonly spreadMs: number;
}

interface Candidate {
  readonly site: string;
  readonly saved: number;
}

const mostSaved = (a: Candidate, b: Candidate) =>
  b.saved - a.saved || (a.site < b.site ? -1 : a.site > b.site ? 1 : 0);

function chosenSite<Load extends PlacedLoad>(
  site: string,
  reach: readonly Reached[],
  {
    loads,
    nowMs,
    savedAt,
  }: {
    readonly loads: readonly Load[];
    readonly nowMs: Float64Array;
    readonly savedAt: (at: number, rttMs: number) => number;
  },
): ChosenSite<Load> {
  const nearer = reach.filter(({ at, rttMs }) => savedAt(at, rttMs) > 0);
  const pagesPerDay = nearer.reduce((sum, { at }) => sum + loads[at]!.pagesPerDay, 0);
  const weighted = (msOf: (one: Reached) => number) =>
    nearer.reduce((sum, one) => sum + loads[one.at]!.pagesPerDay * msOf(one), 0) / pagesPerDay;
  return {
    site,
    pagesPerDay,
    savedMsPages: nearer.reduce((sum, { at, rttMs }) => sum + savedAt(at, rttMs), 0),
    meanNowMs: weighted(({ at }) => nowMs[at]!),
    meanThenMs: weighted(({ rttMs }) => rttMs),
    spreadMs: weighted(({ spreadMs }) => spreadMs),
    served: nearer
      .map(({ at, rttMs }) => ({ load: loads[at]!, savedMsPages: savedAt(at, rttMs) }))
      .sort((a, b) => b.savedMsPages - a.savedMsPages),
  };
}
