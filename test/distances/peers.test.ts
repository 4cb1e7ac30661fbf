/** Which peers crawlers measure: all in a small fleet; landmarks, neighbours and the least recent in a large one. */
import { describe, expect, it } from "vitest";
import { PeerMatrix } from "#coordinator/place/distances/peer-matrix";
import {
  isNewcomer,
  LandmarkEstimates,
  landmarkCount,
  landmarksOf,
  neighbourCount,
  PeerSearch,
  type PeerTurn,
  peerRefreshMs,
  peersFor,
  peersPerTurn,
} from "#coordinator/place/distances/peers";
import { asCrawlerId, type CrawlerId } from "#core/ids";

const noonMs = Date.UTC(2030, 0, 1, 12);
const fleetOf = (size: number): CrawlerId[] =>
  Array.from({ length: size }, (_, index) => asCrawlerId(index + 1));
/** Crawlers on a line, 1 ms apart. */
const rttMs = (a: CrawlerId, b: CrawlerId) => Math.abs(a - b);

function turnOf(online: readonly CrawlerId[], matrix = new PeerMatrix(), nowMs = noonMs): PeerTurn {
  return { matrix, online, landmarks: landmarksOf(online), nowMs };
}

/** Every crawler takes a turn and answers; returns the number of measurements. */
function everybodyMeasures(turn: PeerTurn): number {
  let measurements = 0;
  const search = new PeerSearch(turn);
  for (const crawlerId of turn.online) {
    for (const peer of peersFor(crawlerId, turn, { search })) {
      const { matrix } = turn;
      matrix.learn(matrix.slotOf(crawlerId), matrix.slotOf(peer), rttMs(crawlerId, peer), turn.nowMs);
      measurements += 1;
    }
  }
  return measurements;
}

describe("a small fleet", () => {
  it("measures every pair from both sides up to 49 crawlers, and from one up to 97", () => {
    expect(everybodyMeasures(turnOf(fleetOf(12)))).toBe(12 * 11);
    expect(everybodyMeasures(turnOf(fleetOf(49)))).toBe(49 * 48);
    expect(everybodyMeasures(turnOf(fleetOf(97)))).toBe((97 * 96) / 2);
  });

  it("asks no crawler for more than its share of the pairs", () => {
    const turn = turnOf(fleetOf(97));

    expect(Math.max(...turn.online.map((crawlerId) => peersFor(crawlerId, turn).length))).toBe(peersPerTurn);
  });

  it("measures nothing twice within the interval, and everything after it", () => {
    const matrix = new PeerMatrix();
    const online = fleetOf(12);
    everybodyMeasures(turnOf(online, matrix));

    expect(everybodyMeasures(turnOf(online, matrix, noonMs + peerRefreshMs - 1000))).toBe(0);
    expect(everybodyMeasures(turnOf(online, matrix, noonMs + peerRefreshMs))).toBe(132);
  });

  it("asks again after a minute when there was no answer", () => {
    const matrix = new PeerMatrix();
    const online = fleetOf(3);

    expect(peersFor(online[0]!, turnOf(online, matrix))).toEqual([2, 3]);
    expect(peersFor(online[0]!, turnOf(online, matrix, noonMs + 30_000))).toEqual([]);
    expect(peersFor(online[0]!, turnOf(online, matrix, noonMs + 60_000))).toEqual([2, 3]);
  });

  it("has newcomers until they know everybody", () => {
    const turn = turnOf(fleetOf(12));
    expect(isNewcomer(asCrawlerId(1), turn)).toBe(true);

    everybodyMeasures(turn);

    expect(turn.online.some((crawlerId) => isNewcomer(crawlerId, turn))).toBe(false);
    expect(isNewcomer(asCrawlerId(13), turnOf([...turn.online, asCrawlerId(13)], turn.matrix))).toBe(true);
  });
});

describe("a large fleet", () => {
  const online = fleetOf(300);

  it("never asks a crawler for more than its budget", () => {
    const turn = turnOf(online);

    for (const crawlerId of online)
      expect(peersFor(crawlerId, turn).length).toBeLessThanOrEqual(peersPerTurn);
  });

  it("knows every pair with a landmark after one turn", () => {
    const turn = turnOf(online);
    everybodyMeasures(turn);

    const { matrix, landmarks } = turn;
    const unknown = landmarks.flatMap((landmark) =>
      online.filter((one) => one !== landmark && matrix.rttMs(one, landmark) === null),
    );
    expect(landmarks).toHaveLength(landmarkCount);
    expect(unknown).toEqual([]);
  });

  it("has a newcomer measure landmarks first, and then the neighbours that these reveal", () => {
    const matrix = new PeerMatrix();
    everybodyMeasures(turnOf(online, matrix));
    const newcomer = asCrawlerId(301);
    const turn = turnOf([...online, newcomer], matrix, noonMs + 60_000);
    const { landmarks } = turn;

    const first = peersFor(newcomer, turn);
    expect(new Set(first.slice(0, landmarks.length))).toEqual(new Set(landmarks));
    for (const landmark of landmarks) {
      matrix.learn(
        matrix.slotOf(newcomer),
        matrix.slotOf(landmark),
        rttMs(newcomer, landmark),
        noonMs + 60_000,
      );
    }
    const second = peersFor(newcomer, { ...turn, nowMs: noonMs + 120_000 });

    const neighbours = second.slice(0, neighbourCount).toSorted((a, b) => b - a);
    expect(neighbours[0]).toBe(300);
    expect(neighbours.filter((peer) => peer > 260).length).toBeGreaterThanOrEqual(neighbourCount - 2);
    expect(isNewcomer(newcomer, turn)).toBe(true);
  });

  it("has measured every pair after some turns, the least recent first", () => {
    const matrix = new PeerMatrix();
    let turns = 0;
    while (online.some((one) => matrix.knownOf(matrix.slotOf(one)) < online.length - 1) && turns < 50) {
      everybodyMeasures(turnOf(online, matrix, noonMs + turns * peerRefreshMs));
      turns += 1;
    }

    // 299 others, each pair from one side: 150 measurements, of which some 20 in each turn are new.
    expect(turns).toBeLessThanOrEqual(12);
  });

  it("keeps all landmarks but at most one when a crawler comes or goes", () => {
    const before = landmarksOf(online);

    expect(
      landmarksOf([...online, asCrawlerId(301)]).filter((one) => before.includes(one)).length,
    ).toBeGreaterThanOrEqual(15);
    expect(
      landmarksOf(online.filter((one) => one !== before[3])).filter((one) => before.includes(one)),
    ).toHaveLength(15);
    expect(landmarksOf(fleetOf(97))).toEqual([]);
  });
});

describe("the matrix", () => {
  it("ignores invalid times, and crawlers that measured themselves", () => {
    const matrix = new PeerMatrix();
    const [a, b] = [matrix.slotOf(asCrawlerId(7)), matrix.slotOf(asCrawlerId(9))];

    for (const timeMs of [-1, Number.NaN, Number.POSITIVE_INFINITY]) matrix.learn(a, b, timeMs, noonMs);
    matrix.learn(a, a, 5, noonMs);

    expect([matrix.rttMsAt(a, b), matrix.rttMsAt(a, a), matrix.knownOf(a)]).toEqual([
      Number.NaN,
      Number.NaN,
      0,
    ]);
  });
});

describe("estimates", () => {
  /** On the line: landmarks at 0 and 100, crawlers at 40 and 45. */
  const matrix = new PeerMatrix();
  const [west, east, one, other] = [0, 100, 40, 45].map((at) => asCrawlerId(at + 1));
  for (const landmark of [west!, east!]) {
    for (const crawler of [one!, other!]) {
      matrix.learn(matrix.slotOf(crawler), matrix.slotOf(landmark), rttMs(crawler, landmark), noonMs);
    }
  }

  it("are half way between the bounds that the landmarks give", () => {
    const estimates = new LandmarkEstimates(matrix, [west!, east!]);

    // At least |40 − 45| = 5, at most 40 + 45 = 85.
    expect(estimates.between(matrix.slotOf(one!), matrix.slotOf(other!))).toBe(45);
    expect(estimates.between(matrix.slotOf(one!), matrix.slotOf(one!))).toBeNaN();
  });

  it("are null for a crawler without a common landmark", () => {
    const lonely = matrix.slotOf(asCrawlerId(500));

    const estimates = new LandmarkEstimates(matrix, [west!, east!]);
    expect(estimates.between(lonely, matrix.slotOf(one!))).toBeNaN();
  });

  it("are not measurements: the pair stays unknown to the matrix", () => {
    const slots = matrix.slotsOf([west!, one!, other!]);
    expect(matrix.rttMs(one!, other!)).toBeNull();
    expect([...matrix.rttsBetween(slots[1]!, slots)]).toEqual([40, Number.NaN, Number.NaN]);

    matrix.learn(slots[1]!, slots[2]!, 6, noonMs);

    expect(matrix.rttMs(other!, one!)).toBe(6);
  });
});
