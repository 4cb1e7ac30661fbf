/** Badly served subnets and their remedies: one rule after another, with simple numbers. */
import { describe, expect, it } from "vitest";
import {
  type CrawlPiece,
  homeRtts,
  isMeasuredPiece,
  type MeasuredRtt,
  PieceDistances,
  type ReportedCrawler,
} from "#coordinator/tell/reports/crawl-pieces";
import { farSubnets } from "#coordinator/tell/reports/far-subnets";
import { missedCrawlers } from "#coordinator/tell/reports/missed-crawlers";
import { asCrawlerId, asHolderId, asSubnetId } from "#core/ids";

const now = new Date("2026-03-01T12:00:00Z");
const crawler = (id: number, name: string, more: Partial<ReportedCrawler> = {}): ReportedCrawler => ({
  ...{ crawlerId: asCrawlerId(id), name, country: "GR", state: "online", isTrusted: true },
  ...more,
});
const [athens, berlin, tokyo] = [
  crawler(1, "athens"),
  crawler(2, "berlin", { country: "DE" }),
  crawler(3, "tokyo", { country: "JP" }),
];

const piece = (id: number, rttMs: number, more: Partial<CrawlPiece> = {}): CrawlPiece => ({
  ...{ subnetId: asSubnetId(id), crawlerId: asCrawlerId(1), rttMs, isAnycast: false, isDisplaced: false },
  ...{ decidedAt: now, country: "GR", holderId: null, hosts: 1, pages: 10, pagesPerDay: 10 },
  ...more,
});
const measured = (subnetId: number, crawlerId: number, rttMs: number): MeasuredRtt => ({
  ...{ subnetId: asSubnetId(subnetId), crawlerId: asCrawlerId(crawlerId), rttMs },
});

function farOf(
  pieces: readonly CrawlPiece[],
  {
    crawlers = [athens, berlin, tokyo],
    rtts = [],
    denies = () => false,
  }: {
    readonly crawlers?: readonly ReportedCrawler[];
    readonly rtts?: readonly MeasuredRtt[];
    readonly denies?: (crawlerId: number) => boolean;
  } = {},
) {
  const distances = distancesOf(pieces, crawlers, rtts);
  return farSubnets(pieces, { crawlers, distances, homeRtt: homeRtts(pieces, crawlers), denies, now }).map(
    ({ piece: { subnetId }, help, savedMsPages }) => ({ subnetId, ...help, savedMsPages }),
  );
}

/** athens and berlin are 40 ms apart, tokyo is 200 from both. */
function distancesOf(
  pieces: readonly CrawlPiece[],
  crawlers: readonly ReportedCrawler[],
  rtts: readonly MeasuredRtt[],
): PieceDistances {
  return new PieceDistances(pieces.filter(isMeasuredPiece), {
    measured: rtts,
    candidates: crawlers.map(({ crawlerId }) => crawlerId),
    crawlerRttMs: (a, b) => (a === 3 || b === 3 ? 200 : 40),
  });
}

/** Thirty subnets of Greece that athens reaches in 12 ms: enough to expect as much elsewhere. */
const home = Array.from({ length: 30 }, (_, at) => piece(100 + at, 12));

describe("a subnet is badly served", () => {
  it("where its country has no crawler and one there would be as near as crawlers are at home", () => {
    const far = farOf([...home, piece(1, 124, { country: "IN", pagesPerDay: 3400 })]);

    expect(far).toEqual([
      {
        ...{ subnetId: 1, type: "new-crawler", savesMs: 112, savedMsPages: 380_800 },
        words: "a crawler in IN would save about 112 ms on 3,400 pages per day",
      },
    ]);
  });

  it("but nothing is expected from fewer than thirty measured at home", () => {
    expect(farOf([...home.slice(1), piece(1, 124, { country: "IN" })])).toEqual([]);
  });

  it("where another crawler measured less in the last round", () => {
    const [far] = farOf([piece(1, 50)], { rtts: [measured(1, 2, 9)] });

    expect(far).toMatchObject({ type: "probe-again", savesMs: 41, savedMsPages: 410 });
    expect(far?.words).toBe("berlin measured 9.00 ms: probe this subnet again");
  });

  it("with a note when that crawler is away, full, or not allowed", () => {
    const rtts = [measured(1, 2, 9)];
    const away = farOf([piece(1, 50)], { rtts, crawlers: [athens, { ...berlin, state: "offline" }] });
    const full = farOf([piece(1, 50, { isDisplaced: true })], { rtts });
    const denied = farOf([piece(1, 50)], { rtts, denies: (crawlerId) => crawlerId === 2 });

    expect(away[0]).toMatchObject({
      type: "absent-crawler",
      words: "berlin measured 9.00 ms, but it is offline",
    });
    expect(full[0]).toMatchObject({ type: "make-room" });
    expect(denied[0]).toMatchObject({
      type: "denied",
      words: "berlin measured 9.00 ms, but its partner's list denies this range",
    });
  });

  it("where the nearest by prediction was not asked because its partner denies the range", () => {
    // 10 ms from athens, which has left and was 40 ms from berlin: 30 to 50 ms from berlin.
    const far = farOf([piece(1, 210, { crawlerId: asCrawlerId(3) })], {
      crawlers: [berlin, tokyo],
      rtts: [measured(1, 1, 10)],
      denies: (crawlerId) => crawlerId === 2,
    });

    expect(far[0]).toMatchObject({
      type: "denied",
      savesMs: 170,
      words: "berlin would reach it in about 40.0 ms, but its partner's list denies this range",
    });
  });

  it("where others of its holder are nearer, with the age of its measurement", () => {
    const ofHolder = { holderId: asHolderId(7), country: null };
    const near = Array.from({ length: 4 }, (_, at) => piece(10 + at, 8, ofHolder));
    const decidedAt = new Date("2025-12-11T12:00:00Z");
    const far = farOf([...near, piece(1, 48, { ...ofHolder, decidedAt })]);

    expect(far).toHaveLength(1);
    expect(far[0]?.words).toBe(
      "its holder's other subnets are reached in 8.00 ms, and it was last measured 80 days ago: probe this subnet again",
    );
  });

  it("ordered by pages a day times the saving, and never for less than 10 ms", () => {
    const pieces = [piece(1, 30, { pagesPerDay: 100 }), piece(2, 100, { pagesPerDay: 50 }), piece(3, 19)];
    const atTheLimit = piece(4, 20, { pagesPerDay: 100 });
    const rtts = [measured(1, 2, 10), measured(2, 2, 10), measured(3, 2, 10), measured(4, 2, 10)];

    const far = farOf([...pieces, atTheLimit], { rtts });
    expect(far.map(({ subnetId, savedMsPages }) => [subnetId, savedMsPages])).toEqual([
      [2, 4500],
      [1, 2000],
      [4, 1000],
    ]);
  });
});

describe("a crawler would be missed", () => {
  it("by pages a day times the measured extra distance of the next nearest", () => {
    const pieces = [
      piece(1, 10, { pagesPerDay: 100 }),
      piece(2, 20, { pagesPerDay: 300 }),
      piece(3, 5, { crawlerId: asCrawlerId(2), pagesPerDay: 20 }),
    ].filter(isMeasuredPiece);
    const rtts = [measured(1, 2, 50), measured(1, 3, 210), measured(2, 2, 60), measured(3, 1, 45)];

    const missed = missedCrawlers(
      pieces,
      [athens, berlin, tokyo],
      distancesOf(pieces, [athens, berlin, tokyo], rtts),
    );

    expect(
      missed.map(({ name, lostMsPages, meanLostMs, measuredPages, successor }) => [
        ...[name, lostMsPages, meanLostMs, measuredPages, successor],
      ]),
    ).toEqual([
      // 100 × 40 + 300 × 40 of 400 pages.
      ["athens", 16_000, 40, 400, "berlin"],
      ["berlin", 800, 40, 20, "athens"],
      ["tokyo", 0, null, 0, null],
    ]);
  });

  it("as predicted where it was not measured, with the likely error", () => {
    const pieces = [piece(1, 10)].filter(isMeasuredPiece);
    const [missed] = missedCrawlers(pieces, [athens, berlin], distancesOf(pieces, [athens, berlin], []));

    // berlin is 40 ms from athens, so 30 to 50 ms from the subnet: half way, ± 8 + a quarter of the width.
    expect(missed).toMatchObject({ lostMsPages: 300, measuredPages: 0, predictedPages: 10, spreadMs: 13 });
  });

  it("with a statement instead of a number where no other crawler is known", () => {
    const pieces = [piece(1, 10)].filter(isMeasuredPiece);
    const [missed] = missedCrawlers(pieces, [athens], distancesOf(pieces, [athens], []));

    expect(missed).toMatchObject({ lostMsPages: 0, meanLostMs: null, unknownPages: 10, successor: null });
  });
});
