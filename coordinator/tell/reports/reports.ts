/** The five reports as values, for which data is compared, cut to the relevant part, and named. */
import { enoughSamples } from "#core/format";
import type { CrawlerId, SubnetId } from "#core/ids";
import { parseRange } from "#core/ip/range";
import type { TimeRange } from "#core/time-range";
import { DeniedTargets } from "../../place/delegation/denied-targets.ts";
import {
  type CrawlPiece,
  costOf,
  type HomeRttOf,
  homeRtts,
  isMeasuredPiece,
  type MeasuredPiece,
  mayTake,
  PieceDistances,
  type ReportedCrawler,
} from "./crawl-pieces.ts";
import { type FarSubnet, farSubnets } from "./far-subnets.ts";
import { missedCrawlers } from "./missed-crawlers.ts";
import {
  type CandidatePlace,
  type ChosenSite,
  chooseSites,
  expectedReach,
  type PlacesOf,
} from "./placement.ts";
import type {
  CoverageFigures,
  CoverageFilter,
  CoverageRow,
  NamedSubnet,
  ReportReads,
} from "./report-store.ts";
import type {
  ComparedPart,
  CoverageReport,
  CrawlersReport,
  OrganisationsReport,
  PlacementReport,
  SubnetsReport,
} from "./reports-api.ts";

export const mostLines = 100;

/** Distances are computed for this many crawlers, those with the most to fetch. */
const mostCrawlers = 1000;

/** Maximum number of pairs of crawler and piece. A small fleet gets 5,000 pieces. */
const mostPairs = 1_000_000;
const [leastPieces, mostPieces] = [1000, 5000];

/** The data on which three reports are based. */
export interface CrawlFacts {
  readonly pieces: readonly CrawlPiece[];
  readonly crawlers: readonly ReportedCrawler[];
  /** The most costly measured pieces. */
  readonly compared: readonly MeasuredPiece[];
  readonly distances: PieceDistances;
  readonly homeRtt: HomeRttOf;
  readonly denies: (crawlerId: CrawlerId, piece: MeasuredPiece) => boolean;
}

export async function readCrawl(reads: ReportReads): Promise<CrawlFacts> {
  const [pieces, crawlers] = await Promise.all([reads.crawlPieces(), reads.crawlers()]);
  const chosen = loadedCrawlers(pieces, crawlers);
  const compared = pieces
    .filter(isMeasuredPiece)
    .filter(({ crawlerId }) => chosen.has(crawlerId))
    .sort((a, b) => costOf(b) - costOf(a) || a.subnetId - b.subnetId)
    .slice(0, Math.min(mostPieces, Math.max(leastPieces, Math.floor(mostPairs / Math.max(1, chosen.size)))));
  const subnetIds = [...new Set(compared.map(({ subnetId }) => subnetId))];
  const [measured, peers, denyLists] = await Promise.all([
    reads.measuredRtts(subnetIds),
    reads.peerRtts([...chosen]),
    reads.denyLists(),
  ]);
  const apart = new Map(peers.map(({ from, to, rttMs }) => [`${from}/${to}`, rttMs]));
  const distances = new PieceDistances(compared, {
    measured: measured.filter(({ crawlerId }) => chosen.has(crawlerId)),
    candidates: crawlers
      .filter(mayTake)
      .flatMap(({ crawlerId }) => (chosen.has(crawlerId) ? [crawlerId] : [])),
    crawlerRttMs: (a, b) => apart.get(`${a}/${b}`),
  });
  return {
    ...{ pieces, crawlers, compared, distances },
    homeRtt: homeRtts(pieces, crawlers),
    denies: denyLists.length === 0 ? () => false : await deniedBy(denyLists, subnetIds, reads),
  };
}

function loadedCrawlers(
  pieces: readonly CrawlPiece[],
  crawlers: readonly ReportedCrawler[],
): ReadonlySet<CrawlerId> {
  const loadOf = new Map<CrawlerId, number>(crawlers.map(({ crawlerId }) => [crawlerId, 0]));
  for (const { crawlerId, pagesPerDay } of pieces)
    if (crawlerId !== null) loadOf.set(crawlerId, (loadOf.get(crawlerId) ?? 0) + pagesPerDay);
  const most = [...loadOf].sort(([a, loadOfA], [b, loadOfB]) => loadOfB - loadOfA || a - b);
  return new Set(most.slice(0, mostCrawlers).map(([crawlerId]) => crawlerId));
}

async function deniedBy(
  lists: Awaited<ReturnType<ReportReads["denyLists"]>>,
  subnetIds: readonly SubnetId[],
  reads: ReportReads,
): Promise<CrawlFacts["denies"]> {
  const denied = new DeniedTargets();
  for (const { crawlerId, denies } of lists) denied.setList(crawlerId, denies);
  const named = await reads.namedSubnets(subnetIds);
  return (crawlerId, { subnetId }) => {
    const range = parseRange(named.get(subnetId)?.range ?? "");
    return range !== null && denied.deniesWhole(crawlerId, range);
  };
}

const sumOf = <T>(all: readonly T[], of: (one: T) => number) => all.reduce((sum, one) => sum + of(one), 0);

function comparedPart({ pieces, compared }: CrawlFacts): ComparedPart {
  const measured = pieces.filter(isMeasuredPiece);
  const unmeasured = pieces.filter((piece) => !isMeasuredPiece(piece) && !piece.isAnycast);
  return {
    subnets: compared.length,
    pagesPerDay: roundPages(sumOf(compared, ({ pagesPerDay }) => pagesPerDay)),
    ofSubnets: measured.length,
    ofPagesPerDay: roundPages(sumOf(measured, ({ pagesPerDay }) => pagesPerDay)),
    unmeasuredSubnets: unmeasured.length,
    unmeasuredPagesPerDay: roundPages(sumOf(unmeasured, ({ pagesPerDay }) => pagesPerDay)),
  };
}

const roundPages = (pages: number) => Math.round(10 * pages) / 10;
const roundMs = (ms: number) => Math.round(10 * ms) / 10;

export async function subnetsReport(
  facts: CrawlFacts,
  reads: ReportReads,
  now: Date,
): Promise<SubnetsReport> {
  const far = farSubnets(facts.compared, { ...facts, now });
  const shown = far.slice(0, mostLines);
  const named = await reads.namedSubnets([...new Set(shown.map(({ piece }) => piece.subnetId))]);
  return {
    at: now,
    compared: comparedPart(facts),
    far: far.length,
    savedMsPages: Math.round(sumOf(far, ({ savedMsPages }) => savedMsPages)),
    lines: shown.flatMap((one) => farLine(one, named.get(one.piece.subnetId))),
  };
}

function farLine({ piece, crawler, help, savedMsPages }: FarSubnet, named: NamedSubnet | undefined) {
  if (named === undefined) return [];
  return [
    {
      ...{ subnet: named.range, name: named.name, holder: named.holder, country: piece.country },
      ...{ crawler: crawler.name, crawlerCountry: crawler.country, rttMs: roundMs(piece.rttMs) },
      pagesPerDay: roundPages(piece.pagesPerDay),
      savesMs: roundMs(help.savesMs),
      savedMsPages: Math.round(savedMsPages),
      ...{ help: help.type, words: help.words, decidedAt: piece.decidedAt },
    },
  ];
}

export function crawlersReport(facts: CrawlFacts, now: Date): CrawlersReport {
  const missed = missedCrawlers(facts.compared, facts.crawlers, facts.distances);
  return {
    at: now,
    compared: comparedPart(facts),
    crawlers: missed.length,
    lines: missed.slice(0, mostLines).map((one) => ({
      crawler: one.name,
      country: one.country,
      subnets: one.subnets,
      pagesPerDay: roundPages(one.pagesPerDay),
      lostMsPages: Math.round(one.lostMsPages),
      meanLostMs:
        one.meanLostMs !== null && enoughSamples(one.measuredPages + one.predictedPages)
          ? roundMs(one.meanLostMs)
          : null,
      measuredPages: roundPages(one.measuredPages),
      predictedPages: roundPages(one.predictedPages),
      unknownPages: roundPages(one.unknownPages),
      spreadMs: one.spreadMs === null ? null : roundMs(one.spreadMs),
      successor: one.successor,
      successorPages: roundPages(one.successorPages),
    })),
  };
}

const mostSites = 20;
const subnetsNamed = 3;

/** A piece with the places that could serve it from nearer. */
interface ReachedLoad {
  readonly piece: MeasuredPiece;
  readonly pagesPerDay: number;
  readonly rttMs: number;
  readonly reach: readonly { readonly site: string; readonly rttMs: number; readonly spreadMs: number }[];
}

/** Returns where crawlers would save most, each in addition to the earlier ones. */
export function adviseSites(
  {
    pieces,
    crawlers,
    homeRtt,
    distances,
  }: Pick<CrawlFacts, "pieces" | "crawlers" | "homeRtt"> & {
    readonly distances: Pick<PieceDistances, "measuredOf">;
  },
  { most = mostSites, placesOf }: { readonly most?: number; readonly placesOf?: PlacesOf } = {},
) {
  const measured = pieces.filter(isMeasuredPiece);
  const served = new Set(crawlers.filter(mayTake).map(({ country }) => country));
  const { places, reachOf } = expectedReach(measured, {
    ...{ measuredOf: (piece) => distances.measuredOf(piece), homeRtt, served },
    ...(placesOf === undefined ? {} : { placesOf }),
  });
  // A country without measurements uses those of all countries.
  const isEstimated = homeRtt("") !== null;
  const loads = measured.map(
    (piece): ReachedLoad => ({
      ...{ piece, pagesPerDay: piece.pagesPerDay, rttMs: piece.rttMs },
      reach: isEstimated ? reachOf(piece) : atOnce(piece, served),
    }),
  );
  return { isEstimated, loads, places, chosen: chooseSites(loads, { most }) };
}

/** If there is no expectation, countries without a crawler are ranked by their current cost. */
function atOnce({ country }: MeasuredPiece, served: ReadonlySet<string | null>): ReachedLoad["reach"] {
  return country === null || served.has(country)
    ? []
    : [{ site: `country:${country}`, rttMs: 0, spreadMs: 0 }];
}

export async function placementReport(
  facts: CrawlFacts,
  reads: Pick<ReportReads, "namedSubnets">,
  { now, most = mostSites }: { readonly now: Date; readonly most?: number },
): Promise<PlacementReport> {
  const { isEstimated, loads, places, chosen } = adviseSites(facts, { most });
  const placeOf = new Map(places.map((place) => [place.site, place]));
  const linesOf = chosen.map((site) => ({ site, place: placeOf.get(site.site)! }));
  const ids = linesOf.flatMap(({ site, place }) => [
    ...site.served.slice(0, subnetsNamed).map(({ load }) => load.piece.subnetId),
    ...place.pieces.slice(0, 1).map(({ subnetId }) => subnetId),
  ]);
  const named = await reads.namedSubnets([...new Set(ids)]);
  const pagesPerDay = sumOf(loads, (load) => load.pagesPerDay);
  const cost = sumOf(loads, ({ piece }) => costOf(piece));
  const meanMs = (costMsPages: number) =>
    enoughSamples(pagesPerDay) ? roundMs(costMsPages / pagesPerDay) : null;
  return {
    at: now,
    pagesPerDay: roundPages(pagesPerDay),
    meanRttMs: meanMs(cost),
    thenMeanRttMs: isEstimated ? meanMs(cost - sumOf(chosen, ({ savedMsPages }) => savedMsPages)) : null,
    isEstimated,
    lines: linesOf.map(({ site, place }) =>
      placementLine(site, place, { isEstimated, homeRtt: facts.homeRtt, named }),
    ),
  };
}

function placementLine(
  { pagesPerDay, savedMsPages, meanNowMs, meanThenMs, spreadMs, served }: ChosenSite<ReachedLoad>,
  { kind, key, pieces }: CandidatePlace,
  {
    isEstimated,
    homeRtt,
    named,
  }: {
    readonly isEstimated: boolean;
    readonly homeRtt: HomeRttOf;
    readonly named: ReadonlyMap<SubnetId, NamedSubnet>;
  },
): PlacementReport["lines"][number] {
  const [costliest] = pieces;
  const country = kind === "country" ? key : (costliest?.country ?? null);
  const home = homeRtt(country ?? "");
  const holder = costliest && named.get(costliest.subnetId)?.holder;
  return {
    kind,
    place: kind === "country" ? key : (holder ?? "?"),
    country,
    pagesPerDay: roundPages(pagesPerDay),
    nowMs: roundMs(meanNowMs),
    thenMs: isEstimated ? roundMs(meanThenMs) : null,
    spreadMs: isEstimated ? roundMs(spreadMs) : null,
    savedMsPages: isEstimated ? Math.round(savedMsPages) : null,
    placeSubnets: pieces.length,
    measuredSubnets: home?.subnets ?? 0,
    isOwnMeasure: home !== null && home.country !== null,
    subnets: served.slice(0, subnetsNamed).flatMap(({ load, savedMsPages: saved }) => {
      const subnet = named.get(load.piece.subnetId);
      return subnet === undefined
        ? []
        : [{ subnet: subnet.range, holder: subnet.holder, savedMsPages: Math.round(saved) }];
    }),
  };
}

export async function organisationsReport(reads: ReportReads, now: Date): Promise<OrganisationsReport> {
  const { rows, all } = await reads.organisations(mostLines);
  return {
    at: now,
    ...all,
    lines: rows.map(({ holderId: _, ...row }) => ({ ...row, share: shareOf(row.pages, all.pages) })),
  };
}

const shareOf = (part: number, of: number): number | null =>
  enoughSamples(of) ? Math.round((10_000 * part) / of) / 10_000 : null;

export async function coverageReport(
  reads: ReportReads,
  asked: CoverageFilter & Pick<TimeRange, "since" | "until">,
  now: Date,
): Promise<CoverageReport> {
  const [counted, days] = await Promise.all([
    reads.coverageOn(asked.day ?? now.toISOString().slice(0, 10)),
    reads.coverageOverTime(asked),
  ]);
  const isMeant = ({ country, language }: CoverageRow) =>
    (asked.country === null || country === asked.country) &&
    (asked.language === null || language === asked.language);
  const rows = (counted?.rows ?? []).filter(isMeant);
  return {
    at: now,
    day: counted?.day ?? null,
    countedAt: counted?.countedAt ?? null,
    ...{ country: asked.country, language: asked.language },
    all: shares(addedFigures(rows)),
    countries: coverageLines(rows, "country").map(({ key, ...figures }) => ({ key, ...shares(figures) })),
    languages: coverageLines(rows, "language").map(({ key, ...figures }) => ({ key, ...shares(figures) })),
    days: days.map(({ day, ...figures }) => ({ day, ...shares(figures) })),
  };
}

function shares({ fresh7, fresh30, ...figures }: CoverageFigures) {
  const { sampledPages } = figures;
  return { ...figures, fresh7: shareOf(fresh7, sampledPages), fresh30: shareOf(fresh30, sampledPages) };
}

// How much of each country and language is crawled and how fresh it is, on one day and over time.

export interface CoverageLine extends CoverageFigures {
  /** The code of a country or language; empty if unknown. */
  readonly key: string;
}

const none: CoverageFigures = { hosts: 0, pages: 0, bytes: 0, sampledPages: 0, fresh7: 0, fresh30: 0 };

function addedFigures(all: Iterable<CoverageFigures>): CoverageFigures {
  let sum = none;
  for (const one of all)
    sum = {
      hosts: sum.hosts + one.hosts,
      pages: sum.pages + one.pages,
      bytes: sum.bytes + one.bytes,
      sampledPages: sum.sampledPages + one.sampledPages,
      fresh7: sum.fresh7 + one.fresh7,
      fresh30: sum.fresh30 + one.fresh30,
    };
  return sum;
}

/** Returns the lines with the most pages first. */
function coverageLines(rows: readonly CoverageRow[], by: "country" | "language"): CoverageLine[] {
  const grouped = new Map<string, CoverageRow[]>();
  for (const row of rows) {
    const group = grouped.get(row[by]);
    if (group === undefined) grouped.set(row[by], [row]);
    else group.push(row);
  }
  return [...grouped]
    .map(([key, group]) => ({ key, ...addedFigures(group) }))
    .sort((a, b) => b.pages - a.pages || b.hosts - a.hosts || (a.key < b.key ? -1 : 1));
}

/** Whether the text is a day like `2026-03-01`. */
export function isDay(text: string): boolean {
  if (!/^[12]\d{3}-\d\d-\d\d$/.test(text)) return false;
  const at = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text);
}
