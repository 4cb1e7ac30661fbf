/**
 * Poorly served subnets and their remedies. A piece is far if another crawler measured less, if other pieces of its holder or
 * country get less, or if its country has no crawler although one there would be nearer. They are ordered by the daily saving
 * of the best remedy: pages × ms.
 */
import { howMany, msText, spanWords } from "#core/format";
import type { CrawlerId } from "#core/ids";
import {
  type CrawlPiece,
  type HomeRttOf,
  isMeasuredPiece,
  type MeasuredPiece,
  mayTake,
  type PieceDistances,
  type ReportedCrawler,
  weightedMedian,
} from "./crawl-pieces.ts";

export interface FarSubnet {
  readonly piece: MeasuredPiece;
  readonly crawler: ReportedCrawler;
  readonly help: Help;
  readonly savedMsPages: number;
}

interface Help {
  readonly type: "new-crawler" | "absent-crawler" | "denied" | "make-room" | "probe-again";
  readonly savesMs: number;
  /** The remedy without its saving: "berlin measured 9 ms: probe it again". */
  readonly words: string;
}

interface FarPorts {
  readonly crawlers: readonly ReportedCrawler[];
  readonly distances: Pick<PieceDistances, "measuredOf" | "nearerOthers">;
  readonly homeRtt: HomeRttOf;
  /** Whether this crawler's partner denies the whole piece. */
  readonly denies: (crawlerId: CrawlerId, piece: MeasuredPiece) => boolean;
  readonly now: Date;
}

/** A smaller difference is within daily variation. */
const leastSavedMs = 10;

/** A holder or country needs this many nearer pieces to be evidence. */
const leastNeighbours = 3;

/** Older measurements may be outdated; recalibration repeats them after 30 days. */
const staleDays = 45;

const dayMs = 86_400_000;

export function farSubnets(pieces: readonly CrawlPiece[], ports: FarPorts): FarSubnet[] {
  const crawlerOf = new Map(ports.crawlers.map((crawler) => [crawler.crawlerId, crawler]));
  const facts: Facts = {
    ...ports,
    crawlerOf,
    usualOfHolder: usualRtts(pieces, ({ holderId }) => holderId),
    usualOfCountry: usualRtts(pieces, ({ country }) => country),
    served: new Set(ports.crawlers.filter(mayTake).map(({ country }) => country)),
  };
  return pieces
    .filter(isMeasuredPiece)
    .flatMap((piece) => {
      const crawler = crawlerOf.get(piece.crawlerId);
      const help = crawler && bestHelp(piece, facts);
      return help ? [{ piece, crawler, help, savedMsPages: help.savesMs * piece.pagesPerDay }] : [];
    })
    .sort((a, b) => b.savedMsPages - a.savedMsPages || a.piece.subnetId - b.piece.subnetId);
}

interface Facts extends FarPorts {
  readonly crawlerOf: ReadonlyMap<CrawlerId, ReportedCrawler>;
  readonly usualOfHolder: ReadonlyMap<number, Usual>;
  readonly usualOfCountry: ReadonlyMap<string, Usual>;
  /** Countries with a crawler. */
  readonly served: ReadonlySet<string | null>;
}

interface Usual {
  readonly medianMs: number;
  readonly pieces: number;
}

function usualRtts<Key>(
  pieces: readonly CrawlPiece[],
  keyOf: (piece: CrawlPiece) => Key | null,
): Map<Key, Usual> {
  const grouped = new Map<Key, { value: number; weight: number }[]>();
  for (const piece of pieces) {
    const key = keyOf(piece);
    if (key === null || piece.rttMs === null) continue;
    const group = grouped.get(key);
    const entry = { value: piece.rttMs, weight: Math.max(piece.pagesPerDay, 1e-6) };
    if (group === undefined) grouped.set(key, [entry]);
    else group.push(entry);
  }
  return new Map(
    [...grouped].map(([key, group]) => [key, { medianMs: weightedMedian(group) ?? 0, pieces: group.length }]),
  );
}

/** Returns the remedy that saves most, or null if the piece is not far. */
function bestHelp(piece: MeasuredPiece, facts: Facts): Help | null {
  const helps = [
    ...measuredHelp(piece, facts),
    ...deniedHelp(piece, facts),
    ...neighboursHelp(piece, facts),
    ...newCrawlerHelp(piece, facts),
  ].filter(({ savesMs }) => savesMs >= leastSavedMs);
  return helps.sort((a, b) => b.savesMs - a.savesMs)[0] ?? null;
}

/** Another crawler measured less in the last round, but is offline or full, or has arrived since. */
function measuredHelp(piece: MeasuredPiece, { distances, crawlerOf, denies }: Facts): Help[] {
  return [...distances.measuredOf(piece)].flatMap(([crawlerId, rttMs]): Help[] => {
    const other = crawlerOf.get(crawlerId);
    const savesMs = piece.rttMs - rttMs;
    if (other === undefined || crawlerId === piece.crawlerId || savesMs < leastSavedMs) return [];
    const measured = `${other.name} measured ${msText(rttMs)}`;
    if (denies(crawlerId, piece))
      return [{ type: "denied", savesMs, words: `${measured}, but its partner's list denies this range` }];
    if (!mayTake(other))
      return [{ type: "absent-crawler", savesMs, words: `${measured}, but it is ${awayWords(other)}` }];
    if (piece.isDisplaced)
      return [{ type: "make-room", savesMs, words: `${measured}, but has no room: raise its budget` }];
    return [{ type: "probe-again", savesMs, words: `${measured}: probe this subnet again` }];
  });
}

const awayWords = ({ state, isTrusted }: ReportedCrawler): string =>
  isTrusted ? state : "revoked or not trusted";

/** A crawler that should be nearer was not probed because its partner denies the piece. */
function deniedHelp(piece: MeasuredPiece, { distances, crawlerOf, denies }: Facts): Help[] {
  const measured = distances.measuredOf(piece);
  return distances
    .nearerOthers(piece, leastSavedMs)
    .filter(({ crawlerId }) => !measured.has(crawlerId) && denies(crawlerId, piece))
    .map(({ crawlerId, rttMs }) => ({
      type: "denied",
      savesMs: piece.rttMs - rttMs,
      words: `${crawlerOf.get(crawlerId)?.name ?? "a crawler"} would reach it in about ${msText(rttMs)}, but its partner's list denies this range`,
    }));
}

function neighboursHelp(piece: MeasuredPiece, facts: Facts): Help[] {
  const { usualOfHolder, usualOfCountry } = facts;
  const agoWords = staleWords(piece, facts.now);
  const holder = piece.holderId === null ? undefined : usualOfHolder.get(piece.holderId);
  const country = piece.country === null ? undefined : usualOfCountry.get(piece.country);
  const help = (usual: Usual | undefined, whose: string): Help[] =>
    usual === undefined || usual.pieces <= leastNeighbours
      ? []
      : [
          {
            type: "probe-again",
            savesMs: piece.rttMs - usual.medianMs,
            words: `${whose} are reached in ${msText(usual.medianMs)}${agoWords}: probe this subnet again`,
          },
        ];
  return [
    ...help(holder, "its holder's other subnets"),
    ...help(country, `other subnets in ${piece.country ?? ""}`),
  ];
}

function staleWords({ decidedAt }: MeasuredPiece, now: Date): string {
  const ageMs = decidedAt === null ? 0 : now.getTime() - decidedAt.getTime();
  return ageMs < staleDays * dayMs ? "" : `, and it was last measured ${spanWords(ageMs / 1000)} ago`;
}

function newCrawlerHelp(piece: MeasuredPiece, { served, homeRtt }: Facts): Help[] {
  const { country, rttMs, pagesPerDay } = piece;
  if (country === null || served.has(country)) return [];
  const home = homeRtt(country);
  if (home === null) return [];
  const savesMs = rttMs - home.medianMs;
  const words = `a crawler in ${country} would save about ${msText(Math.max(0, savesMs))} on ${howMany(Math.round(pagesPerDay), "page")} per day`;
  return [{ type: "new-crawler", savesMs, words }];
}
